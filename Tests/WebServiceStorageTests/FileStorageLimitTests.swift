import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceStorage

@Suite("FileStorage with limits", .permit)
struct FileStorageLimitTests {
    @Test("The newest entries remain after storing ten times the maximum number")
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

    @Test("The newest entries remain after storing ten times the maximum number of bytes")
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
            // Nine entries fit, each with 1000 bytes of data, 18 of the key and 36 of the format.
            #expect(
                try names(in: folder)
                    == (191..<200).map { StorageKey(identifier: "\($0)").fileName + ".entry" }.sorted())
        }
    }

    @Test("An entry that is stored again becomes the newest one and counts once")
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

    @Test("An old entry that another storage has stored again since the last count remains")
    func rewrittenByAnother() async throws {
        try await withScratchFolder { folder in
            let clock = TestClock()
            let keys = (0..<18).map { StorageKey(identifier: "\($0)") }
            let entry = StorageEntry(.raw(Data(count: 10)), date: nil)
            let other = try FileStorage(folder: folder, date: clock.tick)
            for key in keys[..<16] { try await other.store(entry, for: key) }
            // The storage counts the entries, removes the oldest one and records the next two.
            let storage = try FileStorage(folder: folder, maximumCount: 16, date: clock.tick)
            try await storage.store(entry, for: keys[16])
            try await other.store(entry, for: keys[1])
            try await storage.store(entry, for: keys[17])
            #expect(try names(in: folder) == ([1] + Array(3..<18)).map { keys[$0].fileName + ".entry" }.sorted())
        }
    }

    @Test("A FIFO with the name of an entry does not count and is replaced by a store")
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

    @Test("Existing entries count, and entries removed by the storage or by another one do not")
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
        "Storing an entry again or after a removal evicts no other entry", arguments: [true, false])
    func places(byCount: Bool) async throws {
        try await withScratchFolder { folder in
            let clock = TestClock()
            let keys = (10..<32).map { StorageKey(identifier: "\($0)") }
            let entry = StorageEntry(.raw(Data(count: 47)), date: nil)  // plus 17 bytes of the key and 36 of the format
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

    @Test("If the clock is set back, the limits apply and the newest entries remain")
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
        "Sparse files whose sizes overflow the sum are counted and removed",
        .enabled(if: access("/dev/shm", W_OK) == 0))
    func holes() async throws {
        let folder = URL(fileURLWithPath: "/dev/shm/file-storage-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // otherwise, the system removes it
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

    @Test("Of the entries with the same date, the first by name is removed")
    func ties() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder, maximumCount: 2, date: { Date(timeIntervalSince1970: 1_000) })
            let keys = (0..<3).map { StorageKey(identifier: "\($0)") }
            for key in keys { try await storage.store(StorageEntry(.raw(Data()), date: nil), for: key) }
            let first = try #require(keys[..<2].map { $0.fileName + ".entry" }.min())
            #expect(try names(in: folder) == keys.map { $0.fileName + ".entry" }.filter { $0 != first }.sorted())
        }
    }

    @Test("An entry that alone exceeds a limit is rejected, and the old one remains")
    func tooLarge() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder, maximumBytes: 100)
            let key = StorageKey(identifier: "a")
            // An entry has 16 bytes of the key and 36 of the format in addition to the data.
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

/// A clock that advances by one second whenever it is read.
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
