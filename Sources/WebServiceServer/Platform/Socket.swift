package import Foundation
import WebServiceCore
import WebServiceMocking

/// The descriptor of a stream socket on 127.0.0.1.
///
/// The value does not own the descriptor. Its owner calls ``release()`` once, after the last use.
package struct Socket: Sendable, Hashable {
    package let descriptor: Int32
    /// Encrypts the bytes; `nil` for a connection without TLS.
    var tls: TLSStream?

    #if canImport(Glibc)
    static let streamType = Int32(SOCK_STREAM.rawValue)
    /// The flag is set at creation, because another thread may start a child process before a later
    /// call.
    private static let closeOnExec = Int32(SOCK_CLOEXEC.rawValue)
    #elseif canImport(Musl)
    static let streamType = SOCK_STREAM
    private static let closeOnExec = SOCK_CLOEXEC
    #else
    static let streamType = SOCK_STREAM
    private static let closeOnExec: Int32 = 0  // not available: closeOnExec() sets it after the creation
    #endif

    private typealias Accept =
        @convention(c) (Int32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int32) -> Int32
    /// A function of Linux that Swift does not import; `nil` on other systems.
    private static let accept4 = dlsym(nil, "accept4").map { unsafeBitCast($0, to: Accept.self) }

    #if canImport(Darwin)
    private static let sendFlags: Int32 = 0  // SO_NOSIGPIPE is set on each socket
    #else
    private static let sendFlags = Int32(MSG_NOSIGNAL)
    #endif

    /// Creates a listening socket.
    ///
    /// - Parameter port: The port; 0 lets the system select a free one.
    package static func listening(port: UInt16) throws -> Socket {
        let listener = Socket(
            descriptor: try system("socket", orThrow: .mockServer) { socket(AF_INET, streamType | closeOnExec, 0) })
        do {
            listener.closeOnExec()
            // `accept` must not block if the client has closed the connection.
            _ = fcntl(listener.descriptor, F_SETFL, O_NONBLOCK)
            try listener.bind(to: port)
            try system("listen", orThrow: .mockServer) { listen(listener.descriptor, SOMAXCONN) }
            return listener
        } catch {
            listener.release()
            throw error
        }
    }

    private func bind(to port: UInt16) throws {
        if port != 0 {
            // Connections of an earlier server on the port may still be closing.
            var one: Int32 = 1
            _ = setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        }
        do {
            try Self.withAddress(port: port) { address, size in
                _ = try system("bind", orThrow: .mockServer) { systemBind(descriptor, address, size) }
            }
        } catch let error as WebServiceError {
            let code = (error.underlying as? POSIXError)?.code
            guard code == .EADDRINUSE || code == .EACCES else { throw error }
            let reason = code == .EACCES ? "is reserved by the system" : "is in use"
            throw WebServiceError(
                .portUnavailable, "the port \(port) \(reason); pass another port, or 0 to let the system select one",
                underlying: error.underlying)
        }
    }

    /// Returns the local port.
    package func port() throws -> UInt16 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = try system("getsockname", orThrow: .mockServer) { getsockname(descriptor, address, &size) }
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// The result of `accept`.
    package enum Arrival {
        case client(Socket)
        /// No connection is pending, or the client has closed it.
        case noClient
        /// The process has no free descriptor. The connection remains pending.
        case noDescriptor
    }

    /// Accepts a pending connection without waiting for one.
    package func accepted() -> Arrival {
        let client = Self.accept4.map { $0(descriptor, nil, nil, Self.closeOnExec) } ?? accept(descriptor, nil, nil)
        guard client >= 0 else { return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) ? .noDescriptor : .noClient }
        let socket = Socket(descriptor: client)
        socket.closeOnExec()
        _ = fcntl(client, F_SETFL, 0)  // Darwin inherits O_NONBLOCK from the listener
        socket.configure()
        return .client(socket)
    }

    /// Performs the handshake of TLS, if the connection uses it.
    ///
    /// - Returns: Whether the connection can be used.
    func acceptTLS() -> Bool {
        tls?.accept(over: plain) ?? true
    }

    /// The socket without encryption.
    private var plain: Socket { Socket(descriptor: descriptor) }

    /// Reads once into a buffer. Blocks until bytes are available.
    ///
    /// - Returns: The number of bytes read; 0 at the end of the stream and after an error.
    package func receive(into buffer: inout [UInt8]) -> Int {
        if let tls { return tls.receive(into: &buffer, over: plain) }
        while true {
            let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            if count >= 0 { return count }
            if errno != EINTR { return 0 }
        }
    }

    /// Writes all bytes. Blocks while the peer does not read.
    ///
    /// - Returns: Whether all bytes were written.
    package func send(_ data: Data) -> Bool {
        if let tls { return tls.send(data, over: plain) }
        return data.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = systemSend(descriptor, UnsafeRawBufferPointer(rebasing: rest), Self.sendFlags)
                if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return false }
            }
            return true
        }
    }

    /// Closes the sending direction of the connection.
    func finishSending() {
        tls?.finishSending(over: plain)
        _ = shutdown(descriptor, Int32(SHUT_WR))
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

    /// Waits for a duration, or until the peer closes its side or the connection ends.
    func pause(for duration: Duration) {
        let end = ContinuousClock.now + duration
        var events = Int16(POLLIN)
        while true {
            let (seconds, attoseconds) = (end - ContinuousClock.now).components
            let milliseconds = min(max(seconds, -1), 1_000_000) * 1000 + attoseconds / 1_000_000_000_000_000
            guard milliseconds >= 0, seconds > 0 || attoseconds > 0 else { return }
            var descriptors = [pollfd(fd: descriptor, events: events, revents: 0)]
            // The duration has elapsed, or EINTR.
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

    /// A Boolean value that indicates whether the peer has closed its side or the connection has
    /// ended.
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

    /// Closes the descriptor.
    package func release() {
        _ = close(descriptor)
    }

    /// Disables Nagle's algorithm and SIGPIPE: a write to a closed connection returns an error.
    func configure() {
        var one: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        _ = setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, size)
        #if canImport(Darwin)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &one, size)
        #endif
    }

    func closeOnExec() {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// Calls `body` with the address of a port on 127.0.0.1.
    static func withAddress<Result>(port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result)
        rethrows -> Result
    {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        #if canImport(Darwin)
        address.sin_len = UInt8(MemoryLayout<sockaddr_in>.size)
        #endif
        return try withUnsafePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

/// The system's `send`, whose name is shadowed by a method of ``Socket``.
private func systemSend(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ flags: Int32) -> Int {
    send(descriptor, bytes.baseAddress, bytes.count, flags)
}

private func systemBind(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> Int32 {
    bind(descriptor, address, size)
}
