package import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

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

    /// Closes the descriptor and reports errors: some file systems report a failed write only then.
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
        // The system may overcommit memory and terminate the process when it is used.
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

    borrowing func append(_ bytes: Data) throws(SystemFailure) {
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
