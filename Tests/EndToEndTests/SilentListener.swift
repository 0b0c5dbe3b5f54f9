import Dispatch
import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A socket that accepts connections, reads a request and never responds. It reports when the peer
/// closes the connection.
final class SilentListener: Sendable {
    struct Failure: Error { let errno: Int32 }

    let port: Int
    private let descriptor: Int32

    init() throws {
        #if canImport(Glibc)
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
        descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let failed = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) != 0 || listen(descriptor, 16) != 0
                    || getsockname(descriptor, address, &length) != 0
            }
        }
        if failed { throw Failure(errno: errno) }
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    deinit { close(descriptor) }

    struct Connection: Sendable {
        fileprivate let descriptor: Int32

        /// Waits until the peer closes the connection, and returns that instant.
        func end() async throws -> ContinuousClock.Instant {
            try await onOwnThread {
                defer { close(descriptor) }
                var bytes = [UInt8](repeating: 0, count: 1024)
                while true {
                    let count = recv(descriptor, &bytes, bytes.count, 0)
                    if count == 0 || count < 0 && errno == ECONNRESET { return ContinuousClock.now }
                    if count < 0 && errno != EINTR { throw Failure(errno: errno) }
                }
            }
        }
    }

    /// Calls `connect`, accepts the connection and reads the first bytes.
    func serveOne(_ connect: @escaping @Sendable () -> Void) async throws -> Connection {
        connect()
        return try await onOwnThread { [descriptor] in
            let connection = accept(descriptor, nil, nil)
            var bytes = [UInt8](repeating: 0, count: 4096)
            guard connection >= 0, recv(connection, &bytes, bytes.count, 0) > 0 else { throw Failure(errno: errno) }
            return Connection(descriptor: connection)
        }
    }
}

/// Runs blocking calls on a separate thread, outside the cooperative thread pool.
private func onOwnThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try work() }) }
    }
}
