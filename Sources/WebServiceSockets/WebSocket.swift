public import Foundation
import Synchronization
public import WebServiceCore
import WebSocketCodec

/// An open WebSocket connection (RFC 6455).
///
/// ```swift
/// let socket = try await service.webSocket("/chat")
/// try await socket.send("hello")
/// for try await message in socket.messages { print(message) }
/// ```
/// ``WebServiceCore/WebService/webSocket(_:subprotocols:options:configuring:)`` opens a connection.
/// All members may be used from any thread.
///
/// - The connection responds to pings of the server until the buffer of received messages is full.
/// - Cancelling a Swift task that waits for a message, sends or closes ends the connection
///   immediately with `URLError.cancelled`, as does `WebService.cancelAll()`.
/// - When the object and its ``Messages`` are deallocated, the connection is closed with code 1001
///   (going away).
/// - The service lists the connection as a stream in flight.
public final class WebSocket: Sendable {
    /// The response to the handshake; its status is 101.
    public let response: Response

    /// The subprotocol that the server has selected (RFC 6455, section 1.9); `nil` if there is
    /// none.
    public let subprotocol: String?

    let channel: WebSocketChannel
    /// The timeout of the request that has opened the connection.
    let timeout: Duration
    private let iterations = Iterations()
    private let isHandedOver = Atomic(false)
    private let encoder: any BodyEncoder & Sendable
    private let decoder: any BodyDecoder

    init(_ opened: OpenedConnection, _ stream: StreamedResponse, _ options: Options, of service: WebService) {
        response = stream.response
        subprotocol = opened.agreement.subprotocol
        timeout = opened.timeout
        (encoder, decoder) = (service.encoder, service.decoder)
        let task = opened.task
        channel = WebSocketChannel(
            .client, over: opened.bytes, options.settings(for: opened.agreement), service.taskClock,
            report: stream.messageReporter
        ) { end in  // retains the stream, whose deallocation would close the connection
            let closure = if case .success(let closure) = end { closure } else { nil as WebSocketClosure? }
            stream.record(.webSocket, WebSocketEnd.description(of: end), closure: closure)
            task.complete(end.map { _ in [:] }, closesConnection: false)
        }
        channel.start(with: opened.rest)
    }

    deinit {
        channel.abandon()
    }

    // MARK: Messages

    /// The messages of the server.
    ///
    /// Each message is delivered once. A later iteration, including one over values, continues
    /// where the previous one ended. If the previous iteration is then continued, it throws
    /// `WebServiceError.Code.streamConsumed`, as does an iteration that reads while another one
    /// waits for a message. While no message is read, messages are buffered up to
    /// ``Options/bufferSize``, and then the server is held back.
    ///
    /// The sequence ends when the server closes the connection with code 1000 or 1001 or without a
    /// code, and after ``close(_:reason:)``. In all other cases, it delivers the messages that
    /// arrived before the end, and then throws:
    /// - `WebServiceError.Code.webSocketClosed` after any other code, with the ``closure`` as the
    ///   underlying error;
    /// - `WebServiceError.Code.webSocketViolation` if the server violates the protocol;
    /// - `WebServiceError.Code.elementTooLarge` if a message exceeds a limit of ``Options``;
    /// - `URLError.networkConnectionLost` or another transport error if the connection ends without
    ///   a Close frame;
    /// - `URLError.timedOut` if the server does not respond to a ping;
    /// - `URLError.cancelled` after a cancellation.
    ///
    /// A later iteration ends or throws in the same way.
    public var messages: Messages<WebSocketMessage> {
        Messages(iterations) { [self] in
            try checkReader()
            return try await channel.next()
        }
    }

    /// Returns the server's messages as values of a type.
    ///
    /// The sequence ends and throws like ``messages``. If a message cannot be decoded, the sequence
    /// throws `WebServiceError.Code.decoding`. The next iteration continues with the next message.
    ///
    /// - Parameters:
    ///   - type: The type of the values.
    ///   - decoder: The decoder of the values. Defaults to `nil`: the decoder of the service.
    public func messages<Value: Decodable & Sendable>(
        of type: Value.Type, decoder: (any BodyDecoder)? = nil
    ) -> Messages<Value> {
        let decoder = decoder ?? self.decoder
        return Messages(iterations) { [self] in
            try checkReader()
            return try await channel.next()?.decode(type, decoder: decoder)
        }
    }

    /// Waits for the next message of the server for at most a given duration.
    ///
    /// A timeout does not end the connection, and no message is lost. The next call or iteration
    /// returns a message that arrives later. Each call takes one message, and an iteration that
    /// began before the call continues after that message. Cancelling the Swift task ends the
    /// connection.
    ///
    /// - Parameter timeout: The duration on the service's clock. If it is not positive, the call
    ///   returns a message that has already arrived, or `nil`.
    /// - Returns: The message, or `nil` if none has arrived in time.
    /// - Throws: `WebServiceError.Code.webSocketClosed` if the connection was closed, even with
    ///   code 1000; `WebServiceError.Code.streamConsumed` if another call or iteration waits for a
    ///   message; and the errors of ``messages``.
    public func message(within timeout: Duration) async throws -> WebSocketMessage? {
        try checkReader()
        return switch try await channel.next(within: timeout) {
        case .message(let message): message
        case .timeout: nil
        case .end: throw channel.closedError
        }
    }

    /// Leaves all further messages to the ``ReconnectingWebSocket`` that has opened the connection.
    func handOver() { isHandedOver.store(true, ordering: .releasing) }

