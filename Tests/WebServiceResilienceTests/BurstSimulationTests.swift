import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

/// Bursts of calls that start at the same instant, to servers of several kinds.
@Suite("Simulated bursts with the standard set", .permit)
struct BurstSimulationTests {
    /// The numbers of calls by their results.
    private struct Totals {
        var succeeded = 0
        var refused = 0
        var circuitOpen = 0
        var deadline = 0
        var failed = 0
        /// The lowest limit of concurrent requests that the calls recorded.
        var lowestLimit = Int.max

        mutating func add(_ result: Result<Data, any Error>) {
            switch (result, (result.error as? WebServiceError)?.code) {
            case (.success, _): succeeded += 1
            case (_, .concurrencyLimitExceeded): refused += 1
            case (_, .circuitOpen): circuitOpen += 1
            case (_, .deadline): deadline += 1
            default: failed += 1
            }
        }
    }

    private static let bursts = isThorough ? [1, 20, 200, 1_000] : [1, 20, 200]

    private func run(_ server: BurstServer.Kind, calls: Int, _ interceptors: [any Interceptor]) async -> Totals {
        let clock = TestClock(seed: UInt64(calls))
        let mock = MockService(clock: clock)
        let model = BurstServer(server, seed: UInt64(calls) + 7)
        mock.on(.any) { request in model.response(to: request, at: clock.elapsed) }
        mock.service.interceptors = interceptors
        mock.service.options.deadline = server.deadline
        let tasks = (0..<calls).map { mock.service.GET(server.url($0)).data().resume() }
        await clock.advance(by: server.deadline)
        var totals = Totals()
        for task in tasks {
            totals.add(await task.result)
            for event in task.timeline.events where event.kind == .concurrencyLimit {
                let limit = event.detail.split(separator: " ").last.flatMap { Int($0) } ?? 0
                totals.lowestLimit = min(totals.lowestLimit, limit)
            }
        }
        return totals
    }

    @Test(
        "No call that a server could serve in time is refused, and a failing server does not lower the limit",
        arguments: BurstServer.Kind.allCases)
    func bursts(server: BurstServer.Kind) async {
        var rows: [String] = []
        for calls in Self.bursts {
            let standard = await run(server, calls: calls, .standardResilience())
            let plain = await run(server, calls: calls, [.retry()])
            func goodput(_ totals: Totals) -> Double? {
                server.possible(calls).map { Double(totals.succeeded) / $0 }
            }
            func percent(_ totals: Totals) -> String { goodput(totals).map { "\(Int(($0 * 100).rounded())) %" } ?? "–" }
            let results = [
                standard.succeeded, standard.refused, standard.circuitOpen, standard.deadline, standard.failed,
            ]
            rows.append(
                "| \(server.rawValue) | \(calls) | \(results.map(String.init).joined(separator: " | ")) | "
                    + "\(percent(standard)) | \(plain.succeeded) | \(plain.deadline) | \(percent(plain)) |")
            let row: Comment = "\(rows.last ?? "")"
            switch server {
            case .fast, .slow, .slowStart:
                #expect(standard.succeeded == calls, row)
                #expect(standard.lowestLimit >= 20, row)
            case .failing1, .failing20, .failing66, .twoUpstreams:
                #expect(standard.refused == 0, row)
                #expect(standard.deadline == 0, row)
                #expect(standard.lowestLimit >= 20, row)
                if server == .twoUpstreams { #expect(goodput(standard) == 1, row) }
            case .overloaded: #expect(goodput(standard) ?? 0 >= 0.9, row)
            case .blackHole: #expect(standard.succeeded == 0, row)
            }
        }
        Plot.writeTable("bursts-\(BurstServer.Kind.allCases.firstIndex(of: server) ?? 0)", rows)
    }
}

/// A server that responds to the calls of a burst.
final class BurstServer: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        case fast = "healthy, 20 ms"
        case slow = "healthy, 1 s"
        case failing1 = "fails 1 % within 2 ms"
        case failing20 = "fails 20 % within 2 ms"
        case failing66 = "fails 66 % within 2 ms"
        case overloaded = "overloaded, 20 × 100 ms"
        case blackHole = "no response"
        case slowStart = "starts after 3 s, 20 ms"
        case twoUpstreams = "two servers, one fails"

        var deadline: Duration {
            switch self {
            case .fast, .overloaded: .seconds(2)
            case .failing1, .failing20, .failing66, .slowStart, .twoUpstreams: .seconds(10)
            case .slow, .blackHole: .seconds(30)
            }
        }

        fileprivate var failures: Double {
            switch self {
            case .failing1: 0.01
            case .failing20: 0.2
            case .failing66: 0.66
            default: 0
            }
        }

        /// The number of calls that can succeed with three attempts, on average; `nil` if none can.
        func possible(_ calls: Int) -> Double? {
            switch self {
            case .blackHole: nil
            case .overloaded: Double(min(calls, 400))
            case .twoUpstreams: Double((calls + 1) / 2)
            default: Double(calls) * (1 - failures * failures * failures)
            }
        }

        func url(_ call: Int) -> String { self == .twoUpstreams && call % 2 == 1 ? "https://b.test/x" : "/x" }
    }

    private let kind: Kind
    private let generator: Mutex<SeededGenerator>
    private let workers: ServerTimes

    init(_ kind: Kind, seed: UInt64) {
        self.kind = kind
        generator = Mutex(SeededGenerator(seed: seed))
        workers = ServerTimes(workers: 20, .exponential, meanTime: .milliseconds(100), seed: seed)
    }

    func response(to request: ReceivedRequest, at now: Duration) -> MockResponse {
        let (number, time) = generator.withLock { ($0.unit(), ServiceTimes.exponential.next(&$0)) }
        if number < kind.failures || kind == .twoUpstreams && request.url?.host == "b.test" {
            return MockResponse(statusCode: 503).after(.milliseconds(1 + number))
        }
        let beer = MockResponse.text("beer")
        switch kind {
        case .slow: return beer.after(.seconds(1) * time)
        case .overloaded: return beer.after(workers.next(at: now))
        case .blackHole: return beer.after(.seconds(100_000))
        case .slowStart: return beer.after(max(.seconds(3) - now, .zero) + .milliseconds(20) * time)
        default: return beer.after(.milliseconds(20) * time)
        }
    }
}

extension Result {
    fileprivate var error: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
