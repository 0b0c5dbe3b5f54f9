import Foundation
import WebServiceCore
import WebServiceMocking

/// The framings of a correct response (RFC 9112).
extension SessionScenario {
    static let framings: [SessionScenario] = [
        reply("a body in chunks of one byte is delivered completely", .chunked(size: 1), 300),
        reply("a body in chunks of 10,007 bytes is delivered completely", .chunked(size: 10_007), 70_000),
        reply("an empty chunked body is delivered", .chunked(size: 1), 0),
        reply("a body that ends with the connection is delivered completely", .untilClose, 70_000),
        reply("a response in small pieces is delivered completely", .drip(size: 7, pause: .milliseconds(1)), 100),
        raw(
            "chunk extensions are ignored",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "3;a=b\r\nale\r\n00A; c=\"d\"\r\n0123456789\r\n0\r\n\r\n",
            gives: .response(200, "ale0123456789")),
        raw(
            "a chunked body with a trailer is delivered",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nale\r\n0\r\nX-Sum: 1\r\n\r\n",
            gives: .response(200, "ale")),
        raw(
            "an HTTP/1.0 response with a Content-Length is delivered",
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nale", gives: .response(200, "ale")),
        raw(
            "an HTTP/1.0 response without a Content-Length is delivered", "HTTP/1.0 200 OK\r\n\r\nale",
            gives: .response(200, "ale")),
        raw(
            "a 100 before the final response is skipped",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nale",
            gives: .response(200, "ale")),
        raw(
            "a 103 before the final response is skipped",
            "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nX-Brew: ale\r\nContent-Length: 3\r\n\r\nale",
            headers: ["X-Brew": "ale"], gives: .response(200, "ale")),
        raw(
            "several interim responses before the final response are skipped",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 A\r\nA: b\r\n\r\nHTTP/1.1 102 B\r\n\r\n"
                + "HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nale",
            gives: .response(404, "ale")),
        raw(
            "a status line without a reason phrase is accepted", "HTTP/1.1 200 \r\nContent-Length: 3\r\n\r\nale",
            gives: .response(200, "ale")),
        raw(
            "a header field without a space after the colon is accepted",
            "HTTP/1.1 200 OK\r\nContent-Length:3\r\nX-Brew:ale\r\n\r\nale",
            headers: ["X-Brew": "ale"], gives: .response(200, "ale")),
        raw(
            "header field names are case-insensitive", "HTTP/1.1 200 OK\r\ncONTENT-lENGTH: 3\r\nx-brew: ale\r\n\r\nale",
            headers: ["X-Brew": "ale"], gives: .response(200, "ale")),
    ]

    private static func reply(_ name: String, _ wire: MockResponse.Wire, _ size: Int) -> SessionScenario {
        SessionScenario(name) { stage in
            let body = bytes(size)
            stage.serve { _ in
                var response = MockResponse(statusCode: 200, data: body)
                response.wire = wire
                return ScenarioReply(response)
            }
            for _ in 0..<2 { try stage.expect(.response(200, body), await stage.send(stage.request())) }
        }
    }

    /// Returns a scenario of one response with the given bytes, and a valid response after it.
    static func raw(_ name: String, _ text: String, headers: Headers = [:], gives expected: ScenarioExpectation)
        -> SessionScenario
    {
        raw(name, Data(text.utf8), headers: headers, gives: expected)
    }

    /// Returns a scenario of one response with the given bytes, and a valid response after it.
    ///
    /// - Parameter headers: Fields that the response must contain.
    static func raw(_ name: String, _ bytes: Data, headers: Headers = [:], gives expected: ScenarioExpectation)
        -> SessionScenario
    {
        var response = MockResponse(statusCode: 200)
        response.wire = .raw(bytes)
        return one(name, response, headers: headers, gives: expected)
    }

    /// Returns a scenario of one response and a valid response after it.
    static func one(
        _ name: String, _ response: MockResponse, headers: Headers = [:], gives expected: ScenarioExpectation
    ) -> SessionScenario {
        SessionScenario(name) { stage in
            stage.serve { request in
                request.target == "/next"
                    ? ScenarioReply(200, "next") : ScenarioReply(response, mock: expected.mockResult(headers: headers))
            }
            let outcome = try await stage.send(stage.request())
            try stage.expect(expected, outcome)
            if outcome.error == nil {
                for field in headers { try stage.expect(field.name, outcome.header(field.name), is: field.value) }
            }
            try stage.expect(.response(200, "next"), await stage.send(stage.request("/next")), "the next request: ")
        }
    }
}