    private func checkReader() throws {
        guard isHandedOver.load(ordering: .acquiring) else { return }
        throw WebServiceError(
            .streamConsumed, "the messages are read by the ReconnectingWebSocket; read them there after onOpen")
    }

    // MARK: Sending

    /// Sends a text message.
    ///
    /// The method returns when the message is buffered. While ``Options/bufferSize`` bytes or more
    /// wait for the server, the method waits. The messages of concurrent calls are sent in the
    /// order of the calls.
    ///
    /// - Throws: `WebServiceError.Code.webSocketClosed` if the connection is closed, or the error
    ///   with which it has ended; and `URLError.cancelled`.
    public func send(_ text: String) async throws { try await channel.send(.text(text)) }

    /// Sends a binary message; see ``send(_:)-(String)``.
    public func send(_ data: Data) async throws { try await channel.send(.data(data)) }

    /// Sends a value as a text message, encoded as JSON or in another format that is UTF-8.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - encoder: The encoder of the value. Defaults to `nil`: the encoder of the service.
    /// - Throws: `WebServiceError.Code.encoding` if the value cannot be encoded, and the errors of
    ///   ``send(_:)-(String)``.
    public func send(_ value: some Encodable, encoder: (any BodyEncoder)? = nil) async throws {
        try await channel.send(try .encoding(value, with: encoder ?? self.encoder))
    }

    /// The number of bytes of the messages that `send` has accepted but that have not been passed
    /// completely to the connection.
    ///
    /// The number covers the content of the messages, before compression and without the headers of
    /// frames, like `bufferedAmount` in the WebSockets standard of the WHATWG. After the end of the
    /// connection, it covers the messages that were not sent completely. Bytes that the system has
    /// accepted may not have reached the server.
    public var bufferedByteCount: Int { channel.unwrittenBytes }

    // MARK: Pings

    /// Sends a ping, and returns the duration until the server's pong arrives, on the service's
    /// clock.
    ///
    /// The ping is sent after the messages that wait to be sent, so the duration includes the time
    /// to send them. The pong arrives after the messages that the server has sent before it, so it
    /// does not arrive while the buffer of received messages is full. Any number of calls may wait
    /// at the same time. Each call receives the pong with its own payload or with that of a later
    /// call, because a server may respond only to the latest ping (RFC 6455, section 5.5.3). Other
    /// pongs complete no call. The connection also sends pings automatically; see
    /// ``Options/pingInterval``.
    ///
    /// Neither a timeout nor the cancellation of the Swift task ends the connection.
    ///
    /// - Parameter timeout: The maximum duration. Defaults to 10 seconds.
    /// - Throws: `URLError.timedOut` if the server does not respond within the timeout;
    ///   `WebServiceError.Code.webSocketClosed` if the connection was already closed or is closed
    ///   before the pong arrives; the error with which the connection ended, if it ended in another
    ///   way; and `URLError.cancelled`.
    public func ping(within timeout: Duration = .seconds(10)) async throws -> Duration {
        try await channel.ping(within: timeout)
    }

    // MARK: Closing

    /// Closes the connection, and waits for the server to close it too, for at most
    /// ``Options/closeTimeout``.
    ///
    /// Messages that arrive after the call are discarded. The call has no effect on a closed
    /// connection.
    ///
    /// - Parameters:
    ///   - code: The status code. Defaults to 1000 (normal closure).
    ///   - reason: The reason as text, at most 123 bytes of UTF-8. Defaults to an empty string.
    /// - Throws: `WebServiceError.Code.encoding` if the code cannot be sent, or the reason is too
    ///   long.
    public func close(_ code: WebSocketClosure.Code = .normalClosure, reason: String = "") async throws {
        try await channel.close(code, reason: reason)
    }

    /// The code and the reason with which the server has closed the connection.
    ///
    /// `nil` while the connection is open, or if the server has not sent a code.
    public var closure: WebSocketClosure? { channel.closure }
}

extension WebSocketMessage {
    /// Returns a text message with an encoded value.
    static func encoding(_ value: some Encodable, with encoder: any BodyEncoder) throws -> WebSocketMessage {
        do { return .text(String(decoding: try encoder.encode(value), as: UTF8.self)) } catch {
            throw WebServiceError(
                .encoding, "the encoder rejected a message of type \(type(of: value)); see the underlying error",
                underlying: error)
        }
    }
}

extension WebServiceError.Code {
    /// A ``WebSocket`` that the server closed with a code that indicates an error, or a call on a
    /// closed connection.
    public static let webSocketClosed = WebServiceError.Code("webSocketClosed")
    /// A message for a ``ReconnectingWebSocket`` that was not open and whose queue was full, or a
    /// ping over one that was not open.
    public static let webSocketNotOpen = WebServiceError.Code("webSocketNotOpen")
    /// Bytes from the server that violate the WebSocket protocol. The error message names the rule.
    public static let webSocketViolation = WebServiceError.Code("webSocketViolation")
    /// A response that does not match the handshake request of a ``WebSocket``.
    public static let webSocketHandshake = WebServiceError.Code("webSocketHandshake")
    /// A session that cannot open a ``WebSocket``.
    public static let webSocketUnsupported = WebServiceError.Code("webSocketUnsupported")
}

extension Timeline.Kind {
    /// The end of a ``WebSocket``, with its code or its error.
    public static let webSocket = Timeline.Kind("websocket")
}
