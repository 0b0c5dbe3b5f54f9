import Foundation
import WebServiceCore

extension SystemFailure {
    /// Returns the failure of a call that fails for lack of space.
    static func noSpace(_ call: String) -> SystemFailure { SystemFailure(call: call, number: ENOSPC) }
}

/// Access to partial files, by several threads and processes.
extension Descriptor {
    /// Writes all bytes at an offset.
    borrowing func put(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemFailure) {
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

    /// Locks the file until the descriptor is closed. Waits only for lists of downloads or uploads,
    /// which briefly hold a shared lock, and for at most 0.3 seconds.
    borrowing func lockBesideLists() throws(SystemFailure) -> Lock {
        for _ in 0..<256 {
            let result = try lock()
            guard result == .heldByAnother, try lock(isShared: true) == .taken else { return result }
            unlock()
            usleep(1_000)  // like all members, blocks the thread; a list releases its lock in between
        }
        return .heldByAnother
    }

    borrowing func truncate(to length: Int64) throws(SystemFailure) {
        try system("ftruncate") { ftruncate(number, off_t(length)) }
    }

    /// Returns the number of bytes available to this user; `nil` if the file system does not report
    /// this number.
    borrowing func availableBytes() -> Int64? {
        var status = statvfs()
        guard fstatvfs(number, &status) == 0 else { return nil }
        let (bytes, isTooLarge) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return isTooLarge ? nil : Int64(clamping: bytes)
    }
}

extension Folder {
    /// Opens an existing file for reading and writing. Does not follow a link or wait for a FIFO.
    ///
    /// - Returns: `nil` if the file does not exist.
    borrowing func openExisting(_ name: String) throws(SystemFailure) -> Descriptor? {
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
    /// The check and the renaming are atomic. If the process terminates during the call, the file
    /// may have both names; on a file system without hard links, an empty file may have the new
    /// name.
    ///
    /// - Returns: Whether the file was renamed.
    borrowing func moveIfAbsent(_ name: String, to newName: String) throws(SystemFailure) -> Bool {
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

    /// Creates an empty file with the new name and replaces it, for file systems without hard
    /// links.
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
}
