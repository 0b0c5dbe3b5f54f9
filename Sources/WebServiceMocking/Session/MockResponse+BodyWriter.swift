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
        package let output: any BodyOutput

        package init(_ output: any BodyOutput) {
            self.output = output
        }

        /// Sends bytes, as one chunk if the body is chunked. Blocks while the client does not read.
        ///
        /// - Throws: `WebServiceError.Code.mockServer` if the client has closed the connection, the
        ///   task has been cancelled, the server has stopped, or ``MockResponse/wire`` ends the
        ///   response at these bytes.
        public func write(_ data: Data) throws {
            guard !data.isEmpty else { return }
            guard output.write(data) else {
                throw WebServiceError(
                    .mockServer,
                    "the body cannot be sent, because the client has closed the connection, the task was cancelled, "
                        + "the server was stopped, or `wire` ends the response")
            }
        }

        /// Blocks for a duration, or until the client closes the connection or the task is
        /// cancelled.
        ///
        /// A ``MockSession`` measures the duration on its clock.
        public func pause(for duration: Duration) {
            output.pause(for: duration)
        }
    }
}

/// The destination of the bytes of a ``MockResponse/BodyWriter``.
package protocol BodyOutput: Sendable {
    /// Sends bytes. Blocks while the client does not read.
    ///
    /// - Returns: Whether the bytes were sent and more bytes can be sent.
    func write(_ data: Data) -> Bool

    /// Blocks for a duration, or until the client no longer reads.
    func pause(for duration: Duration)

    /// Whether the client no longer reads.
    var isDisconnected: Bool { get }
}
