import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

@Suite("EndpointGroup", .permit)
struct EndpointGroupTests {
    private let clock = TestClock(seed: 1)
    private let mock: MockService
    private static let origins = ["https://a.test", "https://b.test:8443", "https://c.test"].compactMap(Origin.init)

    init() { mock = MockService(clock: clock) }

    private var service: WebService { mock.service }

    /// The hosts that received requests, in order.
    private var hosts: [String] { mock.receivedRequests.compactMap(\.url?.host) }

    /// Sends requests, one after another.
    private func send(_ count: Int = 1, _ path: String = "/beer") async {
        let run = Task(executorPreference: clock.executor) { [service] in
            for _ in 0..<count { _ = try? await service.GET(path).data().value }  // the servers count
        }
        await clock.advance(by: .seconds(9))
        await run.value
    }

    /// Makes hosts respond with the status 503, and all others with 200.
    private func setFailing(_ failing: Set<String>) {
        mock.on(.any) { request in failing.contains(request.url?.host ?? "") ? 503 : .text("beer") }
    }

    @Test("An endpoint replaces the origin, and path and query stay")
    func url() async {
        setFailing([])
        service.interceptors = [.endpoints([Self.origins[1]])]
        await send(1, "/beer%2Fale/%C3%A9?q=a%20b&c=/#part")
        #expect(
            mock.receivedRequests.map(\.url?.absoluteString) == ["https://b.test:8443/beer%2Fale/%C3%A9?q=a%20b&c=/"])
    }

    @Test("Requests to other origins are not changed")
    func otherOrigin() async {
        setFailing([])
        service.interceptors = [.endpoints(Self.origins)]
        await send(1, "https://other.test/beer")
        #expect(hosts == ["other.test"])
    }

    @Test("Without endpoints, requests are not changed")
    func none() async {
        setFailing([])
        service.interceptors = [.endpoints([])]
        await send()
        #expect(hosts == ["mock.test"])
    }

    @Test("Requests are sent to the first endpoint, and a retry to the next one")
    func ordered() async {
        setFailing(["a.test", "b.test"])
        service.interceptors = [RetryPolicy(), .endpoints(Self.origins)]
        let task = service.GET("/beer").string().resume()
        await clock.advance(by: .seconds(9))
        #expect(hosts == ["a.test", "b.test", "c.test"])
        #expect(await (try? task.value) == "beer")
        #expect(
            task.timeline.events.filter { $0.kind == .endpoint }.map(\.detail) == [
                "https://b.test:8443 instead of https://a.test", "https://c.test instead of https://a.test",
            ])
    }

    @Test("A POST of which nothing was sent is retried at the next endpoint, and after a 503 it is not")
    func unsentPost() async {
        mock.session.addStub { request in
            guard request.urlRequestValue.url?.host == "a.test" else { return MockResponse(statusCode: 503) }
            return URLError(.cannotConnectToHost).markingRequestNotSent()
        }
        service.interceptors = [RetryPolicy(), .endpoints(Self.origins)]
        let task = service.POST("/orders").setBody(Data("ale".utf8)).string().resume()
        await clock.advance(by: .seconds(9))
        #expect(hosts == ["a.test", "b.test"])
        #expect(mock.receivedRequests.last?.body == Data("ale".utf8))
        #expect(
            task.timeline.events.last { $0.kind == .noRetry }?.detail == "status 503, POST is not idempotent")
    }

    @Test("If all endpoints were used, a retry begins with the first one again")
    func allUsed() async {
        setFailing(["a.test", "b.test", "c.test"])
        service.interceptors = [
            RetryPolicy(maximumAttempts: 5, maximumDelay: .seconds(1)), .endpoints(Array(Self.origins.prefix(2))),
        ]
        await send()
        #expect(hosts == ["a.test", "b.test", "a.test", "b.test", "a.test"])
    }

    @Test("After three failures, an endpoint is skipped until a trial succeeds")
    func health() async {
        setFailing(["a.test"])
        service.interceptors = [.endpoints(Array(Self.origins.prefix(2)))]
        await send(5)
        #expect(hosts == ["a.test", "a.test", "a.test", "b.test", "b.test"])
        await clock.advance(by: .seconds(10))
        await send(2)
        #expect(hosts.suffix(2) == ["a.test", "b.test"])
        setFailing([])
        await clock.advance(by: .seconds(10))
        await send(2)
        #expect(hosts.suffix(2) == ["a.test", "a.test"])
    }

    @Test("After the end of a trial's exchange, the next request is the trial")
    func hungTrial() async {
        setFailing(["a.test"])
        let gate = Once<Void>()
        service.interceptors = [
            .endpoints(Array(Self.origins.prefix(2)), maximumFailures: 1, skipDuration: .seconds(2)),
            .closure { request, next in
                if request.url?.path == "/hung" { await gate.value }
                return try await next(request)
            },
        ]
        await send()
        setFailing([])
        let hung = service.GET("/hung").setDeadline(.seconds(5)).data().resume()
        await clock.advance(by: .seconds(1))
        await clock.advance(by: .seconds(5))
        _ = await hung.result
        await send()
        #expect(hosts == ["a.test", "a.test"])
        gate.set(())
    }

    @Test("Changes of the availability are in the timeline")
    func changes() async {
        setFailing(["a.test"])
        service.interceptors = [.endpoints([Self.origins[0]], maximumFailures: 1, skipDuration: .seconds(2))]
        var details: [String] = []
        for failing in [["a.test"], []] as [Set<String>] {
            setFailing(failing)
            let task = service.GET("/beer").data().validateNothing().resume()
            await clock.advance(by: .seconds(3))
            details += task.timeline.events.filter { $0.kind == .endpoint }.map(\.detail)
        }
        #expect(details == ["https://a.test is skipped for 2.0 seconds", "https://a.test is available again"])
    }

    @Test("If no endpoint is available, requests are sent nevertheless")
    func noneAvailable() async {
        setFailing(["a.test", "b.test"])
        service.interceptors = [.endpoints(Array(Self.origins.prefix(2)), maximumFailures: 1)]
        await send(5)
        #expect(hosts == ["a.test", "b.test", "a.test", "a.test", "a.test"])
    }

    @Test("Requests are distributed by weight")
    func weights() async {
        setFailing([])
        service.interceptors = [.endpoints(Self.origins, weights: [3, 1, 0])]
        await send(400)
        let counts = Dictionary(hosts.map { ($0, 1) }, uniquingKeysWith: +)
        #expect((270...330).contains(counts["a.test"] ?? 0))
        #expect((counts["a.test"] ?? 0) + (counts["b.test"] ?? 0) == 400)
    }

    @Test("If an endpoint is not available, the one with the next highest weight is used")
    func order() async {
        setFailing(["c.test"])
        service.interceptors = [.endpoints(Self.origins, weights: [0, 1e-9, 1], maximumFailures: 1)]
        await send(3)
        #expect(hosts == ["c.test", "b.test", "b.test"])
    }

    @Test("An endpoint without weight receives requests if the others are not available")
    func spare() async {
        setFailing(["a.test", "b.test"])
        service.interceptors = [.endpoints(Self.origins, weights: [1, 1, 0], maximumFailures: 1)]
        await send(5)
        #expect(hosts.dropFirst(2) == ["c.test", "c.test", "c.test"])
    }

    @Test("A hedged request is sent to another endpoint")
    func hedging() async {
        mock.on(.any) { request in request.url?.host == "a.test" ? .text("a").after(.seconds(1)) : .text("b") }
        service.interceptors = [.hedging(after: .fixed(.milliseconds(50))), .endpoints(Self.origins)]
        let task = service.GET("/beer").string().resume()
        await clock.advance(by: .seconds(2))
        #expect(await (try? task.value) == "b")
        #expect(hosts == ["a.test", "b.test"])
    }

    @Test("A retry after a hedged request is sent to an endpoint that neither has used")
    func hedgedRetry() async {
        mock.on(.any) { request in
            let host = request.url?.host
            return host == "c.test" ? .text("c") : MockResponse(statusCode: 503).after(.milliseconds(100))
        }
        service.interceptors = [RetryPolicy(), .hedging(after: .fixed(.milliseconds(50))), .endpoints(Self.origins)]
        await send()
        #expect(hosts == ["a.test", "b.test", "c.test"])
    }

    @Test("The same seed gives the same endpoints each time")
    func determinism() async {
        var sequences: Set<[String]> = []
        for _ in 0..<amount(20, thorough: 1_000) {
            let mock = MockService(clock: TestClock(seed: 7))
            mock.on(.any, .text("beer"))
            mock.service.interceptors = [.endpoints(Self.origins, weights: [1, 1, 1])]
            for _ in 0..<5 { _ = try? await mock.service.GET("/").data().value }  // the servers count
            sequences.insert(mock.receivedRequests.compactMap(\.url?.host))
        }
        #expect(sequences.count == 1)
    }

    @Test("Credentials are sent to the endpoints that the authentication names")
    func credentials() async {
        setFailing([])
        for (origins, expected) in [([], nil), (Set(Self.origins), "Bearer key")] as [(Set<Origin>, String?)] {
            let source = TokenSource({ Credential.bearer("key") }) { _ in nil }
            service.interceptors = [Authentication(source, origins: origins), .endpoints(Self.origins)]
            await send()
            #expect(mock.receivedRequests.last?.headers["Authorization"] == expected)
        }
    }

    @Test("Extreme weights neither trap nor prevent a request")
    func extremes() async {
        setFailing([])
        for weights in [[.nan, -.infinity, .infinity], [], [0, 0, 0], [1]] as [[Double]] {
            service.interceptors = [
                .endpoints(
                    Self.origins, weights: weights, maximumFailures: .min, skipDuration: .seconds(Int64.min))
            ]
            let before = hosts.count
            await send()
            #expect(hosts.count == before + 1)
        }
    }
}
