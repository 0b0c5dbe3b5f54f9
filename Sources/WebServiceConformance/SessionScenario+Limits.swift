import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The maximum length of response bodies (`Request.Options.maximumResponseBytes`).
extension SessionScenario {
    static let limits: [SessionScenario] = [
        limit(
            "a body of exactly the maximum length is delivered", 1000, .fixedLength,
            gives: .response(200, bytes(1000))),
        limit(
            "a chunked body of exactly the maximum length is delivered", 1000, .chunked(size: 300),
            gives: .response(200, bytes(1000))),
        limit(
            "a body whose Content-Length exceeds the maximum is responseTooLarge", 1001, .fixedLength,
            gives: .tooLarge),
        limit(
            "a Content-Length that exceeds the maximum fails before the body has arrived", 100_000, .stall(after: 2000),
            gives: .tooLarge),
        limit(
            "a chunked body that exceeds the maximum is responseTooLarge", 1001, .chunked(size: 300), gives: .tooLarge),
        limit(
            "a body that ends with the connection and exceeds the maximum is responseTooLarge", 1001, .untilClose,
            gives: .tooLarge),
        endless("an endless body is responseTooLarge, and its connection is closed", chunk: 16_384),
        endless("an endless body of small chunks is responseTooLarge, and its connection is closed", chunk: 1000),
        SessionScenario("a body that exceeds the maximum only after decoding is responseTooLarge") { stage in
            serveGzip(bomb(blocks: 5000), mock: ScenarioExpectation.tooLarge.mockResult(headers: [:]), on: stage)
            var request = stage.request()
            request.options.maximumResponseBytes = 1_000_000
            let outcome = try await stage.send(request)
            let arrived = try stage.arrived(1)
            if stage.server == nil || acceptsGzip(arrived) { try stage.expect(.tooLarge, outcome) }
        },
    ]

    private static func limit(
        _ name: String, _ size: Int, _ wire: MockResponse.Wire, gives expected: ScenarioExpectation
    ) -> SessionScenario {
        SessionScenario(name) { stage in
            stage.serve { request in
                guard request.target != "/next" else { return ScenarioReply(200, "next") }
                var response = MockResponse(statusCode: 200, data: bytes(size))
                response.wire = wire
                return ScenarioReply(response)
            }
            var request = stage.request()
            request.options.maximumResponseBytes = 1000
            try stage.expect(expected, await stage.send(request))
            try stage.expect(.response(200, "next"), await stage.send(stage.request("/next")), "the next request: ")
        }
    }

    private static func endless(_ name: String, chunk: Int) -> SessionScenario {
        SessionScenario(name) { stage in
            stage.serve { request in
                guard request.target != "/next" else { return ScenarioReply(200, "next") }
                var response = MockResponse(statusCode: 200, data: bytes(chunk))
                response.wire = .endless
                return ScenarioReply(response, mock: ScenarioExpectation.tooLarge.mockResult(headers: [:]))
            }
            var request = stage.request()
            request.options.maximumResponseBytes = 1_000_000
            try stage.expect(.tooLarge, await stage.send(request))
            if let server = stage.server {
                try await stage.eventually("the connection ends") { server.openConnectionCount == 0 }
            }
            try stage.expect(.response(200, "next"), await stage.send(stage.request("/next")), "the next request: ")
        }
    }
}
