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

@Suite("The folder of FileStorage", .timeLimit(.minutes(10)))
struct FileStorageFolderTests {
    private let key = StorageKey(identifier: "a")
    private var name: String { key.fileName + ".entry" }
    private let entry = StorageEntry(.raw(Data("answer".utf8)), date: nil)

    /// That everything but making the storage fails for the folder, and with which error of the
    /// system.
    private func refused(_ folder: URL, _ codes: Set<POSIXErrorCode>) async throws {
        let storage = try FileStorage(folder: folder)
        let attempts: [@Sendable () async throws -> Void] = [
            { _ = try await storage.entry(for: key) }, { try await storage.store(entry, for: key) },
            { try await storage.removeEntry(for: key) },
            { try await storage.removeAll() },
        ]
        for attempt in attempts {
            let error = try #require(await #expect(throws: WebServiceError.self) { try await attempt() })
            #expect(error.code == .storage)
            #expect(codes.contains(try #require(error.underlying as? POSIXError).code), "\(error)")
        }
    }

    private func mode(_ url: URL) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int)
    }

    @Test("H-38, F26: a missing folder is made with all above it, for the user alone, and so is the file")
    func missing() async throws {
        try await withScratchFolder { parent in
            let folder = parent.appendingPathComponent("a/b c/ü")
            try await FileStorage(folder: folder).store(entry, for: key)
            for made in ["a", "a/b c", "a/b c/ü"] { #expect(try mode(parent.appendingPathComponent(made)) == 0o700) }
            #expect(try mode(folder.appendingPathComponent(name)) == 0o600)
            #expect(try await FileStorage(folder: folder).entry(for: key)?.data == entry.data)
        }
    }

    @Test("H-38: a umask that allows everything opens neither folder nor file to others")
    func umaskOfNothing() async throws {
        try await withScratchFolder { parent in
            let folder = parent.appendingPathComponent("a")
            let storage = try FileStorage(folder: folder)
            // It belongs to the whole process; other tests can live with it for as long as this
            // takes.
            let mask = umask(0)
            defer { umask(mask) }
            try await storage.store(entry, for: key)
            #expect(try mode(folder) == 0o700)
            #expect(try mode(folder.appendingPathComponent(name)) == 0o600)
        }
    }

    @Test("H-38: a file in the folder's place is refused, and stays as it is")
    func replacedByFile() async throws {
        try await withScratchFolder { parent in
            let folder = parent.appendingPathComponent("a")
            try Data("file".utf8).write(to: folder)
            try await refused(folder, [.ENOTDIR])
            try await refused(folder.appendingPathComponent("below"), [.ENOTDIR])
            #expect(try Data(contentsOf: folder) == Data("file".utf8))
        }
    }

    @Test(
        "H-38: a link in the folder's place is refused, however it is written, and where it leads stays as it is",
        arguments: ["", "/", "/.", "/./", "//"])
    func replacedByLink(end: String) async throws {
        try await withScratchFolder { parent in
            let target = parent.appendingPathComponent("target")
            try await FileStorage(folder: target).store(entry, for: key)
            for destination in [target.path, "target", "nowhere"] {
                let folder = parent.appendingPathComponent("link")
                try FileManager.default.createSymbolicLink(atPath: folder.path, withDestinationPath: destination)
                try await refused(try #require(URL(string: "file://" + folder.path + end)), [.ENOTDIR, .ELOOP])
                try FileManager.default.removeItem(at: folder)
            }
            #expect(try names(in: parent) == ["target"])
            #expect(try names(in: target) == [name])
        }
    }

    @Test("H-38: a folder that disappears between two calls is made again")
    func removedMeanwhile() async throws {
        try await withScratchFolder { parent in
            let folder = parent.appendingPathComponent("a")
            let storage = try FileStorage(folder: folder, maximumCount: 2)
            for _ in 0..<3 {
                for other in 0..<3 { try await storage.store(entry, for: StorageKey(identifier: "\(other)")) }
                #expect(try names(in: folder).count == 2)
                try FileManager.default.removeItem(at: folder)
                #expect(try await storage.entry(for: key) == nil)
                try await storage.removeEntry(for: key)
            }
            try await storage.store(entry, for: key)
            #expect(try await storage.entry(for: key)?.data == entry.data)
        }
    }

    @Test("H-38: while somebody removes the folder over and over, there are whole entries, none, or typed errors")
    func removedWhileOpen() async throws {
        try await withScratchFolder { parent in
            let folder = parent.appendingPathComponent("a")
            let storage = try FileStorage(folder: folder)
            let isDone = Mutex(false)
            async let removals: Int = {
                var count = 0
                while !isDone.withLock({ $0 }) {
                    // It fails when the storage writes into it at that moment.
                    if (try? FileManager.default.removeItem(at: folder)) != nil { count += 1 }
                    await Task.yield()
                }
                return count
            }()
            for _ in 0..<300 {
                do {
                    try await storage.store(entry, for: key)
                    if let read = try await storage.entry(for: key) { #expect(read.data == entry.data) }
                } catch let error as WebServiceError {
                    #expect(error.code == .storage)
                    #expect((error.underlying as? POSIXError)?.code == .ENOENT)
                }
            }
            isDone.withLock { $0 = true }
            #expect(await removals > 0)
            try await storage.store(entry, for: key)
            #expect(try await storage.entry(for: key)?.data == entry.data)
        }
    }

    @Test(
        "H-38: a folder and a file without permission are errors, not missing entries",
        .enabled(if: geteuid() != 0, "root may do everything"))
    func permissions() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder)
            try await storage.store(entry, for: key)
            let file = folder.appendingPathComponent(name)
            try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: file.path)
            let unreadable = await #expect(throws: WebServiceError.self) { try await storage.entry(for: key) }
            #expect((unreadable?.underlying as? POSIXError)?.code == .EACCES)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
            try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: folder.path)
            let unwritable = await #expect(throws: WebServiceError.self) {
                try await storage.store(StorageEntry(.raw(Data("new".utf8)), date: nil), for: key)
            }
            #expect((unwritable?.underlying as? POSIXError)?.code == .EACCES)
            #expect(try await storage.entry(for: key)?.data == entry.data)
            await #expect(throws: WebServiceError.self) { try await storage.removeEntry(for: key) }
            await #expect(throws: WebServiceError.self) { try await storage.removeAll() }
            #expect(try names(in: folder) == [name])
            try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: folder.path)
            try await refused(folder, [.EACCES])
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path)
        }
    }

    @Test(
        "a damaged file that cannot be removed is a missing entry all the same",
        .enabled(if: geteuid() != 0, "root may do everything"))
    func damageInReadOnlyFolder() async throws {
        try await withScratchFolder { folder in
            try Data("x".utf8).write(to: folder.appendingPathComponent(name))
            try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: folder.path)
            #expect(try await FileStorage(folder: folder).entry(for: key) == nil)
            #expect(try names(in: folder) == [name])
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path)
        }
    }

    @Test("a link under an entry's name is not followed: read as none and removed, and replaced by a store")
    func links() async throws {
        try await withScratchFolder { parent in
            let folder = parent.appendingPathComponent("a")
            let storage = try FileStorage(folder: folder)
            try await storage.store(entry, for: key)
            let outside = parent.appendingPathComponent("outside")
            try FileManager.default.moveItem(at: folder.appendingPathComponent(name), to: outside)
            let bytes = try Data(contentsOf: outside)
            for destination in [outside.path, "nowhere", name] {
                let link = folder.appendingPathComponent(name).path
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: destination)
                #expect(try await storage.entry(for: key) == nil)
                #expect(try names(in: folder) == [])
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: destination)
                try await storage.store(StorageEntry(.raw(Data("new".utf8)), date: nil), for: key)
                #expect(try await storage.entry(for: key)?.data == Data("new".utf8))
                try await storage.removeEntry(for: key)
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: destination)
                try await storage.removeEntry(for: key)
                #expect(try names(in: folder) == [])
            }
            #expect(try Data(contentsOf: outside) == bytes)
        }
    }

    @Test("a FIFO under an entry's name keeps nobody waiting: read as none and removed", .timeLimit(.minutes(10)))
    func fifo() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder)
            let path = folder.appendingPathComponent(name).path
            try #require(mkfifo(path, 0o600) == 0)
            #expect(try await storage.entry(for: key) == nil)
            #expect(try names(in: folder) == [])
            try #require(mkfifo(path, 0o600) == 0)
            try await storage.store(entry, for: key)
            #expect(try await storage.entry(for: key)?.data == entry.data)
        }
    }

    @Test("a folder under an entry's name is read as none, cannot be written over, and stays")
    func folderUnderTheName() async throws {
        try await withScratchFolder { folder in
            let storage = try FileStorage(folder: folder, maximumCount: 10)
            let inner = folder.appendingPathComponent(name)
            try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
            #expect(try await storage.entry(for: key) == nil)
            let error = try #require(
                await #expect(throws: WebServiceError.self) { try await storage.store(entry, for: key) })
            #expect(error.code == .storage)
            #expect((error.underlying as? POSIXError)?.code == .EISDIR)
            try await storage.removeEntry(for: key)
            try await storage.removeAll()
            #expect(try names(in: folder) == [name])
        }
    }

    @Test("an error names the call and the reason, and no identifier")
    func message() async throws {
        try await withScratchFolder { parent in
            let folder = parent.appendingPathComponent("secret-folder")
            try Data().write(to: folder)
            let storage = try FileStorage(folder: folder)
            let error = await #expect(throws: WebServiceError.self) {
                try await storage.entry(for: StorageKey(identifier: "secret-name"))
            }
            #expect(error?.description == "storage: an entry could not be read: open: Not a directory")
        }
    }

    @Test(
        "H-36, F26: on a full disk the old entry stays, nothing is left behind, and the error says so",
        .enabled(if: SmallDisk.canBeMounted, "needs a tmpfs of its own"))
    func fullDisk() async throws {
        try await withScratchFolder { folder in
            let disk = try SmallDisk(at: folder)
            defer { disk.unmount() }
            let storage = try FileStorage(folder: folder, durability: .power)
            try await storage.store(entry, for: key)
            for size in stride(from: 256 << 10, through: 2 << 20, by: 37 << 10) {
                let error = await #expect(throws: WebServiceError.self) {
                    try await storage.store(StorageEntry(.raw(Data(repeating: 1, count: size)), date: nil), for: key)
                }
                #expect(error?.code == .storage)
                #expect((error?.underlying as? POSIXError)?.code == .ENOSPC)
                #expect(try names(in: folder) == [name])
                #expect(try await storage.entry(for: key)?.data == entry.data)
            }
            try await storage.store(StorageEntry(.raw(Data(repeating: 1, count: 100 << 10)), date: nil), for: key)
            #expect(try await storage.entry(for: key)?.data?.count == 100 << 10)
        }
    }
}

/// A file system of 256 KiB, where the process may have one.
private struct SmallDisk {
    static let canBeMounted: Bool = {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("small-disk-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }  // it may not have been made
        guard geteuid() == 0,
            (try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)) != nil,
            let disk = try? SmallDisk(at: folder)
        else { return false }
        disk.unmount()
        return true
    }()

    let path: String

    init(at folder: URL) throws {
        path = folder.path
        guard Self.run("mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "tmpfs", path) else { throw TestFailure() }
    }

    func unmount() {
        _ = Self.run("umount", "-l", path)
    }

    private static func run(_ arguments: String...) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }

    private struct TestFailure: Error {}
}
