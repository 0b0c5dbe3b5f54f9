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
        let ending = converse(with: client)
        switch ending {
        case .halfClose, .silence:
            if ending == .halfClose { socket.finishSending() }
            var buffer = [UInt8](repeating: 0, count: 4 << 10)
            while socket.receive(into: &buffer) > 0 {}
            socket.disconnect()
        case .close:
            linger()
            socket.disconnect()
        case .reset: socket.resetAtRelease()
        case .keepAlive, .disconnect: socket.disconnect()
        }
    }

    private func converse(with client: ReceivedRequest.ClientCertificate?) -> ResponseMessage.Ending {
        var parser = RequestParser(connection: number, limits: limits)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            switch parser.next() {
            case nil:
                if let ending = ending(afterBodyBytes: parser.bodyByteCount) { return ending }
                if let ending = earlyEnding(&parser) { return ending }
                let count = socket.receive(into: &buffer)
                guard count > 0 else { return .disconnect }
                parser.append(buffer[..<count])
            case .continueExpected:
                guard let head = parser.pendingHead, case .none = early(head) else { continue }
                guard socket.send(Data("HTTP/1.1 100 Continue\r\n\r\n".utf8)) else { return .disconnect }
            case .request(var request):
                (request.isSecure, request.clientCertificate) = (socket.tls != nil, client)
                if let ending = ending(afterBodyBytes: request.body.count) ?? earlyEnding(&parser) { return ending }
                var response = respond(request) { !socket.isDisconnected }
                if let upgrade = response.upgrade as? MockResponse.WebSocketUpgrade {
                    let (result, agreement) = response.handshakeResponse(to: request, upgrade)
                    if let agreement {
                        return serve(request, agreement, upgrade, with: result, after: parser.rest)
                    }
                    response = result
                }
                let ending = send(response, to: request.head)
                if ending != .keepAlive { return ending }
            case .violation(let violation):
                if let ending = earlyEnding(&parser) { return ending }
                return send(MockResponse(statusCode: violation.status, text: violation.reason), to: nil)
            }
        }
    }

    /// Sends the early response to a request with a body, once its header is complete.
    ///
    /// - Returns: The ending of the connection; `nil` if there is no early response.
    private func earlyEnding(_ parser: inout RequestParser) -> ResponseMessage.Ending? {
        guard let head = parser.takePendingHead(), case .response(let response) = early(head) else { return nil }
        let ending = send(response, to: head)
        return ending == .keepAlive ? .close : ending
    }

    /// Serves a WebSocket connection until it ends.
    private func serve(
        _ request: ReceivedRequest, _ agreement: WebSocketAgreement, _ upgrade: MockResponse.WebSocketUpgrade,
        with response: MockResponse, after bytes: Data
    ) -> ResponseMessage.Ending {
        guard send(response, to: request.head) == .keepAlive else { return .disconnect }
        let connection = SocketConnection(socket)
        let client = MockWebSocket(request, agreement, upgrade, over: connection, .system, bytes: bytes)
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
            response.surplus?(SocketOutput(socket, isChunked: false))
            return message.ending
        } catch {
            // This response is always valid.
            return send(MockResponse(statusCode: 500, text: "\(error)"), to: request)
        }
    }

    /// Writes a message to the connection, up to its limit.
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
            let output = SocketOutput(socket, isChunked: isChunked, limit: message.limit)
            let writer = MockResponse.BodyWriter(output)
            do {
                switch body {
                case .writer(let write): try write(writer)
                case .chunks(let chunks): try chunks.write(to: writer)
                }
            } catch {
                return output.isAtLimit
            }
            return output.send(message.end) || output.isAtLimit
        }
        if let repetition = message.repetition, !repetition.isEmpty {
            while true {
                guard socket.send(repetition) else { return false }
            }
        }
        return true
    }

    /// Waits for the client to close its side, for about 5 seconds, or until it sends nothing for 1
    /// second.
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
package final class SocketOutput: BodyOutput {
    package let socket: Socket
    private let isChunked: Bool
    /// The number of bytes that may still be sent.
    private let rest: Mutex<Int>

    init(_ socket: Socket, isChunked: Bool, limit: Int = .max) {
        (self.socket, self.isChunked) = (socket, isChunked)
        rest = Mutex(limit)
    }

    /// Whether the limit has been reached. ``write(_:)`` then returns `false`.
    var isAtLimit: Bool { rest.withLock { $0 == 0 } }

    package func write(_ data: Data) -> Bool { send(isChunked ? data.chunk : data) }

    /// Sends bytes without framing, up to the limit.
    ///
    /// - Returns: Whether more bytes can be sent.
    func send(_ data: Data) -> Bool {
        let part = rest.withLock { rest in
            defer { rest -= min(rest, data.count) }
            return data.prefix(rest)
        }
        return socket.send(part) && !isAtLimit
    }

    package func pause(for duration: Duration) { socket.pause(for: duration) }
    package var isDisconnected: Bool { socket.isDisconnected }
}
