import Foundation
import WebServiceCore

/// The folder of one generation of an account. All members block the thread.
///
/// The file `.account` contains the generation, which is a random identifier. A log-out first
/// renames the file to `.logged-out`, because renaming requires no disk space, and removes it last.
/// Therefore, a folder with neither file is empty or does not belong to an account, and an
/// interrupted log-out can be completed. Everything is removed relative to an open folder that has
/// the expected generation, while the file in it is locked.
struct AccountFolder: Sendable {
    /// The number of log-outs and later removals in progress in this process, by path.
    static let logOuts = Mutex<[String: Int]>([:])

    let url: URL
    let generation: UUID

    /// The file that contains the generation.
    private struct Mark {
        static let active = ".account"
        static let loggedOut = ".logged-out"
        /// The beginning of the file, followed by a checksum.
        private static let format = "webservice-account 1 "

        let name: String
        let generation: UUID
        var isLoggedOut: Bool { name == Self.loggedOut }

        /// Reads the file. Returns `nil` if there is no such file, or if its content is not a
        /// generation.
        init?(in folder: borrowing Folder) throws(SystemFailure) {
            for name in [Self.active, Self.loggedOut] {
                guard let (bytes, _) = try folder.content(of: name, isWhole: { _, _ in false }),
                    let content = CheckedContent.decode(bytes, mark: Self.format),
                    let generation = UUID(uuidString: String(decoding: content, as: UTF8.self))
                else { continue }
                (self.name, self.generation) = (name, generation)
                return
            }
            return nil
        }

        /// Creates the file durably, unless it already exists.
        static func create(in folder: borrowing Folder) throws(SystemFailure) {
            let content = CheckedContent.encode(Data(UUID().uuidString.utf8), mark: format)
            let (new, temporary) = (temporaryName, temporaryName)
            try folder.replace(new, with: content, through: temporary, date: Date(), synchronize: true)
            do throws(SystemFailure) { _ = try folder.link(new, to: active) } catch {
                return try folder.move(new, to: active)  // the file system may not support hard links
            }
            try folder.remove(new)
            try folder.synchronize()
        }

        private static var temporaryName: String { "\(active).\(UUID().uuidString.lowercased())" }

        /// Returns whether a file is a temporary one that remained because a process was killed
        /// while it created the folder.
        static func isRemainder(_ name: String) -> Bool { name.hasPrefix(active + ".") }
    }

    init(_ url: URL, _ generation: UUID) { (self.url, self.generation) = (url, generation) }

    /// Opens the folder of an account, and creates it if necessary. An interrupted log-out is
    /// completed.
    init(opening url: URL) throws {
        self.url = url
        generation = try Self.translating(url, Self.cannotOpen) { try Self.open(url) }
    }

    private static let cannotOpen = "could not be opened; check its permissions, or use another folder"
    private static let cannotRemove =
        "could not be emptied; make its files writable, unmount the file systems in it, and log out again"

    private static func open(_ url: URL) throws -> UUID {
        // A log-out may remove the folder at the same time.
        for _ in 0..<10 {
            do {
                if let generation = try attemptToOpen(url) { return generation }
            } catch let failure as SystemFailure where failure.number == ENOENT {}
        }
        throw WebServiceError(
            .storage, "another account in the folder '\(url.path)' is being opened and removed; try again")
    }

    /// Returns the generation of the folder, or `nil` if the caller must try again because the
    /// folder was changed.
    private static func attemptToOpen(_ url: URL) throws -> UUID? {
        try Folder.create(url.path, synchronize: true)
        guard let folder = try Folder(url.path, followsLink: true) else { return nil }
        if let mark = try Mark(in: folder) {
            guard mark.isLoggedOut else {
                // A killed process may have created the file without flushing its name. Without the
                // file, the folder would not be accepted after a power failure.
                try folder.synchronize()
                return mark.generation
            }
            try AccountFolder(url, mark.generation).remove()
            return nil
        }
        let isEmpty = try folder.names().allSatisfy(Mark.isRemainder)
        if isEmpty {
            try Mark.create(in: folder)
        } else if try Mark(in: folder) == nil {  // another process has not created it in the meantime
            throw WebServiceError(
                .storage,
                "the folder '\(url.path)' is not empty and does not belong to an account; use a new folder, or "
                    + "remove the files in it")
        }
        return nil
    }

