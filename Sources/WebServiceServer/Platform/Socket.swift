package import Foundation
import LoopbackSocket
import WebServiceCore
import WebServiceMocking

/// The descriptor of a stream socket on 127.0.0.1, with or without TLS.
///
/// The value does not own the descriptor. Its owner calls ``release()`` once, after the last use.
package struct Socket: Sendable, Hashable {
    private let plain: LoopbackSocket
    /// The TLS stream that encrypts the bytes; `nil` for a connection without TLS.
    var tls: TLSStream?

    package var descriptor: Int32 { plain.descriptor }

    init(_ plain: LoopbackSocket) {
        self.plain = plain
    }

    /// Creates a listening socket.
    ///
    /// - Parameter port: The port; 0 lets the system select a free one.
    package static func listening(port: UInt16) throws -> Socket {
        do throws(SystemFailure) { return Socket(try LoopbackSocket.listening(port: port)) } catch {
            let failure = error.error(.mockServer)
            guard error.call == "bind", error.number == EADDRINUSE || error.number == EACCES else { throw failure }
            let reason = error.number == EACCES ? "is reserved by the system" : "is in use"
            throw WebServiceError(
                .portUnavailable, "port \(port) \(reason); pass another port, or 0 to let the system select one",
                underlying: failure.underlying)
        }
    }

    /// Returns the local port.
    package func port() throws -> UInt16 {
        do throws(SystemFailure) { return try plain.port() } catch { throw error.error(.mockServer) }
    }

    /// The result of ``accepted()``; see `LoopbackSocket.Arrival`.
    package enum Arrival {
        case client(Socket)
        case noClient
        case noDescriptor
    }

    /// Accepts a pending connection without waiting for one.
    package func accepted() -> Arrival {
        switch plain.accepted() {
        case .client(let client): .client(Socket(client))
        case .noClient: .noClient
        case .noDescriptor: .noDescriptor
        }
    }

    /// Performs the TLS handshake if the connection uses TLS.
    ///
    /// - Returns: Whether the connection can be used.
    func acceptTLS() -> Bool {
        tls?.accept(over: plain) ?? true
    }

    /// Reads once into a buffer. Blocks until bytes are available.
    ///
    /// - Returns: The number of bytes read; 0 at the end of the stream and after an error.
    package func receive(into buffer: inout [UInt8]) -> Int {
        tls?.receive(into: &buffer, over: plain) ?? plain.receive(into: &buffer)
    }

    /// Writes all bytes. Blocks while the peer does not read.
    ///
    /// - Returns: Whether all bytes were written.
    package func send(_ data: Data) -> Bool {
        tls?.send(data, over: plain) ?? plain.send(data)
    }

    /// Closes the sending direction of the connection.
    func finishSending() {
        tls?.finishSending(over: plain)
        plain.finishSending()
    }

    /// Ends the connection in both directions. Pending calls that receive or send return.
    func disconnect() {
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
    }

    /// Causes ``receive(into:)`` to return 0 after a number of seconds without a byte.
    func limitReceiving(seconds: Int) {
        var time = timeval()
        time.tv_sec = .init(seconds)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Waits for a duration, or until the connection ends or the peer closes its side. The latter
    /// is not detected while received bytes are unread.
    func pause(for duration: Duration) {
        let end = ContinuousClock.now + duration
        var events = Int16(POLLIN)
        while true {
            let (seconds, attoseconds) = (end - ContinuousClock.now).components
            let milliseconds = min(max(seconds, -1), 1_000_000) * 1000 + attoseconds / 1_000_000_000_000_000
            guard milliseconds >= 0, seconds > 0 || attoseconds > 0 else { return }
            var descriptors = [pollfd(fd: descriptor, events: events, revents: 0)]
            // The duration has elapsed, or a signal has interrupted the call (EINTR).
            guard poll(&descriptors, 1, Int32(milliseconds) + 1) > 0 else { continue }
            var byte: UInt8 = 0
            let isClosed = descriptors[0].revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0
            guard !isClosed, recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0 else { return }
            events = 0  // bytes that are left unread would end every further wait immediately
        }
    }

    /// Waits until the connection has ended, without reading from it.
    func waitForDisconnect() {
        var descriptors = [pollfd(fd: descriptor, events: 0, revents: 0)]
        while poll(&descriptors, 1, -1) < 0, errno == EINTR {}
    }

    /// Whether the connection has ended, or the peer has closed its side and no received bytes are
    /// unread.
    var isDisconnected: Bool {
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        return count == 0 || count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR
    }

    /// Causes ``release()`` to end the connection with a reset.
    package func resetAtRelease() {
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Closes the descriptor, which must not be used afterwards.
    package func release() { plain.release() }
}
