import Foundation
import WebServiceCore

/// A byte connection of a ``MockServer`` after a handshake.
///
/// The connection's thread receives bytes (``serve()``), and a queue sends them. Both block.
final class SocketConnection: ByteConnection {
    typealias Reader = CheckedContinuation<Data, any Error>

    private struct State {
        var readers = Queue<Reader>()
        /// Whether the connection was closed. The descriptor may then belong to another connection.
        var isClosed = false
    }

    private let socket: Socket
    private let state = Mutex(State())
    private let wakeUp = ThreadSignal()
    private let sending = BlockingQueue("WebService.MockWebSocket")

    init(_ socket: Socket) {
        self.socket = socket
    }

    var metrics: TransportMetrics { TransportMetrics(total: .zero) }

    /// Receives bytes on the calling thread whenever a reader waits, until the connection is
    /// closed.
    func serve() {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let (reader, isClosed) = state.withLock { ($0.readers.popFirst(), $0.isClosed) }
            guard let reader else {
                if isClosed { break }
                wakeUp.wait()
                continue
            }
            let count = socket.receive(into: &buffer)
            reader.resume(returning: Data(buffer[..<count]))
        }
        // The descriptor must not be released while it is used.
        let isSent = ThreadSignal()
        sending.run { isSent.signal() }
        isSent.wait()
    }

    func receive() async throws -> Data {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { reader in
                let isOpen = state.withLock { state in
                    if !state.isClosed { state.readers.append(reader) }
                    return !state.isClosed
                }
                if isOpen { wakeUp.signal() } else { reader.resume(throwing: URLError(.cancelled)) }
            }
        } onCancel: {
            close()
        }
    }

    func send(_ bytes: Data) async throws {
        let isSent = try await sending.result { [self] in !state.withLock(\.isClosed) && socket.send(bytes) }
        if !isSent { throw URLError(.networkConnectionLost) }
    }

    func close() {
        // The connection is ended within the lock, because ``serve()`` returns afterwards, and the
        // descriptor is then released.
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            if !state.isClosed { socket.disconnect() }  // also ends a call that blocks
            return !state.isClosed
        }
        if isFirst { wakeUp.signal() }
    }
}
