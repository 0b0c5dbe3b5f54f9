import TestSupport
import Testing

@testable import WebServiceResilience

/// Simulations of a server; see ``ServerModel``. Time is in round trips without a queue.
@Suite("Simulated servers with adaptive limits", .permit)
struct LimitSimulationTests {
    private static let seeds = sample([1, 2, 3] as [UInt64], every: 3)

    private func isClose(_ mean: Double, to workers: Int, within part: Double) -> Bool {
        abs(mean / Double(workers) - 1) <= part
    }

    @Test(
        "The gradient settles within 10 % of the number of workers", arguments: ServiceTimes.allCases,
        seeds)
    func gradientSettles(times: ServiceTimes, seed: UInt64) {
        for workers in [20, 40] {
            var server = ServerModel(.gradient(), times, seed: seed)
            server.run(workers: workers, until: 1_000)
            let mean = server.mean(from: 300, to: 1_000)
            #expect(isClose(mean, to: workers, within: 0.1), "the mean is \(mean)")
        }
    }

    @Test(
        "The gradient follows from 20 to 40 workers within 50 round trips",
        arguments: ServiceTimes.allCases, seeds)
    func gradientFollows(times: ServiceTimes, seed: UInt64) {
        var server = ServerModel(.gradient(), times, seed: seed)
        server.run(workers: 20, until: 500)
        server.run(workers: 40, until: 650)
        let arrival = server.limits.first { $0.time > 500 && $0.limit >= 36 }?.time ?? .infinity
        #expect(arrival <= 550)
        let mean = server.mean(from: 550, to: 650)
        #expect(isClose(mean, to: 40, within: 0.1), "the mean is \(mean)")
        Plot.write("limits-\(times)-\(seed)") {
            var other = ServerModel(.aimd(), times, seed: seed, queuePerWorker: 0.25)
            other.run(workers: 20, until: 500)
            other.run(workers: 40, until: 650)
            let lines = [("gradient", server.limits), ("AIMD", other.limits)].map { name, limits in
                Plot.Line(name: name, points: limits.map { ($0.time, Double($0.limit)) }, isStepped: true)
            }
            return Plot(
                title: "Adaptive limits for 20, then 40 workers", x: "round trips",
                y: "requests",
                lines: [Plot.Line(name: "workers", points: [(0, 20), (500, 40), (650, 40)], isStepped: true)] + lines)
        }
    }

    @Test(
        "The mean of AIMD over 100 round trips is within 25 % of the number of workers",
        arguments: ServiceTimes.allCases, seeds)
    func additiveIncreaseSettles(times: ServiceTimes, seed: UInt64) {
        for workers in [20, 40] {
            var server = ServerModel(.aimd(), times, seed: seed, queuePerWorker: 0.25)
            server.run(workers: workers, until: 300)
            for start in [100.0, 200] {
                let mean = server.mean(from: start, to: start + 100)
                #expect(isClose(mean, to: workers, within: 0.25), "the mean is \(mean)")
            }
            #expect(Double(server.rejected) < 0.02 * Double(server.served))
        }
    }

    @Test(
        "AIMD follows from 20 to 40 workers within 50 round trips", arguments: ServiceTimes.allCases,
        seeds)
    func additiveIncreaseFollows(times: ServiceTimes, seed: UInt64) {
        var server = ServerModel(.aimd(), times, seed: seed, queuePerWorker: 0.25)
        server.run(workers: 20, until: 200)
        server.run(workers: 40, until: 350)
        let mean = server.mean(from: 250, to: 350)
        #expect(isClose(mean, to: 40, within: 0.25), "the mean is \(mean)")
    }

    @Test("The same seed gives the same sequence of limits each time")
    func determinism() {
        for limit in [ConcurrencyLimit.aimd(), .gradient()] {
            var first: [Int]?
            for _ in 0..<amount(20, thorough: 1_000) {
                var server = ServerModel(limit, .exponential, seed: 5, queuePerWorker: 0.5)
                server.run(workers: 10, until: 24)
                let limits = server.limits.map(\.limit)
                if let first, first != limits { Issue.record("the sequence differs: \(limits)") }
                first = limits
            }
            #expect((first?.count ?? 0) > 2)
        }
    }
}
