import Foundation

/// A pair of descriptors that wakes a thread waiting in `poll`.
package final class WakeUp: Sendable {
    /// The descriptor that is readable after a signal, until ``clear()``.
    package let reader: Int32
    private let writer: Int32

    package init() throws(SystemFailure) {
        var ends: [Int32] = [-1, -1]
        #if os(Linux)
        // The flags of a pipe can be set only after it is created; a child process that another
        // thread starts in the meantime would inherit it. Swift does not import pipe2.
        #if canImport(Musl)
        let type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK
        #else
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        #endif
        try system("socketpair") { socketpair(AF_UNIX, type, 0, &ends) }
        #else
        try system("pipe") { pipe(&ends) }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        #endif
        (reader, writer) = (ends[0], ends[1])
    }

    deinit {
        close(reader)
        close(writer)
    }

    /// Wakes the current or the next call of ``wait(for:milliseconds:)``. Any thread may call this
    /// method.
    package func signal() {
        var byte: UInt8 = 0
        _ = write(writer, &byte, 1)  // fails only if the pipe is full, and then the thread wakes anyway
    }

    /// Discards all pending signals.
    package func clear() {
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { bytes in
            while read(reader, bytes.baseAddress, bytes.count) == bytes.count {}
        }
    }

    /// Waits for a signal, for readable bytes on a descriptor, or for a number of milliseconds; -1
    /// means no timeout.
    package func wait(for descriptor: Int32?, milliseconds: Int32) {
        var descriptors = [pollfd(fd: reader, events: Int16(POLLIN), revents: 0)]
        if let descriptor { descriptors.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)) }
        _ = poll(&descriptors, .init(descriptors.count), milliseconds)  // after EINTR the caller waits again
        clear()
    }
}
