import CSQLite
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceStorage

@testable import WebServiceSQLite

@Suite("SQLiteStorage: concurrent use", .permit(minutes: 15))
struct SharingTests {
    @Test("Four processes write many entries each to one file, and no write fails or is lost")
    func processes() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let count = amount(1_000, thorough: 10_000)
            try await withThrowingTaskGroup { group in
                for seed in 0..<4 {
                    group.addTask {
                        let lines = try await blocking {
                            try Probe(["sqlite", file.path, "fill", "\(count)", "\(seed)"]).lines()
                        }
                        #expect(lines == ["done"])
                    }
                }
                try await group.waitForAll()
            }
            let storage = try SQLiteStorage(file: file)
            var missing = 0
            for seed in 0..<4 {
                for number in 0..<count {
                    if try await storage.text(StorageKey(identifier: "\(seed)/\(number)")) != "\(seed) \(number)" {
                        missing += 1
                    }
                }
            }
            #expect(missing == 0)
            storage.close()
            #expect(try Foreigner(file).value("PRAGMA integrity_check") == "ok")
        }
    }

    @Test("A write blocks no thread of a task while another program writes, and reads continue")
    func waits() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let storage = try SQLiteStorage(file: file)
            try await storage.put("old", "a")
            let foreigner = try Foreigner(file)
            try foreigner.run("BEGIN IMMEDIATE")
            // More writes than there are threads for tasks.
            let writes = (0..<64).map { number in
                Task { try await storage.put("new", number == 0 ? "a" : StorageKey(identifier: "\(number)")) }
            }
            for _ in 0..<1000 { #expect(try await storage.text("a") == "old") }
            try foreigner.run("COMMIT")
            for write in writes { try await write.value }
            #expect(try await storage.text("a") == "new")
            #expect(try await storage.text("63") == "new")
        }
    }

    @Test(
        "A database that is busy for too long is an error with that cause, and the next write succeeds"
    )
    func patience() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let storage = try SQLiteStorage(file: file, clock: .system, patience: .milliseconds(20))
            try await storage.put("old", "a")
            let foreigner = try Foreigner(file)
            try foreigner.run("BEGIN IMMEDIATE")
            let underlying = await expectFailure(.storage) { try await storage.put("new", "a") }
            #expect(underlying?.code == SQLITE_BUSY)
            #expect(try await storage.text("a") == "old")
            try foreigner.run("COMMIT")
            try await storage.put("new", "a")
            #expect(try await storage.text("a") == "new")
        }
    }

    @Test(
        "64 tasks write and read concurrently, over one storage and over several",
        arguments: [StorageEntry.Durability.process, .power])
    func tasks(durability: StorageEntry.Durability) async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let rounds = amount(3, thorough: 8, soak: 20)
            let storages = try (0..<3).map { _ in try SQLiteStorage(file: file, durability: durability) }
            try await withThrowingTaskGroup { group in
                for task in 0..<64 {
                    group.addTask {
                        let storage = storages[task < 32 ? 0 : task % 3]
                        let key = StorageKey(identifier: "\(task)")
                        for number in 0..<rounds {
                            try await storage.put("\(task) \(number)", key)
                            #expect(try await storage.text(key) == "\(task) \(number)")
                            try await storage.put("\(task)", "shared")
                            let shared = try await storage.text("shared")
                            #expect(shared.flatMap { Int($0) }.map { (0..<64).contains($0) } == true)
                            if number % 7 == task % 7 { storage.close() }
                        }
                    }
                }
                try await group.waitForAll()
            }
            for task in 0..<64 {
                #expect(try await storages[2].text(StorageKey(identifier: "\(task)")) == "\(task) \(rounds - 1)")
            }
        }
    }
}
