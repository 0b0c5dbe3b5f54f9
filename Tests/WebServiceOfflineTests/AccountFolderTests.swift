import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceOffline

@Suite("The folder of an account", .permit)
struct AccountFolderTests {
    private let parent = TemporaryFolder.forTest().url
    private var folder: URL { parent.appendingPathComponent("anna", isDirectory: true) }

    /// A folder with a file that no log-out may change.
    private func outside() throws -> URL {
        let url = parent.appendingPathComponent("outside", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        try Data("keep".utf8).write(to: url.appendingPathComponent("file"))
        return url
    }

    private func isComplete(_ outside: URL) -> Bool {
        (try? Data(contentsOf: outside.appendingPathComponent("file"))) == Data("keep".utf8)
    }

    private func failure<Value>(_ work: () async throws -> Value) async -> WebServiceError? {
        do { _ = try await work() } catch { return error as? WebServiceError }
        return nil
    }

    // MARK: Opening

    @Test(
        "A folder with other files is refused with its path and what to do, and is not changed",
        arguments: ["notes.txt", ".logged-out", ".account", "cookies.json", ".bashrc"])
    func foreign(name: String) async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("mine".utf8).write(to: folder.appendingPathComponent(name))
        let error = await failure { try Account(in: folder) }
        #expect(error?.code == .storage)
        #expect(error?.message.contains("'\(folder.path)' is not empty and does not belong to an account") == true)
        #expect(error?.message.contains("use a new folder") == true)
        try Account.finishLogOuts(in: parent)
        #expect(try names(in: folder) == [name])
        #expect(try Data(contentsOf: folder.appendingPathComponent(name)) == Data("mine".utf8))
    }

