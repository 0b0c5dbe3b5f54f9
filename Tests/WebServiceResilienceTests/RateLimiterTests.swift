import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

@Suite("RateLimiter", .permit)
struct RateLimiterTests {
    private let session = HandSession(text: "x")
    private let clock = ManualTimekeeper()

    private func service(_ session: any Session, _ limiter: RateLimiter) -> WebService {
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [limiter]
        return service
    }

    /// Resumes a task and returns when its request was sent or waits.
    private func start(
        _ path: String, _ service: WebService, _ limiter: RateLimiter, _ session: HandSession
    ) async -> TypedTask<Data> {
        let before = limiter.waitingRequests + session.exchanges.values.count
        let task = service.GET(path).data().resume()
        await eventually { limiter.waitingRequests + session.exchanges.values.count > before }
        return task
    }

    /// Waits until all tasks but the last ones have ended, and the first of these waits for the clock.
    private func settle(_ tasks: [TypedTask<Data>], waiting count: Int) async throws {
        for task in tasks.dropLast(count) { _ = try await task.value }
        await eventually("the first request waits") { clock.pending == (count > 0 ? count + 1 : 0) }
    }

    private func paths(_ session: HandSession) -> [String] {
        session.exchanges.values.compactMap { $0.request.urlRequestValue.url?.lastPathComponent }
    }

