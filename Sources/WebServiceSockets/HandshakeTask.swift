import Foundation
import WebServiceCore
import WebSocketCodec

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One handshake, and the connection that it opens.
final class HandshakeTask: StreamTask {
    /// The event that the handshake waits for.
    private enum Stage {
        /// The end of other connections of the session.
        case others
        case connection, response
        /// The rest of a response that refuses the handshake.
        case refusal
    }

    private struct State {
        var phase: TaskPhase<any BodyReceiver>
        var stage = Stage.connection
        var work: Task<Void, Never>?
        var connection: (any ByteConnection)?
        var alarm: Alarm?
    }

    private let request: any URLRequestEncodable
    private let session: HandshakeSession
    private let shared: Mutex<State>

    init(_ request: any URLRequestEncodable, _ receiver: any BodyReceiver, _ session: HandshakeSession) {
        self.request = request
        self.session = session
        shared = Mutex(State(phase: .suspended(receiver)))
    }

    var state: DataTaskState { shared.withLock { $0.phase.state } }

    func resume() {
        guard let receiver = shared.withLock({ $0.phase.resume() }) else { return }
        let work = Task(executorPreference: session.clock.executor) { [self] in
            do { try await open(for: receiver) } catch { complete(.failure(error)) }
        }
        let isNeeded = shared.withLock { state in
            if state.phase.content != nil { state.work = work }
            return state.phase.content != nil
        }
        if !isNeeded { work.cancel() }
    }

    func suspend() {}

    /// Has no effect, because the exchange does not wait for the receiver.
    func receiveMore() {}

    func cancel() { complete(.failure(URLError(.cancelled))) }

    /// Completes the exchange, once.
    ///
    /// - Parameter closesConnection: Whether to close the connection. The channel of an open
    ///   WebSocket closes its connection itself.
    func complete(_ result: Result<Headers, any Error>, closesConnection: Bool = true) {
        let (receiver, state) = shared.withLock { state in
            let released = state
            (state.work, state.connection, state.alarm) = (nil, nil, nil)
            return (state.phase.complete().content, released)
        }
        guard let receiver else { return }
        if let alarm = state.alarm { session.clock.cancel(alarm) }
        if case .failure = result { state.work?.cancel() }
        if closesConnection { state.connection?.close() }
        receiver.didComplete(result, metrics: metrics(of: state.connection))
    }

    private let sentFields = Mutex(Headers())

    private func metrics(of connection: (any ByteConnection)?) -> TransportMetrics? {
        guard var metrics = connection?.metrics else { return nil }
        metrics.networkProtocol = "HTTP/1.1"
        metrics.requestHeaders = sentFields.withLock { $0 }
        return metrics
    }

    // MARK: Opening

    private func open(for receiver: any BodyReceiver) async throws {
        let request = try EncodedRequest.encoding(request)
        guard let base = session.base as? any ConnectingSession else { throw unsupported(request) }
        var generator = SystemRandomNumberGenerator()
        let handshake: ClientHandshake
        do {
            handshake = try ClientHandshake(
                subprotocols: session.subprotocols, deflate: session.compresses ? DeflateParameters() : nil,
                using: &generator)
        } catch {
            throw WebServiceError(
                .invalidHeader, "a subprotocol is not a token or occurs twice; pass each token once", underlying: error)
        }
        limit(request.timeout)
        let connection = try await base.connect(request) { [weak self] waits in
            self?.shared.withLock { $0.stage = waits ? .others : .connection }
        }
        guard
            shared.withLock({ state in
                if state.phase.content != nil { (state.stage, state.connection) = (.response, connection) }
                return state.phase.content != nil
            })
        else { throw URLError(.cancelled) }
        let head = HandshakeHead(request, handshake, defaults: base.defaultHeaders)
        sentFields.withLock { $0 = head.fields }
        try await connection.send(head.bytes)
        try await receive(request, handshake, from: connection, for: receiver)
    }

    /// Ends a handshake that exceeds the timeout of the request.
    private func limit(_ timeout: Duration) {
        let alarm = session.clock.schedule(after: timeout) { [weak self] in self?.didTimeOut(timeout) }
        let isNeeded = shared.withLock { state in
            if state.phase.content != nil { state.alarm = alarm }
            return state.phase.content != nil
        }
        if !isNeeded { session.clock.cancel(alarm) }
    }

