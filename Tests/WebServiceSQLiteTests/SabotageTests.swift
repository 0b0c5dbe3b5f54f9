import CSQLite
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceStorage

@testable import WebServiceSQLite

/// Changes to the files of a database while it is open.
enum Sabotage: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case deleted, deletedWithLog, replacedByAnother, replacedByGarbage, replacedByNothing, replacedByForeignDatabase,
        replacedByForeignTable
    case replacedByNewerVersion, replacedByNewerLayout
    case emptied, cutInHalf, logDeleted, indexDeleted, logAndIndexDeleted, logEmptied, indexEmptied, folderDeleted,
        folderMoved
    case becomesFolder, becomesLink, becomesPipe

    var testDescription: String { rawValue }

    /// Whether no entry can be stored at the path.
    var isInTheWay: Bool { [.becomesFolder, .becomesLink, .becomesPipe].contains(self) }

    /// Whether the previous file is moved to its other name.
    var leavesDamaged: Bool {
        [
            .replacedByGarbage, .replacedByForeignDatabase, .replacedByForeignTable, .replacedByNewerVersion,
            .replacedByNewerLayout,
        ].contains(self)
    }

    func apply(to file: URL, keeping spare: URL) async throws {
        let (path, log, index) = (file.path, file.path + "-wal", file.path + "-shm")
        switch self {
        case .deleted: unlink(path)
        case .deletedWithLog: for path in [path, log, index] { unlink(path) }
        case .replacedByAnother:
            let other = try SQLiteStorage(file: spare)
            try await other.put("other", "a")
            other.close()
            rename(spare.path, path)
        case .replacedByGarbage:
            try replace(path, spare, with: Data((0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 11) }))
        case .replacedByNothing: try replace(path, spare, with: Data())
        case .replacedByForeignDatabase:
            try replace(path, spare, by: "CREATE TABLE entries (key, data); INSERT INTO entries VALUES ('a', 'wrong')")
        case .replacedByForeignTable:
            // The layout number and the column names are correct, but the keys are not unique.
            let columns = "number INTEGER PRIMARY KEY, key, form, date, checksum, data"
            try replace(path, spare, by: "PRAGMA user_version = 1; CREATE TABLE entries (\(columns))")
        case .replacedByNewerVersion: try replace(path, spare, by: "PRAGMA user_version = 2; CREATE TABLE later (key)")
        case .replacedByNewerLayout:
            // The table is the same but its contents are not, which the other number indicates.
            let other = try SQLiteStorage(file: spare)
            try await other.put("other", "a")
            other.close()
            do { try Foreigner(spare).run("PRAGMA user_version = 2") }
            rename(spare.path, path)
        case .emptied: truncate(path, 0)
        case .cutInHalf: truncate(path, 30_000)
        case .logDeleted: unlink(log)
        case .indexDeleted: unlink(index)
        case .logAndIndexDeleted: for path in [log, index] { unlink(path) }
        case .logEmptied: truncate(log, 0)
        case .indexEmptied: truncate(index, 0)
        case .folderDeleted: try FileManager.default.removeItem(at: file.deletingLastPathComponent())
        case .folderMoved: rename(file.deletingLastPathComponent().path, spare.path)
        case .becomesFolder:
            unlink(path)
            mkdir(path, 0o700)
        case .becomesLink:
            try replace(path, spare, with: Data("not ours".utf8))
            rename(path, spare.path)
            symlink(spare.path, path)
        case .becomesPipe:
            unlink(path)
            mkfifo(path, 0o600)
        }
    }

    private func replace(_ path: String, _ spare: URL, with data: Data) throws {
        try data.write(to: spare)
        rename(spare.path, path)
    }

    private func replace(_ path: String, _ spare: URL, by sql: String) throws {
        do { try Foreigner(spare).run(sql) }
        rename(spare.path, path)
    }
}

@Suite("SQLiteStorage: files changed by other programs", .permit(minutes: 15))
struct SabotageTests {
    @Test(
        "A change to open files is detected: no wrong byte is read, and the next entry is stored",
        arguments: Sabotage.allCases)
    func whileOpen(_ sabotage: Sabotage) async throws {
        for readsFirst in [false, true] {
            try await withScratchFolder { folder in
                let file = folder.appendingPathComponent("storage/a.db")
                let clock = ManualClock()
                let storage = try SQLiteStorage(file: file, clock: TaskClock(clock), patience: .seconds(20))
                let texts = try await fill(storage)
                try await sabotage.apply(to: file, keeping: folder.appendingPathComponent("spare"))
                clock.advance(milliseconds: 100)
                if sabotage.isInTheWay {
                    await expectFailure(.storage) { try await storage.put("new", "a") }
                    await expectFailure(.storage) { _ = try await storage.entry(for: "b") }
                    try FileManager.default.removeItem(at: file)
                } else if readsFirst {
                    for (key, text) in texts {
                        let found = try await storage.text(key)
                        #expect(found == nil || found == text || sabotage == .replacedByAnother && found == "other")
                    }
                }
                try await works(storage, file)
                #expect(FileManager.default.fileExists(atPath: file.path + ".damaged") || !sabotage.leavesDamaged)
                if sabotage == .becomesLink {
                    #expect(try Data(contentsOf: folder.appendingPathComponent("spare")) == Data("not ours".utf8))
                }
            }
        }
    }

