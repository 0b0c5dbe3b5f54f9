import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

/// Rate limits that a server states (draft-ietf-httpapi-ratelimit-headers-10).
@Suite("RateLimiter: limits of the server", .permit)
struct ServerLimitTests {
    private let clock = TestClock()

    private func limits(_ field: String, policy: String? = nil) -> [String] {
        var headers: Headers = ["RateLimit": field]
        headers["RateLimit-Policy"] = policy
        return ServiceLimit.limits(in: headers).map { limit in
            let partition = limit.policy.partition.map { " " + String(decoding: $0, as: UTF8.self) } ?? ""
            return "\(limit.policy.name)\(partition): \(limit.remaining) in \(Int64(limit.reset.inSeconds))"
        }
    }

    /// A service whose responses have a field for the path, and take 100 ms.
    private func mock(
        _ limiter: RateLimiter = .serverRateLimit(), _ fields: @escaping @Sendable (String) -> Headers
    ) -> MockService {
        let mock = MockService(clock: clock)
        mock.service.interceptors = [limiter]
        mock.on(.any) { request in
            var response = MockResponse(statusCode: 200, data: Data("x".utf8)).after(.milliseconds(100))
            response.headers = fields(request.path)
            if request.path.hasPrefix("/refused") { response.statusCode = 429 }
            return response
        }
        return mock
    }

    /// Sends requests at the same time and returns the paths that reached the server.
    private func send(_ paths: [String], _ mock: MockService, for duration: Duration = .milliseconds(200)) async
        -> [String]
    {
        for path in paths { _ = mock.service.GET(path).data().validateNothing().resume() }
        await clock.advance(by: duration)
        return mock.receivedRequests.map(\.path)
    }

    private func wait(_ task: TypedTask<Data>) -> [String] {
        task.timeline.events.filter { $0.kind == .wait }.map { "\($0.detail) \($0.duration ?? .zero)" }
    }

    @Test("The examples of the draft are read")
    func examples() {
        #expect(limits(#""default";r=50;t=30"#) == ["default: 50 in 30"])
        #expect(limits(#""default";r=999;pk=:dHJpYWwxMjEzMjM=:"#) == [])
        #expect(limits(#""default";r=300000000;t=60;pk=:QXBwLTk5OQ==:"#) == ["default App-999: 300000000 in 60"])
        #expect(limits(#""problemPolicy";r=0;t=10"#) == ["problemPolicy: 0 in 10"])
        #expect(limits(#""a";r=1;t=2, "b";r=3;t=4;x=y"#) == ["a: 1 in 2", "b: 3 in 4"])
    }

    @Test(
        "Malformed fields and members are ignored",
        arguments: [
            "", "100", "default;r=1;t=1", #""a";r=-1;t=1"#, #""a";r=1;t=-1"#, #""a";r=1.5;t=1"#, #""a";r=1"#,
            #""a";t=1"#,
            #""a";r="1";t=1"#, #""a";r=1;t=1;pk=x"#, #"("a");r=1;t=1"#, #""a";r=1;t=9999999999999999"#,
            #""a";r=0;t=1,"#,
            "limit=100, remaining=50, reset=30",
        ])
    func malformed(field: String) {
        #expect(limits(field) == [])
    }

    @Test(
        "A quota of bytes or of concurrent requests is ignored",
        arguments: ["content-bytes", "concurrent-requests"])
    func units(unit: String) {
        let policy = #""a";q=9;qu="\#(unit)", "b";q=9;w=1, "c";q=9;qu="requests""#
        #expect(limits(#""a";r=1;t=1, "b";r=2;t=1, "c";r=3;t=1"#, policy: policy) == ["b: 2 in 1", "c: 3 in 1"])
    }

    @Test("No more requests are sent than the server permits, until the time that it states")
    func window() async {
        let remaining = ["/0": 2, "/1": 1, "/2": 0]
        let mock = mock { ["RateLimit": "\"a\";r=\(remaining[$0] ?? 1);t=30"] }
        _ = await send(["0"], mock)
        // One after another, so that they wait in this order.
        for path in ["1", "2", "3", "4"] { _ = await send([path], mock, for: .zero) }
        #expect(await send([], mock) == ["/0", "/1", "/2"])
        await clock.advance(by: .milliseconds(29_599))
        #expect(mock.receivedRequests.count == 3)
        await clock.advance(by: .milliseconds(101))
        #expect(mock.receivedRequests.map(\.path) == ["/0", "/1", "/2", "/3"])
    }

