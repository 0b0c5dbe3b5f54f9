#if canImport(Darwin)
import Foundation

/// A byte connection of a ``FoundationSession``, over a `URLSessionStreamTask`.
///
/// Foundation on Linux has no such tasks.
final class FoundationConnection: ByteConnection {
    private struct State {
        var sentCount = 0
        var receivedCount = 0
        /// Whether the peer has sent its last byte.
        var isInputOver = false
    }

    private let task: URLSessionStreamTask
    private let state = Mutex(State())

    /// - Parameter task: A resumed task, which connects when it first sends or receives.
    init(_ task: URLSessionStreamTask) {
        self.task = task
    }

    deinit {
        task.cancel()
    }

    var metrics: TransportMetrics {
        let (sent, received) = state.withLock { ($0.sentCount, $0.receivedCount) }
        return TransportMetrics(total: .zero, bytesSent: Int64(sent), bytesReceived: Int64(received))
    }

    func receive() async throws -> Data {
        guard !state.withLock(\.isInputOver) else { return Data() }
        // A timeout of 0 means that there is none.
        let (data, isOver) = try await call { [task] in
            try await task.readData(ofMinLength: 1, maxLength: 64 << 10, timeout: 0)
        }
        let bytes = data ?? Data()
        state.withLock { state in
            state.receivedCount += bytes.count
            state.isInputOver = isOver
        }
        return bytes
    }

    func send(_ bytes: Data) async throws {
        try await call { [task] in try await task.write(bytes, timeout: 0) }
        state.withLock { $0.sentCount += bytes.count }
    }

    func close() { task.cancel() }

    /// Calls a method of the stream task. Cancelling the calling Swift task ends the connection.
    private func call<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await withTaskCancellationHandler(operation: body) { close() }
        } catch {
            throw URLError(transport: error) ?? error
        }
    }
}

extension FoundationSession: ConnectingSession {
    /// The additional header fields of the configuration.
    package var defaultHeaders: Headers {
        let fields = configuration.httpAdditionalHeaders ?? [:]
        return Headers(fields.compactMap { name, value in (name as? String).map { ($0, "\(value)") } })
    }

    /// Returns a connection that is established when it is first used. If connecting fails, the
    /// first call on the connection throws the error.
    package func connect(
        _ request: EncodedRequest, waitDidChange: @escaping @Sendable (Bool) -> Void
    ) async throws -> any ByteConnection {
        guard let url = URL(string: request.url), let host = url.host(percentEncoded: false) else {
            throw URLError(.badURL)
        }
        let isSecure = url.scheme?.lowercased() == "https"
        guard let task = tasks.streamTask(toHost: host, port: url.port ?? (isSecure ? 443 : 80)) else {
            throw URLError(.cancelled)
        }
        if isSecure { task.startSecureConnection() }
        task.resume()
        return FoundationConnection(task)
    }
}
#endif
