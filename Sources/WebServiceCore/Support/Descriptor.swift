package import Foundation

/// A file descriptor, closed when its lifetime ends.
package struct Descriptor: ~Copyable, Sendable {
    package let number: Int32

    package init(_ call: String, _ open: () -> Int32) throws(SystemFailure) {
        number = try system(call, open)
    }

    deinit {
        _ = Self.closing(number)
    }

    private static func closing(_ number: Int32) -> Int32 {
        #if canImport(Darwin)
        Darwin.close(number)
        #elseif canImport(Musl)
        Musl.close(number)
        #else
        Glibc.close(number)
        #endif
    }

    /// Closes the descriptor and throws any error, because some file systems report a failed write
    /// only at this point.
    consuming func close() throws(SystemFailure) {
        let number = number
        discard self
        // The descriptor is closed even if the call was interrupted.
        try system("close") { Self.closing(number) == -1 && errno != EINTR ? -1 : 0 }
    }

    borrowing func details() throws(SystemFailure) -> stat {
        var status = stat()
        try system("fstat") { fstat(number, &status) }
        return status
    }

    package borrowing func status() throws(SystemFailure) -> FileStatus { FileStatus(try details()) }

    /// Returns the first `count` bytes, fewer if the file ends earlier.
    borrowing func content(count: Int) throws(SystemFailure) -> Data {
        // The system may overcommit memory and terminate the process when the memory is used.
        let isPossible = count <= 1 << 30 || UInt64(count) <= ProcessInfo.processInfo.physicalMemory
        guard isPossible, let start = malloc(max(count, 1)) else { throw SystemFailure(call: "malloc", number: ENOMEM) }
        do throws(SystemFailure) {
            let filled = try fill(UnsafeMutableRawBufferPointer(start: start, count: count), at: 0)
            return Data(bytesNoCopy: start, count: filled, deallocator: .free)
        } catch {
            free(start)
            throw error
        }
    }

    package borrowing func append(_ bytes: Data) throws(SystemFailure) {
        var written = 0
        while written < bytes.count {
            let more = try system("write") {
                bytes.withUnsafeBytes {
                    write(number, $0.baseAddress.map { $0 + written }, min($0.count - written, 1 << 30))
                }
            }
            guard more > 0 else { throw SystemFailure(call: "write", number: EIO) }
            written += more
        }
    }

    package borrowing func setModified(_ date: Date) throws(SystemFailure) {
        let seconds = date.timeIntervalSince1970.rounded(.down)
        guard let whole = Int(exactly: seconds) else { return }
        let time = timespec(tv_sec: whole, tv_nsec: Int((date.timeIntervalSince1970 - seconds) * 1e9))
        try system("futimens") { futimens(number, [time, time]) }
    }

    package borrowing func synchronize() throws(SystemFailure) {
        #if canImport(Darwin)
        // On Darwin, fsync does not flush the cache of the drive.
        if fcntl(number, F_FULLFSYNC) == 0 { return }
        #endif
        try system("fsync") { fsync(number) }
    }
}

