// The header of libcurl declares the constants of sockets as well.
import CCurl
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A socket that listens and never accepts. Without a backlog, its queue is full and every new
/// client waits.
final class FullListener {
    struct Failure: Error {}

    let port: Int
    private var descriptors: [Int32] = []

    /// - Parameter port: The port, or 0 for one that the system selects.
    init(backlog: Int32 = 0, port wanted: UInt16 = 0) throws {
        let listener = Self.newSocket()
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = wanted.bigEndian
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, backlog) == 0
                    && getsockname(listener, $0, &length) == 0
            }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        descriptors.append(listener)
        guard isListening else { throw Failure() }
        guard backlog == 0 else { return }
        for _ in 0..<4 {
            let client = Self.newSocket()
            _ = fcntl(client, F_SETFL, O_NONBLOCK)
            _ = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(client, $0, length) }
            }
            descriptors.append(client)
        }
    }

    deinit {
        for descriptor in descriptors { close(descriptor) }
    }

    static func newSocket() -> Int32 {
        #if canImport(Glibc)
        // Not inherited: a child that starts at this instant would hold the port.
        socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        #else
        socket(AF_INET, SOCK_STREAM, 0)
        #endif
    }
}
