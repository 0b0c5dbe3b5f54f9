// libcurl's header also declares socket constants.
import CCurl
import Foundation

/// The connections of a loop.
///
/// libcurl does not report the socket of the connection that it has chosen for a request, but only
/// the addresses of both ends.
struct Connections {
    /// The addresses of the two ends of a connection.
    struct Ends: Hashable {
        let localPort: CInt
        let remotePort: CInt
        /// The numeric address of the remote end.
        let remote: String
        /// Whether the connection uses QUIC, whose ports are those of UDP.
        var isQUIC = false
    }

    /// The TLS connection to a server.
    struct Security {
        /// The version and the cipher suite; `nil` if the TLS library does not report them.
        let version: String?
        let cipher: String?
        /// The certificates of the server in DER; empty unless they are recorded.
        let certificates: [Data]
    }

    /// One connection, and the exchanges that use it.
    ///
    /// This type is a class, so an exchange that outlives the connection does not use a later
    /// connection with the same descriptor.
    final class Connection {
        let socket: Int32
        /// Whether this is a QUIC connection (RFC 9000).
        let isQUIC: Bool
        fileprivate var ends: Ends?
        /// Whether an exchange has used the connection.
        private(set) var wasUsed = false
        /// Whether the connection carries HTTP/2 or HTTP/3.
        ///
        /// The frames of such a connection identify the request that they belong to.
        var isMultiplexed: Bool
        /// Whether the protocol of the connection has failed for an exchange.
        private(set) var hasFailed = false
        /// The TLS connection to the server; `nil` if there is none.
        var security: Security?
        /// The instant of the last bytes received.
        private var lastArrival: UInt64 = 0
        private var exchanges = 0
        /// The only exchange on the connection; `nil` if there is none, or if there were several at
        /// a time.
        private(set) var user: CurlHandle?
        /// The other end of the socket that replaced the connection; -1 if there is none.
        private var sink: Int32 = -1

        fileprivate init(_ socket: Int32, isQUIC: Bool) {
            self.socket = socket
            self.isQUIC = isQUIC
            isMultiplexed = isQUIC
        }

        /// Whether no exchange may use the connection again.
        var isUnusable: Bool { hasFailed && exchanges == 0 }

        /// Records that the protocol has failed for an exchange, and closes the connection unless
        /// other exchanges use it.
        func fail() {
            hasFailed = true
            if exchanges == 1 { shutDown() }
        }

        /// Whether this is an HTTP/1.x connection that was used and has no exchange at present.
        ///
        /// Bytes that arrive on such a connection belong to no request.
        var isIdle: Bool { wasUsed && exchanges == 0 && !isMultiplexed }

        func enter(_ handle: CurlHandle) {
            wasUsed = true
            exchanges += 1
            user = exchanges == 1 ? handle : nil
        }

        func leave() {
            exchanges -= 1
            user = nil
        }

        /// Records that bytes were received.
        ///
        /// The bytes of a multiplexed connection may belong to any of its exchanges or to none.
        func receive(at now: UInt64) {
            lastArrival = now
            if !isMultiplexed { user?.attempt.lastActivity = now }
        }

        /// Returns whether no bytes have been received since the instant.
        func isQuiet(since instant: UInt64) -> Bool { lastArrival <= instant }

        /// Whether bytes are pending or the peer has disconnected.
        var hasUnsolicitedBytes: Bool {
            var byte: UInt8 = 0
            return recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) >= 0
                || (errno != EAGAIN && errno != EINTR)
        }

        /// Replaces the socket with one end of an unused socket pair, which closes the connection
        /// to the server.
        ///
        /// The descriptor of libcurl remains valid, so libcurl can complete the exchange, but the
        /// server receives no further bytes of the request.
        func divert() {
            guard let ends = Connections.makePair() else { return shutDown() }
            sink = ends.1
            if dup2(ends.0, socket) < 0 { shutDown() }
            _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
            close(ends.0)
        }

        /// Closes the other end of the socket that replaced the connection.
        fileprivate func closeSink() {
            if sink >= 0 { close(sink) }
            sink = -1
        }

