import Foundation

/// A socket that listens on 127.0.0.1 until the object is deallocated.
package final class LoopbackListener: Sendable {
    package let port: Int
    private let listening: Listening

    /// A socket, which is closed when the listener and the thread that accepts have ended. Otherwise
    /// that thread could use the descriptor of a later socket.
    private final class Listening: Sendable {
        let descriptor = LoopbackListener.newSocket()

        deinit { close(descriptor) }
    }

    package var descriptor: Int32 { listening.descriptor }

    /// - Parameter port: The port, or 0 for one that the system selects.
    package init(port: UInt16 = 0, backlog: Int32 = 16) throws {
        listening = Listening()
        let listener = listening.descriptor
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening =
            Self.withAddress(port) { bind(listener, $0, $1) == 0 && listen(listener, backlog) == 0 }
            && withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &length) == 0 }
            }
        self.port = Int(UInt16(bigEndian: address.sin_port))
        guard isListening else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }

    deinit { stop() }

    /// Ends the acceptance of connections.
    package func stop() {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    /// Calls a closure with each connection, on a thread of its own, until the listener stops.
    package func serve(_ connection: @escaping @Sendable (Int32) -> Void) {
        Thread.detachNewThread { [listening] in
            while true {
                let client = accept(listening.descriptor, nil, nil)
                if client >= 0 {
                    Thread.detachNewThread { connection(client) }
                } else if errno != EINTR, errno != ECONNABORTED {
                    return
                }
            }
        }
    }

    package static func newSocket() -> Int32 {
        #if canImport(Glibc)
        // Not inherited: a child that starts at this instant would hold the port.
        socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        #else
        socket(AF_INET, SOCK_STREAM, 0)
        #endif
    }

    /// Connects a socket to a port, and returns whether the call succeeded.
    @discardableResult
    package static func connect(_ socket: Int32, to port: Int) -> Bool {
        withAddress(UInt16(truncatingIfNeeded: port)) { systemConnect(socket, $0, $1) == 0 }
    }

    private static func withAddress<Result>(
        _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

/// The system's `connect`, whose name is shadowed by a method of ``LoopbackListener``.
private func systemConnect(_ socket: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) -> Int32 {
    connect(socket, address, length)
}
