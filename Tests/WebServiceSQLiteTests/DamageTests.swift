import CSQLite
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceStorage

@testable import WebServiceSQLite

@Suite("SQLiteStorage: damage", .permit(minutes: 15))
struct DamageTests {
    /// The contents of the database that is damaged, from no bytes to several pages.
    private static let contents: [(key: StorageKey, data: Data)] = (0..<10).map { number in
        let data = Data((0..<(number * number * 90)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) })
        return (StorageKey(identifier: String(repeating: "entry \(number) ", count: 1 + number * 8)), data)
    }

    private func database(in folder: URL) async throws -> Data {
        let file = folder.appendingPathComponent("whole.db")
        let storage = try SQLiteStorage(file: file)
        for (key, data) in Self.contents {
            try await storage.store(StorageEntry(.value(data), date: Date(timeIntervalSince1970: 5)), for: key)
        }
        storage.close()
        let bytes = try Data(contentsOf: file)
        try FileManager.default.removeItem(at: file)
        return bytes
    }

    /// Returns the number of entries that are found, and expects correct contents.
    private func check(_ storage: SQLiteStorage, _ comment: @autoclosure () -> Comment) async throws -> Int {
        var found = 0
        for (key, data) in Self.contents {
            guard let entry = try await storage.entry(for: key) else { continue }
            found += 1
            guard entry.data != data || entry.form != "value" || entry.date != Date(timeIntervalSince1970: 5) else {
                continue
            }
            Issue.record("wrong bytes: \(comment())")
        }
        return found
    }

    @Test(
        "No damaged database returns a wrong byte, and almost all can be written again",
        arguments: [0, 1])
    func mutations(half: Int) async throws {
        var random = SystemRandomNumberGenerator()
        try await withScratchFolder(inMemory: true) { folder in
            let whole = try await database(in: folder)
            let count = amount(200, thorough: 1_000, soak: 5_000)
            var (found, aside, lost) = (0, 0, 0)
            for number in 0..<count {
                let path = folder.appendingPathComponent("a.db").path
                for suffix in ["", "-wal", "-shm", ".damaged"] { unlink(path + suffix) }
                var bytes = whole
                var flips: [(Int, UInt8)] = []
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    // Half of them are in the header of a page, where they have the largest effect.
                    let page = Int.random(in: 0..<(whole.count / 4096), using: &random) * 4096
                    let offset = page + Int.random(in: 0..<(Bool.random(using: &random) ? 128 : 4096), using: &random)
                    flips.append((offset, 1 << UInt8.random(in: 0..<8, using: &random)))
                    bytes[offset] ^= flips[flips.count - 1].1
                }
                try bytes.write(to: URL(fileURLWithPath: path))
                let storage = try SQLiteStorage(file: URL(fileURLWithPath: path))
                found += try await check(storage, "\(flips)")
                if number % 10 == 0 {
                    try await storage.put("new", Self.contents[number / 10 % Self.contents.count].key)
                    // What is written between damaged pages that appear intact may be damaged as
                    // well.
                    let text = try await storage.text(Self.contents[number / 10 % Self.contents.count].key)
                    #expect(text == "new" || text == nil, "\(flips)")
                    if text == nil { lost += 1 }
                }
                storage.close()
                if access(path + ".damaged", F_OK) == 0 { aside += 1 }
            }
            // Each outcome must occur; otherwise the test did not cause damage.
            #expect(found > count)
            #expect(found < 10 * count)
            #expect(aside > count / 50)
            #expect(aside < count - count / 50)
            #expect(lost < 10)
        }
    }

    @Test(
        "A written entry is read even if an undetected damaged page would lead to an older value")
    func olderValue() async throws {
        try await withScratchFolder(inMemory: true) { folder in
            var bytes = try await database(in: folder)
            bytes[10_280] ^= 4
            bytes[41_048] ^= 128
            let file = folder.appendingPathComponent("a.db")
            for (key, _) in Self.contents {
                for suffix in ["", "-wal", "-shm", ".damaged"] { unlink(file.path + suffix) }
                try bytes.write(to: file)
                let storage = try SQLiteStorage(file: file)
                try await storage.put("new", key)
                #expect(try await storage.text(key) == "new")
                storage.close()
            }
        }
    }

    @Test(
        "A database that is truncated at any offset returns correct entries or none, and is writable again")
    func truncations() async throws {
        try await withScratchFolder(inMemory: true) { folder in
            let whole = try await database(in: folder)
            let file = folder.appendingPathComponent("a.db")
            for length in Array(stride(from: 0, to: whole.count, by: 509))
                + Array(stride(from: 4096, through: whole.count, by: 4096)) + [
                    1, 99, 100, 101,
                ]
            {
                for suffix in ["", "-wal", "-shm", ".damaged"] { unlink(file.path + suffix) }
                try whole.prefix(length).write(to: file)
                let storage = try SQLiteStorage(file: file)
                let found = try await check(storage, "\(length) bytes")
                #expect(found == Self.contents.count || length < whole.count)
                try await storage.put("new", "new")
                #expect(try await storage.text("new") == "new", "\(length) bytes")
            }
        }
    }

    @Test(
        "A header that this version of SQLite does not support is damage",
        arguments: [(18, 3), (18, 255), (19, 3), (47, 9), (0, 0), (16, 1)])
    func head(offset: Int, byte: UInt8) async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            var bytes = try await database(in: folder)
            bytes[offset] = byte
            try bytes.write(to: file)
            let storage = try SQLiteStorage(file: file)
            #expect(try await check(storage, "byte \(offset)") == 0)
            try await storage.put("new", "new")
            #expect(try await storage.text("new") == "new")
            #expect(try Data(contentsOf: URL(fileURLWithPath: file.path + ".damaged")) == bytes)
        }
    }

    @Test("A damaged row counts as missing and is deleted, and the others remain")
    func damagedRow() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let changes = [
                "data = x'00'", "form = 1", "form = 7", "date = 1", "date = NULL", "checksum = checksum + 1",
                "data = CAST(data AS TEXT)",
            ]
            let storage = try SQLiteStorage(file: file)
            for change in changes {
                try await storage.store(
                    StorageEntry(.raw(Data("abc".utf8)), date: Date(timeIntervalSince1970: 9)), for: "a")
                try await storage.put("b", "b")
                let foreigner = try Foreigner(file)
                let keyOfA = StorageKey(identifier: "a").bytes.map {
                    $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16)
                }.joined()
                try foreigner.run("UPDATE entries SET \(change) WHERE key = x'\(keyOfA)'")
                let entry = try await storage.entry(for: "a")
                if change.contains("CAST") {
                    #expect(entry?.data == Data("abc".utf8))
                } else {
                    #expect(entry == nil, "\(change)")
                    #expect(try foreigner.value("SELECT count(*) FROM entries") == "1", "\(change)")
                }
                #expect(try await storage.text("b") == "b")
            }
        }
    }

    @Test("A damaged row that was replaced in the meantime is not deleted")
    func replacedRow() async throws {
        try await withScratchFolder { folder in
            let files = DatabaseFiles(database: folder.appendingPathComponent("a.db").path)
            let pair = ConnectionPair(files: files, durability: .process, clock: .system, patience: .seconds(1))
            let record = try #require(Record(StorageEntry(.raw(Data([1])), date: nil), for: [1]))
            let kept = try await pair.later(pair.writer, "try") { connection in
                try connection.write(record, for: [1], StorageLimits(bytes: nil, count: nil))
                try connection.remove([1], checksum: record.checksum &+ 1)
                return try connection.record(for: [1]) != nil
            }
            #expect(kept)
            let rest = try await pair.later(pair.writer, "try") { connection in
                try connection.remove([1], checksum: record.checksum)
                return try connection.record(for: [1])
            }
            #expect(rest == nil)
        }
    }

    /// The result codes of the attempts, and what they lead to.
    struct Reports: Sendable, CustomTestStringConvertible {
        let codes: [Int32]
        let isMovedAside: Bool
        /// The code of the error that the caller receives.
        var failure: Int32?

        var testDescription: String { "\(codes)" }
    }

    @Test(
        "A database is moved aside after two consecutive reports of damage, and not after a single one",
        arguments: [
            Reports(codes: [SQLITE_CORRUPT], isMovedAside: false),
            Reports(codes: [SQLITE_IOERR, SQLITE_CORRUPT], isMovedAside: false),
            Reports(codes: [SQLITE_CANTOPEN, SQLITE_NOTADB], isMovedAside: false),
            Reports(codes: [SQLITE_CORRUPT, SQLITE_IOERR], isMovedAside: false, failure: SQLITE_IOERR),
            Reports(codes: [SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_IOERR], isMovedAside: false, failure: SQLITE_IOERR),
            Reports(codes: [SQLITE_IOERR, SQLITE_IOERR], isMovedAside: false, failure: SQLITE_IOERR),
            Reports(codes: [SQLITE_CORRUPT, SQLITE_NOTADB], isMovedAside: true),
            Reports(codes: [SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_CORRUPT], isMovedAside: true),
            Reports(
                codes: [SQLITE_CORRUPT, SQLITE_CORRUPT, SQLITE_CORRUPT], isMovedAside: true, failure: SQLITE_CORRUPT),
            Reports(codes: [SQLITE_CORRUPT, SQLITE_CORRUPT, SQLITE_IOERR], isMovedAside: true, failure: SQLITE_IOERR),
        ])
    func confirmation(_ reports: Reports) async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let storage = try SQLiteStorage(file: file)
            try await storage.put("old", "a")
            storage.close()
            let pair = ConnectionPair(
                files: DatabaseFiles(database: file.path), durability: .process, clock: .system, patience: .seconds(20))
            let rest = Mutex(reports.codes)
            var failure: Int32?
            do {
                try await pair.later(pair.writer, "try") { _ in
                    let code = rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                    if let code { throw SQLiteError(code, "the report of a test") }
                }
            } catch {
                failure = ((error as? WebServiceError)?.underlying as? SQLiteError)?.code
            }
            pair.close()
            #expect(rest.withLock { $0 } == [])
            #expect(failure == reports.failure)
            #expect(try await storage.text("a") == (reports.isMovedAside ? nil : "old"))
            #expect(FileManager.default.fileExists(atPath: file.path + ".damaged") == reports.isMovedAside)
        }
    }
}
