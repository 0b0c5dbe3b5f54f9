import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

/// Simulations of a server that responds in 10 ms on average, and delays 2 % of the responses by
/// one second.
///
/// The parameters of ``Hedging`` were selected with the first two distributions of
/// ``ServiceTimes``; the third one was not used before.
@Suite("Simulated late responses with hedging", .permit)
struct HedgingSimulationTests {
    private struct Run: Sendable {
        /// The response times, sorted.
        var times: [Duration]
        var requestsPerResponse: Double

        func percentile(_ share: Double) -> Duration { times[Int(share * Double(times.count))] }
    }

    private static let count = amount(1_000, thorough: 4_000)

    private func run(_ times: ServiceTimes, seed: UInt64, _ interceptors: [any Interceptor]) async -> Run {
        let server = SimulatedServer(
            ServerTimes(workers: 0, times, meanTime: .milliseconds(10), lateRatio: 0.02, seed: seed), seed: seed)
        server.mock.service.interceptors = interceptors
        let (clock, service) = (server.clock, server.mock.service)
        let responseTimes = await server.run {
            var responseTimes: [Duration] = []
            for _ in 0..<Self.count {
                let start = clock.elapsed
                _ = try? await service.GET("/beer").data().value  // the server always responds
                responseTimes.append(clock.elapsed - start)
            }
            return responseTimes.sorted()
        }
        return Run(times: responseTimes, requestsPerResponse: Double(server.times.requests) / Double(Self.count))
    }

    @Test(
        "With hedging, 99 % of the responses arrive within 100 ms, for at most 5 % more requests",
        arguments: ServiceTimes.allCases, sample([1, 2, 3] as [UInt64], every: 3))
    func lateResponses(times: ServiceTimes, seed: UInt64) async {
        let plain = await run(times, seed: seed, [])
        #expect(plain.percentile(0.99) >= .seconds(1))
        let hedged = await run(times, seed: seed, [.hedging()])
        #expect(hedged.percentile(0.99) <= .milliseconds(100), "\(hedged.percentile(0.99))")
        #expect(hedged.requestsPerResponse <= 1.05, "\(hedged.requestsPerResponse)")
        #expect(hedged.requestsPerResponse > 1.02)
        Plot.write("hedging-\(times)-\(seed)") {
            Plot(
                title: "Response times if 2 % are delayed by 1 s", x: "percentile", y: "ms",
                xScale: .percentiles, yScale: .logarithmic,
                lines: [("without hedging", plain), ("with hedging", hedged)].map { name, run in
                    Plot.Line(
                        name: name,
                        points: stride(from: 0.3, through: 3, by: 0.01).map { nines in
                            let share = 1 - pow(10, -nines)
                            return (share * 100, run.percentile(share) / .milliseconds(1))
                        })
                })
        }
    }

    @Test("The same seed gives the same decisions each time")
    func determinism() async {
        var first: [String]?
        for _ in 0..<amount(20, thorough: 1_000) {
            let server = SimulatedServer(
                ServerTimes(workers: 2, .exponential, meanTime: .milliseconds(10), lateRatio: 0.1, seed: 3), seed: 3)
            let service = server.mock.service
            service.interceptors = [.hedging(after: .fixed(.milliseconds(15)))]
            let decisions = await server.run {
                var decisions: [String] = []
                for _ in 0..<12 {
                    let task = service.GET("/beer").data()
                    _ = try? await task.value  // the server always responds
                    decisions.append(task.timeline.description)
                }
                return decisions
            }
            if let first, first != decisions { Issue.record("the decisions differ: \(decisions)") }
            first = decisions
        }
        #expect(first?.contains { $0.contains("second request") } == true)
    }
}
