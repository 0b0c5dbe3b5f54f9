package import Foundation
import WebServiceCore
import WebServiceMocking
import WebSocketCodec

/// One connection of a ``MockServer``, which reads requests and writes the responses in order.
///
/// ``serve()`` runs on a dedicated thread.
struct ServerConnection: Sendable {
    let number: Int
    let socket: Socket
    let fault: MockServer.ConnectionFault?
    var limits = RequestParser.Limits()
    let respond: @Sendable (_ request: ReceivedRequest, _ isNeeded: () -> Bool) -> MockResponse
    let early: @Sendable (RequestHead) -> EarlyRoute

    /// Serves the client until either side ends the connection. The caller releases the descriptor.
    func serve() {
        switch fault {
        case .disconnect: return socket.disconnect()
        case .reset: return socket.resetAtRelease()
        case .noRead:
            socket.waitForDisconnect()
            return socket.disconnect()
        case .disconnectInBody, .resetInBody, nil: break
        }
        guard socket.acceptTLS() else { return socket.disconnect() }
        let client = socket.tls?.clientCertificate.map {
            ReceivedRequest.ClientCertificate(subject: $0.subject, der: $0.der)
        }
        switch converse(with: client) {
        case .halfClose:
            socket.finishSending()
            var buffer = [UInt8](repeating: 0, count: 4 << 10)
            while socket.receive(into: &buffer) > 0 {}
            socket.disconnect()
        case .close:
            linger()
            socket.disconnect()
        case .reset: socket.resetAtRelease()
        case .keepAlive, .disconnect, .silence: socket.disconnect()
        }
    }

    private func converse(with client: ReceivedRequest.ClientCertificate?) -> ResponseMessage.Ending {
        var parser = RequestParser(connection: number, limits: limits)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            switch parser.next() {
            case nil:
                if let ending = ending(afterBodyBytes: parser.bodyByteCount) { return ending }
                if let head = parser.takeIncompleteHead(), case .response(let response) = early(head) {
                    let ending = send(response, to: head)
                    return ending == .keepAlive ? .close : ending
                }
                let count = socket.receive(into: &buffer)
                guard count > 0 else { return .disconnect }
                parser.append(buffer[..<count])
            case .continueExpected:
                guard let head = parser.incompleteHead, case .none = early(head) else { continue }
                guard socket.send(Data("HTTP/1.1 100 Continue\r\n\r\n".utf8)) else { return .disconnect }
            case .request(var request):
                (request.isSecure, request.clientCertificate) = (socket.tls != nil, client)
                if let ending = ending(afterBodyBytes: request.body.count) { return ending }
                var response = respond(request) { !socket.isDisconnected }
                if let upgrade = response.upgrade as? MockResponse.WebSocketUpgrade {
                    let (result, agreement) = response.handshakeResponse(to: request, upgrade)
                    if let agreement {
                        return serve(request, agreement, upgrade, with: result, after: parser.rest)
                    }
                    response = result
                }
                let ending = send(response, to: request.head)
                if ending == .silence { while socket.receive(into: &buffer) > 0 {} }
                if ending != .keepAlive { return ending }
            case .violation(let violation):
                return send(MockResponse(statusCode: violation.status, text: violation.reason), to: nil)
            }
        }
    }

    /// Serves a WebSocket connection until it ends.
    private func serve(
        _ request: ReceivedRequest, _ agreement: WebSocketAgreement, _ upgrade: MockResponse.WebSocketUpgrade,
        with response: MockResponse, after bytes: Data
    ) -> ResponseMessage.Ending {
        guard send(response, to: request.head) == .keepAlive else { return .disconnect }
        let connection = SocketConnection(socket)
        let client = MockWebSocket(request, agreement, over: connection, .system, bytes: bytes)
        let script = Task { await client.run(upgrade.script) }
        connection.serve()
        script.cancel()
        return .disconnect
    }

    /// Returns the ending that the connection's fault causes within the body of a request; `nil`
    /// for none.
    private func ending(afterBodyBytes count: Int?) -> ResponseMessage.Ending? {
        switch (fault, count) {
        case (.disconnectInBody(let limit), let count?) where count >= limit: .disconnect
        case (.resetInBody(let limit), let count?) where count >= limit: .reset
        default: nil
        }
    }

    private func send(_ response: MockResponse, to request: RequestHead?) -> ResponseMessage.Ending {
        do {
            let message = try response.message(to: request)
            if response.delay > .zero { socket.pause(for: response.delay) }
            guard write(message) else { return .disconnect }
            response.surplus?(SocketOutput(socket: socket, isChunked: false))
            return message.ending
        } catch {
            // This response is always valid.
            return send(MockResponse(statusCode: 500, text: "\(error)"), to: request)
        }
    }

    /// Writes a message to the connection.
    ///
    /// - Returns: Whether all bytes were written.
    private func write(_ message: ResponseMessage) -> Bool {
        let size = message.drip?.size ?? max(message.bytes.count, 1)
        var rest = message.bytes[...]
        while !rest.isEmpty {
            guard socket.send(rest.prefix(size)) else { return false }
            rest = rest.dropFirst(size)
            if let pause = message.drip?.pause, !rest.isEmpty { socket.pause(for: pause) }
        }
        if let (isChunked, body) = message.producer {
            let writer = MockResponse.BodyWriter(SocketOutput(socket: socket, isChunked: isChunked))
            do {
                switch body {
                case .writer(let write): try write(writer)
                case .chunks(let chunks): try chunks.write(to: writer)
                }
            } catch {
                return false
            }
            return socket.send(message.end)
        }
        if let repetition = message.repetition, !repetition.isEmpty {
            while true {
                guard socket.send(repetition) else { return false }
            }
        }
        return true
    }

    /// Waits up to 5 seconds for the client to close its side.
    ///
    /// If unread bytes remained, closing the socket would reset the connection, and the client
    /// could lose the response (RFC 9112, section 9.6).
    private func linger() {
        socket.finishSending()
        socket.limitReceiving(seconds: 1)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        let end = ContinuousClock.now + .seconds(5)
        while ContinuousClock.now < end, socket.receive(into: &buffer) > 0 {}
    }
}

/// The body of a response on a connection of a ``MockServer``.
package struct SocketOutput: BodyOutput {
    package let socket: Socket
    let isChunked: Bool

    package func write(_ data: Data) -> Bool { socket.send(isChunked ? data.chunk : data) }
    package func pause(for duration: Duration) { socket.pause(for: duration) }
    package var isDisconnected: Bool { socket.isDisconnected }
}
