import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

/// Simulations of a server with 20 workers and 100 ms per request, so that it can process 200
/// requests per second, and of a client that sends 600 per second and needs each response within
/// two seconds.
@Suite("Simulated overload with the standard set", .permit(minutes: 10))
struct OverloadSimulationTests {
    private struct Run: Sendable {
        /// The responses within two seconds, by the second in which they arrived.
        var goodput = Array(repeating: 0, count: Self.seconds + 3)
        var requests = 0
        var retries = 0

        static let seconds = amount(9, thorough: 15)
        static let capacity = 200.0

        /// The mean goodput after the first five seconds, relative to the capacity.
        var share: Double {
            let range = 5..<Self.seconds
            return Double(goodput[range].reduce(0, +)) / Double(range.count) / Self.capacity
        }
    }

    private final class Totals: Sendable {
        let run = Mutex(Run())
    }

    private static func send(_ service: WebService, _ clock: TestClock, _ totals: Totals) async {
        let task = service.GET("/beer").setDeadline(.seconds(2)).data()
        let isSuccess = (try? await task.value) != nil  // failures are counted
        let second = Int(clock.elapsed / .seconds(1))
        let retries = task.timeline.events.count { $0.kind == .retry }
        totals.run.withLock { run in
            run.requests += 1
            run.retries += retries
            if isSuccess { run.goodput[second] += 1 }
        }
    }

    private func run(_ times: ServiceTimes, seed: UInt64, _ interceptors: [any Interceptor]) async -> Run {
        let server = SimulatedServer(
            ServerTimes(workers: 20, times, meanTime: .milliseconds(100), seed: seed), seed: seed)
        let (clock, service) = (server.clock, server.mock.service)
        service.interceptors = interceptors
        let totals = Totals()
        return await server.run {
            var generator = SeededGenerator(seed: seed + 100)
            await withDiscardingTaskGroup { group in
                var next = Duration.zero
                while next < .seconds(Run.seconds) {
                    next += .milliseconds(1_000 / 600.0) * ServiceTimes.exponential.next(&generator)
                    if next > clock.elapsed { try? await clock.sleep(for: next - clock.elapsed) }  // never cancelled
                    group.addTask(executorPreference: clock.executor) {
                        await Self.send(service, clock, totals)
                    }
                }
            }
            return totals.run.withLock { $0 }
        }
    }

    @Test(
        "Under three times its capacity, a server keeps 90 % of its goodput only with the standard set",
        arguments: sample(ServiceTimes.allCases, every: 3))
    func overload(times: ServiceTimes) async {
        // The requests of one seed may take longer than the mean time on which the capacity is
        // based, so the mean of several seeds counts.
        var shares: [Double] = []
        for seed in UInt64(1)...UInt64(amount(1, thorough: 3)) { shares.append(await share(times, seed: seed)) }
        #expect(shares.reduce(0, +) / Double(shares.count) >= 0.9, "\(shares)")
    }

    /// Expects that the standard set retries little, and that the server collapses without it.
    ///
    /// - Returns: The goodput with the standard set, relative to the capacity.
    private func share(_ times: ServiceTimes, seed: UInt64) async -> Double {
        let standard = await run(times, seed: seed, .standardResilience())
        #expect(Double(standard.retries) <= 0.1 * Double(standard.requests))
        let plain = await run(times, seed: seed, [.retry()])
        #expect(plain.share <= 0.2, "\(plain.share)")
        Plot.write("overload-\(times)-\(seed)") {
            Plot(
                title: "Responses in time at three times the capacity", x: "seconds", y: "responses per second",
                lines: [("retries only", plain), ("standard set", standard)].map { name, run in
                    Plot.Line(
                        name: name,
                        points: (0..<Run.seconds).map { (Double($0), Double(run.goodput[$0])) }, isStepped: true)
                })
        }
        return standard.share
    }
}
