import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceSQLite
import WebServiceStorage

/// The list of a database.
@Suite(.permit) struct ListTests {
    @Test("The pages of a list contain each entry once, with its date and size")
    func pages() async throws {
        let temporary = TemporaryFolder()
        let storage = try SQLiteStorage(file: temporary.url.appendingPathComponent("responses.db"))
        #expect(try await storage.summaries(after: nil, limit: 10).isEmpty)
        for number in 0..<25 {
            let entry = StorageEntry(.raw(Data(count: number * 700)), date: Date(timeIntervalSince1970: Double(number)))
            try await storage.store(entry, for: StorageKey(identifier: "\(number)", account: "ann"))
        }
        var found: [StorageEntry.Summary] = []
        while true {
            let page = try await storage.summaries(after: found.last?.key, limit: 10)
            #expect(page.count <= 10)
            guard let last = page.last?.key else { break }
            found += page
            try await storage.removeEntry(for: last)
        }
        #expect(Set(found.map(\.key)).count == 25)
        for summary in found {
            let number = try #require(Int(summary.key.identifier))
            #expect(summary.byteCount == number * 700)
            #expect(summary.date == Date(timeIntervalSince1970: Double(number)))
        }
        #expect(try await storage.summaries(after: nil, limit: -1).isEmpty)
        storage.close()
        #expect(try await storage.summaries(after: nil, limit: 100).count == 22)
    }
}
