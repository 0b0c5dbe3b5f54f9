import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Passive tasks", .permit)
struct PassiveTaskTests {
    @Test("Observers added before or after the owner completes a passive task receive its value")
    func completes() async throws {
        let passive = PassiveTask<String>()
        let heard = Collected<String>()
        passive.task.onSuccess { heard.add("early \($0)") }.updateUI { heard.add("ui \($0)") }
        #expect(heard.values.isEmpty)
        #expect(passive.complete("x"))
        await heard.wait(for: 2)
        passive.task.onSuccess { heard.add("late \($0)") }
        #expect(await heard.wait(for: 3) == ["early x", "ui x", "late x"])
        #expect(try await passive.task.value == "x")
        #expect(try await passive.task.map(\.count).value == 1)
        #expect(try await passive.task.response.source == .owner)
    }

    @Test("The first call of complete or fail sets the result, and later calls have no effect")
    func first() async throws {
        let passive = PassiveTask<Int>()
        #expect(passive.complete(1))
        #expect(!passive.complete(2))
        #expect(!passive.fail(TestError()))
        #expect(try await passive.task.value == 1)
        let failing = PassiveTask<Int>()
        #expect(failing.fail(TestError()))
        #expect(!failing.complete(1))
        await #expect(throws: TestError()) { try await failing.task.value }
    }

    @Test("An awaiting caller receives the value or the cancellation, and the owner is notified of a cancel once")
    func cancels() async throws {
        let passive = PassiveTask<Int>()
        let awaiting = Task { try await passive.task.value }
        passive.complete(7)
        #expect(try await awaiting.value == 7)

        let cancels = Collected<Void>()
        let cancelled = PassiveTask<Int> { cancels.add(()) }
        let waiting = Task { try await cancelled.task.value }
        waiting.cancel()
        await #expect(throws: URLError(.cancelled)) { try await waiting.value }
        cancelled.task.cancel()
        #expect(cancels.values.count == 1)
        #expect(!cancelled.complete(1))
    }

    @Test("Deallocating the owner of an incomplete passive task cancels the task")
    func abandoned() async throws {
        var passive: PassiveTask<Int>? = PassiveTask()
        let task = try #require(passive?.task)
        passive = nil
        await #expect(throws: URLError(.cancelled)) { try await task.value }
    }

    @Test("Exactly one of eight concurrent threads completes a passive task")
    func race() async throws {
        for _ in 0..<20 {
            let passive = PassiveTask<Int>()
            let winners = Collected<Int>()
            Thread.concurrently(8) { number in
                if passive.complete(number) { winners.add(number) }
            }
            #expect(winners.values.count == 1)
            #expect(try await passive.task.value == winners.values.first)
        }
    }
}
