import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServiceOffline
import WebServiceResilience

/// Explorations of the package's own policies.
@Suite(.permit) struct PolicyTests {
    private static func budget<Model>(runs: Int, depth: Int = 3) -> FaultExplorer<Model>.Budget {
        var budget = FaultExplorer<Model>.Budget()
        budget.runs = amount(runs, thorough: 10_000)
        budget.depth = amount(depth, thorough: 3)
        return budget
    }

    @Test("With a retry policy, a GET request survives each transient fault, and an order is made at most once")
    func retry() async {
        let explorer = FaultExplorer(budget: Self.budget(runs: 500)) { mock in
            mock.service.interceptors = [RetryPolicy(maximumAttempts: 3)]
            mock.on(.GET, "/user", .json(["id": 1]))
            mock.on(.POST, "/orders", .json(["id": 1], status: 201))
        }
        let transient = ["refused", "reset", "lost", "slow", "408", "429", "429retry", "503"]
        let report = await explorer.explore { mock in
            _ = try await mock.service.GET("/user").data().value
            return try await mock.service.POST("/orders").data().value
        } check: { run in
            try run.require(.everyCallEnds)
            try run.require(.noEffectTwice(.POST, "/orders"))
            try run.require(.noEffectLost(.POST, "/orders"))
            try run.require(.atMost(6))
            if let step = run.plan.steps.first, run.plan.steps.count == 1, !step.isLasting,
                step.exchange == "GET /user#1", transient.contains(step.fault)
            {
                try run.require(run.output != nil, "a transient fault is not retried")
            }
        }
        #expect(report.failures.isEmpty, "\(report)")
        #expect(report.problems == [])
        #expect(report.runs > 100)
    }

    @Test("With hedging, a late response costs a second, and only requests that may be repeated are")
    func hedging() async {
        let explorer = FaultExplorer(budget: Self.budget(runs: 300)) { mock in
            mock.service.interceptors = [.hedging(after: .fixed(.seconds(1)))]
            mock.on(.GET, "/beer", .json(["id": 1]))
            mock.on(.POST, "/orders", .json(["id": 1], status: 201))
        }
        let report = await explorer.explore { mock in
            _ = try await mock.service.GET("/beer").data().value
            let elapsed = mock.clock?.elapsed ?? .zero
            _ = try await mock.service.POST("/orders").data().value
            return elapsed
        } check: { run in
            try run.require(.everyCallEnds)
            try run.require(run.requests.count { $0.name.hasPrefix("POST /orders#") } <= 1, "an order is hedged")
            try run.require(run.requests.count { $0.name.hasPrefix("GET /beer#") } <= 2, "a request is hedged twice")
            let late: [FaultPlan] = ["GET /beer#1=slow", "GET /beer#1=stalled", "GET /beer#1=stalledAfter"]
            if late.contains(run.plan) {
                try run.require(run.output == .seconds(1), "a late response is not hedged")
            }
        }
        #expect(report.failures.isEmpty, "\(report)")
        #expect(report.problems == [])
        #expect(report.runs > 60)
    }

    /// A server whose tokens expire.
    private final class TokenServer: Sendable {
        private let number = Mutex(1)

        func renewed() -> String {
            number.withLock { number in
                number += 1
                return "\(number)"
            }
        }

        func respond(to request: ReceivedRequest) -> MockResponse {
            let valid = number.withLock { $0 > 1 ? "Bearer \($0)" : nil }
            return valid != nil && request.headers[.authorization] == valid ? .json(["id": 1]) : .status(401)
        }
    }

    private struct Tokens: TokenProvider {
        let service: WebService

        func credential() async throws -> Credential? { .bearer("1") }

        func refresh(_ rejected: Credential?) async throws -> Credential? {
            .bearer(try await service.POST("/token").decode([String: String].self).value["token"] ?? "")
        }
    }

    @Test("Two requests share a refresh, whatever happens to it, and end")
    func refresh() async {
        let explorer = FaultExplorer(budget: Self.budget(runs: 400)) { mock in
            let server = TokenServer()
            mock.on(.GET, "/a") { server.respond(to: $0) }
            mock.on(.GET, "/b") { server.respond(to: $0) }
            mock.on(.POST, "/token") { _ in .json(["token": server.renewed()]) }
            return server
        }
        let report = await explorer.explore { mock in
            let service = mock.service
            let plain = WebService(
                baseURLString: "https://mock.test", passthroughDelegate: nil, timekeeper: mock.clock)
            plain.session = mock.session
            service.interceptors = [Authentication(Tokens(service: plain))]
            let (first, second) = (service.GET("/a").data().resume(), service.GET("/b").data().resume())
            return [try? await first.value, try? await second.value].count { $0 != nil }
        } check: { run in
            try run.require(.everyCallEnds)
            try run.require(.noCredentialElsewhere())
            try run.require(
                !run.requests.contains { $0.name == "GET /a#3" || $0.name == "GET /b#3" },
                "a request is repeated twice")
            try run.require(run.effects(.POST, "/token") <= 2, "the token is refreshed more than once for each request")
            if run.plan.steps.isEmpty {
                try run.require(run.output == 2, "a request fails")
                try run.require(run.effects(.POST, "/token") == 1, "the token is refreshed twice")
            }
        }
        #expect(report.failures.isEmpty, "\(report)")
        #expect(report.problems == [])
        #expect(report.runs > 100)
    }

    /// A server that honours `Idempotency-Key`, and notes the changes that it makes.
    private final class ChangeServer: Sendable {
        private let state = Mutex((keys: Set<String>(), changes: [String]()))

        var changes: [String] { state.withLock { $0.changes } }

        func respond(to request: ReceivedRequest) -> MockResponse {
            state.withLock { state in
                if state.keys.insert(request.headers["Idempotency-Key"] ?? "").inserted {
                    state.changes.append(request.path)
                }
            }
            return .status(201)
        }
    }

    @Test("An outbox loses no change, makes none twice, and keeps the order of an entity")
    func outbox() async throws {
        let folder = TemporaryFolder()
        let number = Mutex(0)
        let explorer = FaultExplorer(faults: Fault.transport + Fault.server, budget: Self.budget(runs: 20, depth: 1)) {
            mock in
            let server = ChangeServer()
            mock.on(.where("any") { _ in true }) { server.respond(to: $0) }
            return server
        }
        let report = await explorer.explore { mock in
            let name = number.withLock { number in
                number += 1
                return "outbox\(number)"
            }
            var options = Outbox.Options()
            options.pollInterval = .seconds(3_600)
            let outbox = try mock.service.outbox(in: folder.url.appendingPathComponent(name), options: options)
            for path in ["/first", "/second"] {
                try await outbox.submit(mock.service.request(.POST, path: path), entity: "1")
            }
            try await mock.service.clock.sleep(for: .seconds(600))
            var remaining: [String] = []
            for entry in await outbox.entries {
                remaining.append(try await outbox.request(of: entry.id)?.url?.path ?? "")
            }
            await outbox.close()
            return remaining
        } check: { run in
            try run.require(run.end == .returned, "the outbox fails")
            let changes = run.model.changes
            try run.require(changes.count == Set(changes).count, "a change is made twice")
            try run.require(changes == changes.sorted(), "the second change is made before the first one")
            if let remaining = run.output {
                try run.require(
                    ["/first", "/second"].allSatisfy { (changes + remaining).contains($0) }, "a change is lost")
            }
        }
        #expect(report.failures.isEmpty, "\(report)")
        #expect(report.problems == [])
        #expect(report.runs > 15)
    }
}
