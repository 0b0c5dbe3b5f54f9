import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The longest silence that a request allows.
extension SessionScenario {
    static let timeOuts: [SessionScenario] = [
        silence("silence before the head ends when the time-out of the request is over", .noAnswer),
        silence("silence in the middle of the head ends when the time-out of the request is over", .stall(after: 12)),
        silence("silence in the middle of the body ends when the time-out of the request is over", .stall(after: 500)),
        SessionScenario("an answer may take longer than the time-out, as long as it is never silent for so long") { stage in
            let body = bytes(1000)
            stage.serve { _ in
                var response = MockResponse(statusCode: 200, data: body)
                response.wire = .drip(size: 130, pause: .milliseconds(180))
                return ScenarioReply(response)
            }
            var request = stage.request()
            request.timeout = 1
            let outcome = try await stage.send(request)
            try stage.expect(.answer(200, body), outcome)
            guard stage.server != nil else { return }
            try stage.expect(outcome.elapsed > .seconds(1), "an answer that takes more than a second", "one after \(outcome.elapsed)")
        },
    ]

    private static func silence(_ name: String, _ wire: MockResponse.Wire) -> SessionScenario {
        SessionScenario(name) { stage in
            stage.serve { request in
                request.target == "/silent" ? .held(wire) : ScenarioReply(200, "next")
            }
            var request = stage.request("/silent")
            request.timeout = 0.3
            let outcome = try await stage.send(request)
            try stage.expect(.failure([.timedOut]), outcome)
            let allowed = Duration.milliseconds(290)...Duration.milliseconds(1300)
            try stage.expect(allowed.contains(outcome.elapsed), "the end after 0.3 to 1.3 seconds", "\(outcome.elapsed)")
            try stage.expect(.answer(200, "next"), await stage.send(stage.request("/next")))
        }
    }
}
