import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceStorage

@Suite("Damaged files of FileStorage", .permit)
struct FileStorageDamageTests {
    static let key = StorageKey(identifier: "k")
    static let name = key.fileName + ".entry"

    /// Replaces a valid file with each damaged variant and reads the entry.
    ///
    /// - Returns: The number of variants.
    private func read(
        _ damage: (Data) -> [Data], _ check: (_ number: Int, _ entry: StorageEntry?, _ isThere: Bool) -> Void
    ) async throws -> Int {
        var count = 0
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder)
            let file = folder.appendingPathComponent(Self.name)
            try await storage.store(
                StorageEntry(.value(Data("hello".utf8)), date: Date(timeIntervalSince1970: 1)), for: Self.key)
            let files = damage(try Data(contentsOf: file))
            for (number, bytes) in files.enumerated() {
                try bytes.write(to: file)
                let entry = try await storage.entry(for: Self.key)
                check(number, entry, FileManager.default.fileExists(atPath: file.path))
                #expect(try names(in: folder).filter { $0 != Self.name } == [])
            }
            count = files.count
        }
        return count
    }

    @Test("A truncated or extended file is not an entry and is removed")
    func truncations() async throws {
        let count = try await read({ file in (0..<file.count).map { file.prefix($0) } + [file + [0]] }) {
            number, entry, isThere in
            #expect(entry == nil, "\(number) bytes")
            #expect(!isThere, "\(number) bytes")
        }
        #expect(count == 36 + Self.key.bytes.count + 5 + 1)
    }

    @Test("A file with a flipped bit is not an entry and is removed")
    func flips() async throws {
        let damage = { (file: Data) in
            sample(Array(0..<file.count * 8), every: 5).map { bit in
                var copy = file
                copy[bit / 8] ^= 1 << UInt8(bit % 8)
                return copy
            }
        }
        let count = try await read(damage) { number, entry, isThere in
            #expect(entry == nil, "bit \(number)")
            #expect(!isThere, "bit \(number)")
        }
        #expect(count == sample(Array(0..<(36 + Self.key.bytes.count + 5) * 8), every: 5).count)
    }

    @Test("A file with foreign content is not an entry and is removed")
    func foreign() async throws {
        let texts = ["", "x", "{\"json\": true}", String(repeating: "WSEn", count: 100), "WSEn"]
        _ = try await read({ _ in texts.map { Data($0.utf8) } + [Data(count: 36), Data(repeating: 0xFF, count: 1_000)] }
        ) { number, entry, isThere in
            #expect(entry == nil, "file \(number)")
            #expect(!isThere, "file \(number)")
        }
    }

    @Test("A file with an invalid length is damaged, even with a valid checksum")
    func lengths() async throws {
        let damage = { (file: Data) in
            [16..<20, 20..<28, 16..<28].flatMap { range in
                [UInt8(0xFF), 0x7F, 0x00].map { byte in
                    var copy = file
                    for index in range { copy[index] = byte }
                    return Self.signed(copy)
                }
            }
        }
        let count = try await read(damage) { number, entry, isThere in
            #expect(entry == nil, "file \(number)")
            #expect(!isThere, "file \(number)")
        }
        #expect(count == 9)
    }

    @Test(
        "A file that is larger than the memory is damaged and is removed",
        arguments: [FileStorage.Format.wrapped, .bare], [false, true])
    func tooLongForMemory(format: FileStorage.Format, isEmptied: Bool) async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder, format: format)
            let entry = StorageEntry(.raw(Data("old".utf8)), date: nil)
            try await storage.store(entry, for: Self.key)
            let path = folder.appendingPathComponent(Self.name).path
            if isEmptied { #expect(truncate(path, 0) == 0) }
            #expect(
                truncate(path, 1 << 46) == 0 || truncate(path, 1 << 43) == 0, "files of 8 TiB are not supported")
            #expect(try await storage.entry(for: Self.key) == nil)
            #expect(try names(in: folder) == [])
            try await storage.store(entry, for: Self.key)
            #expect(try await storage.entry(for: Self.key)?.data == Data("old".utf8))
        }
    }

    @Test("A valid file of a newer version is not an entry and remains until a store replaces it")
    func newer() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder)
            let file = folder.appendingPathComponent(Self.name)
            try await storage.store(StorageEntry(.raw(Data("old".utf8)), date: nil), for: Self.key)
            var bytes = try Data(contentsOf: file)
            bytes[4] = 2
            bytes = Self.signed(bytes)
            try bytes.write(to: file)
            #expect(try await storage.entry(for: Self.key) == nil)
            #expect(try Data(contentsOf: file) == bytes)
            try await storage.store(StorageEntry(.raw(Data("new".utf8)), date: nil), for: Self.key)
            #expect(try await storage.entry(for: Self.key)?.data == Data("new".utf8))
        }
    }

    @Test("A file with the key of another entry is not an entry and remains until a store replaces it")
    func collision() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder)
            let other = StorageKey(identifier: "other")
            try await storage.store(StorageEntry(.raw(Data("other".utf8)), date: nil), for: other)
            let file = folder.appendingPathComponent(Self.name)
            try FileManager.default.moveItem(at: folder.appendingPathComponent(other.fileName + ".entry"), to: file)
            #expect(try await storage.entry(for: Self.key) == nil)
            #expect(FileManager.default.fileExists(atPath: file.path))
            try await storage.store(StorageEntry(.raw(Data("ours".utf8)), date: nil), for: Self.key)
            #expect(try await storage.entry(for: Self.key)?.data == Data("ours".utf8))
        }
    }

    @Test("Removing a damaged file does not remove a valid file that has replaced it")
    func removalRace() async throws {
        try await withScratchFolder { path in
            guard let folder = try Folder(path.path) else {
                Issue.record("the folder does not exist")
                return
            }
            let file = path.appendingPathComponent("name")
            try Data("bad".utf8).write(to: file)
            let status = try #require(try folder.status(of: "name"))
            try folder.replace(
                "name", with: Data("new".utf8), through: "temporary", date: Date(timeIntervalSince1970: 0),
                synchronize: false)
            try folder.remove("name", ifStill: status, aside: "aside")
            #expect(try Data(contentsOf: file) == Data("new".utf8))
            #expect(try names(in: path) == ["name"])
            let newStatus = try #require(try folder.status(of: "name"))
            try folder.remove("name", ifStill: newStatus, aside: "aside")
            #expect(try names(in: path) == [])
            // A folder cannot be restored with a hard link.
            try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
            try folder.remove("name", ifStill: newStatus, aside: "aside")
            #expect(try names(in: path) == ["name"])
        }
    }

    @Test(
        "The first use of a storage removes its temporary files that are older than an hour, and no others")
    func leftovers() async throws {
        try await withScratchFolder { folder in
            let now = Date(timeIntervalSince1970: 1_700_000_000)
            let digits = Self.key.fileName
            let ages: [(name: String, age: Double)] = [
                ("p\(digits).0123456789abcdef.temporary", 3_602), ("p\(digits).1123456789abcdef.temporary", 3_598),
                ("p\(digits).2123456789abcdef.temporary", -100_000), ("\(digits).3123456789abcdef.temporary", 100_000),
                ("q\(digits).4123456789abcdef.temporary", 100_000), ("p\(digits).entry", 100_000),
                ("p\(digits).5.temporary", 100_000),
                ("p\(digits).6123456789abcdef.temporary", 100_000),
            ]
            for (name, age) in ages {
                let file = folder.appendingPathComponent(name)
                try Data("half".utf8).write(to: file)
                try FileManager.default.setAttributes(
                    [.modificationDate: now.addingTimeInterval(-age)], ofItemAtPath: file.path)
            }
            let storage = try FileStorage(folder: folder, prefix: "p", timekeeper: TestTimekeeper(date: { now }))
            #expect(try names(in: folder).count == ages.count)
            #expect(try await storage.entry(for: StorageKey(identifier: "another")) == nil)
            #expect(
                try names(in: folder) == [ages[1], ages[2], ages[3], ages[4], ages[5], ages[6]].map(\.name).sorted())
        }
    }

    @Test("A file whose unused bytes are not zero is damaged", arguments: [6, 7])
    func unusedBytes(place: Int) throws {
        var file = FileStorage.WrappedFile.bytes(
            StorageEntry(.raw(Data("a".utf8)), date: nil), Data("a".utf8), Self.key)
        guard case .entry = FileStorage.WrappedFile.read(file, for: Self.key) else {
            Issue.record("the valid file was not accepted")
            return
        }
        file[place] = 1
        guard case .damaged = FileStorage.WrappedFile.read(Self.signed(file), for: Self.key) else {
            Issue.record("the file was not reported as damaged")
            return
        }
    }

    /// Returns the file with a valid checksum.
    private static func signed(_ file: Data) -> Data {
        let bytes = file.dropLast(8)
        return bytes + withUnsafeBytes(of: bytes.withUnsafeBytes { XXHash64.hash($0) }.littleEndian) { Data($0) }
    }
}
