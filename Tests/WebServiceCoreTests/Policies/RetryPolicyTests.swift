import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite("RetryPolicy", .permit)
struct RetryPolicyTests {
    private let pauses = Collected<Duration>()

    /// Returns a policy that records its pauses instead of waiting.
    private func policy(
        _ pauses: Collected<Duration>, random: Double = 1, now: Date = Date(timeIntervalSince1970: 0),
        _ change: (inout RetryPolicy) -> Void = { _ in }
    ) -> RetryPolicy {
        var policy = RetryPolicy(date: { now }, random: { random }, pause: { pauses.add($0) })
        change(&policy)
        return policy
    }

    private func run(
        _ answers: [ScriptedSession.Answer], _ policy: RetryPolicy, method: Request.Method = .GET,
        _ change: (inout Request) -> Void = { _ in }
    ) async -> (session: ScriptedSession, response: Response?, timeline: Timeline) {
        let session = ScriptedSession(answers)
        let service = WebService.make(session)
        service.interceptors = [policy]
        var request = service.request(method, path: "/x")
        change(&request)
        let task = service.sessionTask(request: request).data()
        let response = try? await task.response  // an error counts as no response
        return (session, response, task.task.timeline)
    }

    @Test("A predicate for errors and the dot syntax decide on further retries")
    func predicates() async throws {
        let session = ScriptedSession([.error(.cannotParseResponse), .status(418), .status(200)])
        let service = WebService.make(session, timekeeper: nil)
        let task = service.POST("/x").data()
        service.interceptors = [
            .retry(baseDelay: .nanoseconds(1), retriesAnyMethod: true) {
                $0.status == 418
            } retriesError: {
                ($0 as? URLError)?.code == .cannotParseResponse
            }
        ]
        #expect(try await task.response.status == 200)
        #expect(session.sent.count == 3)
        #expect(task.timeline.events.first { $0.kind == .retry }?.detail.hasPrefix("error of type URLError") == true)
    }

    @Test("A transient status is retried, and the timeline contains the reason and the pause")
    func status() async throws {
        let run = await run([.status(503), .status(502), .status(200)], policy(pauses))
        #expect(run.response?.status == 200)
        #expect(run.response?.attempts == 3)
        #expect(run.session.sent.count == 3)
        #expect(pauses.values == [.milliseconds(500), .seconds(1)])
        #expect(run.timeline.events.map(\.kind) == [.attempt, .retry, .wait, .attempt, .retry, .wait, .attempt])
        #expect(run.timeline.events[1].detail == "status 503, pause of 0.5 seconds")
        #expect(run.timeline.events.filter { $0.kind == .attempt }.map(\.status) == [503, 502, 200])
    }

