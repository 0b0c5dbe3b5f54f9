import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

/// A server with a quota of 100 requests per 60 seconds and its clients.
@Suite("Simulation of limits that a server states", .permit)
struct ServerLimitSimulationTests {
    enum Load: CaseIterable {
        /// A request every 200 ms.
        case even
        /// 60 requests every 12 seconds.
        case bursts
    }

    enum Windows: CaseIterable {
        /// A window begins every 60 seconds.
        case fixed
        /// A window begins with the first request after the last one.
        case onDemand
    }

    /// The requests that the server accepted in each window, and those that it refused.
    private final class Server: Sendable {
        private struct State {
            var start = Duration.seconds(-23)
            var accepted = [0]
            var refused = 0
            var generator: SeededGenerator
        }

        private let clock: TestClock
        private let windows: Windows
        private let rounding: FloatingPointRoundingRule
        private let state: Mutex<State>

        init(_ clock: TestClock, _ windows: Windows, _ rounding: FloatingPointRoundingRule, seed: UInt64) {
            (self.clock, self.windows, self.rounding) = (clock, windows, rounding)
            state = Mutex(State(generator: SeededGenerator(seed: seed)))
        }

        var accepted: [Int] { state.withLock { $0.accepted } }
        var refused: Int { state.withLock { $0.refused } }

        /// Counts a request when it arrives; the response takes 20 to 500 ms.
        func respond() -> MockResponse {
            state.withLock { state in
                let now = clock.elapsed
                if now >= state.start + .seconds(60) {
                    while now >= state.start + .seconds(60) { state.start += .seconds(60) }
                    if windows == .onDemand { state.start = now }
                    state.accepted.append(0)
                }
                let used = state.accepted[state.accepted.count - 1]
                let isAccepted = used < 100
                if isAccepted { state.accepted[state.accepted.count - 1] += 1 } else { state.refused += 1 }
                let remaining = isAccepted ? 99 - used : 0
                let rest = (state.start + .seconds(60) - now).inSeconds.rounded(rounding)
                var response = MockResponse(statusCode: isAccepted ? 200 : 429)
                response.headers["RateLimit-Policy"] = #""default";q=100;w=60"#
                response.headers["RateLimit"] = "\"default\";r=\(remaining);t=\(Int(rest))"
                return response.after(.milliseconds(20 + Int(state.generator.next() % 480)))
            }
        }
    }

    @Test(
        "With three times the load, no request is refused after the first response, and 95 % of the quota are used",
        arguments: Load.allCases, Windows.allCases)
    func quota(load: Load, windows: Windows) async {
        let server = await run(load, windows, .up)
        #expect(server.refused == 0)
        #expect(isUsed(server.accepted), "\(server.accepted)")
    }

    @Test(
        "If the server rounds durations down, it refuses one request in all, and 95 % of the quota are used",
        arguments: Load.allCases, Windows.allCases)
    func roundedDown(load: Load, windows: Windows) async {
        let server = await run(load, windows, .down)
        #expect(server.refused <= 1)
        #expect(isUsed(server.accepted), "\(server.accepted)")
    }

    /// Returns whether each whole window was used to 95 %.
    private func isUsed(_ accepted: [Int]) -> Bool {
        let whole = accepted.dropFirst().dropLast()
        return whole.count >= 3 && whole.allSatisfy { $0 >= 95 }
    }

    /// Sends requests for five minutes.
    private func run(_ load: Load, _ windows: Windows, _ rounding: FloatingPointRoundingRule) async -> Server {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let server = Server(clock, windows, rounding, seed: 7)
        mock.on(.any) { _ in server.respond() }
        mock.service.interceptors = [.serverRateLimit(maximumWaiting: 10_000)]
        mock.service.options.deadline = .seconds(10_000)
        _ = mock.service.GET("first").data().validateNothing().resume()
        await clock.advance(by: .seconds(1))
        for _ in 0..<25 {
            for _ in 0..<60 {
                _ = mock.service.GET("a").data().validateNothing().resume()
                if load == .even { await clock.advance(by: .milliseconds(200)) }
            }
            if load == .bursts { await clock.advance(by: .seconds(12)) }
        }
        mock.service.cancelAll()
        return server
    }
}
