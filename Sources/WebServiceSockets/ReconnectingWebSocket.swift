public import Foundation
public import WebServiceCore
import WebSocketCodec

/// A WebSocket connection that is opened again when it is lost.
///
/// ```swift
/// let chat = service.reconnectingWebSocket("/chat", maximumQueuedMessages: 100)
/// try await chat.send("hello")
/// for try await message in chat.messages { print(message) }
/// ```
/// ``WebServiceCore/WebService/reconnectingWebSocket(_:subprotocols:options:reconnection:maximumQueuedMessages:onOpen:configuring:)``
/// creates the object. All members may be used from any thread.
///
/// - Connections are opened even if no message is read. However, while
///   ``WebSocket/Options/bufferSize`` bytes of earlier connections are unread, no further
///   connection is opened, so read the ``messages`` even if you do not use them.
/// - Cancelling a Swift task that waits for a message closes the object with `URLError.cancelled`,
///   as does `WebService.cancelAll()`. Cancelling a task that sends a message ends only that call.
/// - When the object and its messages are deallocated, the connection is closed with code 1001
///   (going away).
public final class ReconnectingWebSocket: Sendable {
    /// The state of the connection.
    public enum State: Sendable {
        /// A connection is being opened, or `onOpen` has not returned.
        case connecting
        /// Messages can be sent.
        case open
        /// The last connection has ended with the error, or was closed by the server without an
        /// error. The next connection is opened at the date, or later if too many messages are
        /// unread.
        case waiting(until: Date, after: (any Error)?)
        /// No further connection is opened, because of the error, because the object was closed, or
        /// because the reconnection policy allows no further connection.
        case closed((any Error)?)
    }

    private let connections: SuccessiveConnections
    private let iterations = WebSocket.Iterations()
    private let encoder: any BodyEncoder & Sendable
    private let decoder: any BodyDecoder

    init(
        _ connections: SuccessiveConnections, _ encoder: any BodyEncoder & Sendable, _ decoder: any BodyDecoder
    ) {
        (self.connections, self.encoder, self.decoder) = (connections, encoder, decoder)
    }

    deinit {
        connections.abandon()
    }

    /// The current state.
    public var state: State { connections.status }

    /// The current state, followed by the state after every change, in order.
    ///
    /// A slow reader receives only the latest state. The sequence ends after ``State/closed(_:)``.
    /// Every access returns another sequence, which does not retain this object.
    public var states: AsyncStream<State> { connections.statuses }

    // MARK: Messages

    /// The messages of the server, from all connections in their order.
    ///
    /// The rules of ``WebSocket/messages`` apply to iterations. The loss of a connection does not
    /// end the sequence. Messages that arrived before the loss are delivered, followed by those of
    /// the next connection. The sequence ends after ``close(_:reason:)``, and after the server has
    /// closed the last connection that the policy allows. If the object was closed because of an
    /// error, the sequence throws that error. A later iteration ends or throws in the same way.
    public var messages: WebSocket.Messages<WebSocketMessage> {
        WebSocket.Messages(iterations) { [self] in try await connections.next() }
    }

    /// Returns the server's messages as values of a type; see
    /// ``WebSocket/messages(of:decoder:)``.
    ///
    /// - Parameters:
    ///   - type: The type of the values.
    ///   - decoder: The decoder of the values. Defaults to `nil`: the decoder of the service.
    public func messages<Value: Decodable & Sendable>(
        of type: Value.Type, decoder: (any BodyDecoder)? = nil
    ) -> WebSocket.Messages<Value> {
        let decoder = decoder ?? self.decoder
        return WebSocket.Messages(iterations) { [self] in
            try await connections.next()?.decode(type, decoder: decoder)
        }
    }

