import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Adaptive limits of a ConcurrencyLimiter", .permit)
struct ConcurrencyLimitRecordTests {
    private let clock = TestClock()

    /// Sends requests at the same time. Each takes 100 ms unless the mock specifies otherwise.
    private func send(
        _ count: Int, _ limiter: ConcurrencyLimiter, _ mock: MockService
    ) async -> [TypedTask<Data>] {
        mock.service.interceptors = [limiter]
        let tasks = (0..<count).map { mock.service.GET("/\($0)").data().validateNothing().resume() }
        await mock.clock?.advance(by: .seconds(60))
        for task in tasks { _ = await task.result }
        return tasks
    }

    /// The changes of the limit, in the order in which they occurred.
    private func changes(_ tasks: [TypedTask<Data>]) -> [String] {
        tasks.flatMap { task in task.timeline.events.filter { $0.kind == .concurrencyLimit } }
            .sorted { $0.start < $1.start }
            .map(\.detail)
    }

    private func mock(_ clock: TestClock, _ response: MockResponse) -> MockService {
        let mock = MockService(clock: clock)
        mock.on(.any, response.after(.milliseconds(100)))
        return mock
    }

    @Test("An overload lowers the limit once per round trip, which the timeline explains")
    func overload() async throws {
        let tasks = await send(10, ConcurrencyLimiter(.aimd(initial: 10)), mock(clock, 429))
        #expect(changes(tasks) == ["lowered from 10 to 7"])
        let explanations = tasks.map { $0.timeline.explain() }
        #expect(explanations.contains { $0.contains("limit: lowered from 10 to 7.") })
    }

    @Test("A wait is recorded with its duration")
    func wait() async throws {
        let tasks = await send(2, ConcurrencyLimiter(.fixed(1)), mock(clock, 200))
        let waits = tasks.flatMap { $0.timeline.events.filter { $0.kind == .wait } }
        #expect(waits.map(\.detail) == ["for the concurrency limit"])
        #expect(waits.map(\.duration) == [.milliseconds(100)])
    }

    @Test("While the limit is in use, it grows by one per round trip")
    func growth() async throws {
        let tasks = await send(9, ConcurrencyLimiter(.aimd(initial: 2)), mock(clock, 200))
        #expect(changes(tasks) == ["raised from 2 to 3", "raised from 3 to 4"])
    }

    @Test("Failures of the server do not raise the limit")
    func failures() async throws {
        let tasks = await send(9, ConcurrencyLimiter(.aimd(initial: 2)), mock(clock, 500))
        #expect(changes(tasks) == [])
    }

    @Test(
        "Status 429 and server errors with Retry-After are overloads, unless a closure decides otherwise",
        arguments: [
            (429, false, true), (503, true, true), (503, false, false), (500, false, false), (529, true, true),
            (301, true, false),
        ])
    func statuses(status: Int, hasRetryAfter: Bool, isOverload: Bool) async throws {
        var response = MockResponse(statusCode: status)
        if hasRetryAfter { response.headers["Retry-After"] = "1" }
        let tasks = await send(4, ConcurrencyLimiter(.aimd(initial: 10)), mock(TestClock(), response))
        #expect(changes(tasks).isEmpty == !isOverload)
        let limiter = ConcurrencyLimiter(.aimd(initial: 10), isOverload: { (try? $0.get().status) == 529 })
        let others = await send(4, limiter, mock(TestClock(), MockResponse(statusCode: status)))
        #expect(changes(others).isEmpty == (status != 529))
    }

    @Test("A timeout is an overload; other errors and a cancellation do not change the limit")
    func errors() async throws {
        for (code, count) in [(URLError.Code.timedOut, 1), (.cannotConnectToHost, 0), (.cancelled, 0)] {
            let mock = mock(TestClock(), .error(URLError(code)))
            let tasks = await send(4, ConcurrencyLimiter(.aimd(initial: 10)), mock)
            #expect(changes(tasks).count == count)
        }
    }

    @Test("A streamed response gives its permit back at its head")
    func stream() async throws {
        let mock = MockService(clock: clock)
        mock.on(.any, MockResponse(statusCode: 200, data: Data("body".utf8)))
        let limiter = ConcurrencyLimiter(.fixed(1))
        mock.service.interceptors = [limiter]
        let stream = try await mock.service.GET("/a").stream().value
        await eventually { limiter.requestsInFlight == 0 }
        let second = try await mock.service.GET("/b").stream().value
        #expect(try await stream.body.collect(upTo: 100) == Data("body".utf8))
        #expect(try await second.body.collect(upTo: 100) == Data("body".utf8))
    }

    @Test("With a retry policy before it, a limiter counts each attempt")
    func attempts() async throws {
        let mock = MockService(clock: clock)
        mock.on(.any, [503, 503, 200])
        let limiter = ConcurrencyLimiter(.fixed(1))
        mock.service.interceptors = [.retry(maximumAttempts: 3), limiter]
        let task = mock.service.GET("/a").data().resume()
        await clock.advance(by: .seconds(60))
        #expect(try await task.response.status == 200)
        #expect(limiter.requestsInFlight == 0)
    }

    @Test("The same seed gives the same changes of the limit")
    func determinism() async throws {
        for limit in [ConcurrencyLimit.aimd(initial: 6), .gradient(initial: 6)] {
            var runs: Set<[String]> = []
            for _ in 0..<3 { runs.insert(changes(await run(limit, seed: 3))) }
            #expect(runs.count == 1)
            #expect(runs.first?.isEmpty == false)
        }
    }

    /// Sends 300 requests, one per millisecond, with random delays and some overloads.
    private func run(_ limit: ConcurrencyLimit, seed: UInt64) async -> [TypedTask<Data>] {
        let clock = TestClock(seed: seed)
        let mock = MockService(clock: clock)
        var generator = SeededGenerator(seed: seed)
        let delays = (0..<300).map { _ in
            Duration.nanoseconds(Int64.random(in: 20_000_000..<200_000_000, using: &generator))
        }
        mock.on(.any) { request in
            let number = request.url.flatMap { Int($0.lastPathComponent) } ?? 0
            return MockResponse(statusCode: number % 50 == 49 ? 429 : 200).after(delays[number])
        }
        mock.service.interceptors = [ConcurrencyLimiter(limit)]
        var tasks: [TypedTask<Data>] = []
        for number in 0..<300 {
            tasks.append(mock.service.GET("/\(number)").data().validateNothing().resume())
            await clock.advance(by: .milliseconds(1))
        }
        await clock.advance(by: .seconds(60))
        for task in tasks { _ = await task.result }
        return tasks
    }
}
