import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

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

    /// A Boolean value that indicates whether the file belongs to the user of the process.
    package borrowing func isOwned() throws(SystemFailure) -> Bool {
        try details().st_uid == geteuid()
    }

    /// The number of names (hard links) of the file.
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

    /// Locks the file until the descriptor is closed, after waiting until no other descriptor holds
    /// a lock. A file system without locks is not an error.
    package borrowing func lockAfterOthers() throws(SystemFailure) {
        if try lock() == .heldByAnother { try system("flock") { flock(number, LOCK_EX) } }
    }

    /// Releases the lock before the descriptor is closed.
    package borrowing func unlock() {
        flock(number, LOCK_UN)
    }
}

extension Folder {
    /// Opens a file for reading and writing, without following a link or waiting for a FIFO.
    ///
    /// - Parameter isNew: Whether an existing file is an error. Otherwise, a missing file is
    ///   created. New files are accessible only to the user (0600).
    package borrowing func openFile(_ name: String, isNew: Bool) throws(SystemFailure) -> Descriptor {
        let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (isNew ? O_EXCL : 0)
        let folder = descriptor.number
        return try Descriptor("openat") { openat(folder, name, flags, 0o600) }
    }

    /// Returns the permissions that the system gives to new files in the folder.
    ///
    /// - Parameter probe: The name of a file that is created and removed. It must not exist.
    package borrowing func modeOfNewFiles(through probe: String) throws(SystemFailure) -> UInt32 {
        let folder = descriptor.number
        let file = try Descriptor("openat") {
            openat(folder, probe, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
        }
        try remove(probe)
        return UInt32(try file.details().st_mode) & 0o777
    }
}
