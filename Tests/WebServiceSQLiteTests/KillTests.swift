import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceSQLite
import WebServiceStorage

/// Repeatedly kills a program that stores entries, and checks the result.
@Suite("Storages whose process is killed", .permit(minutes: 20))
struct KillTests {
    private static let cycles = amount(20, thorough: 30, soak: 1_000)
    /// The number of keys that the program writes in turn.
    private static let keys = 16

    @Test(
        "A SQLite storage killed at any instant has every acknowledged entry, none torn, and an intact database"
    )
    func sqlite() async throws {
        try await withScratchFolder { folder in
            let file = folder.appendingPathComponent("a.db")
            try await killAgainAndAgain("sqlite", file.path) {
                let storage = try SQLiteStorage(file: file)
                let entries = try await Self.entries(of: storage)
                storage.close()
                #expect(try Foreigner(file).value("PRAGMA integrity_check") == "ok")
                #expect(try names(in: folder) == ["a.db", "a.db.lock"])
                return entries
            }
        }
    }

    @Test(
        "A file storage killed at any instant has every acknowledged entry, none torn, and no old leftovers"
    )
    func files() async throws {
        try await withScratchFolder { folder in
            try await killAgainAndAgain("file", folder.path) { try await Self.entries(of: FileStorage(folder: folder)) }
            let isLeftOver = { (name: String) in !name.hasSuffix(".entry") }
            let leftovers = try names(in: folder).filter(isLeftOver)
            #expect(leftovers.count <= Self.cycles)
            for name in leftovers {
                let old = Date(timeIntervalSinceNow: -2 * 3600)
                try FileManager.default.setAttributes(
                    [.modificationDate: old], ofItemAtPath: folder.appendingPathComponent(name).path)
            }
            #expect(try await Self.entries(of: FileStorage(folder: folder)).count == Self.keys)
            #expect(try names(in: folder).filter(isLeftOver) == [])
            #expect(try names(in: folder).count == Self.keys)
        }
    }

    @Test(
        "With the durability power, a storage has every acknowledged entry after power failures, and none torn",
        .enabled(if: VolatileDisk.works, "requires a C compiler, and no sanitizer"),
        arguments: ["file-power", "sqlite-power"])
    func power(_ kind: String) async throws {
        let disk = try VolatileDisk()
        var random = SeededGenerator(seed: 4)
        try await withScratchFolder(inMemory: true) { folder in
            let copy = folder.appendingPathComponent("copy")
            let (path, copiedPath) = (disk.folder.appendingPathComponent("a"), copy.appendingPathComponent("a"))
            let look = {
                // The changes of this process are not recorded.
                try FileManager.default.copyItem(at: disk.folder, to: copy)
                defer { try? FileManager.default.removeItem(at: copy) }
                guard kind == "sqlite-power" else { return try await Self.entries(of: FileStorage(folder: copiedPath)) }
                let storage = try SQLiteStorage(file: copiedPath)
                let entries = try await Self.entries(of: storage)
                storage.close()
                #expect(try Foreigner(copiedPath).value("PRAGMA integrity_check") == "ok")
                return entries
            }
            try await check(look) { cycle in
                let last = Int.random(in: 1...(cycle % 10 == 9 ? 5_000 : 300), using: &random)
                let variables = disk.environment(endingBefore: last)
                let lines = try await blocking {
                    try Probe([kind, path.path, "write", "1000000", "\(cycle)"], environment: variables).lines()
                }
                try disk.fail(using: &random)
                return lines
            }
        }
    }

    @Test(
        "With the durability power, the folder of a storage is synchronized, even if a killed process has created it",
        .enabled(if: VolatileDisk.works, "requires a C compiler, and no sanitizer"),
        arguments: ["file-power", "sqlite-power"])
    func createdFolder(_ kind: String) async throws {
        let disk = try VolatileDisk()
        let folder = disk.folder.appendingPathComponent("storage")
        let file = folder.appendingPathComponent("a.db")
        let arguments = [kind, kind == "file-power" ? folder.path : file.path, "write", "3", "1"]
        // The first process is killed after it has created the folder.
        for (last, count) in [(2, 0), (nil, 3)] {
            let variables = disk.environment(endingBefore: last)
            let lines = try await blocking { try Probe(arguments, environment: variables).lines() }
            #expect(lines.count == count)
        }
        #expect(try names(in: disk.folder) == ["storage"])
        try disk.fail()
        let storage: any ResponseStorage =
            kind == "file-power" ? try FileStorage(folder: folder) : try SQLiteStorage(file: file)
        #expect(try await Self.entries(of: storage).count == 3)
    }

