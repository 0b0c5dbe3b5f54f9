import Foundation
public import WebServiceCore
import WebSocketCodec

extension WebService {
    /// Returns a WebSocket connection that is opened again when it is lost.
    ///
    /// ```swift
    /// let prices = service.reconnectingWebSocket("/prices") { socket in
    ///     try await socket.send("subscribe")
    /// }
    /// for try await message in prices.messages { show(message) }
    /// ```
    /// The connection is opened immediately, in the background. It is opened again after a
    /// transport error, after the server has closed it with any code, and after a handshake with
    /// one of the statuses 408, 425, 429, 500, 502, 503 and 504, but not before the time specified
    /// by `Retry-After`. Any other error is final. Messages of the server between two connections
    /// are lost.
    ///
    /// - Parameters:
    ///   - path: The path, or an absolute URL, whose scheme may be `ws` or `wss`.
    ///   - subprotocols: The subprotocols that the program supports, in order of preference.
    ///   - options: The settings of each connection.
    ///   - reconnection: The delays between connections. The rules of event streams apply. A
    ///     message counts as an event, but the server cannot specify a reconnection time. Defaults
    ///     to `.reconnecting()`.
    ///   - maximumQueuedMessages: The number of messages that may wait in `send` for the next
    ///     connection. Defaults to 0: while the connection is not open, `send` throws
    ///     `WebServiceError.Code.webSocketNotOpen`.
    ///   - onOpen: A closure that is called with each connection before its first message, in a
    ///     separate Swift task, for example to subscribe. It sends over the socket that it
    ///     receives, because the messages of ``ReconnectingWebSocket/send(_:)-(String)`` wait until
    ///     it has returned. Messages that it does not read are delivered after it has returned.
    ///     From then on, reading from the socket throws `WebServiceError.Code.streamConsumed`. An
    ///     error of the closure is treated like one of the connection. If the closure does not
    ///     return within the `timeout` of the request, which defaults to 60 seconds, its task is
    ///     cancelled, and the connection fails with `URLError.timedOut`.
    ///   - configure: A closure that changes each request before it is sent.
    public func reconnectingWebSocket(
        _ path: String, subprotocols: [String] = [], options: WebSocket.Options = WebSocket.Options(),
        reconnection: ServerSentEvent.Reconnection = .reconnecting(), maximumQueuedMessages: Int = 0,
        onOpen: @escaping @Sendable (_ socket: WebSocket) async throws -> Void = { _ in },
        configuring configure: @escaping @Sendable (inout Request) -> Void = { _ in }
    ) -> ReconnectingWebSocket {
        let reconnections = Reconnections(of: request(.GET, path: Self.httpURL(path)), in: self, reconnection)
        let connections = SuccessiveConnections(
            reconnections, clock: taskClock, maximumUnreadBytes: max(options.bufferSize, 1),
            maximumQueuedMessages: max(maximumQueuedMessages, 0),
            open: { [self] in
                try await webSocket(path, subprotocols: subprotocols, options: options, configuring: configure)
            },
            prepare: { [taskClock] socket in try await socket.prepare(on: taskClock, onOpen) })
        connections.start()
        return ReconnectingWebSocket(connections, encoder, decoder)
    }
}

extension WebSocket {
    /// Calls a closure that prepares the connection, and ends the connection if the closure exceeds
    /// the timeout.
    fileprivate func prepare(
        on clock: TaskClock, _ onOpen: @escaping @Sendable (_ socket: WebSocket) async throws -> Void
    ) async throws {
        let isReady: Bool?
        do {
            isReady = try await clock.value(within: timeout) { [self] in
                try await onOpen(self)
                return true
            }
        } catch is CancellationError where Task.isCancelled {
            throw URLError(.cancelled)
        }
        guard isReady == nil else { return }
        let text = "onOpen exceeded the timeout of \(timeout); let it return earlier, or set a longer timeout"
        throw URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: text])
    }
}
