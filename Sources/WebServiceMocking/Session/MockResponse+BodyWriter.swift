public import Foundation
import WebServiceCore

extension MockResponse {
    /// A writer that sends the body of a response in pieces.
    ///
    /// ```swift
    /// server.on(.GET, "/ticks") { _ in
    ///     MockResponse(statusCode: 200) { body in
    ///         for number in 0..<3 { try body.write(Data("tick \(number)\n".utf8)) }
    ///     }
    /// }
    /// ```
    public struct BodyWriter: Sendable {
        /// The destination of the bytes.
        enum Output {
            case connection(Socket, isChunked: Bool)
            case session(WrittenBody)
        }

        let output: Output

        /// Sends bytes, as one chunk if the body is chunked. Blocks while the client does not read.
        ///
        /// - Throws: `WebServiceError` with the code `mockServer` if the client has closed the
        ///   connection, the task has been cancelled or the server has stopped.
        public func write(_ data: Data) throws {
            guard !data.isEmpty else { return }
            let isSent =
                switch output {
                case .connection(let socket, let isChunked): socket.send(isChunked ? data.chunk : data)
                case .session(let body): body.write(data)
                }
            guard isSent else {
                throw WebServiceError(
                    .mockServer,
                    "the body cannot be sent, because the client has closed the connection, the task was cancelled, "
                        + "or the server was stopped")
            }
        }

        /// A Boolean value that indicates whether the client has closed its side of the connection.
        var isDisconnected: Bool {
            switch output {
            case .connection(let socket, _): socket.isDisconnected
            case .session(let body): body.isCancelled
            }
        }

        /// Blocks for a duration, or until the client closes the connection or the task is
        /// cancelled.
        ///
        /// A ``MockSession`` measures the duration on its clock.
        public func pause(for duration: Duration) {
            switch output {
            case .connection(let socket, _): socket.pause(for: duration)
            case .session(let body): body.pause(for: duration)
            }
        }
    }
}
