import Dispatch
import Foundation
import WebServiceCore

/// A watch that reports changes to a file's attributes, and processes that have released the file:
/// on Linux by closing it after it was open for writing, on Apple platforms by unlocking it. The
/// file system reports these events, so waiting takes no processor time.
final class FileWatch: Sendable {
    /// nonisolated(unsafe): any thread may use a Dispatch source, and after its creation, this
    /// source is only cancelled.
    private nonisolated(unsafe) let source: any DispatchSourceProtocol
    /// Whether every change is reported. This requires that the file system is known to be local to
    /// this computer.
    let isReliable: Bool

    /// Returns `nil` if the system does not support notifications or has none left.
    ///
    /// - Parameter onChange: Called on any thread after one or more changes.
    init?(_ file: URL, onChange: @escaping @Sendable () -> Void) {
        #if canImport(Darwin)
        let number = open(file.path, O_EVTONLY | O_CLOEXEC)
        guard number >= 0 else { return nil }
        let source = DispatchSource.makeFileSystemObjectSource(
            fileDescriptor: number, eventMask: [.attrib, .funlock], queue: .global())
        source.setEventHandler(handler: onChange)
        #elseif canImport(Glibc)
        let number = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard number >= 0 else { return nil }
        guard inotify_add_watch(number, file.path, UInt32(IN_ATTRIB | IN_CLOSE_WRITE)) >= 0 else {
            close(number)
            return nil
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: number, queue: .global())
        source.setEventHandler {
            withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { bytes in
                while read(number, bytes.baseAddress, bytes.count) > 0 {}
            }
            onChange()
        }
        #else
        return nil
        #endif
        #if canImport(Darwin) || canImport(Glibc)
        source.setCancelHandler { close(number) }
        source.resume()
        self.source = source
        isReliable = Self.isLocal(number, file)
        #endif
    }

    #if canImport(Darwin)
    private static func isLocal(_ number: Int32, _ file: URL) -> Bool {
        var status = statfs()
        return fstatfs(number, &status) == 0 && status.f_flags & UInt32(MNT_LOCAL) != 0
    }
    #elseif canImport(Glibc)
    /// The local file systems of Linux that report every change.
    private static let localTypes: Set<Substring> = [
        "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "overlay", "tmpfs",
    ]

    /// Reads the table of mounts (proc_pid_mountinfo(5)), because Swift does not import `statfs`.
    private static func isLocal(_ number: Int32, _ file: URL) -> Bool {
        let path = file.resolvingSymlinksInPath().path
        let table = FileManager.default.contents(atPath: "/proc/self/mountinfo") ?? Data()
        var mount = (path: "", type: Substring())
        for line in String(decoding: table, as: UTF8.self).split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard let separator = fields.firstIndex(of: "-"), separator > 5, separator + 1 < fields.count else {
                continue
            }
            let root = fields[4].replacingOccurrences(of: "\\040", with: " ")
            let isParent = root == "/" || path == root || path.hasPrefix(root + "/")
            // A later mount hides an earlier one at the same path.
            if isParent, root.utf8.count >= mount.path.utf8.count { mount = (root, fields[separator + 1]) }
        }
        return localTypes.contains(mount.type)
    }
    #endif

    deinit { source.cancel() }
}