    @Test(
        "A request that would wait for the server until its deadline fails at once, unless a response may end the wait")
    func lateRequests() async throws {
        let mock = mock { $0 == "/x" ? [:] : ["RateLimit": "\"a\";r=\($0 == "/1" ? 1 : 0);t=30"] }
        func start(_ path: String, deadline: Double) async -> TypedTask<Data> {
            let task = mock.service.GET(path).setDeadline(.seconds(deadline)).data().resume()
            await clock.advance(by: .zero)
            return task
        }
        _ = await send(["1"], mock)
        _ = await start("x", deadline: 60)
        let waiting = await start("a", deadline: 20)
        #expect(waiting.timeline.outcome == nil)
        await clock.advance(by: .milliseconds(100))
        let late = await start("b", deadline: 20)
        for task in [waiting, late] {
            #expect(task.timeline.outcome != nil)
            let error = await #expect(throws: WebServiceError.self) { try await task.value }
            #expect(error?.code == .rateLimitExceeded)
        }
        let patient = await start("c", deadline: 40)
        await clock.advance(by: .seconds(31))
        #expect(try await patient.value == Data("x".utf8))
        #expect(mock.receivedRequests.map(\.path) == ["/1", "/x", "/c"])
    }

    @Test("Requests in flight when the field was computed count")
    func inFlight() async throws {
        let session = HandSession { _ in }
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [.serverRateLimit()]
        func start(_ path: String) async {
            _ = service.GET(path).data().resume()
            await clock.advance(by: .milliseconds(1))
        }
        func complete(_ index: Int, remaining: Int) async {
            let exchange = session.exchanges.values[index]
            exchange.completion(
                Data(),
                HTTPURLResponse(
                    url: exchange.request.urlRequestValue.url ?? URL(fileURLWithPath: "/"), statusCode: 200,
                    httpVersion: "HTTP/1.1", headerFields: ["RateLimit": "\"a\";r=\(remaining);t=60"]), nil)
            await clock.advance(by: .milliseconds(1))
        }
        for path in ["a", "b", "c"] { await start(path) }
        #expect(session.exchanges.values.count == 3)
        await complete(1, remaining: 3)  // two are in flight
        for path in ["d", "e", "f"] { await start(path) }
        #expect(session.exchanges.values.count == 4)
        await complete(0, remaining: 4)  // computed before
        #expect(session.exchanges.values.count == 5)
        await complete(3, remaining: 0)
        await complete(2, remaining: 2)
        await complete(4, remaining: 1)
        #expect(session.exchanges.values.count == 5)
    }

