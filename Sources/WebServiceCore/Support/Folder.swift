package import Foundation

/// The status of a file. Two values are equal if they describe the same file and the file was not
/// written between them. Moving a file does not change its status.
package struct FileStatus: Sendable, Equatable {
    let device: UInt64
    package let inode: UInt64
    let kind: UInt32
    package let size: Int
    package let modifiedSeconds: Int
    package let modifiedNanoseconds: Int

    /// The date of the last change of the content.
    package var modified: Date {
        Date(timeIntervalSince1970: Double(modifiedSeconds) + Double(modifiedNanoseconds) / 1e9)
    }

    init(_ status: stat) {
        #if canImport(Darwin)
        let modified = status.st_mtimespec
        #else
        let modified = status.st_mtim
        #endif
        device = UInt64(truncatingIfNeeded: status.st_dev)
        inode = UInt64(truncatingIfNeeded: status.st_ino)
        kind = UInt32(status.st_mode & S_IFMT)
        size = Int(clamping: status.st_size)
        modifiedSeconds = Int(modified.tv_sec)
        modifiedNanoseconds = Int(modified.tv_nsec)
    }

    package var isRegular: Bool { kind == UInt32(S_IFREG) }
    package var isFolder: Bool { kind == UInt32(S_IFDIR) }
    package var isLink: Bool { kind == UInt32(S_IFLNK) }
}

