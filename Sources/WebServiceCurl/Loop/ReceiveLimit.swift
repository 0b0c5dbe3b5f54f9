// libcurl's header also declares socket constants.
import CCurl
import Foundation
import Synchronization
import WebServiceCore

/// A limit on the duration of a call in which libcurl receives over HTTP/2.
///
/// libcurl 7.88 to 8.0 returns only when a connection has no more bytes or when bytes of a body
/// have arrived. If a peer sent other frames endlessly, libcurl would not return. An alarm
/// therefore replaces the sockets of HTTP/2 connections with sockets that have no bytes, until the
/// call has returned. TCP flow control then holds the peer back.
///
/// Bytes that libcurl sends to the replacement sockets are sent to the connections after the call.
/// The replacement sockets must accept bytes, because these versions of libcurl cannot continue
/// every frame whose bytes were refused.
final class ReceiveLimit: AlarmTarget {
    /// A socket that was replaced during a call.
    struct Replaced {
        /// A duplicate of the replaced descriptor, which refers to the connection.
        let original: Int32
        /// The other end of the replacement socket; -1 if the replacement accepts no bytes.
        let end: Int32
    }

    private struct State {
        /// The sockets of the HTTP/2 connections.
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

    /// Creates a limit. Returns `nil` if the system provides no socket.
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

    /// Removes the limit from a connection whose socket is about to be closed.
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

    /// Sends the bytes that a replacement socket has accepted, and restores the original socket.
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
        // While sockets are replaced, the call must not return, and libcurl must not close a
        // socket. The system calls do not block.
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
            // A connection that accepts bytes now will also accept those of the rest of the call.
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
