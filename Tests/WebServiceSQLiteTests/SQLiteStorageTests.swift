import CSQLite
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceStorage

@testable import WebServiceSQLite

@Suite("SQLiteStorage", .permit(minutes: 15))
struct SQLiteStorageTests {
    @Test("Another storage returns the same bytes and form, and the date to the microsecond")
    func roundTrip() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let date = Date(timeIntervalSince1970: 1_700_000_000.123456)
            do {
                let storage = try SQLiteStorage(file: file)
                #expect(try await storage.entry(for: "raw") == nil)
                try await storage.store(StorageEntry(.raw(Data("r".utf8)), date: date), for: "raw")
                try await storage.store(StorageEntry(.value(Data("v".utf8)), date: date), for: "value")
                try await storage.store(StorageEntry(.unlabelled(Data("u".utf8)), date: date), for: "any")
                try await storage.store(StorageEntry(.raw(Data("old".utf8)), date: date), for: "replaced")
                try await storage.store(StorageEntry(.value(Data("new".utf8)), date: nil), for: "replaced")
            }
            let storage = try SQLiteStorage(file: file)
            let entries = try await [
                storage.entry(for: "raw"), storage.entry(for: "value"), storage.entry(for: "any"),
                storage.entry(for: "replaced"),
            ]
            #expect(entries.map(\.?.form) == ["raw", "value", "unlabelled", "value"])
            #expect(entries.map(\.?.data) == ["r", "v", "u", "new"].map { Data($0.utf8) })
            for entry in entries.prefix(3) { #expect(abs(try #require(entry?.date).timeIntervalSince(date)) < 1e-6) }
            #expect(entries[3]?.date == nil)
        }
    }

    @Test("The entries of one classification are removed")
    func classification() async throws {
        try await withScratchFolder { folder in
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"))
            let (user, users) = (DataClassification("user"), DataClassification("users"))
            let keys = [
                StorageKey(identifier: "a", classification: user),
                StorageKey(identifier: "b", classification: user, account: "ann"),
                StorageKey(identifier: "a", classification: users), StorageKey(identifier: "user"),
            ]
            for key in keys { try await storage.store(StorageEntry(.raw(Data("x".utf8)), date: nil), for: key) }
            try await storage.removeEntries(of: user)
            var there: [Bool] = []
            for key in keys { there.append(try await storage.entry(for: key) != nil) }
            #expect(there == [false, false, true, true])
        }
    }

    // Foundation cannot print some of these dates.
    @Test(
        "A distant date, a date before 1970 and no date are preserved, and an invalid date is none",
        arguments: [
            (-63_113_904_000, true), (63_113_904_000, true), (-978_307_200.5, true), (nil, true), (.infinity, false),
            (.nan, false), (1e300, false),
        ] as [(Double?, Bool)])
    func dates(seconds: Double?, comesBack: Bool) async throws {
        try await withScratchFolder { folder in
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"))
            try await storage.store(
                StorageEntry(.raw(Data()), date: seconds.map { Date(timeIntervalSinceReferenceDate: $0) }), for: "a")
            #expect(
                try #require(try await storage.entry(for: "a")).date?.timeIntervalSinceReferenceDate
                    == (comesBack ? seconds : nil))
        }
    }

    @Test("Any identifier is a key, and none is part of a path")
    func identifiers() async throws {
        try await withScratchFolder { folder in
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("deep/a.db"))
            let identifiers = [
                "../../x", "/etc/x", "a/b", "..", ".", "\0", "a\0b", "a", String(repeating: "i", count: 300), "~", "",
                "%2e%2e%2f", "\\..\\x",
            ]
            for identifier in identifiers {
                try await storage.put("of " + identifier, StorageKey(identifier: identifier))
            }
            for identifier in identifiers {
                #expect(try await storage.text(StorageKey(identifier: identifier)) == "of " + identifier)
            }
            storage.close()
            #expect(try names(in: folder) == ["deep"])
            #expect(try names(in: folder.appendingPathComponent("deep")) == ["a.db", "a.db.lock"])
        }
    }

    private static let corpora = ProcessInfo.processInfo.environment["WEBSERVICE_CORPORA"].map {
        URL(fileURLWithPath: $0, isDirectory: true)
    }

    @Test(
        "Every naughty string is valid as an identifier, a classification, an account and data",
        .enabled(if: corpora != nil, "WEBSERVICE_CORPORA must name the folder of the corpora"))
    func naughtyStrings() async throws {
        let file = try #require(Self.corpora).appendingPathComponent("blns/blns.json")
        let strings = try JSONDecoder().decode([String].self, from: Data(contentsOf: file))
        try #require(strings.count > 500)
        try await withScratchFolder { folder in
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"))
            let keys = strings.map { StorageKey(identifier: $0, classification: DataClassification($0), account: $0) }
            for (key, string) in zip(keys, strings) { try await storage.put(string, key) }
            for (key, string) in zip(keys, strings) { #expect(try await storage.text(key) == string) }
            for key in keys { try await storage.removeEntry(for: key) }
            for key in keys { #expect(try await storage.entry(for: key) == nil) }
        }
    }

    @Test(
        "A string that looks like SQL is only data",
        arguments: ["'; DROP TABLE entries; --", "\"; DELETE FROM entries; --", "%", "_", "*", "x' OR 1=1 --"])
    func injection(text: String) async throws {
        try await withScratchFolder { folder in
            let storage = try SQLiteStorage(
                file: folder.appendingPathComponent(text.replacingOccurrences(of: "/", with: "")))
            try await storage.put("kept", "other")
            try await storage.put(text, StorageKey(identifier: text))
            #expect(try await storage.text(StorageKey(identifier: text)) == text)
            try await storage.removeEntry(for: StorageKey(identifier: text))
            #expect(try await storage.entry(for: StorageKey(identifier: text)) == nil)
            #expect(try await storage.text("other") == "kept")
        }
    }

    @Test("Keys are compared byte for byte")
    func keys() async throws {
        try await withScratchFolder { folder in
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"))
            let keys: [StorageKey] = [
                "\u{E9}", "e\u{301}", "A", "a", "a ",
                StorageKey(identifier: "a", classification: DataClassification("other")),
                StorageKey(identifier: "a", account: ""), StorageKey(identifier: "a", account: "a"),
            ]
            for (number, key) in keys.enumerated() { try await storage.put("\(number)", key) }
            for (number, key) in keys.enumerated() { #expect(try await storage.text(key) == "\(number)") }
        }
    }

    @Test(
        "An empty entry is stored, and an entry over the limits is refused and leaves the old one unchanged")
    func sizes() async throws {
        try await withScratchFolder { folder in
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"), maximumBytes: 2_000_000)
            try await storage.put("", "empty")
            #expect(try await storage.entry(for: "empty")?.data == Data())
            #expect(try await storage.entry(for: "none") == nil)
            let large = Data(repeating: 7, count: 1_000_000)
            try await storage.store(StorageEntry(.raw(large), date: nil), for: "large")
            await expectFailure(.entryTooLarge) {
                try await storage.store(StorageEntry(.raw(large + large), date: nil), for: "large")
            }
            #expect(try await storage.entry(for: "large")?.data == large)
            let none = try SQLiteStorage(file: folder.appendingPathComponent("a.db"), maximumCount: 0)
            await expectFailure(.entryTooLarge) { try await none.put("x", "empty") }
            #expect(try await none.text("empty") == "")
        }
    }

    @Test("An entry that is too large for SQLite is refused")
    func largerThanSQLiteTakes() async throws {
        try await withScratchFolder { folder in
            let files = DatabaseFiles(database: folder.appendingPathComponent("a.db").path)
            let pair = ConnectionPair(files: files, durability: .process, clock: .system, patience: .seconds(1))
            let record = try #require(Record(StorageEntry(.raw(Data(count: 5000)), date: nil), for: [1]))
            let underlying = await expectFailure(.entryTooLarge) {
                try await pair.later(pair.writer, "store") {
                    sqlite3_limit($0.database.handle, SQLITE_LIMIT_LENGTH, 1000)
                    try $0.write(record, for: [1], StorageLimits(bytes: nil, count: nil))
                }
            }
            #expect(underlying?.code == SQLITE_TOOBIG)
        }
    }

    @Test("A value without bytes and a URL that is not a file URL are refused")
    func misuse() async throws {
        try await withScratchFolder { folder in
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"))
            await expectFailure(.storage) { try await storage.store(StorageEntry(.live(1), date: nil), for: "a") }
            #expect(try await storage.entry(for: "a") == nil)
        }
        await expectFailure(.storage) { _ = try SQLiteStorage(file: #require(URL(string: "https://example.com/a.db"))) }
    }

    @Test("Single entries and all entries are removed")
    func removal() async throws {
        try await withScratchFolder { folder in
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"))
            for number in 0..<10 { try await storage.put("\(number)", StorageKey(identifier: "\(number)")) }
            try await storage.removeEntry(for: "3")
            try await storage.removeEntry(for: "3")
            #expect(try await storage.entry(for: "3") == nil)
            #expect(try await storage.text("4") == "4")
            try await storage.removeAll()
            for number in 0..<10 { #expect(try await storage.entry(for: StorageKey(identifier: "\(number)")) == nil) }
            try await storage.put("again", "3")
            #expect(try await storage.text("3") == "again")
        }
    }

    @Test("A long log is copied into the database while the storage is open")
    func longLog() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let storage = try SQLiteStorage(file: file)
            func size(_ path: String) throws -> Int {
                try #require(FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber).intValue
            }
            let text = String(repeating: "x", count: 8_000)
            var count = 0
            repeat {
                try await storage.put(text, StorageKey(identifier: "\(count)"))
                count += 1
            } while try count < 4_000 && size(file.path) < 1 << 20
            // Some writes happen between the one that makes the log too long and the copy.
            #expect(try size(file.path) >= 1 << 20)
            #expect(try size(file.path + "-wal") < 16 << 20)
            #expect(try await storage.text("0") == text)
        }
    }

    @Test("Closing leaves one file that holds everything, and the next use reopens it")
    func closing() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            let storage = try SQLiteStorage(file: file)
            for round in 0..<3 {
                try await storage.put("\(round)", "a")
                #expect(try await storage.text("a") == "\(round)")
                #expect(try names(in: folder) == ["a.db", "a.db-shm", "a.db-wal", "a.db.lock"])
                storage.close()
                storage.close()
                #expect(try names(in: folder) == ["a.db", "a.db.lock"])
            }
            #expect(try await storage.text("a") == "2")
        }
    }

    @Test("Files and created folders are accessible only to the user")
    func modes() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("b/c/a.db")
            let storage = try SQLiteStorage(file: file)
            try await storage.put("a", "a")
            for name in ["", "-wal", "-shm", ".lock"] {
                #expect(try mode(of: URL(fileURLWithPath: file.path + name)) == 0o600)
            }
            for name in ["b", "b/c"] { #expect(try mode(of: folder.appendingPathComponent(name)) == 0o700) }
        }
    }

    @Test(
        "Every write waits for the disk only with the durability that survives a power failure",
        arguments: [(StorageEntry.Durability.process, Int64(1)), (.power, 2)] as [(StorageEntry.Durability, Int64)])
    func durability(durability: StorageEntry.Durability, level: Int64) async throws {
        try await withScratchFolder { folder in
            let files = DatabaseFiles(database: folder.appendingPathComponent("a.db").path)
            let pair = ConnectionPair(files: files, durability: durability, clock: .system, patience: .seconds(1))
            let synchronous = try await pair.later(pair.writer, "look") {
                try $0.database.prepare("PRAGMA synchronous").rows { $0.integer(0) }
            }
            #expect(synchronous == [level])
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"), durability: durability)
            try await storage.put("a", "a")
            #expect(try await storage.text("a") == "a")
            try await storage.removeEntry(for: "a")
            #expect(try await storage.text("a") == nil)
        }
    }
}

extension StorageEntry {
    /// The kind of content.
    var form: String {
        switch content {
        case .raw: "raw"
        case .value: "value"
        case .unlabelled: "unlabelled"
        case .live: "live"
        }
    }
}