    @Test("An empty folder, and one that a process was about to create, are accepted")
    func unfinished() async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data().write(to: folder.appendingPathComponent(".account.1"))
        try await Account(in: folder).logOut()
        #expect(try names(in: parent) == [])
    }

    @Test("The folder of an account can be opened again with its files")
    func again() async throws {
        let first = try Account(in: folder)
        try Data("x".utf8).write(to: first.file("x"))
        let second = try Account(in: folder)
        #expect(second.ownFolder.generation == first.ownFolder.generation)
        #expect(try names(in: folder) == [".account", "x"])
    }

    @Test("Accounts that are opened at the same time in one folder are the same account")
    func concurrent() async throws {
        for number in 0..<100 {
            let folder = parent.appendingPathComponent("\(number)")
            let generations = try await withThrowingTaskGroup(of: UUID.self) { group in
                for _ in 0..<4 { group.addTask { try Account(in: folder).ownFolder.generation } }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(generations.count == 1)
        }
    }

    @Test("Cookies are not written to a folder that was removed or belongs to another account")
    func cookies() async throws {
        let account = try Account(in: folder)
        try FileManager.default.removeItem(at: folder)
        let error = await failure { try account.writeCookies() }
        #expect(error?.message.contains(folder.path) == true)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
        let newer = try Account(in: folder)
        #expect(await failure { try account.writeCookies() }?.code == .storage)
        #expect(try names(in: folder) == [".account"])
        try newer.writeCookies()
        #expect(try names(in: folder) == [".account", "cookies.json"])
    }

    // MARK: Removal

    @Test("The storages are emptied only after the file of the account was renamed")
    func order() async throws {
        for _ in 0..<4 {
            let account = try Account(in: folder)
            let storage = HandStorage()
            _ = account.storage(storage)
            let lock = open(account.file(".account").path, O_RDONLY | O_CLOEXEC)
            try #require(flock(lock, LOCK_EX) == 0)
            let logOut = Task { try await account.logOut() }
            await eventually { account.isLoggedOut }
            try await Task.sleep(for: .milliseconds(50))  // otherwise, the storage would be emptied
            #expect(storage.calls.values == [])
            close(lock)
            try await logOut.value
            #expect(storage.calls.values == [.removeAll])
        }
    }

    @Test("Links, links to parents, hard links and FIFOs are removed, and not what they lead to")
    func links() async throws {
        let outside = try outside()
        let account = try Account(in: folder)
        let nested = account.file("a/b")
        try FileManager.default.createDirectory(at: nested, withIntermediateDirectories: true)
        for (number, target) in [outside.path, "..", "../..", "../../outside", ".", "/", "missing"].enumerated() {
            for place in [folder, nested] {
                try FileManager.default.createSymbolicLink(
                    atPath: place.appendingPathComponent("link-\(number)").path, withDestinationPath: target)
            }
        }
        try FileManager.default.linkItem(
            at: outside.appendingPathComponent("file"), to: nested.appendingPathComponent("hard"))
        #expect(mkfifo(account.file("fifo").path, 0o600) == 0)
        try await account.logOut()
        #expect(isComplete(outside))
        #expect(try names(in: parent) == ["outside"])
    }

    @Test("No list of the names in a folder contains the folder or its parent")
    func dots() throws {
        _ = try outside()
        let names = try Folder(parent.path)?.names()
        #expect(names == ["outside"])
    }

    @Test("A folder that is replaced by a link while it is removed leads nowhere else")
    func replaced() async throws {
        let outside = try outside()
        for _ in 0..<amount(30, thorough: 200) {
            let account = try Account(in: folder)
            let (victim, aside) = (account.file("x").path, account.file("y").path)
            for number in 0..<3 {
                let inner = account.file("x/\(number)")
                try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
                try Data("x".utf8).write(to: inner.appendingPathComponent("file"))
            }
            let swaps = Task {
                for _ in 0..<20 {
                    _ = rename(victim, aside)
                    _ = symlink(outside.path, victim)
                    await Task.yield()
                    _ = unlink(victim)
                    _ = rename(aside, victim)
                }
            }
            try? await account.logOut()  // may fail because of new files
            await swaps.value
            #expect(isComplete(outside))
            try Account.finishLogOuts(in: parent)
            try? FileManager.default.removeItem(at: folder)  // what was moved back afterwards
        }
    }

    @Test("A folder that has taken the place of the account's folder is not changed")
    func moved() async throws {
        let account = try Account(in: folder)
        try FileManager.default.moveItem(at: folder, to: parent.appendingPathComponent("moved"))
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data("keep".utf8).write(to: folder.appendingPathComponent("file"))
        try await account.logOut()
        #expect(isComplete(folder))
        #expect(try names(in: folder) == ["file"])
    }

    @Test("A log-out that was interrupted is not completed through a link in the parent")
    func linkedLogOut() throws {
        let account = try Account(in: folder)
        try Data("keep".utf8).write(to: account.file("file"))
        try account.ownFolder.beginLogOut()
        let other = parent.appendingPathComponent("other", isDirectory: true)
        try FileManager.default.createDirectory(at: other, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(at: other.appendingPathComponent("link"), withDestinationURL: folder)
        try Account.finishLogOuts(in: other)
        #expect(try names(in: folder) == [".logged-out", "file"])
    }

    #if os(Linux)
    @Test("A tree of any depth is removed")
    func depth() async throws {
        let account = try Account(in: folder)
        guard var inner = try Folder(folder.path) else { return }
        for _ in 0..<3_000 {
            let number = inner.descriptor.number
            try #require(mkdirat(number, "a", 0o700) == 0)
            _ = try inner.openFile("file", isNew: true)
            guard let next = try inner.folder("a") else { return }
            inner = next
        }
        try await account.logOut()
        #expect(try names(in: parent) == [])
    }

    @Test(
        "A mount point is emptied, and can belong to the next account",
        .enabled(if: SmallDisk.canMount, "requires the permission to mount a file system"))
    func mountPoint() async throws {
        try await SmallDisk.with { disk in
            for _ in 0..<2 {
                let account = try Account(in: disk)
                #expect(try names(in: disk) == [".account"])
                try FileManager.default.createDirectory(at: account.file("a/b"), withIntermediateDirectories: true)
                try Data("secret".utf8).write(to: account.file("a/b/token"))
                try await account.logOut()
                #expect(try names(in: disk) == [])
            }
        }
    }

    @Test(
        "What is mounted in the folder is an error, and is not entered",
        .enabled(if: SmallDisk.canMount, "requires the permission to mount a file system"), arguments: [true, false])
    func mounted(isNested: Bool) async throws {
        let outside = try outside()
        let account = try Account(in: folder)
        let point = account.file(isNested ? "a/b" : "b")
        try FileManager.default.createDirectory(at: point, withIntermediateDirectories: true)
        try Data("secret".utf8).write(to: account.file("token"))
        try #require(mount(outside.path, point.path, nil, UInt(MS_BIND), nil) == 0)
        let error = await failure { try await account.logOut() }
        #expect(error?.message.contains("the folder '\(folder.path)' could not be emptied") == true)
        #expect(error?.message.contains("unmount the file systems in it") == true)
        #expect((error?.underlying as? POSIXError)?.code == .EBUSY)
        #expect(isComplete(outside))
        #expect(try !names(in: folder).contains("token"))
        #expect(await failure { try Account(in: folder) }?.code == .storage)
        // A folder that contains a mount point may have been renamed.
        let points = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects ?? []
        for case let point as URL in [folder as Any] + points { umount2(point.path, Int32(MNT_DETACH)) }
        try await account.logOut()
        #expect(isComplete(outside))
        #expect(try names(in: parent) == ["outside"])
    }

    // MARK: Without rights

    /// Opens an account as a user without rights, logs out, and returns the output.
    private func logOutWithoutRights() async throws -> String {
        let (output, input) = (Pipe(), Pipe())
        let process = ChildProcess(
            "/usr/bin/setpriv",
            ["--reuid=65534", "--regid=65534", "--clear-groups", programPath("outbox-probe"), "log-out", folder.path],
            environment: ["SWIFT_BACKTRACE": "enable=no", "HOME": "/nonexistent"], input: .pipe(input),
            output: .pipe(output), errors: .null)
        return try await process.finish(reading: output).output
    }

    static let canChangeUser = geteuid() == 0 && FileManager.default.isExecutableFile(atPath: "/usr/bin/setpriv")

    @Test(
        "Other folders in the parent do not matter, unreadable ones and those of other users",
        .enabled(if: canChangeUser, "requires root and setpriv"))
    func siblings() async throws {
        // As in /tmp.
        try FileManager.default.setAttributes([.posixPermissions: 0o1777], ofItemAtPath: parent.path)
        for (name, mode) in [("lost+found", 0o700), ("garbage", 0o755), ("ended", 0o755)] {
            try FileManager.default.createDirectory(
                at: parent.appendingPathComponent(name), withIntermediateDirectories: true,
                attributes: [.posixPermissions: mode])
        }
        try Data("x".utf8).write(to: parent.appendingPathComponent("garbage/.logged-out"))
        // The incomplete log-out of another user.
        let other = try Account(in: folder)
        try other.ownFolder.beginLogOut()
        let mark = parent.appendingPathComponent("ended/.logged-out")
        try FileManager.default.moveItem(at: other.file(".logged-out"), to: mark)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: mark.path)
        try FileManager.default.removeItem(at: folder)
        #expect(try await logOutWithoutRights() == "done\n")
        #expect(try names(in: parent) == ["ended", "garbage", "lost+found"])
        #expect(try names(in: mark.deletingLastPathComponent()) == [".logged-out"])
    }

    @Test(
        "A log-out that another user has begun is not completed, even by a user who can write its file",
        .enabled(if: geteuid() == 0, "requires root"))
    func otherUser() throws {
        let account = try Account(in: folder)
        try account.ownFolder.beginLogOut()
        let mark = account.file(".logged-out").path
        try #require(chown(mark, 65_534, 65_534) == 0)
        try Account.finishLogOuts(in: parent)
        #expect(try names(in: parent) == ["anna"])
        try #require(chown(mark, 0, 0) == 0)
        try Account.finishLogOuts(in: parent)
        #expect(try names(in: parent) == [])
    }

    @Test(
        "Without rights to the parent, the folder is emptied, and can be opened again",
        .enabled(if: canChangeUser, "requires root and setpriv"))
    func parentOfRoot() async throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try #require(chown(folder.path, 65_534, 65_534) == 0)
        for _ in 0..<2 {
            #expect(try await logOutWithoutRights() == "done\n")
            #expect(try names(in: folder) == [])
        }
    }

    @Test(
        "Errors name the folder that a user without rights cannot create, open or empty",
        .enabled(if: canChangeUser, "requires root and setpriv"))
    func refusal() async throws {
        #expect(try await logOutWithoutRights().contains("the folder '\(folder.path)' could not be opened"))
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        #expect(try await logOutWithoutRights().contains("the folder '\(folder.path)' could not be opened"))
        try #require(chown(folder.path, 65_534, 65_534) == 0)
        let account = try Account(in: folder)
        let foreign = account.file("foreign")
        try FileManager.default.createDirectory(at: foreign, withIntermediateDirectories: true)
        try Data().write(to: foreign.appendingPathComponent("file"))
        try #require(chown(account.file(".account").path, 65_534, 65_534) == 0)
        let output = try await logOutWithoutRights()
        #expect(output.contains("the folder '\(folder.path)' could not be emptied; make its files writable"))
        #expect(output.contains("Permission denied"))
        #expect(try names(in: folder).contains(".logged-out"))
    }

    @Test(
        "What cannot be removed from a nested folder does not keep the files next to it",
        .enabled(if: canChangeUser, "requires root and setpriv"))
    func unremovable() async throws {
        let account = try Account(in: folder)
        let shared = account.file("shared")
        for number in 0..<20 {
            let foreign = shared.appendingPathComponent("foreign-\(number)")
            try FileManager.default.createDirectory(at: foreign, withIntermediateDirectories: true)
            try Data().write(to: foreign.appendingPathComponent("file"))
            try Data().write(to: shared.appendingPathComponent("secret-\(number)"))
        }
        for file in [folder, shared, account.file(".account")] {
            try #require(chown(file.path, 65_534, 65_534) == 0)
        }
        #expect(try await logOutWithoutRights().contains("could not be emptied"))
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects ?? []
        let names = files.compactMap { ($0 as? URL)?.lastPathComponent }
        #expect(names.filter { $0.hasPrefix("foreign-") }.count == 20)
        #expect(names.filter { $0.hasPrefix("secret-") } == [])
    }
    #endif
}
