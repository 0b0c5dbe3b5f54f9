import Foundation
import Testing

@testable import WebServiceCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

@Suite("FileStorage with limits", .timeLimit(.minutes(10)))
struct FileStorageLimitTests {
    @Test("H-42: ten times the number that fits leaves the newest")
    func count() async throws {
        try await withScratchFolder { folder in
            let clock = TestClock()
            let storage = try FileStorage(folder: folder, maximumCount: 20, date: clock.tick)
            for index in 0..<200 {
                try await storage.store(
                    StorageEntry(.raw(Data([UInt8(index)])), date: nil), for: StorageKey(identifier: "\(index)"))
                #expect(try names(in: folder).count == min(index + 1, 20))
            }
            #expect(
                try names(in: folder)
                    == (180..<200).map { StorageKey(identifier: "\($0)").fileName + ".entry" }.sorted())
        }
    }

    @Test("H-42: ten times the bytes that fit leave the newest")
    func bytes() async throws {
        try await withScratchFolder { folder in
            let clock = TestClock()
            let storage = try FileStorage(folder: folder, maximumBytes: 10_000, date: clock.tick)
            for index in 100..<200 {
                try await storage.store(
                    StorageEntry(.raw(Data(count: 1_000)), date: nil), for: StorageKey(identifier: "\(index)"))
                let sizes = try names(in: folder).map { try Data(contentsOf: folder.appendingPathComponent($0)).count }
                #expect(sizes.reduce(0, +) <= 10_000)
            }
            // 1000 bytes, 18 of the key, 36 around them: nine fit.
            #expect(
                try names(in: folder)
                    == (191..<200).map { StorageKey(identifier: "\($0)").fileName + ".entry" }.sorted())
        }
    }

    @Test("an entry that is written again is new again, and counts once")
    func rewriting() async throws {
        try await withScratchFolder { folder in
            let clock = TestClock()
            let storage = try FileStorage(folder: folder, maximumBytes: 400, maximumCount: 4, date: clock.tick)
            let keys = (0..<5).map { StorageKey(identifier: "\($0)") }
            for _ in 0..<50 {
                for key in keys[..<4] {
                    try await storage.store(StorageEntry(.raw(Data(count: 10)), date: nil), for: key)
                }
                #expect(try names(in: folder) == keys[..<4].map { $0.fileName + ".entry" }.sorted())
            }
            try await storage.store(StorageEntry(.raw(Data(count: 10)), date: nil), for: keys[0])
            try await storage.store(StorageEntry(.raw(Data(count: 10)), date: nil), for: keys[4])
            #expect(try await storage.entry(for: keys[1]) == nil)
            #expect(try names(in: folder).count == 4)
        }
    }

    @Test("an old entry that another storage has written again since the count stays")
    func rewrittenByAnother() async throws {
        try await withScratchFolder { folder in
            let clock = TestClock()
            let keys = (0..<18).map { StorageKey(identifier: "\($0)") }
            let entry = StorageEntry(.raw(Data(count: 10)), date: nil)
            let other = try FileStorage(folder: folder, date: clock.tick)
            for key in keys[..<16] { try await other.store(entry, for: key) }
            // It counts, removes the oldest entry, and remembers the next two.
            let storage = try FileStorage(folder: folder, maximumCount: 16, date: clock.tick)
            try await storage.store(entry, for: keys[16])
            try await other.store(entry, for: keys[1])
            try await storage.store(entry, for: keys[17])
            #expect(try names(in: folder) == ([1] + Array(3..<18)).map { keys[$0].fileName + ".entry" }.sorted())
        }
    }

    @Test("what is no entry does not count: a FIFO under the name of an entry is replaced, and the number stays right")
    func fifo() async throws {
        try await withScratchFolder { folder in
            let clock = TestClock()
            let keys = (0..<4).map { StorageKey(identifier: "\($0)") }
            let entry = StorageEntry(.raw(Data(count: 10)), date: nil)
            let storage = try FileStorage(folder: folder, maximumCount: 2, date: clock.tick)
            for key in keys[..<2] { try await storage.store(entry, for: key) }
            let name = keys[2].fileName + ".entry"
            try #require(mkfifo(folder.appendingPathComponent(name).path, 0o600) == 0)
            try await storage.store(entry, for: keys[2])
            #expect(try names(in: folder) == keys[1...2].map { $0.fileName + ".entry" }.sorted())
        }
    }

    @Test("what was there before counts, what was removed does not, and what others removed is noticed")
    func counting() async throws {
        try await withScratchFolder { folder in
            let clock = TestClock()
            let keys = (0..<40).map { StorageKey(identifier: "\($0)") }
            let entry = StorageEntry(.raw(Data(count: 10)), date: nil)
            let unlimited = try FileStorage(folder: folder, date: clock.tick)
            for key in keys[..<15] { try await unlimited.store(entry, for: key) }
            let storage = try FileStorage(folder: folder, maximumCount: 10, date: clock.tick)
            try await storage.store(entry, for: keys[15])
            #expect(try names(in: folder) == keys[6...15].map { $0.fileName + ".entry" }.sorted())
            for key in keys[6...10] { try await storage.removeEntry(for: key) }
            for key in keys[16...20] { try await storage.store(entry, for: key) }
            #expect(try names(in: folder) == keys[11...20].map { $0.fileName + ".entry" }.sorted())
            try await unlimited.removeAll()
            for key in keys[21...31] { try await storage.store(entry, for: key) }
            #expect(try names(in: folder) == keys[22...31].map { $0.fileName + ".entry" }.sorted())
            try await storage.removeAll()
            for key in keys[..<5] { try await storage.store(entry, for: key) }
            #expect(try names(in: folder).count == 5)
        }
    }

    @Test(
        "what is written again, or in place of something removed, costs no other its place", arguments: [true, false])
    func places(byCount: Bool) async throws {
        try await withScratchFolder { folder in
            let clock = TestClock()
            let keys = (10..<32).map { StorageKey(identifier: "\($0)") }
            let entry = StorageEntry(.raw(Data(count: 47)), date: nil)  // 17 of the key and 36 around them
            let storage = try FileStorage(
                folder: folder, maximumBytes: byCount ? nil : 1_000, maximumCount: byCount ? 10 : nil, date: clock.tick)
            for key in keys[0...10] { try await storage.store(entry, for: key) }
            #expect(try names(in: folder) == keys[1...10].map { $0.fileName + ".entry" }.sorted())
            for _ in 0..<3 { try await storage.store(entry, for: keys[10]) }
            #expect(try names(in: folder) == keys[1...10].map { $0.fileName + ".entry" }.sorted())
            for index in 11...20 {
                try await storage.removeEntry(for: keys[index - 1])
                try await storage.store(entry, for: keys[index])
                #expect(try names(in: folder) == (keys[1...9] + [keys[index]]).map { $0.fileName + ".entry" }.sorted())
            }
        }
    }

    @Test("H-43: a clock that was wrong and is set back costs no new entry its place, and the limits hold")
    func clockSetBack() async throws {
        try await withScratchFolder { folder in
            let time = Mutex(4_000_000_000.0)
            let storage = try FileStorage(
                folder: folder, maximumCount: 4,
                date: {
                    time.withLock { time in
                        time += 1
                        return Date(timeIntervalSince1970: time)
                    }
                })
            for index in 0..<4 {
                try await storage.store(
                    StorageEntry(.raw(Data()), date: nil), for: StorageKey(identifier: "old \(index)"))
            }
            time.withLock { $0 = 1_700_000_000 }
            for index in 0..<6 {
                try await storage.store(StorageEntry(.raw(Data()), date: nil), for: StorageKey(identifier: "\(index)"))
                #expect(try names(in: folder).count == 4)
            }
            #expect(
                try names(in: folder) == (2..<6).map { StorageKey(identifier: "\($0)").fileName + ".entry" }.sorted())
        }
    }

    #if os(Linux)
    @Test(
        "files with holes that say they are longer than all numbers are counted and go",
        .enabled(if: access("/dev/shm", W_OK) == 0))
    func holes() async throws {
        let folder = URL(fileURLWithPath: "/dev/shm/file-storage-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // the system forgets it otherwise
        for index in 0..<3 {
            let path = folder.appendingPathComponent(StorageKey(identifier: "\(index)").fileName + ".entry").path
            #expect(FileManager.default.createFile(atPath: path, contents: nil))
            #expect(truncate(path, .max - 0xFFFF) == 0)
        }
        let storage = try FileStorage(folder: folder, maximumBytes: 1_000)
        try await storage.store(StorageEntry(.raw(Data()), date: nil), for: StorageKey(identifier: "new"))
        #expect(try names(in: folder) == [StorageKey(identifier: "new").fileName + ".entry"])
    }
    #endif

    @Test("of entries written at the same moment the first by name goes")
    func ties() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder, maximumCount: 2, date: { Date(timeIntervalSince1970: 1_000) })
            let keys = (0..<3).map { StorageKey(identifier: "\($0)") }
            for key in keys { try await storage.store(StorageEntry(.raw(Data()), date: nil), for: key) }
            let first = try #require(keys[..<2].map { $0.fileName + ".entry" }.min())
            #expect(try names(in: folder) == keys.map { $0.fileName + ".entry" }.filter { $0 != first }.sorted())
        }
    }

    @Test("an entry that fits no limit is refused, and the old one stays")
    func tooLarge() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder, maximumBytes: 100)
            let key = StorageKey(identifier: "a")
            // 16 of the key and 36 around them.
            try await storage.store(StorageEntry(.raw(Data(count: 48)), date: nil), for: key)
            let error = await #expect(throws: WebServiceError.self) {
                try await storage.store(StorageEntry(.raw(Data(count: 49)), date: nil), for: key)
            }
            #expect(error?.code == .entryTooLarge)
            #expect(try await storage.entry(for: key)?.data?.count == 48)
            let none = try FileStorage(folder: folder, prefix: "none", maximumCount: 0)
            let other = await #expect(throws: WebServiceError.self) {
                try await none.store(StorageEntry(.raw(Data()), date: nil), for: key)
            }
            #expect(other?.code == .entryTooLarge)
            #expect(try names(in: folder) == [key.fileName + ".entry"])
        }
    }
}

/// A clock that moves by a second whenever it is read.
final class TestClock: Sendable {
    private let seconds = Mutex(1_700_000_000.0)

    var tick: @Sendable () -> Date {
        {
            self.seconds.withLock { seconds in
                seconds += 1
                return Date(timeIntervalSince1970: seconds)
            }
        }
    }
}
