public import Foundation
import WebServiceCore

/// A writer that sends the body of a ``MockServer`` response in pieces.
///
/// ```swift
/// server.on(.GET, "/ticks") { _ in
///     MockResponse(statusCode: 200) { body in
///         for number in 0..<3 { try body.write(Data("tick \(number)\n".utf8)) }
///     }
/// }
/// ```
public struct MockBodyWriter: Sendable {
    let socket: Socket
    let isChunked: Bool

    /// Sends bytes, as one chunk if the body is chunked. Blocks while the client is not reading.
    ///
    /// - Throws: `WebServiceError` with the code `mockServer` if the client has closed the
    ///   connection or the server has stopped.
    public func write(_ data: Data) throws {
        guard !data.isEmpty else { return }
        guard socket.send(isChunked ? data.chunk : data) else {
            throw WebServiceError(.mockServer, "the client has closed the connection")
        }
    }

    /// A Boolean value that indicates whether the client has closed its side of the connection.
    var isDisconnected: Bool { socket.isDisconnected }

    /// Waits for a duration, or until the client closes the connection.
    public func pause(for duration: Duration) {
        socket.pause(for: duration)
    }
}
