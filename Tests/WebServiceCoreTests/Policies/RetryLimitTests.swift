import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The attempts and the time that an exchange has left for a retry.
@Suite("Limits of retries", .permit)
struct RetryLimitTests {
    private let clock = WebServiceMocking.TestClock()

    private func pausing(_ duration: Duration) -> any Interceptor {
        .closure { [clock] request, next in
            try await clock.sleep(for: duration)
            return try await next(request)
        }
    }

    @Test(
        "A retry that the rest of the deadline cannot carry is not planned, and the response is the result",
        arguments: [(4.0, 1), (2.0, 2)])
    func deadline(seconds: Double, attempts: Int) async throws {
        let mock = MockService(clock: clock)
        mock.on(.any, .status(503))
        mock.service.interceptors = [
            pausing(.seconds(seconds)), RetryPolicy(maximumAttempts: 2, baseDelay: .seconds(2), random: { 1 }),
        ]
        let task = mock.service.GET("/").setDeadline(.seconds(5)).data().validateNothing().resume()
        await clock.advance(by: .seconds(10))
        #expect(try await task.response.status == 503)
        #expect(mock.receivedRequests.count == attempts)
        let expected =
            attempts == 2
            ? "status 503, attempt 2 was the last"
            : "status 503, the deadline of 5.0 seconds leaves no time for a pause of 2.0 seconds"
        #expect(task.timeline.events.last { $0.kind == .noRetry }?.detail == expected)
    }

    @Test("A download is not continued after a pause that ends after its deadline")
    func continuation() {
        let task = WebService.make().GET("/")
        task.begin(.make())
        var request = Request.make()
        let policy = RetryPolicy(baseDelay: .seconds(2), random: { 1 })
        func pause() -> Duration? {
            policy.pauseToContinue(
                request, after: URLError(.networkConnectionLost), attempt: 1, spent: .zero, in: task)
        }
        #expect(pause() == .seconds(2))
        request.options.deadline = .seconds(1)
        #expect(pause() == nil)
        request.options.deadline = .seconds(3)
        #expect(pause() == .seconds(2))
    }

    private struct Refused: MockableDataTaskResult {
        var cancellation: UInt64?

        func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
            let closure = SessionClosure(cancellation: cancellation)
            return (nil, nil, WebServiceError(.init("sessionClosed"), "the session is closed", underlying: closure))
        }
    }

    /// Sends a request over a session that is closed after the first response.
    private func send(
        _ first: any MockableDataTaskResult, cancellation: UInt64? = nil, _ interceptor: any Interceptor
    ) async -> TypedTask<Data> {
        let mock = MockService(clock: clock)
        let count = Mutex(0)
        mock.session.addStub { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return number == 1 ? first : Refused(cancellation: cancellation)
        }
        mock.service.interceptors = [interceptor]
        let task = mock.service.GET("/").data().validateNothing().resume()
        await clock.advance(by: .seconds(10))
        #expect(count.withLock { $0 } == 2)
        return task
    }

    @Test(
        "If the session is closed before a request is sent again, the earlier response is the result")
    func closedSession() async throws {
        let authentication = Authentication(TokenSource({ .bearer("old") }) { _ in .bearer("new") })
        var challenge = MockResponse(statusCode: 401)
        challenge.headers["WWW-Authenticate"] = #"Digest realm="a", nonce="b", qop="auth""#
        let cases: [(first: MockResponse, interceptor: any Interceptor)] = [
            (.status(503), .retry()), (.status(401), authentication),
            (challenge, .digest(user: "u", password: "p")),
        ]
        for (first, interceptor) in cases {
            let task = await send(first, interceptor)
            #expect(try await task.response.status == first.statusCode)
            let detail = task.timeline.events.last { $0.kind == .noRetry }?.detail
            #expect(detail == "the request was refused: sessionClosed")
        }
        let lost = await send(URLError(.networkConnectionLost), .retry())
        let error = await #expect(throws: URLError.self) { try await lost.value }
        #expect(error?.code == .networkConnectionLost)
    }

    @Test("If the session was closed and has cancelled its requests, the exchange is cancelled")
    func cancelledSession() async {
        let task = await send(MockResponse(statusCode: 503), cancellation: .max, .retry())
        let error = await #expect(throws: URLError.self) { try await task.value }
        #expect(error?.code == .cancelled)
    }

    @Test("Attempts continue after a refresh, and begin again if a custom interceptor sends the request again")
    func attempts() async throws {
        let mock = MockService(clock: clock)
        mock.on(.any, [503, 503, 401, 503, 200])
        let authentication = Authentication(TokenSource({ .bearer("old") }) { _ in .bearer("new") })
        mock.service.interceptors = [authentication, .retry()]
        let refreshed = mock.service.GET("/").data().validateNothing().resume()
        await clock.advance(by: .seconds(60))
        #expect(try await refreshed.response.status == 503)
        #expect(mock.receivedRequests.count == 4)
        #expect(
            refreshed.timeline.events.last { $0.kind == .noRetry }?.detail == "status 503, attempt 4 was the last")
        let other = MockService(clock: clock)
        other.on(.any, .status(503))
        let repeating: any Interceptor = .closure { request, next in
            _ = try await next(request)
            return try await next(request)
        }
        other.service.interceptors = [repeating, .retry()]
        let repeated = other.service.GET("/").data().validateNothing().resume()
        await clock.advance(by: .seconds(60))
        #expect(try await repeated.response.status == 503)
        #expect(other.receivedRequests.count == 6)
    }

    @Test("Two retry policies of one list are refused, also in the list of a request")
    func twoPolicies() async throws {
        let mock = MockService(clock: clock)
        mock.on(.any, .status(503))
        mock.service.interceptors = [.retry(), .userAgent("x"), .retry()]
        let error = await #expect(throws: WebServiceError.self) { try await mock.service.GET("/").data().value }
        #expect(error?.code == .interceptorOrder)
        #expect(error?.message.contains("use one .retry() in the list") == true)
        #expect(mock.receivedRequests.isEmpty)
        mock.service.interceptors = []
        let double = mock.service.GET("/").intercepted(by: .retry()).intercepted(by: .retry())
        let doubleError = await #expect(throws: WebServiceError.self) { try await double.data().value }
        #expect(doubleError?.code == .interceptorOrder)
        #expect(mock.receivedRequests.isEmpty)
        // One of them replaces the policy of the service, so two remain.
        mock.service.interceptors = [.retry()]
        let triple = mock.service.GET("/").intercepted(by: .retry()).intercepted(by: .retry())
        let tripleError = await #expect(throws: WebServiceError.self) { try await triple.data().value }
        #expect(tripleError?.code == .interceptorOrder)
    }

    @Test("A retry is limited by the budget or the deadline, whichever ends first")
    func earlierLimit() async throws {
        let mock = MockService(clock: clock)
        mock.on(.any, MockResponse(statusCode: 503).after(.seconds(4)))
        mock.service.interceptors = [
            RetryPolicy(maximumAttempts: 2, baseDelay: .seconds(2), budget: .seconds(5), random: { 1 })
        ]
        let task = mock.service.GET("/").setDeadline(.seconds(8)).data().validateNothing().resume()
        await clock.advance(by: .seconds(10))
        #expect(try await task.response.status == 503)
        let detail = task.timeline.events.last { $0.kind == .noRetry }?.detail
        #expect(detail == "status 503, the limit of 5.0 seconds leaves no time for a pause of 2.0 seconds")
    }
}
