import Foundation
import WebServiceCore

/// One connection of a ``MockServer``, on a thread of its own: reads requests, has them answered, and writes the answers in order.
struct ServerConnection: Sendable {
    let number: Int
    let socket: Socket
    let answer: @Sendable (ReceivedRequest) -> MockResponse

    /// Serves the client until one side ends the connection; afterwards nothing more is sent, and the descriptor is still to be released.
    func serve() {
        switch converse() {
        case .close:
            linger()
            socket.disconnect()
        case .reset: socket.resetAtRelease()
        case .keepAlive, .disconnect, .silence: socket.disconnect()
        }
    }

    private func converse() -> ResponseMessage.Ending {
        var parser = RequestParser(connection: number)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            switch parser.next() {
            case nil:
                let count = socket.receive(into: &buffer)
                guard count > 0 else { return .disconnect }
                parser.append(buffer[..<count])
            case .continueExpected:
                guard socket.send(Data("HTTP/1.1 100 Continue\r\n\r\n".utf8)) else { return .disconnect }
            case .request(let request):
                let ending = send(answer(request), answering: request.head)
                if ending == .silence { while socket.receive(into: &buffer) > 0 {} }
                if ending != .keepAlive { return ending }
            case .violation(let violation):
                return send(MockResponse(statusCode: violation.status, text: violation.reason), answering: nil)
            }
        }
    }

    private func send(_ response: MockResponse, answering request: RequestHead?) -> ResponseMessage.Ending {
        do {
            let message = try response.message(answering: request)
            guard write(message) else { return .disconnect }
            response.surplus?(socket)
            return message.ending
        } catch {
            return send(MockResponse(statusCode: 500, text: "\(error)"), answering: request)  // a text that is always written
        }
    }

    /// - Returns: Whether all could be written.
    private func write(_ message: ResponseMessage) -> Bool {
        let size = message.drip?.size ?? max(message.bytes.count, 1)
        var rest = message.bytes[...]
        while !rest.isEmpty {
            guard socket.send(rest.prefix(size)) else { return false }
            rest = rest.dropFirst(size)
            if let pause = message.drip?.pause, !rest.isEmpty { socket.pause(for: pause) }
        }
        if let repetition = message.repetition, !repetition.isEmpty {
            while true {
                guard socket.send(repetition) else { return false }
            }
        }
        return true
    }

    /// Waits a while for the client to close its side: unread bytes would turn the end of the connection into a reset, which can
    /// take the response from the client (RFC 9112, section 9.6).
    private func linger() {
        socket.finishSending()
        socket.limitReceiving(seconds: 1)
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        let end = ContinuousClock.now + .seconds(5)
        while ContinuousClock.now < end, socket.receive(into: &buffer) > 0 {}
    }
}
