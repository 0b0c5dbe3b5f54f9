import Foundation
import WebServiceCore

/// The bytes of a connection of a ``MockServer`` after a handshake.
///
/// The thread of the connection receives (``serve()``); a queue sends. Both block.
final class SocketConnection: ByteConnection {
    typealias Reader = CheckedContinuation<Data, any Error>

    private let socket: Socket
    private let readers = Mutex(Queue<Reader>())
    private let isClosed = OnceFlag()
    private let wakeUp = ThreadSignal()
    private let sending = BlockingQueue("WebService.MockWebSocket")

    init(_ socket: Socket) {
        self.socket = socket
    }

    var metrics: TransportMetrics { TransportMetrics(total: .zero) }

    /// Receives on the calling thread, each time a caller waits, until the connection is closed.
    func serve() {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            guard let reader = readers.withLock({ $0.popFirst() }) else {
                if isClosed.isSet { break }
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
        if isClosed.isSet { throw URLError(.cancelled) }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { reader in
                readers.withLock { $0.append(reader) }
                wakeUp.signal()
            }
        } onCancel: {
            close()
        }
    }

    func send(_ bytes: Data) async throws {
        let isSent = try await sending.result { [socket] in socket.send(bytes) }
        if !isSent { throw URLError(.networkConnectionLost) }
    }

    func close() {
        guard isClosed.set() else { return }
        socket.disconnect()  // also ends a call that blocks
        wakeUp.signal()
    }
}