    @Test("Requests beyond a full bucket are sent one per interval, in the order of their arrival")
    func order() async throws {
        let limiter = RateLimiter(2, per: .seconds(1))
        let service = service(session, limiter)
        var tasks: [TypedTask<Data>] = []
        for path in ["a", "b", "c", "d", "e"] { tasks.append(await start(path, service, limiter, session)) }
        #expect(paths(session) == ["a", "b"])
        #expect(limiter.waitingRequests == 3)
        try await settle(tasks, waiting: 3)
        for (count, path) in ["c", "d", "e"].enumerated() {
            clock.advance(by: .milliseconds(499))
            #expect(session.exchanges.values.count == 2 + count)
            clock.advance(by: .milliseconds(1))
            await session.exchanges.wait(for: 3 + count)
            #expect(paths(session).last == path)
            try await settle(tasks, waiting: 2 - count)
            #expect(limiter.waitingRequests == 2 - count)
        }
        for task in tasks { #expect(try await task.value == Data("x".utf8)) }
        let waits = tasks.map { $0.timeline.events.filter { $0.kind == .wait }.compactMap(\.duration) }
        #expect(waits == [[], [], [.milliseconds(500)], [.seconds(1)], [.milliseconds(1_500)]])
    }

    @Test(
        "A request that would wait until its deadline fails at once, and a retry then has the result of the attempt")
    func lateRequests() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.on(.any, .status(503))
        mock.service.interceptors = [.rateLimit(1, per: .seconds(10))]
        _ = try await mock.service.GET("/").data().validateNothing().value
        let tasks = [9, 15, 19, 25].map { mock.service.GET("/").setDeadline(.seconds($0)).data().validateNothing() }
        for task in tasks {  // one after another, because requests that are resumed together wait in any order
            task.resume()
            await clock.advance(by: .zero)
        }
        let failed = tasks.map { task in task.timeline.outcome != nil }
        #expect(failed == [true, false, true, false])
        let error = await #expect(throws: WebServiceError.self) { try await tasks[2].value }
        #expect(error?.code == .rateLimitExceeded)
        #expect(
            error?.message.contains("would wait 20.0 seconds for the rate limit, but only 19.0 seconds are left")
                == true)
        await clock.advance(by: .seconds(30))
        for task in [tasks[1], tasks[3]] { #expect(try await task.response.status == 503) }
        mock.service.interceptors = [.retry(), .rateLimit(1, per: .seconds(10))]
        let retried = mock.service.GET("/").setDeadline(.seconds(5)).data().validateNothing().resume()
        await clock.advance(by: .seconds(30))
        #expect(try await retried.response.status == 503)
        #expect(
            retried.timeline.events.last { $0.kind == .noRetry }?.detail
                == "the request was refused: rateLimitExceeded")
    }

    @Test("After a refresh, the error of a limiter is the result, and not the status 401")
    func refusedAfterRefresh() async throws {
        let mock = MockService(clock: TestClock())
        mock.on(.any, .status(401))
        mock.service.interceptors = [
            Authentication(TokenSource({ .bearer("canary-a") }) { _ in .bearer("canary-b") }),
            .rateLimit(1, per: .seconds(60), maximumWaiting: 0),
        ]
        let error = await #expect(throws: WebServiceError.self) { try await mock.service.GET("/").data().value }
        #expect(error?.code == .rateLimitExceeded)
    }

    @Test("A bucket that is not full receives tokens while no request waits")
    func refill() async throws {
        let limiter = RateLimiter(2, per: .seconds(1), burst: 3)
        let service = service(session, limiter)
        var tasks: [TypedTask<Data>] = []
        for path in ["a", "b", "c"] { tasks.append(await start(path, service, limiter, session)) }
        clock.advance(by: .seconds(1))
        for path in ["d", "e", "f"] { tasks.append(await start(path, service, limiter, session)) }
        #expect(session.exchanges.values.count == 5)
        #expect(limiter.waitingRequests == 1)
        try await settle(tasks, waiting: 1)
        clock.advance(by: .milliseconds(500))
        await session.exchanges.wait(for: 6)
    }

    @Test("A cancelled request stops waiting immediately and takes no token", arguments: ["b", "c", "d"])
    func cancellation(cancelled: String) async throws {
        let limiter = RateLimiter(1)
        let service = service(session, limiter)
        var tasks: [String: TypedTask<Data>] = [:]
        for path in ["a", "b", "c", "d"] { tasks[path] = await start(path, service, limiter, session) }
        tasks[cancelled]?.cancel()
        #expect(await tasks[cancelled]?.serviceResponse.isCanceled == true)
        await eventually { limiter.waitingRequests == 2 }
        let left = ["b", "c", "d"].filter { $0 != cancelled }
        let rest = (["a"] + left).compactMap { tasks[$0] }
        try await settle(rest, waiting: 2)
        for count in 1...2 {
            clock.advance(by: .seconds(1))
            await session.exchanges.wait(for: 1 + count)
            try await settle(rest, waiting: 2 - count)
            #expect(limiter.waitingRequests == 2 - count)
        }
        #expect(paths(session) == ["a"] + left)
    }

    @Test("A request fails immediately if too many already wait, and may wait again later")
    func queue() async throws {
        let limiter = RateLimiter(1, maximumWaiting: 1)
        let service = service(session, limiter)
        var tasks: [TypedTask<Data>] = []
        for path in ["a", "b"] { tasks.append(await start(path, service, limiter, session)) }
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("c").data().value }
        #expect(error?.code == .rateLimitExceeded)
        #expect(
            error?.message
                == "the queue of the rate limit is full (maximumWaiting: 1); send fewer requests or increase "
                + "maximumWaiting")
        try await settle(tasks, waiting: 1)
        clock.advance(by: .seconds(1))
        await session.exchanges.wait(for: 2)
        _ = await start("d", service, limiter, session)
        #expect(limiter.waitingRequests == 1)
        #expect(paths(session) == ["a", "b"])
    }

    @Test("A Retry-After holds back all requests of the key", arguments: [429, 503])
    func retryAfter(status: Int) async throws {
        let script = ScriptedSession([.status(status, headers: ["Retry-After": "30"]), .status(200)])
        let limiter = RateLimiter(100, per: .seconds(1))
        let service = service(script, limiter)
        #expect(try await service.GET("a").data().validateNothing().response.status == status)
        var tasks: [TypedTask<Data>] = []
        for path in ["b", "c"] { tasks.append(await start(path, service, limiter, script.hand)) }
        #expect(try await service.GET("https://other/x").data().response.status == 200)
        try await settle(tasks, waiting: 2)
        clock.advance(by: .milliseconds(29_999))
        #expect(limiter.waitingRequests == 2)
        #expect(script.sent.count == 2)
        clock.advance(by: .milliseconds(1))
        for task in tasks { #expect(try await task.response.status == 200) }
    }

    @Test("Each origin, or each custom key, has its own limit, which services share with the limiter")
    func keys() async throws {
        let limiter = RateLimiter(1)
        let services = [service(session, limiter), service(session, limiter)]
        for url in ["https://h/a", "http://h/a", "https://h:444/a", "https://other/a"] {
            _ = await start(url, services[0], limiter, session)
        }
        #expect(limiter.waitingRequests == 0)
        _ = await start("https://H:443/b", services[1], limiter, session)
        #expect(limiter.waitingRequests == 1)
        let byMethod = RateLimiter(1) { $0.method.rawValue }
        let third = service(session, byMethod)
        _ = await start("https://h/a", third, byMethod, session)
        _ = await start("https://other/a", third, byMethod, session)
        #expect(byMethod.waitingRequests == 1)
    }

    @Test("Keys without waiting requests are forgotten when their bucket is full again")
    func memory() async throws {
        let limiter = RateLimiter(1)
        let service = service(HandSession(text: "x"), limiter)
        for number in 0..<400 {
            _ = try await service.GET("https://h\(number)/").data().value
            if number % 50 == 49 { clock.advance(by: .seconds(1)) }
        }
        #expect(limiter.keyCount <= 128)
    }

    @Test(
        "Extreme rates neither trap nor delay the first request",
        arguments: [
            (0, Duration.seconds(1), 1), (Int.min, .zero, Int.min), (1, .seconds(-1), 1),
            (Int.max, .seconds(Int64.max), Int.max), (1, .seconds(Int64.max), Int.max), (Int.max, .nanoseconds(1), 1),
        ])
    func extremes(requests: Int, period: Duration, burst: Int) async throws {
        let service = service(HandSession(text: "x"), RateLimiter(requests, per: period, burst: burst))
        #expect(try await service.GET("a").data().value == Data("x".utf8))
    }

    @Test("The dot syntax creates a limiter with the given values")
    func dotSyntax() throws {
        let service = WebService.make()
        service.interceptors = [
            .retry(), .rateLimit(5, per: .seconds(2), burst: 1, maximumWaiting: 7) { "\($0.method)" },
        ]
        let limiter = try #require(service.interceptors.last as? RateLimiter)
        #expect((limiter.requests, limiter.period) == (5, .seconds(2)))
        #expect((limiter.burst, limiter.maximumWaiting) == (1, 7))
    }
}
