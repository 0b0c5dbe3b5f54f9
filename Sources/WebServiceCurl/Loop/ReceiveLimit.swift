// The header of libcurl also declares the constants of sockets.
import CCurl
import Foundation
import Synchronization
import WebServiceCore

/// Limits the duration of a call in which libcurl receives over HTTP/2.
///
/// libcurl 7.88 to 8.0 returns only when a connection has no more bytes or when bytes of a body
/// have arrived. With a peer that sends other frames without end, it would not return. An alarm
/// therefore replaces the sockets of these connections with ones that have no bytes, until the call
/// has returned. The peer is then held back by the flow control of TCP.
///
/// Bytes that libcurl sends to these sockets are sent to the connections after the call. The
/// sockets must accept them, because these versions cannot continue every frame after a refusal.
final class ReceiveLimit: AlarmTarget {
    /// A socket that was replaced during a call.
    struct Replaced {
        /// The connection.
        let original: Int32
        /// The other end of the socket that replaces it; -1 if that accepts no bytes.
        let end: Int32
    }

    private struct State {
        /// The sockets of the connections with HTTP/2.
        var sockets: Set<Int32> = []
        /// The instant at which the current call began; `nil` between calls.
        var start: UInt64?
        var hasAlarm = false
        /// The sockets that were replaced during the current call.
        var replaced: [Int32: Replaced] = [:]
    }

    /// The duration, in nanoseconds, after which a call of libcurl finds no more bytes.
    private static let duration: UInt64 = 3_000_000

    private let state = Lock(State())
    /// A socket that has no bytes and accepts none, and its other end.
    private let silent: (socket: Int32, end: Int32)

    /// Creates a limit; `nil` if the system provides no socket.
    init?() {
        guard let pair = Connections.makePair() else { return nil }
        silent = pair
        withUnsafeTemporaryAllocation(byteCount: 4 << 10, alignment: 1) { bytes in
            bytes.initializeMemory(as: UInt8.self, repeating: 0)
            while write(silent.socket, bytes.baseAddress, bytes.count) > 0 {}
        }
    }

    deinit {
        close(silent.socket)
        close(silent.end)
    }

    // MARK: For the loop's thread

    /// Applies the limit to a connection, and to the current call.
    func add(_ socket: Int32) {
        state.withLock { _ = $0.sockets.insert(socket) }
        begin(at: TaskClock.system.now)
    }

    /// Ends the limit of a connection whose socket is about to be closed.
    func remove(_ socket: Int32) {
        let replaced = state.withLock { state in
            state.sockets.remove(socket)
            return state.replaced.removeValue(forKey: socket)
        }
        if let replaced { Self.restore(socket, replaced) }
    }

    /// Records that libcurl is called, at an instant of the system clock.
    func begin(at now: UInt64) {
        let needsAlarm = state.withLock { state in
            guard !state.sockets.isEmpty else { return false }
            state.start = now
            defer { state.hasAlarm = true }
            return !state.hasAlarm
        }
        if needsAlarm { setAlarm(after: Self.duration) }
    }

    /// Records that libcurl has returned.
    ///
    /// - Returns: The sockets to pass to ``restore(_:_:)``.
    func didReturn() -> [Int32: Replaced] {
        state.withLock { state in
            state.start = nil
            guard !state.replaced.isEmpty else { return [:] }
            defer { state.replaced = [:] }
            return state.replaced
        }
    }

    /// Sends the bytes that a socket has accepted, and replaces it with the original one.
    static func restore(_ socket: Int32, _ replaced: Replaced) {
        if replaced.end >= 0 {
            withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 1) { bytes in
                while case let count = recv(replaced.end, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT)),
                    count > 0
                {
                    if systemSend(replaced.original, bytes.baseAddress, count) == count { continue }
                    shutdown(replaced.original, Int32(SHUT_RDWR))
                    break
                }
            }
            close(replaced.end)
        }
        _ = dup2(replaced.original, socket)
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        close(replaced.original)
    }

    // MARK: For the thread of the alarm

    func ring() {
        let now = TaskClock.system.now
        // The call must not return, nor libcurl close a socket, while sockets are replaced. The
        // system calls do not block.
        let delay = state.withLock { state -> UInt64? in
            let elapsed = state.start.map { now - min($0, now) }
            state.hasAlarm = elapsed != nil
            guard let elapsed else { return nil }
            guard elapsed >= Self.duration else { return Self.duration - elapsed }
            replace(&state)
            return Self.duration
        }
        if let delay { setAlarm(after: delay) }
    }

    private func replace(_ state: inout State) {
        for socket in state.sockets where state.replaced[socket] == nil {
            let original = fcntl(socket, F_DUPFD_CLOEXEC, 0)
            guard original >= 0 else { continue }
            // A connection that accepts bytes now accepts those of the rest of a call.
            var event = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
            let pair = poll(&event, 1, 0) > 0 ? Connections.makePair() : nil
            let isReplaced = dup2(pair?.0 ?? silent.socket, socket) >= 0
            if let pair { close(pair.0) }
            guard isReplaced else {
                if let pair { close(pair.1) }
                close(original)
                continue
            }
            _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
            state.replaced[socket] = Replaced(original: original, end: pair?.1 ?? -1)
        }
    }

    private func setAlarm(after nanoseconds: UInt64) {
        _ = TaskClock.system.schedule(after: .nanoseconds(Int64(nanoseconds)), self)
    }
}

private func systemSend(_ socket: Int32, _ bytes: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    #if canImport(Darwin)
    send(socket, bytes, count, Int32(MSG_DONTWAIT))
    #else
    send(socket, bytes, count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
    #endif
}
