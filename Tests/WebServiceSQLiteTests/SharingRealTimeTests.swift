import CSQLite
import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceSQLite

@Suite("SQLiteStorage: real time", .permit)
struct SharingRealTimeTests {
    @Test("Concurrent writes wait for a busy database together, and not one after another")
    func patienceOfMany() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let storage = try SQLiteStorage(file: file, clock: .system, patience: .seconds(1))
            try await storage.put("old", "a")
            let foreigner = try Foreigner(file)
            try foreigner.run("BEGIN IMMEDIATE")
            let start = ContinuousClock.now
            let writes = (0..<60).map { _ in Task { try await storage.put("new", "a") } }
            for write in writes { await expectFailure(.storage) { try await write.value } }
            // One after another, they would take a minute.
            #expect(start.duration(to: .now) < .seconds(30))
            try foreigner.run("COMMIT")
            try await storage.put("new", "a")
            #expect(try await storage.text("a") == "new")
        }
    }
}
