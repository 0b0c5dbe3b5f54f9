package import Foundation
package import WebServiceCore

/// The descriptor of a stream socket on 127.0.0.1.
///
/// The value does not own the descriptor. The owner calls ``release()`` once, after the last use.
package struct LoopbackSocket: Sendable, Hashable {
    package let descriptor: Int32

    package init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    #if canImport(Glibc)
    package static let streamType = Int32(SOCK_STREAM.rawValue)
    /// The flag that closes the socket in child processes. It is set when the socket is created,
    /// because another thread may start a child process before a later call.
    private static let closeOnExec = Int32(SOCK_CLOEXEC.rawValue)
    #elseif canImport(Musl)
    package static let streamType = SOCK_STREAM
    private static let closeOnExec = SOCK_CLOEXEC
    #else
    package static let streamType = SOCK_STREAM
    private static let closeOnExec: Int32 = 0  // not available; closeOnExec() sets it later
    #endif

    private typealias Accept =
        @convention(c) (Int32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int32) -> Int32
    /// A Linux function that Swift does not import; `nil` on other systems.
    private static let accept4 = dlsym(nil, "accept4").map { unsafeBitCast($0, to: Accept.self) }

    #if canImport(Darwin)
    private static let sendFlags: Int32 = 0  // SO_NOSIGPIPE is set on each socket
    #else
    private static let sendFlags = Int32(MSG_NOSIGNAL)
    #endif

    /// Creates a listening socket.
    ///
    /// - Parameter port: The port. If it is 0, the system selects a free port.
    package static func listening(port: UInt16) throws(SystemFailure) -> LoopbackSocket {
        let listener = LoopbackSocket(
            descriptor: try system("socket") { socket(AF_INET, streamType | closeOnExec, 0) })
        do throws(SystemFailure) {
            listener.closeOnExec()
            // `accept` must not block if the client has already closed the connection.
            _ = fcntl(listener.descriptor, F_SETFL, O_NONBLOCK)
            if port != 0 {
                // Connections of an earlier server on this port may still be closing.
                var one: Int32 = 1
                _ = setsockopt(listener.descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
            }
            try system("bind") { withAddress(port: port) { systemBind(listener.descriptor, $0, $1) } }
            try system("listen") { listen(listener.descriptor, SOMAXCONN) }
            return listener
        } catch {
            listener.release()
            throw error
        }
    }

    /// Returns the local port.
    package func port() throws(SystemFailure) -> UInt16 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        try system("getsockname") {
            withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// The result of `accept`.
    package enum Arrival {
        case client(LoopbackSocket)
        /// No connection is pending, or the client has already closed it.
        case noClient
        /// The system has no free descriptor or memory. The connection remains pending.
        case noDescriptor
    }

    /// Accepts a pending connection without waiting for one.
    package func accepted() -> Arrival {
        let client = Self.accept4.map { $0(descriptor, nil, nil, Self.closeOnExec) } ?? accept(descriptor, nil, nil)
        guard client >= 0 else { return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) ? .noDescriptor : .noClient }
        let socket = LoopbackSocket(descriptor: client)
        socket.closeOnExec()
        _ = fcntl(client, F_SETFL, 0)  // Darwin inherits O_NONBLOCK from the listener
        socket.configure()
        return .client(socket)
    }

    /// Reads once into a buffer. Blocks until bytes are available.
    ///
    /// - Returns: The number of bytes that were read, or 0 at the end of the stream or after an
    ///   error.
    package func receive(into buffer: inout [UInt8]) -> Int {
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
        data.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = systemSend(descriptor, UnsafeRawBufferPointer(rebasing: rest), Self.sendFlags)
                if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return false }
            }
            return true
        }
    }

    /// Closes the sending direction of the connection.
    package func finishSending() {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Closes the descriptor.
    package func release() {
        _ = close(descriptor)
    }

    /// Disables Nagle's algorithm and, on Darwin, SIGPIPE, so that a write to a closed connection
    /// returns an error.
    package func configure() {
        var one: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        _ = setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, size)
        #if canImport(Darwin)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &one, size)
        #endif
    }

    private func closeOnExec() {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// Calls `body` with the address of a port on 127.0.0.1.
    package static func withAddress<Result>(port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result)
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

/// Calls the system's `send`, whose name is shadowed by a method of ``LoopbackSocket``.
private func systemSend(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ flags: Int32) -> Int {
    send(descriptor, bytes.baseAddress, bytes.count, flags)
}

private func systemBind(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> Int32 {
    bind(descriptor, address, size)
}
