import Dispatch
import Foundation
import WebServiceCore

/// Notifies of changes to the attributes of a file, and of processes that have closed it. The file
/// system reports them, so waiting takes no processor time.
final class FileWatch: Sendable {
    /// nonisolated(unsafe): a source of Dispatch may be used by any thread, and this one is only
    /// cancelled after its creation.
    private nonisolated(unsafe) let source: any DispatchSourceProtocol
    /// Whether every change is notified of: the file system is known to be local to this computer.
    let isReliable: Bool

    /// Returns `nil` if the system supports no notifications or has no more of them.
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
    /// The local file systems of Linux that notify of every change.
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
            // A later mount covers an earlier one at the same place.
            if isParent, root.utf8.count >= mount.path.utf8.count { mount = (root, fields[separator + 1]) }
        }
        return localTypes.contains(mount.type)
    }
    #endif

    deinit { source.cancel() }
}