    private func didTimeOut(_ timeout: Duration) {
        let reason: String
        switch shared.withLock({ $0.stage }) {
        case .others:
            reason = "other connections of the session did not end; close them, or increase maximumWebSocketConnections"
        case .connection: reason = "no connection was established; check the address, or set a longer timeout"
        case .response: reason = "the server did not respond; set a longer timeout if it needs more time"
        case .refusal: return complete(.success([:]))
        }
        let text = "the handshake exceeded its timeout of \(timeout): \(reason)"
        complete(.failure(URLError(.timedOut, userInfo: [NSLocalizedDescriptionKey: text])))
    }

    private func receive(
        _ request: EncodedRequest, _ handshake: ClientHandshake, from connection: any ByteConnection,
        for receiver: any BodyReceiver
    ) async throws {
        var response = HandshakeResponse(url: request.url)
        while true {
            switch try response.next() {
            case .interim(let head): try receiver.didReceive(interim: head)
            case .head(let head):
                guard !(200..<300).contains(head.status) else {
                    throw failure(request, head, "the response has status \(head.status) instead of 101; check the URL")
                }
                guard head.status == 101 else {
                    try receiver.didReceive(head, length: nil, decoder: nil)
                    shared.withLock { $0.stage = .refusal }
                    let limit = min(Self.maximumRefusalBytes, request.source.options.bodyMaximum)
                    await receiveRefusal(&response, from: connection, for: receiver, limit)
                    return complete(.success([:]))
                }
                let agreement: WebSocketAgreement
                do { agreement = try handshake.agreement(status: head.status, headers: head.headers) } catch {
                    throw failure(request, head, "\(error)")
                }
                endHandshake()
                session.didOpen(
                    OpenedConnection(
                        bytes: connection, agreement: agreement, rest: response.rest, timeout: request.timeout,
                        task: self))
                return try receiver.didReceive(head, length: nil, decoder: nil)
            case .body, .end, nil:
                let bytes = try await connection.receive()
                guard !bytes.isEmpty else {
                    let text = "the server closed the connection before it responded to the handshake"
                    throw URLError(.networkConnectionLost, userInfo: [NSLocalizedDescriptionKey: text])
                }
                response.append(bytes)
            }
        }
    }

    /// The maximum size in bytes of the body of a response that refuses the handshake.
    private static let maximumRefusalBytes = 1 << 20

    /// Delivers the body of a response that refuses the handshake, up to a number of bytes.
    ///
    /// The status is the result of the handshake, so an error ends only the body.
    private func receiveRefusal(
        _ response: inout HandshakeResponse, from connection: any ByteConnection, for receiver: any BodyReceiver,
        _ limit: Int
    ) async {
        var rest = limit
        do {
            while rest > 0 {
                switch try response.next() {
                case .body(let data):
                    let part = data.prefix(rest)
                    rest -= part.count
                    _ = try part.withUnsafeBytes { try receiver.didReceive($0) }
                case nil:
                    let bytes = try await connection.receive()
                    if bytes.isEmpty { return }
                    response.append(bytes)
                case .interim, .head, .end: return
                }
            }
        } catch {}
    }

    /// Releases the objects that the open connection does not need. A completed Swift task retains
    /// its stack.
    private func endHandshake() {
        let alarm = shared.withLock { state in
            state.work = nil
            return state.alarm.take()
        }
        if let alarm { session.clock.cancel(alarm) }
    }

    private func unsupported(_ request: EncodedRequest) -> WebServiceError {
        WebServiceError(
            .webSocketUnsupported,
            "\(type(of: session.base)) does not support WebSocket; set a CurlSession as the session of the service",
            request: request.source)
    }

    private func failure(_ request: EncodedRequest, _ head: ResponseHead, _ message: String) -> WebServiceError {
        WebServiceError(
            .webSocketHandshake, "the handshake has failed: \(message)", request: request.source,
            response: Response(data: Data(), head: head, source: session.responseSource))
    }
}
