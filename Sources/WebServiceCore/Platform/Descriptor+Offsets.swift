import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

extension SystemFailure {
    /// The failure of a write for lack of space.
    package static func noSpace(_ call: String) -> SystemFailure { SystemFailure(call: call, number: ENOSPC) }
}

/// Access to files at offsets, by several threads and processes.
extension Descriptor {
    /// Writes all bytes at an offset.
    package borrowing func put(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemFailure) {
        var written = 0
        while written < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
            let more = try system("pwrite") {
                pwrite(number, rest.baseAddress, min(rest.count, 1 << 30), off_t(offset) + off_t(written))
            }
            guard more > 0 else { throw SystemFailure(call: "pwrite", number: EIO) }
            written += more
        }
    }

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

    package borrowing func truncate(to length: Int64) throws(SystemFailure) {
        try system("ftruncate") { ftruncate(number, off_t(length)) }
    }

    package borrowing func setMode(_ mode: UInt32) throws(SystemFailure) {
        try system("fchmod") { fchmod(number, mode_t(mode)) }
    }

    /// The number of bytes available to this user on the file system; `nil` if it does not report
    /// them.
    package borrowing func availableBytes() -> Int64? {
        var status = statvfs()
        guard fstatvfs(number, &status) == 0 else { return nil }
        let (bytes, isTooLarge) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return isTooLarge ? nil : Int64(clamping: bytes)
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

    /// Releases the lock before the descriptor is closed.
    package borrowing func unlock() {
        flock(number, LOCK_UN)
    }

    /// A Boolean value that indicates whether the file belongs to the user of the process.
    package borrowing func isOwned() throws(SystemFailure) -> Bool {
        try details().st_uid == geteuid()
    }

    /// The number of names (hard links) of the file.
    package borrowing func nameCount() throws(SystemFailure) -> Int {
        Int(clamping: try details().st_nlink)
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

    /// Opens an existing file for reading and writing, without following a link or waiting for a
    /// FIFO.
    ///
    /// - Returns: `nil` if it does not exist.
    package borrowing func openExisting(_ name: String) throws(SystemFailure) -> Descriptor? {
        let folder = descriptor.number
        do throws(SystemFailure) {
            return try Descriptor("openat") { openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
        } catch {
            guard error.number == ENOENT else { throw error }
            return nil
        }
    }

    /// Renames a file unless a file with the new name exists.
    ///
    /// The decision is atomic. If the process terminates during the call, the file has both names,
    /// or on a file system without hard links, an empty file may have the new name.
    ///
    /// - Returns: Whether the file was renamed.
    package borrowing func moveIfAbsent(_ name: String, to newName: String) throws(SystemFailure) -> Bool {
        let folder = descriptor.number
        do throws(SystemFailure) {
            try system("linkat") { linkat(folder, name, folder, newName, 0) }
        } catch {
            if error.number == EEXIST { return false }
            guard [EPERM, EOPNOTSUPP, ENOTSUP, EMLINK, ENOSYS].contains(error.number) else { throw error }
            return try moveToReserved(name, to: newName)
        }
        try remove(name)
        return true
    }

    /// Creates an empty file with the new name and replaces it, for file systems without links.
    private borrowing func moveToReserved(_ name: String, to newName: String) throws(SystemFailure) -> Bool {
        do throws(SystemFailure) {
            _ = try openFile(newName, isNew: true)
        } catch {
            if error.number == EEXIST { return false }
            throw error
        }
        do throws(SystemFailure) {
            try move(name, to: newName)
        } catch {
            try remove(newName)
            throw error
        }
        return true
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
