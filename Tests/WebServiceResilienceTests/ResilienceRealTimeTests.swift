#if WEBSERVICE_CURL
import Foundation
import TestSupport
import Testing
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCore
@testable import WebServiceResilience

/// The simulations over sockets, with wider bounds and lower rates, because the machine may be
/// busy. Tests with bounds of real time run only at full length: `HedgingSimulationTests`,
/// `LimitSimulationTests` and `OverloadSimulationTests` verify the same with a test clock.
@Suite("Resilience over sockets: real time", .exclusive)
struct ResilienceRealTimeTests {
    private static let reason: Comment = "bounds of real time are verified at full length"

    /// Returns a service whose server responds after the times of a model.
    private func service(_ times: ServerTimes, connections: Int = 64) throws -> WebService {
        let start = ContinuousClock.now
        let server = try MockServer.forTest { _ in .text("beer").after(times.next(at: start.duration(to: .now))) }
        var configuration = CurlSession.Configuration()
        (configuration.maximumConnections, configuration.maximumConnectionsPerHost) = (connections, connections)
        return WebService(server.baseURLString, session: try CurlSession(configuration: configuration))
    }

    /// Sends requests until an instant, each after the previous one, from a number of callers.
    private func send(_ service: WebService, callers: Int, for duration: Duration) async -> [Duration] {
        let end = ContinuousClock.now + duration
        return await withTaskGroup { group in
            for _ in 0..<callers {
                group.addTask {
                    var times: [Duration] = []
                    while ContinuousClock.now < end {
                        let start = ContinuousClock.now
                        _ = try? await service.GET("/beer").data().value  // the server always responds
                        times.append(start.duration(to: .now))
                    }
                    return times
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
    }

    @Test("Hedging shortens the late responses", .enabled(if: isThorough, Self.reason))
    func lateResponses() async throws {
        var (late, extra) = (Duration.seconds(60), Double.infinity)
        // Other processes may keep the processors busy, so the best of up to three runs counts.
        for _ in 0..<3 where late >= .milliseconds(500) || extra >= 1.1 {
            let times = ServerTimes(workers: 0, .exponential, meanTime: .milliseconds(10), lateRatio: 0.02, seed: 1)
            let service = try service(times)
            service.interceptors = [.hedging()]
            _ = await send(service, callers: 8, for: .seconds(2))  // measures the response times
            let before = times.requests
            let responses = await send(service, callers: 8, for: .seconds(3)).sorted()
            late = responses[responses.count * 99 / 100]
            extra = Double(times.requests - before) / Double(responses.count)
            print("99th percentile with hedging: \(late) of \(responses.count), requests per response: \(extra)")
        }
        #expect(late < .milliseconds(500))
        #expect(extra < 1.1)
    }

    @Test("The gradient settles near the number of workers", .enabled(if: isThorough, Self.reason))
    func gradient() async throws {
        var mean = 0.0
        // Other processes may keep the processors busy, so the best of up to three runs counts.
        for _ in 0..<3 where !(12...32).contains(mean) { mean = try await meanLimit() }
        #expect((12...32).contains(mean))
    }

    /// Returns the mean number of requests in flight for a server with 20 workers, after 5 seconds.
    private func meanLimit() async throws -> Double {
        let service = try service(ServerTimes(workers: 20, .exponential, meanTime: .milliseconds(60), seed: 2))
        let limiter = ConcurrencyLimiter(.gradient())
        service.interceptors = [limiter]
        async let responses = send(service, callers: 48, for: .seconds(10))
        var limits: [Int] = []
        let start = ContinuousClock.now
        while start.duration(to: .now) < .seconds(10) {
            try await Task.sleep(for: .milliseconds(20))
            if start.duration(to: .now) > .seconds(5) { limits.append(limiter.requestsInFlight) }
        }
        _ = await responses
        let mean = Double(limits.reduce(0, +)) / Double(limits.count)
        print("mean limit for 20 workers: \(mean)")
        return mean
    }

    @Test(
        "With the standard set, no call of a burst to a healthy server is refused",
        arguments: [200, 1_000])
    func burst(calls: Int) async throws {
        let server = try MockServer.forTest { _ in .text("beer").after(.milliseconds(20)) }
        let service = WebService(server.baseURLString, session: try CurlSession())
        service.interceptors = .standardResilience()
        let start = ContinuousClock.now
        let tasks = (0..<calls).map { service.GET("/\($0)").setDeadline(.seconds(30)).string().resume() }
        var failures: [any Error] = []
        for task in tasks {
            do { _ = try await task.value } catch { failures.append(error) }
        }
        print("\(calls) calls with the standard set: \(start.duration(to: .now)), \(failures.count) failures")
        #expect(failures.isEmpty, "\(failures.first.map { "\($0)" } ?? "")")
    }

    @Test(
        "Under three times its capacity, a server keeps its goodput with the standard set",
        .enabled(if: isThorough, Self.reason))
    func overload() async throws {
        var standard = 0.0
        // Other processes may keep the processors busy, so the best of up to three runs counts.
        for _ in 0..<3 where standard <= 0.7 { standard = max(standard, try await goodput(.standardResilience())) }
        let plain = try await goodput([])
        print("goodput relative to the capacity: \(standard) with the standard set, \(plain) without")
        #expect(standard > 0.7)
        #expect(plain < 0.5)
    }

    /// Sends three times as many requests as a server can process, and returns the ratio of its
    /// capacity that arrives within a second, after the first two seconds.
    private func goodput(_ interceptors: [any Interceptor]) async throws -> Double {
        let times = ServerTimes(workers: 5, .exponential, meanTime: .milliseconds(50), seed: 3)
        let service = try service(times, connections: 2_000)
        service.interceptors = interceptors
        let start = ContinuousClock.now
        let successes = await withTaskGroup { group in
            var number = 0
            while start.duration(to: .now) < .seconds(5) {
                number += 1
                group.addTask {
                    let isSuccess = (try? await service.GET("/beer").setDeadline(.seconds(1)).data().value) != nil
                    return isSuccess && (.seconds(2)..<(.seconds(5))).contains(start.duration(to: .now))
                }
                try? await Task.sleep(until: start + .microseconds(3_333) * number)  // never cancelled
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        return Double(successes) / 3 / 100
    }
}
#endif
