import Foundation
import WebServiceCore
import WebServiceMocking

/// Scenarios of connections that fail and responses that are incomplete, which are always errors.
extension SessionScenario {
    static let faults: [SessionScenario] = [
        fault("a connection that is closed without a response is an error", .disconnect),
        fault("a connection that is reset before the head is an error", .reset(after: 0)),
        fault("a connection that is reset in the middle of the head is an error", .reset(after: 20)),
        fault("a connection that is reset in the middle of the body is an error", .reset(after: 50_000)),
        fault("a body that is shorter than its Content-Length is an error", .cut(after: 50_000)),
        raw(
            "a truncated chunk is an error",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n8\r\nport", gives: .broken),
        raw(
            "a chunked body without the last chunk is an error",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\n", gives: .broken),
        raw(
            "a chunk size that is not a number is an error",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nale\r\n0\r\n\r\n",
            gives: .broken),
        raw(
            "a chunk size that overflows an integer is an error",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nale\r\nfffffffffffffffff\r\nale\r\n0\r\n\r\n",
            gives: .broken),
        raw(
            "a chunk that is longer than its size is an error",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nporter\r\n0\r\n\r\n", gives: .broken),
        cuts("a head that is truncated at any offset is an error", withLength, ofHead: true),
        cuts(
            "a body with a Content-Length is complete or an error, wherever it is truncated", withLength,
            ofHead: false),
        cuts("a chunked body is complete or an error, wherever it is truncated", inChunks, ofHead: false),
    ]

    private static func fault(_ name: String, _ wire: MockResponse.Wire) -> SessionScenario {
        var response = MockResponse(statusCode: 200, data: bytes(100_000))
        response.wire = wire
        return one(name, response, gives: .broken)
    }

    private static let withLength = ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "ale")
    private static let inChunks = (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n2\r\nle\r\n0\r\n\r\n"
    )

    /// Truncates a response at every offset of its head, or at every offset of its body.
    private static func cuts(_ name: String, _ message: (head: String, body: String), ofHead: Bool) -> SessionScenario {
        let bytes = Data((message.head + message.body).utf8)
        let offsets = ofHead ? 0...(message.head.utf8.count - 1) : message.head.utf8.count...bytes.count
        let expectation: @Sendable (Int) -> ScenarioExpectation = { count in
            // The body is complete without the final line feed of the last chunk.
            if message == inChunks, count == bytes.count - 1 { return .either(.response(200, "ale"), .broken) }
            return count < bytes.count ? .broken : .response(200, "ale")
        }
        return SessionScenario(name) { stage in
            stage.serve { request in
                let count = Int(request.target.dropFirst()) ?? 0
                var response = MockResponse(statusCode: 200)
                response.wire = .raw(bytes.prefix(count))
                return ScenarioReply(response, mock: expectation(count).mockResult(headers: [:]))
            }
            for count in offsets {
                try stage.expect(
                    expectation(count), await stage.send(stage.request("/\(count)")),
                    "truncated after \(count) of \(bytes.count) bytes: ")
            }
        }
    }
}