    // MARK: Log-outs

    /// Returns whether the folder belongs to a different generation.
    func isReplaced() throws -> Bool {
        try Self.translating(url, Self.cannotOpen) {
            guard let folder = try Folder(url.path, followsLink: true), let mark = try Mark(in: folder) else {
                return false
            }
            return mark.generation != generation
        }
    }

    /// Returns whether the folder belongs to this generation.
    func isCurrent() throws -> Bool {
        try Self.translating(url, Self.cannotOpen) {
            guard let folder = try Folder(url.path, followsLink: true) else { return false }
            return try Mark(in: folder)?.generation == generation
        }
    }

    /// Durably renames the file that contains the generation, unless the folder belongs to a
    /// different generation.
    func beginLogOut() throws {
        try Self.translating(url, Self.cannotRemove) { try whileLocked { try Self.begin($0, $1) } }
    }

    /// Removes the contents of the folder, and then the folder itself if its parent permits it.
    /// Does nothing if the folder belongs to a different generation.
    func remove() throws {
        try Self.translating(url, Self.cannotRemove) {
            try whileLocked { folder, mark in
                try Self.begin(folder, mark)
                try folder.removeContents(except: Mark.loggedOut)
                try folder.synchronize()
                try folder.remove(Mark.loggedOut)
                try folder.synchronize()
                do throws(SystemFailure) {
                    let parent = try Folder(url.deletingLastPathComponent().path, followsLink: true)
                    guard let parent else { return }
                    try folder.removeIfEmpty(url.lastPathComponent, in: parent)
                } catch {}  // an empty folder remains, for example a mount point
            }
        }
    }

    private static func begin(_ folder: borrowing Folder, _ mark: Mark) throws(SystemFailure) {
        if !mark.isLoggedOut { try folder.move(Mark.active, to: Mark.loggedOut) }
        try folder.synchronize()  // a killed process may have renamed the file without flushing its name
    }

    /// Executes work while no other log-out can change the folder. Does nothing if the folder does
    /// not exist or belongs to a different generation.
    private func whileLocked(_ work: (borrowing Folder, Mark) throws -> Void) throws {
        for _ in 0..<10 {
            guard let folder = try Folder(url.path, followsLink: true), let mark = try Mark(in: folder),
                mark.generation == generation
            else { return }
            guard let file = try folder.existingFile(mark.name) else { continue }  // it was renamed in the meantime
            try file.lockAfterOthers()
            defer { file.unlock() }
            guard let lockedMark = try Mark(in: folder), lockedMark.generation == generation else { return }
            return try work(folder, lockedMark)
        }
    }

    /// Completes the log-outs in the subfolders of a folder, and then throws the first error if
    /// there was one. Subfolders that belong to other users or to no account are ignored.
    static func finishLogOuts(in parent: URL) throws {
        let parent = parent.standardizedFileURL.resolvingSymlinksInPath()
        var failure: (any Error)?
        try translating(parent, "could not be read; check its permissions") {
            guard let folder = try Folder(parent.path, followsLink: true) else { return }
            for name in try folder.names() {
                let url = parent.appendingPathComponent(name, isDirectory: true)
                guard let generation = try? loggedOutGeneration(of: name, in: folder),  // not an account's folder
                    logOuts.withLock({ $0[url.path] }) == nil
                else { continue }
                do { try AccountFolder(url, generation).remove() } catch { failure = failure ?? error }
            }
        }
        if let failure { throw failure }
    }

    /// Returns the generation of a folder in which a log-out by the user of this process is
    /// incomplete.
    private static func loggedOutGeneration(
        of name: String, in parent: borrowing Folder
    ) throws(SystemFailure) -> UUID? {
        guard let folder = try parent.folder(name), let mark = try Mark(in: folder), mark.isLoggedOut,
            let file = try folder.existingFile(mark.name), try file.isOwned()
        else { return nil }
        return mark.generation
    }

    private static func translating<Value>(
        _ url: URL, _ complaint: String, _ work: () throws -> Value
    ) throws -> Value {
        do { return try work() } catch let failure as SystemFailure {
            throw failure.error(.storage, "the folder '\(url.path)' \(complaint)")
        }
    }
}