    @Test("A pause that ends after the deadline of the request is not started, and the response is delivered")
    func deadline() async {
        let run = await run([.status(503, headers: ["Retry-After": "30"])], policy(pauses)) {
            $0.options.deadline = .seconds(5)
        }
        #expect(run.response?.status == 503)
        #expect(pauses.values == [])
        #expect(
            run.timeline.events.last { $0.kind == .noRetry }?.detail
                == "status 503, the deadline of 5.0 seconds leaves no time for a pause of 30.0 seconds")
    }

    @Test(
        "A server that does not respond delays a request with a timeout by at most three timeouts",
        arguments: [0.5, 0.05, 2.0, 20.0], [0.0, 1.0])
    func boundedTimeouts(timeout: Double, random: Double) async throws {
        let clock = ManualTimekeeper()
        let session = HandSession { exchange in
            clock.advance(by: .seconds(timeout))
            exchange.completion(nil, nil, URLError(.timedOut))
        }
        var policy = RetryPolicy(random: { random })
        policy.timekeeper = TestTimekeeper(clock, pause: { clock.advance(by: $0) })
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [policy]
        service.options.timeout = .seconds(timeout)
        let start = clock.instant
        let task = service.GET("/x").data()
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .timedOut)
        let duration = Double(clock.instant - start) / 1e9
        #expect(duration <= 3 * timeout + 0.001)
        #expect(session.exchanges.values.count >= 1)
        let detail = try #require(task.task.timeline.events.last { $0.kind == .noRetry }).detail
        let isOfTimeout = detail.contains("timeout of")
        #expect(detail.hasSuffix("timeout of \(Duration.seconds(timeout))") == isOfTimeout)
        #expect(detail.contains("leaves no time"))
    }

    @Test("Without a timeout of the request, the budget alone bounds the retries after a timeout")
    func unsetTimeout() async {
        let run = await run([.error(.timedOut)], policy(Collected()))
        #expect(run.session.sent.count == 3)
        // The pause and another timeout exceed the budget of a minute.
        let set = await self.run([.error(.timedOut)], policy(Collected())) { $0.options.timeout = .seconds(59.8) }
        #expect(set.session.sent.count == 1)
        let lost = await self.run([.error(.networkConnectionLost)], policy(Collected())) {
            $0.options.timeout = .seconds(59.8)
        }
        #expect(lost.session.sent.count == 3)
    }

    @Test("An attempt that exceeds the attempt timeout is cancelled and sent again")
    func attemptTimeout() async throws {
        let clock = ManualTimekeeper()
        let session = HandSession()
        let service = WebService.make(session, timekeeper: clock)
        service.options.attemptTimeout = .seconds(3)
        var policy = RetryPolicy(maximumAttempts: 2)
        policy.timekeeper = TestTimekeeper(clock, pause: { _ in })
        service.interceptors = [policy]
        let task = service.GET("/x").string().resume()
        _ = await session.exchanges.wait(for: 1)
        clock.advance(by: .seconds(3))
        let exchanges = await session.exchanges.wait(for: 2)
        #expect(exchanges[0].log.contains("cancel"))
        exchanges[1].respond("second")
        #expect(try await task.value == "second")
        let silent = service.GET("/y").string().resume()
        for count in 3...4 {
            _ = await session.exchanges.wait(for: count)
            clock.advance(by: .seconds(3))
        }
        let error = await #expect(throws: URLError.self) { try await silent.value }
        #expect(error?.code == .timedOut)
        #expect(error?.localizedDescription.contains("attemptTimeout of 3.0 seconds") == true)
    }

    @Test("With a timeout of the attempt, each of the attempts is made")
    func attemptTimeoutAndTimeout() async {
        for (attemptTimeout, count) in [(Duration.seconds(9), 3), (nil, 1)] {
            let run = await run([.error(.timedOut)], policy(Collected())) {
                $0.options.timeout = .seconds(59.8)
                $0.options.attemptTimeout = attemptTimeout
            }
            #expect(run.session.sent.count == count)
        }
    }

    @Test("A pause is whole microseconds, so that the timeline is readable")
    func wholeMicroseconds() async throws {
        let run = await run([.status(503), .status(200)], policy(pauses, random: 0.217207954))
        #expect(pauses.values == [.microseconds(304_302)])
        #expect(run.timeline.events[1].detail == "status 503, pause of 0.304302 seconds")
    }

    @Test(
        "Only transient transport errors are retried",
        arguments: [
            (URLError.Code.networkConnectionLost, 3), (.timedOut, 3), (.cannotConnectToHost, 3), (.badURL, 1),
            (.cancelled, 1), (.unsupportedURL, 1),
        ])
    func errors(code: URLError.Code, attempts: Int) async {
        let run = await run([.error(code)], policy(Collected()))
        #expect(run.session.sent.count == attempts)
        #expect(run.response == nil)
    }

    @Test(
        "A method that is not idempotent is retried only with an Idempotency-Key or if the policy allows it",
        arguments: [
            ("GET", 3), ("HEAD", 3), ("PUT", 3), ("DELETE", 3), ("QUERY", 3), ("OPTIONS", 3), ("POST", 1), ("PATCH", 1),
        ])
    func methods(method: String, attempts: Int) async {
        let method = Request.Method(rawValue: method)
        let run = await run([.status(503)], policy(Collected()), method: method)
        #expect(run.session.sent.count == attempts)
        if attempts == 1 {
            let decision = run.timeline.events.last { $0.kind == .noRetry }
            #expect(decision?.detail == "status 503, \(method) is not idempotent")
        }
        let keyed = await self.run([.status(503)], policy(Collected()), method: method) {
            $0.headers["Idempotency-Key"] = "1"
        }
        #expect(keyed.session.sent.count == 3)
        let any = await self.run([.status(503)], policy(Collected()) { $0.retriesAnyMethod = true }, method: method)
        #expect(any.session.sent.count == 3)
    }

    @Test(
        "A request of which nothing was sent is retried with any method",
        arguments: [URLError.Code.cannotConnectToHost, .cannotFindHost])
    func unsent(code: URLError.Code) async {
        let run = await run([.unsent(code), .unsent(code), .status(201)], policy(pauses), method: .POST) {
            $0.body = Data("ale".utf8)
        }
        #expect(run.response?.status == 201)
        #expect(run.session.sent.map(\.httpBody) == Array(repeating: Data("ale".utf8), count: 3))
        #expect(
            run.timeline.events.filter { $0.kind == .retry }.map(\.detail) == [
                "URLError \(code.rawValue), nothing was sent, pause of 0.5 seconds",
                "URLError \(code.rawValue), nothing was sent, pause of 1.0 seconds",
            ])
    }

    @Test(
        "A POST is not retried if a byte of its last sending may have left",
        arguments: [
            ([.error(.cannotConnectToHost)], 1),
            ([.unsent(.cannotConnectToHost), .status(503)], 2),
            ([.unsent(.cannotConnectToHost), .error(.networkConnectionLost)], 2),
            ([.status(307, headers: ["Location": "/y"]), .unsent(.cannotConnectToHost)], 2),
        ] as [([ScriptedSession.Answer], Int)])
    func partlySent(answers: [ScriptedSession.Answer], count: Int) async {
        let run = await run(answers, policy(Collected()), method: .POST)
        #expect(run.session.sent.count == count)
        #expect(run.timeline.events.last { $0.kind == .noRetry }?.detail.hasSuffix("POST is not idempotent") == true)
    }

    @Test("An error that is marked keeps its code and its description")
    func marked() {
        let error = URLError(.cannotFindHost, userInfo: [NSLocalizedDescriptionKey: "no such host"])
        #expect(!error.requestWasNotSent)
        let marked = error.markingRequestNotSent()
        #expect(marked.requestWasNotSent)
        #expect(marked.code == .cannotFindHost)
        #expect(marked.localizedDescription == "no such host")
        #expect(URLError(transport: marked)?.requestWasNotSent == true)
    }

    @Test("The policy of a request replaces that of the service")
    func nested() async {
        let run = await run([.status(503)], policy(Collected()), method: .PUT) {
            $0.options.interceptors = [policy(Collected()) { $0.maximumAttempts = 2 }]
        }
        #expect(run.session.sent.count == 2)
    }

    @Test("A request with a body stream is not retried, and the timeline contains the reason")
    func stream() async {
        var plain = URLRequest(url: URL(string: "https://h/v1/x") ?? URL(fileURLWithPath: "/"))
        plain.httpMethod = "PUT"
        plain.httpBodyStream = InputStream(data: Data("x".utf8))
        let session = ScriptedSession([.status(503)])
        let service = WebService.make(session)
        service.interceptors = [policy(Collected())]
        let task = service.sessionTask(request: plain).data()
        _ = await task.result
        #expect(session.sent.count == 1)
        #expect(task.task.timeline.events.last { $0.kind == .noRetry }?.detail.contains("stream") == true)
    }

    @Test(
        "Retry-After is accepted in seconds and as a date, and invalid values are ignored",
        arguments: [
            ("2", 2.0), (" 7 ", 7.0), ("0", 0.0), ("Thu, 01 Jan 1970 00:00:09 GMT", 9.0),
            ("Thu Jan  1 00:00:05 1970", 5.0),
            ("Wed, 31 Dec 1969 23:00:00 GMT", 0.0), ("-1", 0.5), ("soon", 0.5), ("1e3", 0.5), ("", 0.5), ("2, 3", 0.5),
            ("1.5", 0.5),
        ])
    func retryAfter(value: String, seconds: Double) async {
        let run = await run([.status(429, headers: ["Retry-After": value]), .status(200)], policy(pauses))
        #expect(run.response?.status == 200)
        #expect(pauses.values == [.seconds(seconds)])
    }

    @Test(
        "A Retry-After of any size beyond the budget prevents a retry",
        arguments: ["61", "1000000", "99999999999999999999999"])
    func longRetryAfter(value: String) async {
        let run = await run([.status(503, headers: ["Retry-After": value])], policy(pauses))
        #expect(run.session.sent.count == 1)
        #expect(run.response?.status == 503)
        #expect(pauses.values.isEmpty)
        #expect(run.timeline.events.contains { $0.kind == .noRetry })
    }

    @Test(
        "Pauses double up to the maximum, and jitter selects from half to all of each pause",
        arguments: [
            (0.0, [0.25, 0.5, 1, 1]), (0.5, [0.375, 0.75, 1.5, 1.5]), (1.0, [0.5, 1, 2, 2]), (7.0, [0.5, 1, 2, 2]),
        ])
    func jitter(random: Double, seconds: [Double]) async {
        _ = await run(
            [.status(500)],
            policy(pauses, random: random) {
                $0.maximumAttempts = 5
                $0.maximumDelay = .seconds(2)
            })
        #expect(pauses.values == seconds.map { .seconds($0) })
    }

    @Test("Extreme settings neither trap nor loop", arguments: [Int.min, 0, 1])
    func extremes(attempts: Int) async {
        let run = await run(
            [.status(500)],
            policy(Collected()) {
                $0.maximumAttempts = attempts
                $0.baseDelay = .seconds(Int64.max)
                $0.maximumDelay = .seconds(Int64.max)
            })
        #expect(run.session.sent.count == 1)
        let huge = await self.run(
            [.status(500), .status(200)],
            policy(Collected()) {
                $0.baseDelay = .seconds(Int64.max)
                $0.maximumDelay = .seconds(Int64.max)
                $0.budget = .zero
            })
        #expect(huge.response?.status == 500)
    }

    @Test("The budget includes the duration of the attempts", arguments: [(8.999, 2), (9.0, 1)])
    func budgetCountsAttempts(seconds: Double, attempts: Int) async {
        let clock = ManualTimekeeper()
        let hand = HandSession()
        let service = WebService.make(hand, timekeeper: clock)
        service.interceptors = [
            RetryPolicy(baseDelay: .seconds(1), budget: .seconds(10), random: { 1 }, pause: { _ in })
        ]
        let task = service.GET("/x").data()
        task.resume()
        let first = await hand.exchanges.wait()[0]
        clock.advance(by: .seconds(seconds))
        first.respond(status: 503)
        if attempts == 2 { (await hand.exchanges.wait(for: 2)[1]).respond() }
        _ = await task.result
        #expect(hand.exchanges.values.count == attempts)
        let expected =
            attempts == 2 ? nil : "status 503, the limit of 10.0 seconds leaves no time for a pause of 1.0 seconds"
        #expect(task.task.timeline.events.last { $0.kind == .noRetry }?.detail == expected)
    }

    @Test(
        "A Retry-After in seconds or as a date is limited to six hours",
        arguments: ["Fri, 01 Jan 1971 00:00:00 GMT", "21601", "999999999", "9999999999", "99999999999999999999999"])
    func distantDate(value: String) async {
        let run = await run(
            [.status(503, headers: ["Retry-After": value]), .status(200)],
            policy(pauses) { $0.budget = .seconds(400 * 86_400) }
        ) { $0.options.deadline = .seconds(86_400) }
        #expect(run.response?.status == 200)
        #expect(pauses.values == [.seconds(6 * 3600)])
    }

    @Test(
        "A random number or a date that is not finite neither traps nor extends the pause",
        arguments: [Double.nan, .infinity, -.infinity])
    func noNumbers(value: Double) async {
        let now = Date(timeIntervalSinceReferenceDate: value)
        let run = await run(
            [.status(503), .status(503, headers: ["Retry-After": "Thu, 01 Jan 1970 00:00:09 GMT"]), .status(200)],
            policy(pauses, random: value, now: now))
        #expect(pauses.values.first == .seconds(value > 0 ? 0.5 : 0.25))
        #expect(run.session.sent.count >= 2)
    }

    @Test("Pauses are measured by the clock of the service")
    func clock() async {
        let clock = ManualTimekeeper()
        let session = ScriptedSession([.status(503, headers: ["Retry-After": "10"]), .status(200)])
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [.retry()]
        let task = service.GET("/x").data()
        task.resume()
        await session.hand.exchanges.wait()
        await eventually { clock.pending >= 2 }
        clock.advance(by: .milliseconds(9_999))
        #expect(session.sent.count == 1)
        clock.advance(by: .milliseconds(1))
        #expect(await task.result.map(\.count) == .success(0))
        #expect(session.sent.count == 2)
        let wait = task.task.timeline.events.first { $0.kind == .wait }
        #expect(wait?.duration == .seconds(10))
    }

    @Test("Cancelling during a pause ends the exchange, and nothing more is sent")
    func cancelDuringPause() async {
        let clock = ManualTimekeeper()
        let session = ScriptedSession([.status(503)])
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [.retry()]
        let errors = Collected<URLError.Code?>()
        let task = service.GET("/x").responseError { errors.add(($0 as? URLError)?.code) }
        task.resume()
        await eventually { clock.pending >= 2 }
        task.cancel()
        #expect(await errors.wait() == [.cancelled])
        await eventually { clock.pending == 0 }
        clock.advance(by: .seconds(100))
        #expect(session.sent.count == 1)
    }

    @Test("2,000 failing exchanges send no more attempts than allowed")
    func storm() async {
        let session = ScriptedSession([.status(503)])
        let service = WebService.make(session)
        service.interceptors = [policy(Collected())]
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2_000 { group.addTask { _ = await service.GET("/x").data().result } }
        }
        #expect(session.sent.count == 6_000)
    }
}

extension Result where Success == Int, Failure == any Error {
    fileprivate static func == (left: Self, right: Result<Int, Never>) -> Bool {
        if case .success(let value) = left, case .success(let other) = right { value == other } else { false }
    }
}
