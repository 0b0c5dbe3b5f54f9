import Foundation
import WebServiceCore
import WebServiceMocking

/// Scenarios of the idle timeout, the maximum duration without any bytes.
extension SessionScenario {
    static let timeOuts: [SessionScenario] = [
        silence("silence before the head fails after the timeout of the request", .noResponse),
        silence("silence in the middle of the head fails after the timeout of the request", .stall(after: 12)),
        silence("silence in the middle of the body fails after the timeout of the request", .stall(after: 500)),
        SessionScenario("a response may take longer than the timeout if no pause reaches it") { stage in
            let body = bytes(1000)
            stage.serve { _ in
                var response = MockResponse(statusCode: 200, data: body)
                response.wire = .drip(size: 70, pause: .milliseconds(180))
                return ScenarioReply(response)
            }
            var request = stage.request()
            request.options.timeout = .seconds(2)
            let outcome = try await stage.send(request)
            try stage.expect(.response(200, body), outcome)
            guard stage.server != nil else { return }
            try stage.expect(
                outcome.elapsed > .seconds(2), "a response after more than 2 seconds",
                "a response after \(outcome.elapsed)")
        },
    ]

    private static func silence(_ name: String, _ wire: MockResponse.Wire) -> SessionScenario {
        SessionScenario(name) { stage in
            stage.serve { request in
                request.target == "/silent" ? .held(wire) : ScenarioReply(200, "next")
            }
            var request = stage.request("/silent")
            request.options.timeout = .milliseconds(300)
            let allowed = Duration.milliseconds(290)...(.milliseconds(300) + stage.limit / 10)
            var outcome = try await stage.send(request)
            // The attempt is repeated, because other processes can only add to the duration.
            for _ in 0..<2 where outcome.elapsed > allowed.upperBound { outcome = try await stage.send(request) }
            try stage.expect(.failure([.timedOut]), outcome)
            try stage.expect(
                allowed.contains(outcome.elapsed), "a failure after 0.3 seconds to \(allowed.upperBound)",
                "\(outcome.elapsed)")
            try stage.expect(.response(200, "next"), await stage.send(stage.request("/next")))
        }
    }
}
