import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceMocking
import WebServiceOffline
import WebServiceResilience

@testable import WebServiceInspector

@Suite("Policies in the inspector", .permit)
struct InspectedPolicyTests {
    private let clock = TestClock()
    private let inspected: InspectedService

    init() {
        inspected = InspectedService(clock: clock)
    }

    /// Sends a request with interceptors, and returns what the page shows of it.
    private func show(_ interceptors: [any Interceptor], _ responses: [MockResponse]) async throws -> ShownExchange {
        inspected.session.on(.any, responses)
        var request = Request(url: "https://h.example.com/x")
        request.options.interceptors = interceptors
        let task = inspected.service.sessionTask(request: request).data().resume()
        await clock.advance(by: .seconds(1))
        _ = await task.result
        await eventually { inspected.store.exchanges().allSatisfy { $0.phase == .ended } }
        return ShownExchange(try #require(inspected.store.exchanges().first), .standard)
    }

    @Test("The page shows each decision of limits, circuits and endpoints, and the explanation")
    func decisions() async throws {
        let endpoints = ["https://a.test", "https://b.test"].compactMap(Origin.init)
        let shown = try await show(
            [
                RetryPolicy(baseDelay: .milliseconds(1)), .endpoints(endpoints, maximumFailures: 1),
                .circuitBreaker(opensAfter: .consecutiveFailures(1)), .concurrencyLimit(.aimd(initial: 4)),
                .serverRateLimit(),
            ],
            [
                .status(503).header("RateLimit", "\"default\";r=9;t=1").header("Retry-After", "0"),
                .text("beer").header("Deprecation", "@1767225600"),
            ])
        let kinds = Set(shown.events.map(\.kind))
        #expect(kinds.isSuperset(of: ["endpoint", "circuit", "limit", "quota", "retry", "notice"]))
        for text in [
            "https://a.test is skipped for 10.0 seconds", "https://b.test instead of https://a.test",
            "circuit: opened.", "limit: lowered from 4 to 2.", "deprecated since 2026-01-01",
        ] {
            #expect(shown.explanation.contains { $0.contains(text) }, "\(text)")
        }
    }

    @Test("The page shows both requests of a hedging, and the decision")
    func hedging() async throws {
        let shown = try await show(
            [.hedging(after: .fixed(.milliseconds(1)))], [.text("late").after(.seconds(60)), .text("beer")])
        #expect(shown.explanation.contains("hedging: the response to the second request arrived first."))
        #expect(inspected.store.exchanges().count == 2)
    }

    @Test("The page shows the entry of a request that an outbox sends")
    func outbox() async throws {
        let inspected = InspectedService()
        inspected.session.on(.any, .text("beer"))
        let outbox = try inspected.service.outbox(in: TemporaryFolder.forTest().url)
        let request = Request(.POST, url: "https://h.example.com/x")
        let id = try await outbox.submit(request, entity: "todo/7")
        await eventually { inspected.store.exchanges().first?.phase == .ended }
        await outbox.close()
        let shown = ShownExchange(try #require(inspected.store.exchanges().first), .standard)
        #expect(shown.events.first { $0.kind == "outbox" }?.detail == "attempt 1 of entry \(id) for todo/7")
        #expect(shown.explanation.contains("outbox: attempt 1 of entry \(id) for todo/7."))
    }
}
