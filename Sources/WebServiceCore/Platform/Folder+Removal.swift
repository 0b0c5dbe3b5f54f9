#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

import Foundation

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

    /// Opens an existing file for reading and writing, without following a link or waiting for a
    /// FIFO; `nil` if it does not exist.
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

    /// Removes everything in the folder except one file. Links are removed and not followed, and
    /// what is mounted in the folder is neither entered nor removed.
    ///
    /// - Throws: The first failure, after everything else was removed.
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
    /// A folder that is not empty is renamed before it is opened, which fails for a mount point,
    /// and the folders in it are moved to this one, which fails across mount points. A tree of any
    /// depth therefore needs two descriptors and no recursion, and replacing a folder at the same
    /// time cannot redirect the removal.
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

    /// Removes this folder from its parent if it is empty and still has the name.
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
