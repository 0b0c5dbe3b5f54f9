import Foundation
import WebServiceCore

/// The longest body that a request allows (`Request.maximumResponseBytes`).
extension SessionScenario {
    static let limits: [SessionScenario] = [
        limit("a body of just the maximum is an answer", 1000, .fixedLength, gives: .answer(200, bytes(1000))),
        limit("a body in chunks of just the maximum is an answer", 1000, .chunked(size: 300), gives: .answer(200, bytes(1000))),
        limit("a body whose length is beyond the maximum is responseTooLarge", 1001, .fixedLength, gives: .tooLarge),
        limit("a body that is announced as too long is not waited for", 100_000, .stall(after: 2000), gives: .tooLarge),
        limit("a body in chunks beyond the maximum is responseTooLarge", 1001, .chunked(size: 300), gives: .tooLarge),
        limit("a body that ends with the connection and is beyond the maximum is responseTooLarge", 1001, .untilClose, gives: .tooLarge),
        endless("a body that never ends is responseTooLarge, and the connection is given up", chunk: 16_384),
        endless("a body of small chunks that never ends is responseTooLarge, and the connection is given up", chunk: 1000),
        SessionScenario("a body that is beyond the maximum only when it is decoded is responseTooLarge") { stage in
            serveGzip(bomb(blocks: 5000), mock: ScenarioExpectation.tooLarge.mockResult(headers: [:]), on: stage)
            var request = stage.request()
            request.maximumResponseBytes = 1_000_000
            let outcome = try await stage.send(request)
            let arrived = try stage.arrived(1)
            if stage.server == nil || asksForGzip(arrived) { try stage.expect(.tooLarge, outcome) }
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
            request.maximumResponseBytes = 1000
            try stage.expect(expected, await stage.send(request))
            try stage.expect(.answer(200, "next"), await stage.send(stage.request("/next")), "the next request: ")
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
            request.maximumResponseBytes = 1_000_000
            try stage.expect(.tooLarge, await stage.send(request))
            if let server = stage.server {
                try await stage.eventually("the connection ends") { server.openConnectionCount == 0 }
            }
            try stage.expect(.answer(200, "next"), await stage.send(stage.request("/next")), "the next request: ")
        }
    }
}