    @Test(
        "With the durability power, a removed entry does not reappear, even if a killed process has removed it",
        .enabled(if: VolatileDisk.works, "requires a C compiler, and no sanitizer"),
        arguments: ["file-power", "sqlite-power"])
    func removal(_ kind: String) async throws {
        let disk = try VolatileDisk()
        let folder = disk.folder.appendingPathComponent("storage")
        let file = folder.appendingPathComponent("a.db")
        // The second process ends before it flushes its removals.
        let runs: [(String, VolatileDisk.Ignored?)] = [("write", nil), ("remove", .all), ("remove", nil)]
        for (command, ignored) in runs {
            let arguments = [kind, kind == "file-power" ? folder.path : file.path, command, "3", "1"]
            let variables = disk.environment(ignoring: ignored)
            let lines = try await blocking { try Probe(arguments, environment: variables).lines() }
            #expect(lines.count == 3)
        }
        try disk.fail()
        let storage: any ResponseStorage =
            kind == "file-power" ? try FileStorage(folder: folder) : try SQLiteStorage(file: file)
        #expect(try await Self.entries(of: storage).isEmpty)
    }

    /// The identification that an entry contains.
    private struct Mark: Equatable {
        let number: Int
        let seed: Int

        init(number: Int, seed: Int) {
            self.number = number
            self.seed = seed
        }

        /// Creates a mark, or returns `nil` if a byte differs from what was stored.
        init?(_ data: Data) {
            guard let end = data.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
            let numbers = String(decoding: data[..<end], as: UTF8.self).split(separator: " ").compactMap { Int($0) }
            let rest = data[(end + 1)...]
            guard numbers.count == 3, rest.count == numbers[2] else { return nil }
            (number, seed) = (numbers[0], numbers[1])
            guard rest == Data(repeating: UInt8(truncatingIfNeeded: number &* 31 &+ seed), count: numbers[2]) else {
                return nil
            }
        }
    }

    private static func entries(of storage: any ResponseStorage) async throws -> [Int: Mark] {
        var entries: [Int: Mark] = [:]
        for index in 0..<keys {
            guard let data = try await storage.entry(for: StorageKey(identifier: "entry \(index)"))?.data else {
                continue
            }
            let mark = try #require(Mark(data), "a torn entry")
            #expect(mark.number % keys == index)
            entries[index] = mark
        }
        return entries
    }

    private func killAgainAndAgain(_ kind: String, _ path: String, _ look: () async throws -> [Int: Mark]) async throws
    {
        try await check(look) { cycle in
            try await blocking {
                try Probe([kind, path, "write", "1000000", "\(cycle)"]).lines(
                    killAfter: cycle % 10 == 9 ? 0 : .random(in: 1...60))
            }
        }
    }

    /// Checks the entries after each of many runs of the program.
    ///
    /// - Parameter run: A closure that returns the lines that the program writes.
    private func check(
        _ look: () async throws -> [Int: Mark], after run: (_ cycle: Int) async throws -> [String]
    ) async throws {
        var known: [Int: Mark] = [:]
        var acknowledged = 0
        for cycle in 0..<Self.cycles {
            let lines = try await run(cycle)
            // Acknowledged entries exist. The entry in progress may exist.
            for number in lines.indices {
                try #require(lines[number] == "ack \(number)")
                known[number % Self.keys] = Mark(number: number, seed: cycle)
            }
            acknowledged += lines.count
            let underWay = Mark(number: lines.count, seed: cycle)
            let found = try await look()
            for index in 0..<Self.keys where found[index] != known[index] {
                #expect(found[index] == underWay, "cycle \(cycle), entry \(index)")
                #expect(index == underWay.number % Self.keys, "cycle \(cycle), entry \(index)")
            }
            known = found
        }
        #expect(acknowledged > Self.cycles * 10)
    }
}
