import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceMocking

@testable import WebServiceCore
@testable import WebServiceResilience

@Suite("Combinations of policies", .permit)
struct PolicyOrderTests {
    private enum Policy: String, CaseIterable {
        case retry, hedging, endpoints, circuitBreaker, rateLimit, concurrencyLimit

        var interceptor: any Interceptor {
            switch self {
            case .retry: .retry()
            case .hedging: .hedging(after: .fixed(.milliseconds(50)))
            case .endpoints: .endpoints(["https://a.test", "https://b.test"].compactMap(Origin.init))
            case .circuitBreaker: .circuitBreaker()
            case .rateLimit: .rateLimit(100)
            case .concurrencyLimit: .concurrencyLimit(.fixed(10))
            }
        }

        /// The policies that must follow this one.
        var successors: Set<Policy> {
            switch self {
            case .retry: [.hedging, .endpoints]
            case .hedging: [.endpoints, .rateLimit, .concurrencyLimit]
            case .endpoints: [.circuitBreaker, .rateLimit, .concurrencyLimit]
            default: []
            }
        }
    }

    private static func permutations<Element>(_ elements: [Element]) -> [[Element]] {
        guard let last = elements.last else { return [[]] }
        return permutations(elements.dropLast()).flatMap { rest in
            (0...rest.count).map { rest[..<$0] + [last] + rest[$0...] }
        }
    }

    /// Sends a request to a server whose first response is late.
    ///
    /// - Returns: The error, or `nil` if it succeeds, and the number of requests that were sent.
    private func send(_ policies: [Policy]) async -> (error: WebServiceError?, requests: Int) {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.on(.any, [.text("late").after(.seconds(1)), .text("beer")])
        mock.service.interceptors = policies.map(\.interceptor)
        let task = mock.service.GET("/").string().resume()
        await clock.advance(by: .seconds(2))
        do {
            #expect(try await task.value == "beer")
            return (nil, mock.receivedRequests.count)
        } catch { return (error as? WebServiceError, mock.receivedRequests.count) }
    }

    @Test(
        "Each order of six policies works, or fails with an error that names two of them in the right order")
    func orders() async {
        let orders = Self.permutations(Policy.allCases)
        #expect(orders.count == 720)
        var sensible = 0
        for order in orders {
            let violations = order.indices.flatMap { index in
                order[index].successors.filter { order[..<index].contains($0) }.map { (order[index], $0) }
            }
            let (error, requests) = await send(order)
            if error != nil, requests > 0 { Issue.record("\(order): \(requests) requests") }
            if violations.isEmpty { sensible += 1 }
            guard error?.code == (violations.isEmpty ? nil : .interceptorOrder) else {
                Issue.record("\(order): \(error.map { "\($0)" } ?? "no error")")
                continue
            }
            guard let error else { continue }
            let isNamed = violations.contains { first, second in
                error.message.contains("place .\(first)() before .\(second)()")
            }
            if !isNamed { Issue.record("\(order): \(error.message)") }
        }
        #expect(sensible == 6)
    }

    /// The interceptors of a service and of a request, and the number of requests that a server
    /// receives that always responds with 503.
    private static let requestLists: [(service: [Policy], request: [Policy], count: Int)] = [
        ([.hedging], [.retry], 3), ([.endpoints], [.retry], 3), ([.retry, .concurrencyLimit], [.hedging], 3),
        ([.concurrencyLimit], [.retry, .hedging], 3), ([.retry], [.retry], 3), ([.retry, .hedging], [.hedging], 3),
        ([.retry, .hedging, .endpoints, .circuitBreaker, .rateLimit, .concurrencyLimit], [.retry], 3),
        ([.retry, .circuitBreaker], [.endpoints], 3), ([.circuitBreaker], [.hedging, .endpoints, .rateLimit], 1),
        ([.endpoints, .rateLimit], [.hedging], 1), ([.rateLimit], [.retry, .concurrencyLimit], 3),
    ]

    @Test(
        "The interceptors of a request have their places in the list, and do not multiply the attempts",
        arguments: requestLists.indices)
    func requestInterceptors(index: Int) async throws {
        let (policies, added, count) = Self.requestLists[index]
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.on(.any, .status(503))
        mock.service.interceptors = policies.map(\.interceptor)
        let task = mock.service.GET("/")
        for policy in added { task.intercepted(by: policy.interceptor) }
        let sent = task.data().validateNothing().resume()
        await clock.advance(by: .seconds(60))
        #expect(try await sent.response.status == 503)
        #expect(mock.receivedRequests.count == count)
    }

    @Test(
        "The retry policy of a request replaces that of the standard set, and two in a list are refused")
    func standardAndRetry() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.on(.any, .status(503))
        mock.service.interceptors = .standardResilience()
        for attempts in [1, 2, 5] {
            let before = mock.receivedRequests.count
            let task = mock.service.GET("/").intercepted(by: .retry(maximumAttempts: attempts)).data().validateNothing()
            task.resume()
            await clock.advance(by: .seconds(60))
            #expect(try await task.response.status == 503)
            #expect(mock.receivedRequests.count - before == attempts)
        }
        let before = mock.receivedRequests.count
        for list in [.standardResilience() + [.retry()], [.hedging(), .hedging()]] as [[any Interceptor]] {
            mock.service.interceptors = list
            let error = await #expect(throws: WebServiceError.self) { try await mock.service.GET("/").data().value }
            #expect(error?.code == .interceptorOrder)
            #expect(error?.message.contains("multiply; use one .") == true)
        }
        #expect(mock.receivedRequests.count == before)
    }

    private static let sets: [(name: String, interceptors: @Sendable () -> [any Interceptor])] = [
        ("standard", { .standardResilience() }),
        (
            "all",
            {
                .standardResilience(
                    hedging: .hedging(after: .fixed(.milliseconds(50))),
                    endpoints: .endpoints(["https://a.test", "https://b.test"].compactMap(Origin.init)))
            }
        ),
        ("AIMD", { [.retry(), .circuitBreaker(), .concurrencyLimit(.aimd()), .serverRateLimit()] }),
    ]

    private func service(_ name: String) -> (MockService, TestClock) {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        mock.on(.any, [503, .text("beer")])
        mock.service.interceptors = Self.sets.first { $0.name == name }?.interceptors() ?? []
        return (mock, clock)
    }

    @Test("The sets work for requests, and explain what they did", arguments: sets.map(\.name))
    func requests(name: String) async throws {
        let (mock, clock) = service(name)
        let task = mock.service.GET("/").string().resume()
        await clock.advance(by: .seconds(5))
        #expect(try await task.value == "beer")
        #expect(task.timeline.explain().contains("The request was sent again: status 503, pause of "))
    }

    @Test("The sets work for streams", arguments: sets.map(\.name))
    func streams(name: String) async throws {
        let (mock, clock) = service(name)
        let task = mock.service.GET("/").stream().resume()
        await clock.advance(by: .seconds(5))
        #expect(try await task.value.body.collect(upTo: 100) == Data("beer".utf8))
        #expect(task.timeline.explain().contains("The request was sent again"))
    }

    @Test("The sets work for typed requests", arguments: sets.map(\.name))
    func typedRequests(name: String) async throws {
        let (mock, clock) = service(name)
        let task = mock.service.perform(RootRequest())
        task.resume()
        await clock.advance(by: .seconds(5))
        #expect(try await task.value == "beer")
        #expect(mock.receivedRequests.count == 2)
    }
}

private struct RootRequest: HTTPServiceRequest {
    typealias Output = String

    func request(for service: WebService) -> Request { service.request(.GET, path: "/") }
}
