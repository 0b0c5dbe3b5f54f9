import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceStorage

@Suite("Folder of FileStorage", .permit)
struct FileStorageFolderTests {
    private let key = StorageKey(identifier: "a")
    private var name: String { key.fileName + ".entry" }
    private let entry = StorageEntry(.raw(Data("answer".utf8)), date: nil)

    /// Verifies that every operation on the folder fails with one of the system errors.
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

    @Test(
        "A missing folder is created with its parents, and only the user can access it and its file")
    func missing() async throws {
        try await withScratchFolder { parent in
            let folder = parent.appendingPathComponent("a/b c/ü")
            try await FileStorage(folder: folder).store(entry, for: key)
            for made in ["a", "a/b c", "a/b c/ü"] {
                #expect(try mode(of: parent.appendingPathComponent(made)) == 0o700)
            }
            #expect(try mode(of: folder.appendingPathComponent(name)) == 0o600)
            #expect(try await FileStorage(folder: folder).entry(for: key)?.data == entry.data)
        }
    }

    @Test("A umask of 0 gives other users no access to the folder or the file")
    func umaskOfNothing() async throws {
        try await withScratchFolder { parent in
            let folder = parent.appendingPathComponent("a")
            let storage = try FileStorage(folder: folder)
            // The umask applies to the whole process; for this short time it does not affect other
            // tests.
            let mask = umask(0)
            defer { umask(mask) }
            try await storage.store(entry, for: key)
            #expect(try mode(of: folder) == 0o700)
            #expect(try mode(of: folder.appendingPathComponent(name)) == 0o600)
        }
    }

    @Test("A file at the path of the folder is rejected and not changed")
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
        "A symbolic link at the path of the folder is rejected in any spelling, and its target is not changed",
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

    @Test("A folder that is removed between two calls is created again")
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

    @Test(
        "While the folder is removed repeatedly, a call returns a complete entry, no entry or a typed error")
    func removedWhileOpen() async throws {
        try await withScratchFolder { parent in
            let folder = parent.appendingPathComponent("a")
            let storage = try FileStorage(folder: folder)
            let isDone = Mutex(false)
            async let removals: Int = {
                var count = 0
                repeat {
                    // It fails if the storage writes into the folder at the same time.
                    if (try? FileManager.default.removeItem(at: folder)) != nil { count += 1 }
                    await Task.yield()
                } while !isDone.withLock({ $0 })
                return count
            }()
            for _ in 0..<amount(50, thorough: 300) {
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
        "A folder or file without permissions is an error, not a missing entry",
        .enabled(if: geteuid() != 0, "root bypasses file permissions"))
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
        "A damaged file that cannot be removed is a missing entry",
        .enabled(if: geteuid() != 0, "root bypasses file permissions"))
    func damageInReadOnlyFolder() async throws {
        try await withScratchFolder { folder in
            try Data("x".utf8).write(to: folder.appendingPathComponent(name))
            try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: folder.path)
            #expect(try await FileStorage(folder: folder).entry(for: key) == nil)
            #expect(try names(in: folder) == [name])
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path)
        }
    }

    @Test("A symbolic link with the name of an entry is not followed; a read removes it, and a store replaces it")
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

    @Test("A FIFO with the name of an entry does not block; a read removes it", .permit)
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

    @Test("A folder with the name of an entry is a missing entry, cannot be replaced and is not removed")
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

    @Test("An error names the system call and the reason, but no path and no identifier")
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
        "A store on a full disk fails with ENOSPC, and only the old entry remains",
        .enabled(if: SmallDisk.canMount, "requires permission to mount a tmpfs"))
    func fullDisk() async throws {
        try await SmallDisk.with(kilobytes: 256) { folder in
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