    @Test(
        "A change to closed files is detected at the first use",
        arguments: Sabotage.allCases)
    func whileClosed(_ sabotage: Sabotage) async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("storage/a.db")
            let texts = try await fill(SQLiteStorage(file: file))
            try await sabotage.apply(to: file, keeping: folder.appendingPathComponent("spare"))
            let storage = try SQLiteStorage(file: file)
            if sabotage.isInTheWay {
                await expectFailure(.storage) { _ = try await storage.entry(for: "b") }
                try FileManager.default.removeItem(at: file)
            } else {
                for (key, text) in texts {
                    let found = try await storage.text(key)
                    #expect(found == nil || found == text || sabotage == .replacedByAnother && found == "other")
                }
            }
            try await works(storage, file)
            #expect(FileManager.default.fileExists(atPath: file.path + ".damaged") || !sabotage.leavesDamaged)
        }
    }

    @Test("If only the log is deleted, its entries are recovered from the open files")
    func savedLog() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("storage/a.db")
            let storage = try SQLiteStorage(file: file)
            let texts = try await fill(storage)
            unlink(file.path + "-wal")
            try await storage.put("new", "new")
            for (key, text) in texts { #expect(try await storage.text(key) == text) }
        }
    }

    @Test("A read checks the files every 100 ms and a write each time, and a written entry is read")
    func looks() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("storage/a.db")
            let clock = ManualClock()
            let storage = try SQLiteStorage(file: file, clock: TaskClock(clock), patience: .seconds(20))
            let texts = try await fill(storage)
            for path in [file.path, file.path + "-wal", file.path + "-shm"] { unlink(path) }
            clock.advance(milliseconds: 99)
            #expect(try await storage.text("b") == texts["b"])
            clock.advance(milliseconds: 1)
            #expect(try await storage.text("b") == nil)
            try await storage.put("1", "b")
            unlink(file.path)
            try await storage.put("2", "c")
            let found = try await [storage.text("b"), storage.text("c")]
            #expect(found == [nil, "2"])
        }
    }

    @Test("Storages that find the same damaged file move it aside once and share the new one")
    func twoFindDamage() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            for round in 0..<20 {
                let garbage = Data(repeating: UInt8(round), count: 5000)
                try garbage.write(to: file)
                let storages = try (0..<4).map { _ in try SQLiteStorage(file: file) }
                try await withThrowingTaskGroup { group in
                    for (number, storage) in storages.enumerated() {
                        group.addTask { try await storage.put("\(number)", StorageKey(identifier: "\(number)")) }
                    }
                    try await group.waitForAll()
                }
                for storage in storages {
                    for number in 0..<4 {
                        #expect(try await storage.text(StorageKey(identifier: "\(number)")) == "\(number)")
                    }
                }
                #expect(try Data(contentsOf: URL(fileURLWithPath: file.path + ".damaged")) == garbage)
                for storage in storages { storage.close() }
                #expect(try names(in: folder) == ["a.db", "a.db.damaged", "a.db.lock"])
            }
        }
    }

    /// Stores entries, long and short, some of them only in the log.
    private func fill(_ storage: SQLiteStorage) async throws -> [StorageKey: String] {
        var texts: [StorageKey: String] = [:]
        for (number, name) in ["a", "b", "c", "d", "e"].enumerated() {
            let key = StorageKey(identifier: name)
            texts[key] = String(repeating: name, count: 1 + number * 7000)
            try await storage.put(texts[key] ?? "", key)
            #expect(try await storage.text(key) == texts[key])
        }
        return texts
    }

    /// Expects that an entry can be stored and read, by this storage and by others, now and later.
    private func works(_ storage: SQLiteStorage, _ file: URL) async throws {
        try await storage.put("new", "a")
        #expect(try await storage.text("a") == "new")
        let other = try SQLiteStorage(file: file)
        #expect(try await other.text("a") == "new")
        try await other.put("newer", "a")
        #expect(try await storage.text("a") == "newer")
        storage.close()
        other.close()
        #expect(try Foreigner(file).value("PRAGMA integrity_check") == "ok")
        #expect(try await SQLiteStorage(file: file).text("a") == "newer")
    }
}
