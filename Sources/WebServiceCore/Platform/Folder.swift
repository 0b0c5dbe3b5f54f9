import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// What is at a name: two are equal when it is the same file, and nobody wrote to it in between. Moving a file changes none of it.
struct FileStatus: Sendable, Equatable {
    let device: UInt64
    let inode: UInt64
    let kind: UInt32
    let size: Int
    let modifiedSeconds: Int
    let modifiedNanoseconds: Int

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

    var isRegular: Bool { kind == UInt32(S_IFREG) }
    var isFolder: Bool { kind == UInt32(S_IFDIR) }
}

/// An open folder. Every file is reached through it and no link is followed, so what becomes of its path meanwhile, or who puts a link into its
/// place, leads nowhere else.
package struct Folder: ~Copyable {
    private let descriptor: Descriptor

    private init(descriptor: consuming Descriptor) {
        self.descriptor = descriptor
    }

    /// Opens a folder.
    ///
    /// - Returns: `nil` when there is none.
    /// - Throws: ``SystemFailure``, also when it is a link or anything else that is no folder.
    init?(_ path: String) throws(SystemFailure) {
        do throws(SystemFailure) {
            descriptor = try Descriptor("open") { open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) }
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
    }

    /// Makes a folder for the user alone (0700), and those above it that are missing. That it is there already is no error.
    ///
    /// - Parameter synchronize: Whether the disk is asked to write the names of the folders it makes; one above that may not be read is not asked.
    package static func create(_ path: String, synchronize: Bool) throws(SystemFailure) {
        let parent = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path[..<$0]) } ?? ""
        do throws(SystemFailure) {
            try system("mkdir") { mkdir(path, 0o700) }
        } catch {
            if error.number == EEXIST { return }
            guard error.number == ENOENT, !parent.isEmpty else { throw error }
            try create(parent, synchronize: synchronize)
            try system("mkdir") { mkdir(path, 0o700) == -1 && errno != EEXIST ? -1 : 0 }
        }
        if synchronize {
            guard let above = try? Descriptor("open", { open(parent + "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }) else { return }  // as said
            try Folder(descriptor: above).synchronize()
        }
    }

    /// The names of everything in it, in no order.
    borrowing func names() throws(SystemFailure) -> [String] {
        let copy = try system("openat") { openat(descriptor.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard let stream = fdopendir(copy), let offset = MemoryLayout<dirent>.offset(of: \.d_name) else {
            let failure = SystemFailure(call: "fdopendir", number: errno)
            close(copy)
            throw failure
        }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                let number = errno
                guard number == 0 else { throw SystemFailure(call: "readdir", number: number) }
                return names
            }
            names.append(String(cString: (UnsafeRawPointer(entry) + offset).assumingMemoryBound(to: CChar.self)))
        }
    }

    /// What is at a name, not what a link there points at; `nil` when nothing is.
    borrowing func status(of name: String) throws(SystemFailure) -> FileStatus? {
        var status = stat()
        do throws(SystemFailure) {
            try system("fstatat") { fstatat(descriptor.number, name, &status, AT_SYMLINK_NOFOLLOW) }
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
        return FileStatus(status)
    }

    /// All bytes of a file, and what it was when they were read.
    ///
    /// - Parameter isWhole: Whether a file of more than 1 MiB with these first bytes, and of this length, is read further.
    /// - Returns: `nil` when there is no regular file; nothing but such a one is read, and no FIFO is waited for.
    /// - Throws: ``SystemFailure``; its `isTooLong` for a file that is longer than the memory.
    borrowing func content(
        of name: String, isWhole: (_ head: Data, _ count: Int) -> Bool = { _, _ in true }
    ) throws(SystemFailure) -> (bytes: Data, status: FileStatus)? {
        guard let found = try status(of: name), found.isRegular else { return nil }
        let file: Descriptor
        do throws(SystemFailure) {
            file = try Descriptor("openat") { openat(descriptor.number, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
        let status = try file.status()
        guard status.isRegular else { return nil }
        if status.size > 1 << 20 {
            let head = try file.content(count: 64)
            guard isWhole(head, status.size) else { return (head, status) }
            let number = file.number
            try system("lseek") { lseek(number, 0, SEEK_SET) }
        }
        return (try file.content(count: status.size), status)
    }

    /// Puts a file of these bytes, for the user alone (0600), into the place of what has the name. It is written under another name first, so there
    /// is the old one or the new one at any time, and the old one after a failure.
    ///
    /// - Parameter synchronize: Whether the bytes reach the disk before the file gets its name.
    borrowing func replace(_ name: String, with bytes: Data, through temporary: String, date: Date, synchronize: Bool) throws(SystemFailure) {
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
            unlinkat(descriptor.number, temporary, 0)  // where even this fails, it is a leftover that is removed later
            throw error
        }
    }

    /// Gives a file another name, in the place of what has that one.
    borrowing func move(_ name: String, to newName: String) throws(SystemFailure) {
        try system("renameat") { renameat(descriptor.number, name, descriptor.number, newName) }
    }

    /// Removes a file or link; that there is none is no error.
    borrowing func remove(_ name: String) throws(SystemFailure) {
        try system("unlinkat") { unlinkat(descriptor.number, name, 0) == -1 && errno != ENOENT ? -1 : 0 }
    }

    /// Removes what was looked at before, and nothing that somebody has put into its place since: it is taken aside, looked at again, and put back
    /// where it is something else, unless there is something newer still.
    borrowing func remove(_ name: String, ifStill status: FileStatus, aside: String) throws(SystemFailure) {
        try move(name, to: aside)
        if try self.status(of: aside) != status, linkat(descriptor.number, aside, descriptor.number, name, 0) == -1, errno != EEXIST {
            return try move(aside, to: name)  // a folder, or a file system without links
        }
        try remove(aside)
    }

    /// Has the names in it written to the disk.
    borrowing func synchronize() throws(SystemFailure) {
        do throws(SystemFailure) {
            try descriptor.synchronize()
        } catch {
            guard error.number == EINVAL else { throw error }  // a file system that has no such thing for folders
        }
    }
}