        /// Shuts the connection down to prevent its reuse. libcurl still closes the socket.
        func shutDown() {
            // After a shutdown for reading, a datagram socket would return 0 bytes endlessly.
            if isQUIC { return _ = shutdown(socket, Int32(SHUT_WR)) }
            shutdown(socket, Int32(SHUT_RDWR))
            // libcurl considers a TLS connection alive while bytes are pending. After the shutdown,
            // only those in the system's buffer remain.
            withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 1) { bytes in
                var rounds = 0
                while rounds < 4_096, recv(socket, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT)) > 0 {
                    rounds += 1
                }
            }
        }
    }

    /// The connections, indexed by socket.
    private var connections: [Connection?] = []
    private var known: [Ends: Connection] = [:]
    /// The connections whose ends are not known yet, because they are being established.
    private var unnamed: [Connection] = []

    private(set) var count = 0

    subscript(socket: Int32) -> Connection? {
        socket >= 0 && Int(socket) < connections.count ? connections[Int(socket)] : nil
    }

    mutating func opened(_ socket: Int32, isQUIC: Bool = false) {
        guard socket >= 0 else { return }
        let connection = Connection(socket, isQUIC: isQUIC)
        while connections.count <= Int(socket) { connections.append(nil) }
        connections[Int(socket)] = connection
        count += 1
        unnamed.append(connection)
    }

    mutating func closed(_ socket: Int32) {
        guard let connection = self[socket] else { return }
        connections[Int(socket)] = nil
        connection.closeSink()
        count -= 1
        if let ends = connection.ends { known[ends] = nil } else { unnamed.removeAll { $0 === connection } }
    }

    /// Returns the connection with these ends; `nil` if libcurl and the system report different
    /// ends.
    mutating func connection(_ ends: Ends) -> Connection? {
        if let connection = known[ends] { return connection }
        guard let index = unnamed.firstIndex(where: { Self.ends(of: $0) == ends }) else { return nil }
        let connection = unnamed.remove(at: index)
        connection.ends = ends
        known[ends] = connection
        return connection
    }

    /// Excludes a connection from those that exchanges may use.
    mutating func dedicate(_ socket: Int32) {
        guard let connection = self[socket], connection.ends == nil else { return }
        unnamed.removeAll { $0 === connection }
    }

    /// Returns a pair of connected sockets, the first of which does not block; `nil` if the system
    /// provides none.
    static func makePair() -> (Int32, Int32)? {
        var ends: (Int32, Int32) = (-1, -1)
        let isCreated = withUnsafeMutableBytes(of: &ends) {
            socketpair(AF_UNIX, pairType, 0, $0.baseAddress?.assumingMemoryBound(to: Int32.self)) == 0
        }
        guard isCreated else { return nil }
        _ = fcntl(ends.1, F_SETFD, FD_CLOEXEC)
        _ = fcntl(ends.0, F_SETFL, O_NONBLOCK)
        return ends
    }

    #if canImport(Glibc)
    private static let pairType = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    #else
    private static let pairType = SOCK_STREAM
    #endif

    private static func ends(of connection: Connection) -> Ends? {
        guard let local = address({ getsockname(connection.socket, $0, $1) }),
            let remote = address({ getpeername(connection.socket, $0, $1) })
        else { return nil }
        return Ends(
            localPort: local.port, remotePort: remote.port, remote: remote.host, isQUIC: connection.isQUIC)
    }

    private static func address(
        _ call: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> CInt
    ) -> (host: String, port: CInt)? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { storage in
            let status = storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, &length) }
            guard status == 0 else { return nil }
            return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
                guard let start = text.baseAddress else { return nil }
                let family = CInt(storage.pointee.ss_family)
                switch family {
                case AF_INET:
                    return storage.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { address in
                        inet_ntop(family, &address.pointee.sin_addr, start, socklen_t(text.count))
                            .map { (String(cString: $0), CInt(UInt16(bigEndian: address.pointee.sin_port))) }
                    }
                case AF_INET6:
                    return storage.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
                        inet_ntop(family, &address.pointee.sin6_addr, start, socklen_t(text.count))
                            .map { (String(cString: $0), CInt(UInt16(bigEndian: address.pointee.sin6_port))) }
                    }
                default: return nil
                }
            }
        }
    }
}
