// The header of libcurl declares the constants of sockets as well.
import CCurl
import Foundation
import WebServiceCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Forwards the bytes of connections to a port and back until ``silence()`` is called. The
/// connections then stay open.
final class Relay: Sendable {
    struct Failure: Error {}

    let port: Int
    private let target: UInt16
    private let listener: Int32
    private let state = Mutex((isStopping: false, connections: 0, silent: 0, sockets: [Int32]()))

    init(to target: Int) throws {
        self.target = UInt16(truncatingIfNeeded: target)
        let listener = Self.newSocket()
        self.listener = listener
        let bound = Self.withAddress(0) { bind(listener, $0, $1) == 0 && listen(listener, 64) == 0 }
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let named = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &length) == 0 }
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        guard bound, named else { throw Failure() }
        Thread.detachNewThread { [self] in accept() }
    }

    /// Silences the existing connections. New connections are served.
    func silence() { state.withLock { $0.silent = $0.connections } }

    var connectionCount: Int { state.withLock { $0.connections } }

    func stop() {
        let sockets = state.withLock { state in
            state.isStopping = true
            return state.sockets
        }
        for socket in sockets + [listener] { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { return }
            let server = Self.newSocket()
            _ = Self.withAddress(target) { connect(server, $0, $1) }
            let number = state.withLock { state in
                state.connections += 1
                state.sockets += [client, server]
                return state.connections
            }
            Thread.detachNewThread { [self] in copy(client, server, number) }
            Thread.detachNewThread { [self] in copy(server, client, number) }
        }
    }

    private func copy(_ source: Int32, _ target: Int32, _ number: Int) {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            if state.withLock({ number <= $0.silent }) { continue }
            var sent = 0
            while sent < count {
                let written = buffer.withUnsafeBytes {
                    send(target, $0.baseAddress.map { $0 + sent }, count - sent, Int32(MSG_NOSIGNAL))
                }
                guard written > 0 else { break }
                sent += written
            }
        }
        shutdown(target, Int32(SHUT_RDWR))
    }

    private static func newSocket() -> Int32 { socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0) }

    private static func withAddress<Result>(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result)
        -> Result
    {
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
