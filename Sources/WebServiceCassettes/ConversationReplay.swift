import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebSocketCodec

/// The server's end of a connection that replays a recorded exchange.
///
/// One state machine parses the frames of the client. Another one creates the frames of the server,
/// because the recorded Close frame replaces the one that the first state machine would send.
struct ConversationReplay: ~Copyable {
    private let exchange: Cassette.Exchange
    private let messages: [CassetteSession.Exchange.Message]
    private let player: CassettePlayer
    private let connection: MemoryConnection
    private var reader = WebSocketStateMachine(.server)
    private var writer = WebSocketStateMachine(.server)
    private var events = Queue<WebSocketEvent>()
    /// The number of messages that the client has sent.
    private var sentCount = 0

    init(_ exchange: Cassette.Exchange, _ player: CassettePlayer, over connection: MemoryConnection) {
        self.exchange = exchange
        self.player = player
        self.connection = connection
        messages = exchange.messages?.compactMap(\.message) ?? []
    }

    /// Replays the exchange until either endpoint closes the connection.
    ///
    /// - Throws: The error that ends the connection.
    mutating func run() async throws {
        guard let request = try await receiveRequest() else { return }
        try await connection.send(response(to: request))
        if exchange.messages != nil {
            try await replayMessages()
        } else if let error = exchange.urlError {
            throw error
        }
    }

    // MARK: Handshake

    private func receiveRequest() async throws -> ReceivedRequest? {
        var parser = RequestParser()
        while true {
            switch parser.next() {
            case .request(let request): return request
            case .violation, .continueExpected: return nil
            case nil:
                let bytes = try await connection.receive()
                if bytes.isEmpty { return nil }
                parser.append(bytes)
            }
        }
    }

    private func response(to request: ReceivedRequest) -> Data {
        guard let response = exchange.response, let status = response.status else { return Data() }
        var fields = response.fields
        if exchange.messages != nil, let key = request.headers["Sec-WebSocket-Key"].flatMap({ WebSocketKey($0) }) {
            fields["Sec-WebSocket-Accept"] = key.accept
        }
        if status != 101 {
            fields.remove("Transfer-Encoding")
            // An interrupted response is shorter than its head specifies.
            fields[.contentLength] = String(response.body.count + (exchange.error == nil ? 0 : 1))
        }
        var head = "HTTP/1.1 \(status) \r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        return Data((head + "\r\n").utf8) + (status == 101 ? Data() : response.body)
    }

    // MARK: Messages

    private mutating func replayMessages() async throws {
        for message in messages {
            switch (message.content, message.isReceived) {
            case (.message(let message), true):
                try writer.send(message)
                try await flush()
            case (.close(let closure), true):
                try await close(closure)
                // The client responds with a Close frame, which follows the messages that it has
                // sent in the meantime.
                while let event = try await next() { if case .closed = event { return } }
                return
            case (.message(let message), false): guard try await expect(message) else { return }
            case (.close, false): guard try await expect(nil) else { return }
            }
        }
        if let error = exchange.urlError { throw error }
        _ = try await expect(nil)
    }

    /// Waits for a message from the client, or for its Close frame if no message is expected.
    ///
    /// - Returns: Whether the client continues. A client may end a conversation early.
    private mutating func expect(_ expected: WebSocketMessage?) async throws -> Bool {
        switch try await next() {
        case .message(let message)?:
            sentCount += 1
            if let error = player.mismatch(expected, sent: message, number: sentCount, in: exchange) { throw error }
            return true
        case .closed(let closure)?:
            try await respond(to: closure)
            return false
        case .failed(let violation)?:
            throw WebServiceError(.cassetteMismatch, "the sent frames cannot be compared: \(violation)")
        case .ping?, .pong?, nil: return false
        }
    }

    /// Sends the recorded Close frame. If none was recorded, throws the recorded error, or sends a
    /// Close frame with the client's code if there is none.
    private mutating func respond(to closure: WebSocketClosure?) async throws {
        for message in messages where message.isReceived {
            if case .close(let recorded) = message.content { return try await close(recorded) }
        }
        if let error = exchange.urlError { throw error }
        try await close(closure.map { WebSocketClosure($0.code) })
    }

    private mutating func close(_ closure: WebSocketClosure?) async throws {
        guard let closure else { return try await connection.send(Data([0x88, 0x00])) }
        try writer.close(closure.code, reason: closure.reason)
        try await flush()
    }

    private mutating func flush() async throws {
        while let bytes = writer.takeOutput() { try await connection.send(bytes) }
    }

    /// Returns the next message or Close frame from the client, or `nil` at the end. Responds to
    /// pings.
    private mutating func next() async throws -> WebSocketEvent? {
        while true {
            if let event = events.popFirst() { return event }
            let bytes = try await connection.receive()
            if bytes.isEmpty { return nil }
            for event in reader.receive(bytes) {
                switch event {
                case .ping, .pong: break
                case .message, .closed, .failed: events.append(event)
                }
            }
            if reader.phase == .open, let pongs = reader.takeOutput() { try await connection.send(pongs) }
        }
    }
}
