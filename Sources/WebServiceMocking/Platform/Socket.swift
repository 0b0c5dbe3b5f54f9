import Foundation
import WebServiceCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The descriptor of a stream socket on 127.0.0.1. It does not own the descriptor: one owner calls ``release()``, once, when nobody uses it any more.
struct Socket: Sendable, Hashable {
    let descriptor: Int32

    #if canImport(Glibc)
    static let streamType = Int32(SOCK_STREAM.rawValue)
    /// Not for children: at once, or one that another thread starts in between would keep it.
    private static let closeOnExec = Int32(SOCK_CLOEXEC.rawValue)
    #elseif canImport(Musl)
    static let streamType = SOCK_STREAM
    private static let closeOnExec = SOCK_CLOEXEC
    #else
    static let streamType = SOCK_STREAM
    private static let closeOnExec: Int32 = 0  // closeOnExec() does it a moment later
    #endif

    private typealias Accept = @convention(c) (Int32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, Int32) -> Int32
    /// Linux's call, which Swift does not import; `nil` elsewhere.
    private static let accept4 = dlsym(nil, "accept4").map { unsafeBitCast($0, to: Accept.self) }

    #if canImport(Darwin)
    private static let sendFlags: Int32 = 0  // SO_NOSIGPIPE is set on each socket
    #else
    private static let sendFlags = Int32(MSG_NOSIGNAL)
    #endif

    /// A socket that listens; with port 0 the system picks one that is free.
    static func listening(port: UInt16) throws -> Socket {
        let listener = Socket(descriptor: try check("socket", socket(AF_INET, streamType | closeOnExec, 0)))
        do {
            listener.closeOnExec()
            _ = fcntl(listener.descriptor, F_SETFL, O_NONBLOCK)  // a client that is gone before `accept` must not block it
            _ = try withAddress(port: port) { try check("bind", bind(listener.descriptor, $0, $1)) }
            _ = try check("listen", listen(listener.descriptor, SOMAXCONN))
            return listener
        } catch {
            listener.release()
            throw error
        }
    }

    /// The port on this side.
    func port() throws -> UInt16 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { try Self.check("getsockname", getsockname(descriptor, $0, &size)) }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// What `accept` gave.
    enum Arrival {
        case client(Socket)
        /// Nobody is waiting, or whoever was has left.
        case nobody
        /// The process has no descriptor left for the client, who goes on waiting.
        case noDescriptor
    }

    /// Takes one of the clients that wait at a listening socket, without waiting itself.
    func accepted() -> Arrival {
        let client = Self.accept4.map { $0(descriptor, nil, nil, Self.closeOnExec) } ?? accept(descriptor, nil, nil)
        guard client >= 0 else { return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) ? .noDescriptor : .nobody }
        let socket = Socket(descriptor: client)
        socket.closeOnExec()
        _ = fcntl(client, F_SETFL, 0)  // Darwin inherits O_NONBLOCK from the listener
        socket.configure()
        return .client(socket)
    }

    /// Reads into a buffer, once; waits until something is there.
    ///
    /// - Returns: How many bytes were read; 0 when no more will come, also after an error.
    func receive(into buffer: inout [UInt8]) -> Int {
        while true {
            let count = buffer.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            if count >= 0 { return count }
            if errno != EINTR { return 0 }
        }
    }

    /// Writes all bytes; waits while the other side does not read.
    ///
    /// - Returns: Whether all could be written.
    func send(_ data: Data) -> Bool {
        data.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = systemSend(descriptor, UnsafeRawBufferPointer(rebasing: rest), Self.sendFlags)
                if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { return false }
            }
            return true
        }
    }

    /// Tells the other side that no more bytes follow.
    func finishSending() {
        _ = shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Ends the connection in both directions; whoever waits in ``receive(into:)`` or ``send(_:)`` returns.
    func disconnect() {
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
    }

    /// Lets ``receive(into:)`` return 0 after so many seconds without a byte.
    func limitReceiving(seconds: Int) {
        var time = timeval()
        time.tv_sec = .init(seconds)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Waits, but no longer than until the other side has closed its half or the connection has ended.
    func pause(for duration: Duration) {
        let end = ContinuousClock.now + duration
        var events = Int16(POLLIN)
        while true {
            let (seconds, attoseconds) = (end - ContinuousClock.now).components
            let milliseconds = min(max(seconds, -1), 1_000_000) * 1000 + attoseconds / 1_000_000_000_000_000
            guard milliseconds >= 0, seconds > 0 || attoseconds > 0 else { return }
            var descriptors = [pollfd(fd: descriptor, events: events, revents: 0)]
            guard poll(&descriptors, 1, Int32(milliseconds) + 1) > 0 else { continue }  // the time has passed, or EINTR
            var byte: UInt8 = 0
            let gone = descriptors[0].revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0
            guard !gone, recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0 else { return }
            events = 0  // what waits to be read is left there, and would end every further wait at once
        }
    }

    /// Lets the connection end with a reset when the descriptor is released.
    func resetAtRelease() {
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Gives the descriptor back to the system.
    func release() {
        _ = close(descriptor)
    }

    /// Sends small writes at once, and lets a write to a closed connection fail instead of raising SIGPIPE.
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
    static func withAddress<Result>(port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Result) rethrows -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        #if canImport(Darwin)
        address.sin_len = UInt8(MemoryLayout<sockaddr_in>.size)
        #endif
        return try withUnsafePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { try body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
    }

    static func check(_ call: String, _ result: Int32) throws -> Int32 {
        try SystemCall.check(call, result, orThrow: .mockServer)
    }
}

/// `send`, which has the name of one of our methods.
private func systemSend(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ flags: Int32) -> Int {
    send(descriptor, bytes.baseAddress, bytes.count, flags)
}
