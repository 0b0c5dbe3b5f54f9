import Foundation
import WebServiceCore
import WebServiceMocking

/// Bytes without a request on a persistent connection (RFC 9112, section 6.3).
///
/// Such bytes are never the response to a later request.
extension SessionScenario {
    static let surplus: [SessionScenario] = [false, true].flatMap { isLater in
        [
            surplus(
                "a second response", evil, after: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale",
                expected: .response(200, "ale"), isLater: isLater),
            surplus(
                "a body after a 204", evil, after: "HTTP/1.1 204 No Content\r\n\r\n", expected: .response(204, ""),
                isLater: isLater),
            surplus(
                "a body after a 304", evil, after: "HTTP/1.1 304 Not Modified\r\nContent-Length: 49\r\n\r\n",
                expected: .response(304, ""), isLater: isLater),
            surplus(
                "data after the last chunk", evil,
                after: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n0\r\n\r\n",
                expected: .response(200, "ale"), isLater: isLater),
            surplus(
                "a partial response", evil.prefix(20),
                after: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale", expected: .response(200, "ale"),
                isLater: isLater),
        ]
    }

    private static let evil = Data("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil".utf8)

    /// Returns a scenario of bytes that follow a complete response.
    ///
    /// - Parameter isLater: Whether the server sends the bytes after the client has received the
    ///   response, instead of together with it.
    private static func surplus(
        _ name: String, _ surplus: Data, after message: String, expected: ScenarioExpectation, isLater: Bool
    ) -> SessionScenario {
        let sentence =
            "\(name) on a persistent connection is not the next response "
            + "when it arrives \(isLater ? "later" : "at once")"
        return SessionScenario(sentence, requiresSocket: true) { stage in
            let isReceived = ThreadSignal()
            let sent = Tally()
            stage.serve { request in
                guard request.target == "/surplus" else { return ScenarioReply(200, request.target) }
                var response = MockResponse(statusCode: 200)
                response.wire = .raw(Data(message.utf8) + (isLater ? Data() : surplus))
                response.surplus = { connection in
                    if isLater, isReceived.wait(milliseconds: 10_000) { _ = connection.write(surplus) }
                    sent.add()
                }
                return ScenarioReply(response)
            }
            for round in 1...5 {
                try stage.expect(
                    isLater ? expected : .either(expected, .broken), await stage.send(stage.request("/surplus")))
                isReceived.signal()
                let isSent = await sent.wait(for: round, limit: stage.limit)
                try stage.expect(isSent, "the surplus bytes are sent", "not sent within \(stage.limit)")
                for number in 0..<2 {
                    let target = "/\(round)/\(number)"
                    try stage.expect(
                        .response(200, target), await stage.send(stage.request(target)), "the next request: ")
                }
            }
        }
    }
}
