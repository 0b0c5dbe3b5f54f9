#if os(Linux)
import CSQLite
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceStorage

@testable import WebServiceSQLite

@Suite(
    "SQLiteStorage: a full disk", .enabled(if: SmallDisk.canMount, "requires the permission to mount a file system"),
    .permit(minutes: 15))
struct FullDiskTests {
    private func takeSpace(_ folder: URL, leaving free: Int) throws {
        var status = statvfs()
        try #require(statvfs(folder.path, &status) == 0)
        let count = Int(status.f_bavail) * Int(status.f_bsize) - free
        if count > 0 { try Data(count: count).write(to: folder.appendingPathComponent("filler")) }
    }

    @Test(
        "A write to a full disk fails and leaves the old entry unchanged, and succeeds when there is space",
        arguments: [0, 4096, 40_000])
    func fullDisk(free: Int) async throws {
        try await SmallDisk.with { folder in
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"))
            let old = String(repeating: "old ", count: 5000)
            for key in ["a", "b"] { try await storage.put(old, StorageKey(identifier: key)) }
            try takeSpace(folder, leaving: free)
            for _ in 0..<3 {
                let underlying = await expectFailure(.storage) {
                    try await storage.put(String(repeating: "new ", count: 50_000), "a")
                }
                #expect(underlying?.code == SQLITE_FULL || underlying?.code == SQLITE_IOERR)
                let found = try await [storage.text("a"), storage.text("b")]
                #expect(found == [old, old])
            }
            unlink(folder.appendingPathComponent("filler").path)
            try await storage.put("new", "a")
            let found = try await [storage.text("a"), storage.text("b")]
            #expect(found == ["new", old])
            storage.close()
            #expect(try Foreigner(folder.appendingPathComponent("a.db")).value("PRAGMA integrity_check") == "ok")
        }
    }

    @Test(
        "On disks of many sizes, file and SQLite entries are old or new, and storing resumes with space",
        arguments: ["file", "sqlite"])
    func sizes(kind: String) async throws {
        // 256 KB to 2 MB: three of the sizes in every run, all 64 with WEBSERVICE_SOAK.
        let step = isSoak ? 28 : 600
        var full = 0
        for kilobytes in stride(from: 256, through: 2048, by: step) {
            try await SmallDisk.with(kilobytes: kilobytes) { folder in
                let storage: any ResponseStorage =
                    kind == "file"
                    ? try FileStorage(folder: folder) : try SQLiteStorage(file: folder.appendingPathComponent("a.db"))
                let filler = folder.appendingPathComponent("filler")
                try Data(count: 65_536).write(to: filler)
                var known: [StorageKey: String] = [:]
                for number in 0..<200 {
                    let key = StorageKey(identifier: "\(number % 40)")
                    let text = String(repeating: "\(number) ", count: 1 + number * 131 % 6_000)
                    do {
                        try await storage.put(text, key)
                        known[key] = text
                    } catch {
                        full += 1
                        #expect((error as? WebServiceError)?.code == .storage)
                    }
                    let found = try await storage.text(key)
                    #expect(found == known[key], "\(kilobytes) KB, entry \(number)")
                }
                for (key, text) in known { #expect(try await storage.text(key) == text) }
                unlink(filler.path)
                try await storage.put("new", "a")
                #expect(try await storage.text("a") == "new")
            }
        }
        #expect(full > 0)
    }

    @Test("A database that cannot be created is an error, and is created when there is space")
    func nothingThere() async throws {
        try await SmallDisk.with { folder in
            try takeSpace(folder, leaving: 0)
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"))
            await expectFailure(.storage) { try await storage.put("a", "a") }
            await expectFailure(.storage) { _ = try await storage.entry(for: "a") }
            unlink(folder.appendingPathComponent("filler").path)
            try await storage.put("a", "a")
            #expect(try await storage.text("a") == "a")
        }
    }

    @Test(
        "A write that cannot delete entries over the limit for lack of space fails and stores nothing")
    func transaction() async throws {
        try await SmallDisk.with { folder in
            let storage = try SQLiteStorage(file: folder.appendingPathComponent("a.db"), maximumCount: 20)
            for number in 0..<20 { try await storage.put("\(number)", StorageKey(identifier: "\(number)")) }
            try takeSpace(folder, leaving: 0)
            var failures = 0
            for number in 20..<60 {
                do {
                    try await storage.put(String(repeating: "x", count: 5000), StorageKey(identifier: "\(number)"))
                } catch {
                    failures += 1
                    #expect(try await storage.entry(for: StorageKey(identifier: "\(number)")) == nil)
                }
            }
            #expect(failures > 0)
            unlink(folder.appendingPathComponent("filler").path)
            try await storage.put("new", "new")
            #expect(try await storage.text("new") == "new")
            let count = try Foreigner(folder.appendingPathComponent("a.db")).value("SELECT count(*) FROM entries")
                .flatMap { Int($0) }
            #expect(try #require(count) <= 20)
        }
    }
}
#endif