    @Test("After the end of a window, one request is sent before the others")
    func probe() async {
        let mock = mock { path in ["RateLimit": path == "/0" ? #""a";r=0;t=10"# : #""a";r=5;t=10"#] }
        #expect(await send(["0"], mock) == ["/0"])
        _ = await send(["1", "2", "3"], mock, for: .milliseconds(9_949))
        #expect(mock.receivedRequests.count == 2)
        await clock.advance(by: .milliseconds(49))
        #expect(mock.receivedRequests.count == 2)
        await clock.advance(by: .milliseconds(2))
        #expect(mock.receivedRequests.count == 4)
    }

    @Test(
        "After the end of a window, one request per second is sent until a response states the limit")
    func slowProbe() async {
        let mock = MockService(clock: clock)
        mock.service.interceptors = [.serverRateLimit()]
        mock.on(.any) { request in
            var response = MockResponse(statusCode: 200).after(request.path == "/0" ? .zero : .seconds(100))
            response.headers = ["RateLimit": #""a";r=0;t=10"#]
            return response
        }
        _ = await send(["0"], mock)
        #expect(await send(["1", "2", "3"], mock, for: .milliseconds(11_799)).count == 3)
        await clock.advance(by: .milliseconds(1))
        #expect(mock.receivedRequests.count == 4)
    }

    @Test("A response without the field after the end of a window ends the limit; an error does not")
    func withoutField() async {
        let mock = mock { path in path == "/0" ? ["RateLimit": #""a";r=0;t=10"#] : [:] }
        _ = await send(["0"], mock)
        // The others wait behind these.
        for path in ["refused1", "refused2"] { _ = await send([path], mock, for: .zero) }
        #expect(await send(["3", "4", "5"], mock, for: .milliseconds(10_000)).count == 2)
        await clock.advance(by: .milliseconds(900))
        #expect(mock.receivedRequests.count == 3)
        await clock.advance(by: .milliseconds(1_000))
        #expect(mock.receivedRequests.count == 4)
        await clock.advance(by: .milliseconds(101))
        #expect(mock.receivedRequests.count == 6)
    }

    @Test("A hostile duration holds requests back for 10 minutes at most")
    func hostile() async {
        let limiter = RateLimiter.serverRateLimit()
        #expect(limiter.maximumPause == .seconds(600))
        let mock = mock(limiter) { _ in ["RateLimit": #""a";r=0;t=999999999999999"#] }
        _ = await send(["0"], mock)
        _ = await send(["1", "2"], mock, for: .milliseconds(599_899))
        #expect(mock.receivedRequests.count == 1)
        await clock.advance(by: .milliseconds(1))
        #expect(mock.receivedRequests.count == 2)
        #expect(limiter.waitingRequests == 1)
    }

    @Test("With a reset beyond the maximum pause, the lowest number of remaining requests applies")
    func hostileOrder() {
        var limits = ServerLimits(maximumPause: .seconds(600))
        let policy = ServiceLimit.Policy(name: "a", partition: nil)
        for _ in 0..<2 { limits.send(at: 0) }
        for remaining in [0, 1] {
            let stated = [ServiceLimit(policy: policy, remaining: remaining, reset: .seconds(3_600))]
            _ = limits.receive(stated, sent: 0, status: 200, pause: nil, at: 0)
        }
        #expect(limits.delay(at: 0) == .seconds(600))
    }

    @Test(
        "The maximum pause can be set", arguments: [Duration.zero, .seconds(5), .seconds(Int64.max)])
    func maximumPause(maximum: Duration) async {
        let mock = mock(.serverRateLimit(maximumPause: maximum)) { _ in ["RateLimit": #""a";r=0;t=20"#] }
        _ = await send(["0"], mock)
        let seconds = min(maximum, .seconds(20)) - .milliseconds(100)
        _ = await send(["1"], mock, for: max(seconds - .milliseconds(1), .milliseconds(10)))
        #expect(mock.receivedRequests.count == (maximum == .zero ? 2 : 1))
        await clock.advance(by: .milliseconds(1))
        #expect(mock.receivedRequests.count == 2)
    }

    @Test("If more requests are permitted now, none is held back")
    func permittedNow() async {
        let mock = mock { _ in ["RateLimit": #""a";r=5;t=0"#] }
        for count in 1...3 {
            #expect(await send((0..<5).map { "\($0)" }, mock).count == 5 * count)
        }
    }

    @Test("Of several policies and partitions, the strictest applies")
    func policies() async {
        let field = #""minute";r=9;t=60, "second";r=3;t=5, "minute";r=1;t=7;pk=:YQ==:"#
        let mock = mock { path in path == "/0" ? ["RateLimit": field] : [:] }
        _ = await send(["0"], mock)
        #expect(await send(["1", "2", "3"], mock, for: .milliseconds(6_899)).count == 2)
        await clock.advance(by: .milliseconds(1))
        #expect(mock.receivedRequests.count == 3)
    }

    @Test("The fields of a stored response are ignored")
    func stored() async {
        let mock = mock { _ in ["RateLimit": #""a";r=0;t=60"#, "Age": "3"] }
        _ = await send(["0"], mock)
        #expect(await send(["1", "2"], mock).count == 3)
    }

    @Test("A Retry-After takes precedence over the duration of the field")
    func retryAfter() async {
        let mock = mock { _ in ["RateLimit": #""a";r=0;t=60"#, "Retry-After": "5"] }
        _ = await send(["refused"], mock)
        _ = await send(["1"], mock, for: .milliseconds(4_899))
        #expect(mock.receivedRequests.count == 1)
        await clock.advance(by: .milliseconds(1))
        #expect(mock.receivedRequests.count == 2)
    }

    @Test(
        "A limiter with numbers of its own applies both limits, and without the option only its own",
        arguments: [true, false])
    func both(follows: Bool) async {
        let limiter = RateLimiter(2, per: .seconds(1), followsServer: follows)
        let mock = mock(limiter) { _ in ["RateLimit": #""a";r=0;t=10"#] }
        #expect(await send(["0", "1", "2"], mock).count == 2)
        await clock.advance(by: .milliseconds(301))
        #expect(mock.receivedRequests.count == (follows ? 2 : 3))
    }

    @Test("The timeline has each statement of the server and each wait, and explains them")
    func timeline() async throws {
        let mock = mock { _ in ["RateLimit": #""a";r=0;t=30"#] }
        let first = mock.service.GET("0").data().resume()
        await clock.advance(by: .milliseconds(100))
        let second = mock.service.GET("1").data().resume()
        await clock.advance(by: .seconds(31))
        _ = try await (first.value, second.value)
        #expect(wait(first) == [])
        #expect(wait(second) == ["for the rate limit of the server 30.0 seconds"])
        let lines = second.timeline.explain().split(separator: "\n").map(String.init)
        #expect(lines.first == "The exchange paused for 30000.0 ms for the rate limit of the server.")
        #expect(lines.contains("quota: the server permits 0 more requests within 30 s."))
    }

    @Test(
        "A request that waits for the server can be cancelled, and one whose deadline is earlier fails first")
    func cancellation() async throws {
        let limiter = RateLimiter.serverRateLimit()
        let mock = mock(limiter) { _ in ["RateLimit": #""a";r=0;t=30"#] }
        _ = await send(["0"], mock)
        // Each request waits before the next one arrives.
        let cancelled = mock.service.GET("1").data().resume()
        await clock.advance(by: .zero)
        let late = mock.service.GET("2").setDeadline(.seconds(5)).data().resume()
        await clock.advance(by: .zero)
        let last = mock.service.GET("3").data().resume()
        await clock.advance(by: .milliseconds(1))
        cancelled.cancel()
        #expect(await cancelled.serviceResponse.isCanceled)
        // The late request fails before its deadline, as soon as it is the first one.
        let error = await #expect(throws: WebServiceError.self) { try await late.value }
        #expect(error?.code == .rateLimitExceeded)
        await clock.advance(by: .seconds(6))
        #expect(limiter.waitingRequests == 1)
        await clock.advance(by: .seconds(30))
        #expect(try await last.value == Data("x".utf8))
    }

    @Test("Streams and typed requests follow the server")
    func kinds() async throws {
        struct Typed: HTTPServiceRequest {
            typealias Output = String
            func request(for service: WebService) -> Request { service.request(.GET, path: "typed") }
        }
        let mock = mock { path in ["RateLimit": path == "/0" ? #""a";r=0;t=30"# : #""a";r=9;t=30"#] }
        let stream = mock.service.GET("0").stream().resume()
        await clock.advance(by: .milliseconds(101))
        _ = try await stream.value
        let typed = mock.service.perform(Typed()).resume()
        await clock.advance(by: .seconds(29))
        #expect(mock.receivedRequests.count == 1)
        await clock.advance(by: .seconds(2))
        #expect(try await typed.value == "x")
    }

    @Test("A failed request counts until a response states the limit again")
    func failures() {
        var limits = ServerLimits(maximumPause: .seconds(600))
        let policy = ServiceLimit.Policy(name: "a", partition: nil)
        func limit(_ remaining: Int) -> [ServiceLimit] {
            [ServiceLimit(policy: policy, remaining: remaining, reset: .seconds(60))]
        }
        func receive(_ stated: [ServiceLimit]?) {
            limits.send(at: 0)
            _ = limits.receive(stated, sent: 0, status: stated == nil ? nil : 200, pause: nil, at: 0)
        }
        receive(limit(2))
        receive([])
        #expect(limits.delay(at: 0) == nil)
        receive(nil)
        #expect(limits.delay(at: 0) == nil)
        receive([])
        #expect(limits.delay(at: 0) == .seconds(60))
        receive(limit(1))
        #expect(limits.delay(at: 0) == nil)
    }

    @Test("At most 16 policies are stored, however many a server states")
    func manyPolicies() {
        var limits = ServerLimits(maximumPause: .seconds(600))
        limits.send(at: 0)
        let stated = (1...10_000).map {
            ServiceLimit(policy: .init(name: "\($0)", partition: nil), remaining: 0, reset: .seconds($0 % 500 + 1))
        }
        _ = limits.receive(stated, sent: 0, status: 200, pause: nil, at: 0)
        #expect(limits.delay(at: 0) == .seconds(500))
        #expect(limits.policyCount == 16)
    }

    @Test("Keys are forgotten when their windows have ended long ago")
    func memory() async throws {
        let limiter = RateLimiter.serverRateLimit(maximumPause: .seconds(1))
        let mock = mock(limiter) { _ in ["RateLimit": #""a";r=0;t=1"#] }
        for number in 0..<300 {
            _ = mock.service.GET("https://h\(number)/").data().resume()
            await clock.advance(by: .seconds(1))
        }
        #expect(limiter.keyCount <= 128)
    }

    @Test("A very large number of remaining requests does not trap")
    func extremes() async {
        let mock = mock(.serverRateLimit(maximumPause: .seconds(Int64.max))) { _ in
            ["RateLimit": #""a";r=999999999999999;t=999999999999999"#]
        }
        #expect(await send(["0", "1"], mock).count == 2)
        await clock.advance(by: .seconds(3_600))
        #expect(await send(["2", "3"], mock).count == 4)
    }
}