    /// Waits for the next message of the server for at most a given duration.
    ///
    /// The wait includes the time in which there is no connection. The rules of
    /// ``WebSocket/message(within:)`` apply.
    ///
    /// - Parameter timeout: The duration on the service's clock. If it is not positive, the call
    ///   returns a message that has already arrived, or `nil`.
    /// - Returns: The message, or `nil` if none has arrived in time.
    /// - Throws: `WebServiceError.Code.webSocketClosed` after ``close(_:reason:)`` or another end
    ///   without an error; `WebServiceError.Code.streamConsumed` if another call or iteration waits
    ///   for a message; and the error with which the object was closed.
    public func message(within timeout: Duration) async throws -> WebSocketMessage? {
        switch try await connections.next(within: timeout) {
        case .message(let message): message
        case .timeout: nil
        case .end: throw WebSocketEnd.closed(nil)
        }
    }

    // MARK: Sending

    /// Sends a text message, and returns when all of it has been passed to the connection.
    ///
    /// While the state is not ``State/open``, the message waits in a queue, whose length
    /// `maximumQueuedMessages` limits. After `onOpen` has returned, the queued messages are sent in
    /// the order of the calls, before messages of later calls. To send only while the connection is
    /// open, do not set `maximumQueuedMessages`.
    ///
    /// A message is sent over one connection, at most once. If that connection is lost first, the
    /// call throws the error of the connection. Whether the server has received the message is then
    /// unknown, so send it again only if the server recognizes duplicates. A message that no
    /// connection has accepted stays in the queue. Bytes that the system has accepted can be lost
    /// together with the connection. If you need certainty, have the server acknowledge each
    /// message.
    ///
    /// Cancelling the Swift task removes the message from the queue. It does not interrupt a
    /// message that a connection has accepted.
    ///
    /// - Throws: `WebServiceError.Code.webSocketNotOpen` if the connection is not open and the
    ///   queue is full, or if the connection is lost while more messages wait than the queue can
    ///   hold; the error with which the connection was lost, such as
    ///   `URLError.networkConnectionLost`; `WebServiceError.Code.webSocketClosed` after
    ///   ``close(_:reason:)``, or the error with which the object was closed; and
    ///   `URLError.cancelled`.
    public func send(_ text: String) async throws { try await connections.send(.text(text)) }

    /// Sends a binary message; see ``send(_:)-(String)``.
    public func send(_ data: Data) async throws { try await connections.send(.data(data)) }

    /// Sends a value as a text message, encoded as JSON or in another format that is UTF-8.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - encoder: The encoder of the value. Defaults to `nil`: the encoder of the service.
    /// - Throws: `WebServiceError.Code.encoding` if the value cannot be encoded, and the errors of
    ///   ``send(_:)-(String)``.
    public func send(_ value: some Encodable, encoder: (any BodyEncoder)? = nil) async throws {
        try await connections.send(try .encoding(value, with: encoder ?? self.encoder))
    }

    /// The number of bytes of the messages that wait in the queue, and of those that the current
    /// connection has not sent completely; see ``WebSocket/bufferedByteCount``.
    public var bufferedByteCount: Int { connections.bufferedByteCount }

    /// Sends a ping over the current connection, and returns the duration until its pong; see
    /// ``WebSocket/ping(within:)``.
    ///
    /// - Parameter timeout: The maximum duration. Defaults to 10 seconds.
    /// - Throws: `WebServiceError.Code.webSocketNotOpen` if the connection is not open; the error
    ///   with which the object was closed; and the errors of ``WebSocket/ping(within:)``.
    public func ping(within timeout: Duration = .seconds(10)) async throws -> Duration {
        try await connections.openSocket().ping(within: timeout)
    }

    // MARK: Closing

    /// Closes the connection, and waits for the server to close it too, for at most
    /// ``WebSocket/Options/closeTimeout``. No further connection is opened.
    ///
    /// Messages in the queue are not sent, and their calls throw
    /// `WebServiceError.Code.webSocketClosed`. Messages that arrive after the call are discarded.
    /// Further calls have no effect.
    ///
    /// - Parameters:
    ///   - code: The status code. Defaults to 1000 (normal closure).
    ///   - reason: The reason as text, at most 123 bytes of UTF-8. Defaults to an empty string.
    /// - Throws: `WebServiceError.Code.encoding` if the code cannot be sent, or the reason is too
    ///   long.
    public func close(_ code: WebSocketClosure.Code = .normalClosure, reason: String = "") async throws {
        try await connections.close(code, reason: reason)
    }
}