extension Descriptor {
    /// Reads bytes from an offset.
    ///
    /// - Returns: The number of bytes, fewer than requested only at the end of the file.
    package borrowing func fill(_ room: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemFailure) -> Int {
        var filled = 0
        while filled < room.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: room[filled...])
            let more = try system("pread") {
                pread(number, rest.baseAddress, min(rest.count, 1 << 30), off_t(offset) + off_t(filled))
            }
            if more == 0 { break }
            filled += more
        }
        return filled
    }

    package borrowing func setMode(_ mode: UInt32) throws(SystemFailure) {
        try system("fchmod") { fchmod(number, mode_t(mode)) }
    }

    /// Returns whether the file belongs to the user of the process.
    package borrowing func isOwned() throws(SystemFailure) -> Bool {
        try details().st_uid == geteuid()
    }

    /// Returns the number of names (hard links) of the file.
    package borrowing func nameCount() throws(SystemFailure) -> Int {
        Int(clamping: try details().st_nlink)
    }

    /// The result of an attempt to lock a file.
    package enum Lock {
        case taken
        case heldByAnother
        /// The file system has no locks.
        case unsupported
    }

    /// Locks the file until the descriptor is closed, without waiting.
    ///
    /// The lock belongs to the descriptor, not to the process.
    ///
    /// - Parameter isShared: Whether other shared locks are possible at the same time. Defaults to
    ///   `false`.
    package borrowing func lock(isShared: Bool = false) throws(SystemFailure) -> Lock {
        do throws(SystemFailure) {
            try system("flock") { flock(number, (isShared ? LOCK_SH : LOCK_EX) | LOCK_NB) }
            return .taken
        } catch {
            switch error.number {
            case EWOULDBLOCK: return .heldByAnother
            case ENOLCK, EOPNOTSUPP, ENOTSUP, EINVAL, ENOSYS: return .unsupported
            default: throw error
            }
        }
    }

    /// Waits until no other descriptor holds a lock, and then locks the file until the descriptor
    /// is closed. A file system without locks is not an error.
    package borrowing func lockAfterOthers() throws(SystemFailure) {
        if try lock() == .heldByAnother { try system("flock") { flock(number, LOCK_EX) } }
    }

    /// Releases the lock before the descriptor is closed.
    package borrowing func unlock() {
        flock(number, LOCK_UN)
    }
}

extension Folder {
    /// Opens a file for reading and writing, without following a link or waiting for the peer of a
    /// FIFO.
    ///
    /// - Parameter isNew: Whether an existing file is an error. A missing file is created,
    ///   accessible only to the user (0600).
    package borrowing func openFile(_ name: String, isNew: Bool) throws(SystemFailure) -> Descriptor {
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (isNew ? O_EXCL : 0)
        let folder = descriptor.number
        return try Descriptor("openat") { openat(folder, name, flags, 0o600) }
    }

    /// Returns the permissions that the system gives to new files in the folder.
    ///
    /// - Parameter probe: The name of a file that is created and removed. No file with this name
    ///   may exist before the call.
    package borrowing func modeOfNewFiles(through probe: String) throws(SystemFailure) -> UInt32 {
        let folder = descriptor.number
        let file = try Descriptor("openat") {
            openat(folder, probe, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
        }
        try remove(probe)
        return UInt32(try file.details().st_mode) & 0o777
    }
}

/// A temporary file without a name, accessible only to its owner (mode 0600).
///
/// The system deletes the file when it is closed, even if the process is terminated.
final class UnlinkedFile: Sendable {
    let descriptor: Descriptor

    init(in folder: URL = FileManager.default.temporaryDirectory) throws(SystemFailure) {
        let path = folder.appendingPathComponent("webservice-body-\(UUID().uuidString)", isDirectory: false).path
        descriptor = try Descriptor("open") {
            open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        }
        try system("unlink") { unlink(path) }
    }
}

/// A failed system call.
package struct SystemFailure: Error {
    package let call: String
    /// The value of `errno` after the call.
    package let number: Int32

    package init(call: String, number: Int32) {
        self.call = call
        self.number = number
    }

    /// A file that ended before its expected length.
    static var shortRead: SystemFailure { SystemFailure(call: "read", number: EIO) }

    /// Whether a file exceeds the available memory.
    package var isTooLong: Bool { call == "malloc" }

    /// Whether the user lacks permission.
    package var isRefused: Bool { number == EACCES || number == EPERM }

    var description: String { "\(call): \(String(cString: strerror(number)))" }
}

/// Returns the result of a call, which is repeated if a signal interrupts it.
@discardableResult
package func system<Result: FixedWidthInteger>(_ name: String, _ call: () -> Result) throws(SystemFailure) -> Result {
    while true {
        let result = call()
        guard result == -1 else { return result }
        let number = errno
        guard number == EINTR else { throw SystemFailure(call: name, number: number) }
    }
}
