import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// Verifies the budget of retries that requests share.
@Suite("RetryBudget", .permit)
struct RetryBudgetTests {
    private func service(_ session: any Session, _ policy: RetryPolicy, _ clock: ManualTimekeeper = ManualTimekeeper())
        -> WebService
    {
        let service = WebService.make(session, timekeeper: clock)
        service.interceptors = [policy]
        return service
    }

    @Test(
        "2,000 failing requests cause no more retries than the capacity and the returned tokens allow")
    func storm() async {
        let session = ScriptedSession([.status(503)])
        let budget = RetryPolicy.Budget(capacity: 100, ratio: 0.1)
        let service = service(session, RetryPolicy(maximumAttempts: 10, retryBudget: budget, pause: { _ in }))
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2_000 { group.addTask { _ = await service.GET("/x").data().result } }
        }
        let retries = session.sent.count - 2_000
        #expect(retries >= 100)
        #expect(retries <= 300)
        #expect(budget.availableRetries <= 100)
    }

    @Test("Without a token, no pause starts, no timer remains, and the response is the outcome")
    func timers() async {
        let session = ScriptedSession([.status(503)])
        let clock = ManualTimekeeper()
        let budget = RetryPolicy.Budget(capacity: 3, ratio: 0)
        let service = service(session, RetryPolicy(maximumAttempts: 2, retryBudget: budget), clock)
        let ends = Collected<Int>()
        for _ in 0..<500 { service.GET("/x").response { _, _ in ends.add(1) }.resume() }
        await ends.wait(for: 497)
        // Each of the three waiting requests has a pause and a deadline.
        await eventually("the pauses begin") { clock.pending == 6 }
        #expect(session.sent.count == 500)
        clock.advance(by: .seconds(30))
        await ends.wait(for: 500)
        #expect(session.sent.count == 503)
        await eventually { clock.pending == 0 }
    }

    @Test("The timeline names the exhausted budget, and a success takes no token")
    func timeline() async throws {
        let budget = RetryPolicy.Budget(capacity: 1, ratio: 0)
        let failing = service(
            ScriptedSession([.status(503)]), RetryPolicy(maximumAttempts: 9, retryBudget: budget, pause: { _ in }))
        let task = failing.GET("/x").data()
        #expect(try await task.response.status == 503)
        #expect(task.task.timeline.events.filter { $0.kind == .attempt }.count == 2)
        #expect(
            task.task.timeline.events.last { $0.kind == .noRetry }?.detail
                == "status 503, the shared retry budget is exhausted")
        let other = RetryPolicy.Budget(capacity: 1, ratio: 0)
        let succeeding = service(ScriptedSession([.status(200)]), RetryPolicy(retryBudget: other))
        for _ in 0..<10 { #expect(try await succeeding.GET("/x").data().response.status == 200) }
        #expect(other.availableRetries == 1)
    }

    @Test(
        "A budget accepts any capacity and ratio and never holds more tokens than its capacity",
        arguments: [
            (-1, 0.5, 0), (Int.min, .nan, 0), (2, .nan, 2), (2, .infinity, 2), (2, -.infinity, 2),
            (Int.max, 1, 1_000_000),
        ])
    func extremes(capacity: Int, ratio: Double, available: Int) {
        let budget = RetryPolicy.Budget(capacity: capacity, ratio: ratio)
        budget.recordRequest()
        #expect(budget.ratio >= 0)
        #expect(budget.ratio <= 1)
        #expect(budget.availableRetries == available)
        #expect(budget.takeRetry() == (available > 0))
    }

    @Test("Each request returns a fraction of a token, as specified by the ratio")
    func ratio() {
        let budget = RetryPolicy.Budget(capacity: 1, ratio: 0.25)
        #expect(budget.takeRetry())
        for _ in 0..<3 { budget.recordRequest() }
        #expect(!budget.takeRetry())
        budget.recordRequest()
        #expect(budget.takeRetry())
    }
}
