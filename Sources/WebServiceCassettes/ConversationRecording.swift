import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebSocketCodec

/// A connection that forwards bytes, and records the handshake and the messages.
final class RecordingConnection: ByteConnection {
    private let connection: any ByteConnection
    private let recording: ConversationRecording

    init(_ connection: any ByteConnection, _ recording: ConversationRecording) {
        self.connection = connection
        self.recording = recording
    }

    var metrics: TransportMetrics { connection.metrics }

    func receive() async throws -> Data {
        do {
            let bytes = try await connection.receive()
            recording.didReceive(bytes)
            return bytes
        } catch {
            recording.didFail(error)
            throw error
        }
    }

    func send(_ bytes: Data) async throws {
        do { try await connection.send(recording.willSend(bytes)) } catch {
            recording.didFail(error)
            throw error
        }
    }

    func close() { connection.close() }
}

/// A record of the messages that were sent and received over a connection.
///
/// Two state machines, whose output is not used, parse the frames of both directions. A message is
/// recorded before it is sent or delivered to the client, so each message follows the messages that
/// caused it.
final class ConversationRecording: Sendable {
    static let maximumMessageCount = 10_000
    static let maximumByteCount = 16 << 20

    fileprivate struct State: ~Copyable {
        /// The key of the request; `nil` until the request has been sent.
        var key: WebSocketKey?
        var parser: HandshakeResponse
        var response: CassetteRecorder.Result.Response?
        var error: URLError?
        /// Whether the response accepts the handshake.
        var isAccepted = false
        /// Whether the server may end the connection without an error.
        var isComplete = false
        var sent: WebSocketStateMachine
        var received: WebSocketStateMachine
        var messages: [CassetteSession.Exchange.Message] = []
        var byteCount = 0
        /// The reason why the conversation cannot be recorded.
        var problem: String?
    }

    private let state: Mutex<State>

    /// - Parameter url: The URL of the request.
    init(url: String) {
        var options = WebSocketOptions()
        options.limits.maximumFrameLength = Self.maximumByteCount
        options.limits.maximumMessageLength = Self.maximumByteCount
        options.limits.maximumFragmentCount = .max
        state = Mutex(
            State(
                parser: HandshakeResponse(url: url), sent: WebSocketStateMachine(.server, options),
                received: WebSocketStateMachine(.client, options)))
    }

    /// The exchange so far; `nil` if there was no response and no error.
    var result: CassetteRecorder.Result? {
        state.withLock { state -> CassetteRecorder.Result? in
            if let problem = state.problem { return .unrecordable(problem) }
            guard var response = state.response else { return state.error.map { .failure($0) } }
            response.error = state.error
            response.length = Int64(response.body.count)
            if state.isAccepted { response.messages = state.messages }
            return .response(response)
        }
    }

    /// Returns the bytes to send instead of the given ones. The first bytes are those of the
    /// request.
    ///
    /// A recording offers no extensions, because messages are recorded without compression.
    func willSend(_ bytes: Data) -> Data {
        state.withLock { state -> Data in
            guard state.key == nil else {
                state.readSent(bytes)
                return bytes
            }
            let (request, key) = Self.request(bytes)
            state.key = key
            return request
        }
    }

    private static func request(_ bytes: Data) -> (Data, WebSocketKey?) {
        var parser = RequestParser()
        parser.append(bytes)
        guard case .request(let request) = parser.next() else { return (bytes, nil) }
        var fields = request.headers
        fields.remove("Sec-WebSocket-Extensions")
        var text = "\(request.method.rawValue) \(request.target) HTTP/1.1\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        return (Data((text + "\r\n").utf8), fields["Sec-WebSocket-Key"].flatMap { WebSocketKey($0) })
    }

    func didReceive(_ bytes: Data) {
        state.withLock { state in
            if bytes.isEmpty { return state.finish() }
            if state.isAccepted { return state.readReceived(bytes) }
            state.parser.append(bytes)
            do { try state.parseResponse() } catch { state.end(error) }
        }
    }

    func didFail(_ error: any Error) { state.withLock { $0.end(error) } }
}

extension ConversationRecording.State {
    fileprivate mutating func parseResponse() throws {
        while let event = try parser.next() {
            switch event {
            case .interim: break
            case .head(let head):
                response = CassetteRecorder.Result.Response(head: head)
                isAccepted =
                    head.status == 101 && key.map { head.values(for: "Sec-WebSocket-Accept") == [$0.accept] } == true
                if isAccepted { readReceived(parser.rest) }
            case .body(let bytes): response?.body.append(bytes)
            case .end: isComplete = true
            }
        }
    }

    fileprivate mutating func readSent(_ bytes: Data) {
        for event in sent.receive(bytes) { record(event, isReceived: false) }
    }

    fileprivate mutating func readReceived(_ bytes: Data) {
        for event in received.receive(bytes) { record(event, isReceived: true) }
    }

    private mutating func record(_ event: WebSocketEvent, isReceived: Bool) {
        guard problem == nil else { return }
        switch event {
        case .ping, .pong: break
        case .message(let message):
            byteCount += message.byteCount
            messages.append(.init(isReceived: isReceived, content: .message(message)))
        case .closed(let closure):
            if isReceived { isComplete = true }
            messages.append(.init(isReceived: isReceived, content: .close(closure)))
        case .failed(.frameTooLarge), .failed(.messageTooLarge): byteCount = .max
        case .failed(let violation):
            problem =
                "contains a violation of the WebSocket protocol by the \(isReceived ? "server" : "client"): "
                + "\(violation)"
        }
        let limits = (
            messages: ConversationRecording.maximumMessageCount, bytes: ConversationRecording.maximumByteCount
        )
        if messages.count > limits.messages {
            problem = "has a conversation of more than \(limits.messages) messages; close the connection earlier"
        }
        if byteCount > limits.bytes {
            problem = "has a conversation of more than \(limits.bytes) bytes; close the connection earlier"
        }
        if problem != nil { messages = [] }
    }

    /// Records the end of the received bytes.
    fileprivate mutating func finish() {
        // The end of the connection may also be the end of a body.
        do { if try parser.finish() != nil { isComplete = true } } catch { return end(error) }
        end(URLError(.networkConnectionLost))
    }

    /// Records an error, unless the connection was allowed to end or the client ended it.
    fileprivate mutating func end(_ reason: any Error) {
        guard !isComplete, let reason = reason as? URLError, reason.code != .cancelled else { return }
        isComplete = true
        error = reason
    }
}
