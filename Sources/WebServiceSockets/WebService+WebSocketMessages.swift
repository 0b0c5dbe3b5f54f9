import Foundation
public import WebServiceCore
import WebSocketCodec

extension WebService {
    /// Returns the messages of a WebSocket connection that is opened again when it is lost.
    ///
    /// ```swift
    /// let prices = service.webSocketMessages("/prices") { socket in
    ///     try await socket.send("subscribe")
    /// }
    /// for try await message in prices { show(message) }
    /// ```
    /// Reading the first message opens the connection. The connection is opened again after a
    /// transport error, after the server has closed it with any code, and after a handshake with
    /// one of the statuses 408, 425, 429, 500, 502, 503 and 504, but not before the time specified
    /// by `Retry-After`. Any other error ends the sequence. Messages of the server between two
    /// connections are lost.
    ///
    /// If the caller leaves the loop and releases the sequence, the connection is closed; see
    /// ``WebSocket``.
    ///
    /// - Parameters:
    ///   - path: The path, or an absolute URL, whose scheme may be `ws` or `wss`.
    ///   - subprotocols: The subprotocols that the program supports, in order of preference.
    ///   - options: The settings of each connection.
    ///   - reconnection: The delays between connections. The rules of event streams apply: a
    ///     message counts as an event, but the server cannot specify a reconnection time. Defaults
    ///     to `.reconnecting()`.
    ///   - onOpen: Called with each connection before its first message, for example to subscribe,
    ///     in a separate Swift task. Messages that it does not read are delivered when it has
    ///     returned. Its errors are treated as those of the connection. If it does not return
    ///     within the `timeout` of the request, which defaults to 60 seconds, its task is
    ///     cancelled, and the connection fails with `URLError.timedOut`.
    ///   - configure: Changes each request before it is sent.
    public func webSocketMessages(
        _ path: String, subprotocols: [String] = [], options: WebSocket.Options = WebSocket.Options(),
        reconnection: ServerSentEvent.Reconnection = .reconnecting(),
        onOpen: @escaping @Sendable (_ socket: WebSocket) async throws -> Void = { _ in },
        configuring configure: @escaping @Sendable (inout Request) -> Void = { _ in }
    ) -> WebSocket.Messages<WebSocketMessage> {
        let reconnections = Reconnections(of: request(.GET, path: Self.httpURL(path)), in: self, reconnection)
        let source = ReconnectingMessages(reconnections) { [self] in
            let socket = try await webSocket(path, subprotocols: subprotocols, options: options, configuring: configure)
            try await socket.prepare(on: taskClock, onOpen)
            return socket
        }
        return WebSocket.Messages(WebSocket.Iterations()) { try await source.next() }
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
        channel.abandon()
        let text = "onOpen exceeded the timeout of \(timeout); let it return earlier, or set a longer timeout"
        throw URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: text])
    }
}

/// The iteration over the messages of successive connections.
private final class ReconnectingMessages: Sendable {
    private struct State {
        var socket: WebSocket?
        var isBusy = false
        var end: Result<Void, any Error>?
    }

    private let reconnections: Reconnections
    private let open: @Sendable () async throws -> WebSocket
    private let state = Mutex(State())

    init(_ reconnections: Reconnections, open: @escaping @Sendable () async throws -> WebSocket) {
        self.reconnections = reconnections
        self.open = open
    }

    func next() async throws -> WebSocketMessage? {
        let isBusy = state.withLock { state in
            defer { state.isBusy = true }
            return state.isBusy
        }
        guard !isBusy else {
            throw WebServiceError(.streamConsumed, "the messages are already being read; use one iterator at a time")
        }
        defer { state.withLock { $0.isBusy = false } }
        if let end = state.withLock(\.end) {
            try end.get()
            return nil
        }
        do {
            let message = try await nextMessage()
            if message == nil { state.withLock { $0.end = .success(()) } }
            return message
        } catch {
            state.withLock { $0.end = .failure(error) }
            throw error
        }
    }

    private func nextMessage() async throws -> WebSocketMessage? {
        try reconnections.begin()
        while true {
            var failure: (any Error)?
            do {
                if let message = try await socket().channel.next() {
                    reconnections.didDeliver()
                    return message
                }
            } catch {
                failure = error
            }
            guard let delay = delay(after: failure) else {
                if let failure { throw failure }
                return nil
            }
            try await reconnections.sleep(for: delay)
        }
    }

    private func socket() async throws -> WebSocket {
        if let socket = state.withLock(\.socket) { return socket }
        let socket = try await open()
        state.withLock { $0.socket = socket }
        return socket
    }

    /// Ends a connection, and returns the delay before the next one.
    ///
    /// - Returns: `nil` if no connection follows.
    private func delay(after failure: (any Error)?) -> Duration? {
        let closed = state.withLock { $0.socket.take() }
        withExtendedLifetime(closed) {}
        // The predicate is not called for a cancellation.
        guard (failure as? URLError)?.code != .cancelled, !(failure is CancellationError) else { return nil }
        return reconnections.delay(after: failure, isTransient: Self.isTransient(failure))
    }

    private static func isTransient(_ error: (any Error)?) -> Bool {
        switch error {
        case nil: true
        case let error as WebServiceError: error.code == .webSocketClosed || error.transientStatus != nil
        default: error is URLError
        }
    }
}
