import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceStorage

@testable import WebServiceSQLite

@Suite("SQLiteStorage: limits", .permit(minutes: 15))
struct LimitTests {
    private func totals(_ file: URL) throws -> (count: Int?, bytes: Int?) {
        let database = try Foreigner(file)
        return (
            try database.value("SELECT count(*) FROM entries").flatMap { Int($0) },
            try database.value("SELECT sum(length(key) + length(data)) FROM entries").flatMap { Int($0) }
        )
    }

    @Test(
        "Writing ten times the limit leaves the newest entries, in a file that does not grow",
        arguments: [true, false])
    func tenTimes(byBytes: Bool) async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let limit = 100_000
            let storage =
                try byBytes
                ? SQLiteStorage(file: file, maximumBytes: limit) : SQLiteStorage(file: file, maximumCount: 100)
            for number in 0..<1_000 {
                let data = Data(repeating: UInt8(truncatingIfNeeded: number), count: 970 + number % 10)
                try await storage.store(StorageEntry(.raw(data), date: nil), for: StorageKey(identifier: "\(number)"))
                if number % 50 == 49 {
                    let (count, bytes) = try totals(file)
                    if byBytes { #expect(try #require(bytes) <= limit) } else { #expect(try #require(count) <= 100) }
                    #expect(try #require(count) > min(number, 85))
                }
            }
            for number in 915..<1_000 {
                #expect(try await storage.entry(for: StorageKey(identifier: "\(number)")) != nil, "\(number)")
            }
            for number in 0..<895 {
                #expect(try await storage.entry(for: StorageKey(identifier: "\(number)")) == nil, "\(number)")
            }
            storage.close()
            let size = try #require(FileManager.default.attributesOfItem(atPath: file.path)[.size] as? NSNumber)
                .intValue
            #expect(size < 3 * limit)
        }
    }

    @Test("Short entries after long ones stay within the limit, and reaching it frees a tenth")
    func shortAfterLong() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let storage = try SQLiteStorage(file: file, maximumBytes: 10_000)
            for number in 0..<2 {
                try await storage.store(
                    StorageEntry(.raw(Data(count: 4_900)), date: nil), for: StorageKey(identifier: "\(number)"))
            }
            var (before, falls) = (try #require(try totals(file).bytes), 0)
            // The two long entries are deleted one after the other. Then only short ones make room.
            for number in 0..<300 {
                try await storage.store(
                    StorageEntry(.raw(Data(count: 40)), date: nil), for: StorageKey(identifier: "short \(number)"))
                let bytes = try #require(try totals(file).bytes)
                #expect(bytes <= 10_000)
                if bytes < before {
                    falls += 1
                    #expect(bytes <= 9_000)
                }
                before = bytes
            }
            #expect(falls > 2)
        }
    }

    @Test(
        "The entry written longest ago is deleted first, regardless of reads, and a new write renews it")
    func order() async throws {
        try await withScratchFolder { folder in
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"), maximumCount: 3)
            for key in ["a", "b", "c"] { try await storage.put(key, StorageKey(identifier: key)) }
            try await storage.put("a again", "a")
            #expect(try await storage.text("b") == "b")
            try await storage.put("d", "d")
            #expect(try await storage.text("b") == nil)
            let kept = try await [storage.text("c"), storage.text("a"), storage.text("d")]
            #expect(kept == ["c", "a again", "d"])
        }
    }

    @Test("An entry that fills the storage replaces all others")
    func alone() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let storage = try SQLiteStorage(file: file, maximumBytes: 10_000)
            for number in 0..<9 {
                try await storage.put(String(repeating: "x", count: 980), StorageKey(identifier: "\(number)"))
            }
            let key: StorageKey = "large"
            try await storage.put(String(repeating: "y", count: 10_000 - key.bytes.count), key)
            #expect(try totals(file) == (1, 10_000))
            #expect(try await storage.text(key)?.utf8.count == 10_000 - key.bytes.count)
        }
    }

    @Test("Limits below the current contents apply from the next write")
    func smaller() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let storage = try SQLiteStorage(file: file)
            for number in 0..<100 { try await storage.put("\(number)", StorageKey(identifier: "\(number)")) }
            let limited = try SQLiteStorage(file: file, maximumCount: 20)
            try await limited.put("new", "new")
            #expect(try totals(file).count == 18)
            let kept = try await [limited.text("new"), limited.text("99"), limited.text("82")]
            #expect(kept == ["new", "99", nil])
        }
    }

    @Test("Several storages with the same limits exceed them by at most a tenth each")
    func several() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let storages = try (0..<4).map { _ in try SQLiteStorage(file: file, maximumCount: 100) }
            for number in 0..<1000 {
                try await storages[number % 4].put("\(number)", StorageKey(identifier: "\(number)"))
                if number % 50 == 49 { #expect(try #require(try totals(file).count) <= 140) }
            }
            #expect(try await storages[0].text("999") == "999")
        }
    }
}
