import Foundation
import WebServiceCore
import WebSocketCodec

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A connection whose handshake is complete.
struct OpenedConnection: Sendable {
    let bytes: any ByteConnection
    let agreement: WebSocketAgreement
    /// The bytes that followed the response.
    let rest: Data
    /// The exchange, which ends together with the connection.
    let task: HandshakeTask
}

/// The session of a handshake: it opens a connection, sends the request and receives the response.
///
/// The stages of the exchange treat it like any other session, so interceptors, cookies, redirects,
/// observers and the log apply to a handshake.
struct HandshakeSession: StreamingSession {
    let base: any Session
    let clock: TaskClock
    let subprotocols: [String]
    let compresses: Bool
    /// Receives the connection before the response is delivered.
    let didOpen: @Sendable (OpenedConnection) -> Void

    var responseSource: Response.Source { base.responseSource }

    func addsCredentials(to url: URL) -> Bool { base.addsCredentials(to: url) }

    func streamTask(request: any URLRequestEncodable, receiver: any BodyReceiver) -> any StreamTask {
        HandshakeTask(request, receiver, self)
    }
}

/// One handshake, and the connection that it opens.
final class HandshakeTask: StreamTask {
    private struct State {
        var phase: TaskPhase<any BodyReceiver>
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

    /// Has no effect: the exchange delivers no bytes.
    func receiveMore() {}

    func cancel() { complete(.failure(URLError(.cancelled))) }

    /// Completes the exchange, once. An error ends the connection.
    func complete(_ result: Result<Headers, any Error>) {
        let (receiver, state) = shared.withLock { state in
            let released = state
            (state.work, state.connection, state.alarm) = (nil, nil, nil)
            return (state.phase.complete().content, released)
        }
        guard let receiver else { return }
        if let alarm = state.alarm { session.clock.cancel(alarm) }
        if case .failure = result {
            state.work?.cancel()
            state.connection?.close()
        }
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
        let connection = try await base.connect(request)
        guard
            shared.withLock({ state in
                if state.phase.content != nil { state.connection = connection }
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
        let alarm = session.clock.schedule(after: timeout) { [weak self] in
            self?.complete(.failure(URLError(.timedOut)))
        }
        let isNeeded = shared.withLock { state in
            if state.phase.content != nil { state.alarm = alarm }
            return state.phase.content != nil
        }
        if !isNeeded { session.clock.cancel(alarm) }
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
                    throw failure(request, head, "the status of the response is \(head.status) instead of 101")
                }
                guard head.status == 101 else {
                    try receiver.didReceive(head, length: nil, decoder: nil)
                    continue
                }
                let agreement: WebSocketAgreement
                do { agreement = try handshake.agreement(status: head.status, headers: head.headers) } catch {
                    throw failure(request, head, "\(error)")
                }
                endHandshake()
                session.didOpen(
                    OpenedConnection(bytes: connection, agreement: agreement, rest: response.rest, task: self))
                return try receiver.didReceive(head, length: nil, decoder: nil)
            case .body(let data): _ = try data.withUnsafeBytes { try receiver.didReceive($0) }
            case .end: return complete(.success([:]))
            case nil:
                let bytes = try await connection.receive()
                guard bytes.isEmpty else {
                    response.append(bytes)
                    continue
                }
                if try response.finish() != nil { return complete(.success([:])) }
                throw URLError(.networkConnectionLost)
            }
        }
    }

    /// Releases what the open connection does not need. A completed Swift task retains its stack.
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

/// The request of a handshake as it is sent.
struct HandshakeHead {
    let fields: Headers
    private let target: Substring

    /// The fields of the handshake and `Host` replace those of the request.
    init(_ request: EncodedRequest, _ handshake: ClientHandshake, defaults: Headers) {
        let start = request.url.firstRange(of: "://")?.upperBound ?? request.url.startIndex
        let authority = request.url[start...].prefix { !"/?#".contains($0) }
        target = request.url[authority.endIndex...].prefix { $0 != "#" }
        let own = Headers([("Host", String(authority))]).adding(handshake.fields)
        fields = own.adding(request.headers).adding(defaults)
    }

    var bytes: Data {
        var text = "GET \(target.hasPrefix("/") ? "" : "/")\(target) HTTP/1.1\r\n"
        for field in fields.fields { text += "\(field.name): \(field.value)\r\n" }
        return Data((text + "\r\n").utf8)
    }
}
