import Dispatch
import Foundation
import TestSupport

/// A socket that accepts connections, reads a request and never responds. It reports when the peer
/// closes the connection.
final class SilentListener: Sendable {
    struct Failure: Error { let errno: Int32 }

    var port: Int { listener.port }
    private let listener: LoopbackListener

    init() throws { listener = try LoopbackListener() }

    struct Connection: Sendable {
        fileprivate let descriptor: Int32

        /// Waits until the peer closes the connection.
        func end() async throws {
            try await onOwnThread {
                defer { close(descriptor) }
                var bytes = [UInt8](repeating: 0, count: 1024)
                while true {
                    let count = recv(descriptor, &bytes, bytes.count, 0)
                    if count == 0 || count < 0 && errno == ECONNRESET { return }
                    if count < 0 && errno != EINTR { throw Failure(errno: errno) }
                }
            }
        }
    }

    /// Calls `connect`, accepts the connection and reads the first bytes.
    func serveOne(_ connect: @escaping @Sendable () -> Void) async throws -> Connection {
        connect()
        return try await onOwnThread { [listener] in
            let connection = accept(listener.descriptor, nil, nil)
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
