import Dispatch
import Foundation
import WebServiceCore

/// Notifies of changes to the attributes of a file, and of processes that have closed it. The file
/// system reports them, so waiting takes no processor time.
final class FileWatch: Sendable {
    /// nonisolated(unsafe): a source of Dispatch may be used by any thread, and this one is only
    /// cancelled after its creation.
    private nonisolated(unsafe) let source: any DispatchSourceProtocol

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
        #endif
    }

    deinit { source.cancel() }
}
