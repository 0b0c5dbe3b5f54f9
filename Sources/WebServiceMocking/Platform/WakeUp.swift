import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A pipe that wakes a thread which waits for a socket.
final class WakeUp: Sendable {
    private let reader: Int32
    private let writer: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        _ = try Socket.check("pipe", pipe(&ends))
        (reader, writer) = (ends[0], ends[1])
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
    }

    deinit {
        close(reader)
        close(writer)
    }

    /// Lets ``wait(for:milliseconds:)`` return, now or when it is called next. Any thread.
    func signal() {
        var byte: UInt8 = 0
        _ = write(writer, &byte, 1)  // fails only when the pipe is full, and then it wakes anyway
    }

    /// Waits for a signal, for something to read at `socket` or for the time to pass; -1 is for ever.
    func wait(for socket: Socket?, milliseconds: Int32) {
        var descriptors = [pollfd(fd: reader, events: Int16(POLLIN), revents: 0)]
        if let socket { descriptors.append(pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)) }
        _ = poll(&descriptors, .init(descriptors.count), milliseconds)  // after EINTR the caller finds nothing to do and waits again
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(reader, &bytes, bytes.count) > 0 {}
    }
}
