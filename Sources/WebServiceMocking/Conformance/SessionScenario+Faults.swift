import Foundation
import WebServiceCore

/// Connections that break, and messages that are not whole: never an answer.
extension SessionScenario {
    static let faults: [SessionScenario] = [
        fault("a connection that is closed without an answer is an error", .disconnect),
        fault("a connection that is reset before the head is an error", .reset(after: 0)),
        fault("a connection that is reset in the middle of the head is an error", .reset(after: 20)),
        fault("a connection that is reset in the middle of the body is an error", .reset(after: 50_000)),
        fault("a body that is shorter than its length is an error", .cut(after: 50_000)),
        raw("a chunk that is cut is an error", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n8\r\nport", gives: .broken),
        raw("chunks without the last one are an error", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n", gives: .broken),
        raw(
            "a chunk whose size is no number is an error", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nale\r\n0\r\n\r\n",
            gives: .broken),
        raw(
            "a chunk whose size fits no integer is an error",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\nfffffffffffffffff\r\nale\r\n0\r\n\r\n", gives: .broken),
        raw(
            "a chunk that is longer than its size is an error",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nporter\r\n0\r\n\r\n", gives: .broken),
        cuts("an answer with a length is whole or an error, wherever it is cut", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale"),
        cuts(
            "an answer in chunks is whole or an error, wherever it is cut",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n0\r\n\r\n"),
    ]

    private static func fault(_ name: String, _ wire: MockResponse.Wire) -> SessionScenario {
        var response = MockResponse(statusCode: 200, data: bytes(100_000))
        response.wire = wire
        return one(name, response, gives: .broken)
    }

    private static func cuts(_ name: String, _ message: String) -> SessionScenario {
        let message = Data(message.utf8)
        @Sendable func expectation(_ count: Int) -> ScenarioExpectation { count < message.count ? .broken : .answer(200, "ale") }
        return SessionScenario(name) { stage in
            stage.serve { request in
                let count = Int(request.target.dropFirst()) ?? 0
                var response = MockResponse(statusCode: 200)
                response.wire = .raw(message.prefix(count))
                return ScenarioReply(response, mock: expectation(count).mockResult(headers: [:]))
            }
            for count in 0...message.count {
                try stage.expect(expectation(count), await stage.send(stage.request("/\(count)")), "cut after \(count) of \(message.count) bytes: ")
            }
        }
    }
}