/// An open folder. All files are accessed relative to it, and no link is followed, so replacing the
/// folder's path or placing a link there cannot redirect an access.
package struct Folder: ~Copyable, Sendable {
    package let descriptor: Descriptor

    init(descriptor: consuming Descriptor) {
        self.descriptor = descriptor
    }

    /// Opens the folder at a path.
    ///
    /// - Parameter followsLink: Whether a link to a folder is accepted. Defaults to `false`.
    /// - Returns: `nil` if the folder does not exist.
    /// - Throws: ``SystemFailure``, also if the path names something other than a folder.
    package init?(_ path: String, followsLink: Bool = false) throws(SystemFailure) {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (followsLink ? 0 : O_NOFOLLOW)
        do throws(SystemFailure) {
            descriptor = try Descriptor("open") { open(path, flags) }
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
    }

    /// Creates a folder and its missing parents. An existing folder is not an error.
    ///
    /// - Parameters:
    ///   - mode: The permissions, before the system applies the process's umask. Defaults to 0700:
    ///     only the user can access the folder.
    ///   - synchronize: Whether the names of the folder and of the created parents are flushed to
    ///     the disk, even if another process has created the folder. A parent folder that cannot be
    ///     read is not flushed.
    package static func create(_ path: String, mode: UInt32 = 0o700, synchronize: Bool) throws(SystemFailure) {
        let parent = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) } ?? ""
        do throws(SystemFailure) {
            try system("mkdir") { mkdir(path, mode_t(mode)) }
        } catch {
            if error.number != EEXIST {
                guard error.number == ENOENT, !parent.isEmpty else { throw error }
                try create(parent, mode: mode, synchronize: synchronize)
                try system("mkdir") { mkdir(path, mode_t(mode)) == -1 && errno != EEXIST ? -1 : 0 }
            }
        }
        if synchronize {
            guard
                let above = try? Descriptor(  // see `synchronize`
                    "open", { open(parent + "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
            else { return }
            try Folder(descriptor: above).synchronize()
        }
    }

    /// Returns the names of all entries, in no particular order.
    package borrowing func names() throws(SystemFailure) -> [String] {
        var names: [String] = []
        try forEachName { name throws(SystemFailure) in names.append(name) }
        return names
    }

    /// Calls a closure with the name of each entry, in no particular order. `.` and `..` are
    /// omitted.
    package borrowing func forEachName(
        _ body: (_ name: String) throws(SystemFailure) -> Void
    ) throws(SystemFailure) {
        let copy = try system("openat") { openat(descriptor.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard let stream = fdopendir(copy), let offset = MemoryLayout<dirent>.offset(of: \.d_name) else {
            let failure = SystemFailure(call: "fdopendir", number: errno)
            close(copy)
            throw failure
        }
        defer { closedir(stream) }
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                let number = errno
                guard number == 0 else { throw SystemFailure(call: "readdir", number: number) }
                return
            }
            let name = String(cString: (UnsafeRawPointer(entry) + offset).assumingMemoryBound(to: CChar.self))
            if name != ".", name != ".." { try body(name) }
        }
    }

    /// Returns the status of an entry, without following a link; `nil` if the entry does not exist.
    package borrowing func status(of name: String) throws(SystemFailure) -> FileStatus? {
        var status = stat()
        do throws(SystemFailure) {
            try system("fstatat") { fstatat(descriptor.number, name, &status, AT_SYMLINK_NOFOLLOW) }
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
        return FileStatus(status)
    }

    /// Returns the bytes of a file, or only its first bytes if `isWhole` returns `false`, together
    /// with the status of the file when the bytes were read.
    ///
    /// - Parameters:
    ///   - limit: The length above which `isWhole` is called. Defaults to 1 MiB.
    ///   - headCount: The number of first bytes of a longer file that are read for `isWhole`.
    ///     Defaults to 64.
    ///   - isWhole: A closure that returns whether a longer file, with these first bytes and of
    ///     this length, is read completely.
    /// - Returns: `nil` if there is no regular file. Other files are not read, and the method does
    ///   not wait for the writer of a FIFO.
    /// - Throws: ``SystemFailure``; with `isTooLong` for a file that exceeds the available memory.
    package borrowing func content(
        of name: String, limit: Int = 1 << 20, headCount: Int = 64,
        isWhole: (_ head: Data, _ count: Int) -> Bool = { _, _ in true }
    ) throws(SystemFailure) -> (bytes: Data, status: FileStatus)? {
        guard let found = try status(of: name), found.isRegular else { return nil }
        let file: Descriptor
        do throws(SystemFailure) {
            file = try Descriptor("openat") {
                openat(descriptor.number, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
            }
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
        let status = try file.status()
        guard status.isRegular else { return nil }
        if status.size > limit {
            let head = try file.content(count: headCount)
            guard isWhole(head, status.size) else { return (head, status) }
        }
        return (try file.content(count: status.size), status)
    }

    /// Replaces an entry with a file that contains the given bytes and is accessible only to the
    /// user (0600).
    ///
    /// The file is written under a temporary name first, so that either the old or the new file
    /// exists at any time. After a failure, the old file remains.
    ///
    /// - Parameter synchronize: Whether the bytes are flushed to the disk before the file is
    ///   renamed.
    package borrowing func replace(
        _ name: String, with bytes: Data, through temporary: String, date: Date, synchronize: Bool
    ) throws(SystemFailure) {
        let file = try Descriptor("openat") {
            openat(descriptor.number, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        }
        do throws(SystemFailure) {
            try file.append(bytes)
            try file.setModified(date)
            if synchronize { try file.synchronize() }
            try file.close()
            try move(temporary, to: name)
        } catch {
            unlinkat(descriptor.number, temporary, 0)  // if this fails as well, the file is removed later
            throw error
        }
    }

    /// Renames a file and replaces any file with the new name.
    package borrowing func move(_ name: String, to newName: String) throws(SystemFailure) {
        try system("renameat") { renameat(descriptor.number, name, descriptor.number, newName) }
    }

    /// Removes a file or link. A missing entry is not an error.
    package borrowing func remove(_ name: String) throws(SystemFailure) {
        try system("unlinkat") { unlinkat(descriptor.number, name, 0) == -1 && errno != ENOENT ? -1 : 0 }
    }

    /// Removes a file only if its status is unchanged.
    ///
    /// The file is moved aside and inspected again. If another process has replaced it in the
    /// meantime, the replacement is moved back unless an even newer file exists.
    package borrowing func remove(_ name: String, ifStill status: FileStatus, aside: String) throws(SystemFailure) {
        try move(name, to: aside)
        if try self.status(of: aside) != status, linkat(descriptor.number, aside, descriptor.number, name, 0) == -1,
            errno != EEXIST
        {
            return try move(aside, to: name)  // a folder, or a file system without hard links
        }
        try remove(aside)
    }

    /// Flushes the names of the entries to the disk.
    package borrowing func synchronize() throws(SystemFailure) {
        do throws(SystemFailure) {
            try descriptor.synchronize()
        } catch {
            guard error.number == EINVAL else { throw error }  // a file system without support for folders
        }
    }
}

extension Folder {
    /// Opens a folder in this one, without following a link; `nil` if it does not exist.
    package borrowing func folder(_ name: String) throws(SystemFailure) -> Folder? {
        let number = descriptor.number
        do throws(SystemFailure) {
            return Folder(
                descriptor: try Descriptor("openat") {
                    openat(number, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                })
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
    }

    /// Opens an existing file for reading and writing, without following a link or waiting for the
    /// peer of a FIFO; `nil` if the file does not exist.
    package borrowing func existingFile(_ name: String) throws(SystemFailure) -> Descriptor? {
        let number = descriptor.number
        do throws(SystemFailure) {
            return try Descriptor("openat") { openat(number, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
    }

    /// Gives a file a second name, unless the name is taken.
    ///
    /// - Returns: `false` if the name is taken.
    package borrowing func link(_ name: String, to newName: String) throws(SystemFailure) -> Bool {
        let number = descriptor.number
        do throws(SystemFailure) {
            try system("linkat") { linkat(number, name, number, newName, 0) }
            return true
        } catch {
            guard error.number == EEXIST else { throw error }
            return false
        }
    }

    /// Removes everything in the folder except one file. Links are removed and not followed. File
    /// systems that are mounted in the folder are neither entered nor removed.
    ///
    /// - Throws: The first failure, after everything else was removed; also if files are added
    ///   again and again.
    package borrowing func removeContents(except kept: String) throws(SystemFailure) {
        // Another thread or process may add files at the same time.
        for _ in 0..<10 {
            let names = try names().filter { $0 != kept }
            if names.isEmpty { return }
            try remove(names)
        }
        throw SystemFailure(call: "unlinkat", number: ENOTEMPTY)
    }

    /// Removes files and folders with their contents.
    ///
    /// A folder that is not empty is renamed before it is opened, and the folders in it are moved
    /// to this one. Renaming fails for a mount point, and moving fails across mount points. A tree
    /// of any depth therefore needs two descriptors and no recursion, and replacing a folder at the
    /// same time cannot redirect the removal.
    private borrowing func remove(_ names: [String]) throws(SystemFailure) {
        var (pending, failure) = (names, SystemFailure?.none)
        while let name = pending.popLast() {
            do throws(SystemFailure) {
                if try removeUnlessFull(name) { continue }
                let aside = Self.newName
                try move(name, to: aside)
                guard let inner = try folder(aside) else { continue }
                for child in try inner.names() {
                    do throws(SystemFailure) {
                        if try inner.removeUnlessFull(child) { continue }
                        let moved = Self.newName
                        let (from, to) = (inner.descriptor.number, descriptor.number)
                        try system("renameat") { renameat(from, child, to, moved) }
                        pending.append(moved)
                    } catch {
                        failure = failure ?? error.unlessMissing
                    }
                }
                _ = try removeUnlessFull(aside)
            } catch {
                failure = failure ?? error.unlessMissing
            }
        }
        if let failure { throw failure }
    }

    private static var newName: String { ".\(UUID().uuidString.lowercased()).removed" }

    /// Removes a file, a link or an empty folder.
    ///
    /// - Returns: `false` for a folder that is not empty. A missing entry is not an error.
    private borrowing func removeUnlessFull(_ name: String) throws(SystemFailure) -> Bool {
        do throws(SystemFailure) {
            try remove(name)
            return true
        } catch {
            guard error.number == EISDIR || error.number == EPERM else { throw error }
            let number = descriptor.number
            if unlinkat(number, name, AT_REMOVEDIR) == 0 { return true }
            switch errno {
            case ENOENT: return true
            case ENOTEMPTY, EEXIST: return false
            case ENOTDIR: throw error
            default: throw SystemFailure(call: "unlinkat", number: errno)
            }
        }
    }

    /// Removes this folder, which must be empty, from its parent if it still has the name.
    package borrowing func removeIfEmpty(_ name: String, in parent: borrowing Folder) throws(SystemFailure) {
        guard let found = try parent.status(of: name), found.isSameFile(as: try descriptor.status()) else { return }
        let number = parent.descriptor.number
        try system("unlinkat") { unlinkat(number, name, AT_REMOVEDIR) }
        try parent.synchronize()
    }
}

extension SystemFailure {
    /// The failure; `nil` if another thread has removed the file.
    fileprivate var unlessMissing: SystemFailure? { number == ENOENT ? nil : self }
}

extension FileStatus {
    fileprivate func isSameFile(as other: FileStatus) -> Bool { device == other.device && inode == other.inode }
}

/// The status of a file, and the date of its last change of any kind.
package struct FileChange: Sendable, Equatable {
    package let status: FileStatus
    /// The date of the last change of the content or the status (`st_ctime`), in seconds since
    /// 1970. No program can set this date. It also changes with permissions, names and extended
    /// attributes.
    package let date: Double

    fileprivate init(_ details: stat) {
        #if canImport(Darwin)
        let date = details.st_ctimespec
        #else
        let date = details.st_ctim
        #endif
        status = FileStatus(details)
        self.date = Double(date.tv_sec) + Double(date.tv_nsec) / 1e9
    }

    /// Reads the status of the file at a path. A link is followed.
    ///
    /// - Returns: `nil` if there is no file.
    package init?(path: String) throws(SystemFailure) {
        var details = stat()
        do throws(SystemFailure) {
            try system("stat") { stat(path, &details) }
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
        self.init(details)
    }
}

extension Descriptor {
    package borrowing func change() throws(SystemFailure) -> FileChange { FileChange(try details()) }
}
