import Foundation
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Resuming and cancelling tasks.
extension SessionScenario {
    static let lifecycles: [SessionScenario] = [
        SessionScenario("a request is sent once, when its task is first resumed") { stage in
            let exchange = try stage.begin(stage.request("/once"))
            try stage.expect("state before", exchange.task?.state == .suspended, is: true)
            try stage.expect(.response(200, ""), await stage.send(stage.request("/other")))
            try stage.expect("requests", stage.requests.map(\.target), is: ["/other"])
            try stage.expect("completions before resume", exchange.completionCount, is: 0)
            for _ in 0..<3 { exchange.resume() }
            try stage.expect(.response(200, ""), await stage.outcome(of: exchange))
            try await stage.eventually("the state is completed") { exchange.task?.state == .completed }
            exchange.resume()
            try stage.expect(.response(200, ""), await stage.send(stage.request("/other")))
            try stage.expect("requests", stage.requests.map(\.target), is: ["/other", "/once", "/other"])
            try stage.expect("completions", exchange.completionCount, is: 1)
        },
        SessionScenario("a task cancelled before resume() completes once as cancelled and sends nothing") { stage in
            let exchange = try stage.begin(stage.request("/cancelled"))
            exchange.cancel()
            exchange.resume()
            exchange.cancel()
            try stage.expect(.failure([.cancelled]), await stage.outcome(of: exchange))
            try stage.expect(.response(200, ""), await stage.send(stage.request("/other")))
            try stage.expect("requests", stage.requests.map(\.target), is: ["/other"])
            try stage.expect("completions", exchange.completionCount, is: 1)
        },
        cancel("a task cancelled while it waits for the head completes once as cancelled", .held()),
        cancel("a task cancelled in the middle of the head completes once as cancelled", .held(.stall(after: 12))),
        cancel("a task cancelled in the middle of the body completes once as cancelled", .held(.stall(after: 500))),
        SessionScenario("a task cancelled after its response completes once with the response") { stage in
            stage.serve { _ in ScenarioReply(200, "ale") }
            let exchange = try stage.begin(stage.request())
            exchange.resume()
            try stage.expect(.response(200, "ale"), await stage.outcome(of: exchange))
            exchange.cancel()
            exchange.cancel()
            try stage.expect(.response(200, "ale"), await stage.send(stage.request()))
            try stage.expect("completions", exchange.completionCount, is: 1)
        },
        SessionScenario(
            "500 tasks cancelled at random times complete once each, with their own response or as cancelled"
        ) { stage in
            try await cancelAtRandom(stage)
        },
        SessionScenario("a request that cannot be encoded fails with its own error and is not sent") { stage in
            for (request, code) in [
                (Request(.GET, url: "no url"), WebServiceError.Code.invalidURL),
                (stage.request("/", "NO METHOD"), .invalidMethod),
            ] {
                let exchange = stage.begin(encoded: request)
                exchange.resume()
                let outcome = try await stage.outcome(of: exchange)
                try stage.expect(
                    (outcome.error as? WebServiceError)?.code == code, "the error \(code)", outcome.description)
            }
            try stage.expect("requests", stage.requests.count, is: 0)
        },
    ]

    /// Returns a scenario of a task that is cancelled while it waits for bytes that never arrive.
    private static func cancel(_ name: String, _ reply: ScenarioReply) -> SessionScenario {
        SessionScenario(name) { stage in
            stage.serve { $0.target == "/held" ? reply : ScenarioReply(200, "next") }
            let exchange = try stage.begin(stage.request("/held"))
            exchange.resume()
            try await stage.arrival(1)
            // During this exchange, the first bytes of the held response can arrive.
            try stage.expect(.response(200, "next"), await stage.send(stage.request("/next")))
            let start = ContinuousClock.now
            exchange.cancel()
            exchange.cancel()
            try stage.expect(.failure([.cancelled]), await stage.outcome(of: exchange))
            let elapsed = start.duration(to: .now)
            try stage.expect(elapsed < stage.limit, "a completion within \(stage.limit)", "\(elapsed)")
            try stage.expect(.response(200, "next"), await stage.send(stage.request("/next")))
            try stage.expect("completions", exchange.completionCount, is: 1)
        }
    }

    private static func cancelAtRandom(_ stage: ScenarioStage) async throws {
        stage.serve { request in
            var response = MockResponse(statusCode: 200, data: Data(request.target.utf8))
            if request.number.isMultiple(of: 4) { response.wire = .drip(size: 20, pause: .milliseconds(1)) }
            return ScenarioReply(response)
        }
        var random: UInt64 = 48  // the same in every run (Knuth's linear congruential generator)
        for wave in 0..<10 {
            let exchanges = try (0..<50).map { try stage.begin(stage.request("/\(wave)/\($0)")) }
            for (number, exchange) in exchanges.enumerated() {
                random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let choice = random >> 60
                if choice < 2 { exchange.cancel() }
                exchange.resume()
                if choice < 6 { exchange.cancel() }
                if choice > 9, number > 8 { exchanges[number - Int(choice - 8)].cancel() }
            }
            for (number, exchange) in exchanges.enumerated() {
                let allowed = ScenarioExpectation.either(.response(200, "/\(wave)/\(number)"), .failure([.cancelled]))
                try stage.expect(allowed, await stage.outcome(of: exchange))
            }
        }
    }
}
