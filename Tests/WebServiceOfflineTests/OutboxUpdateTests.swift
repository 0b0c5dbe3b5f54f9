import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOffline

@Suite("The updates of an outbox", .permit)
struct OutboxUpdateTests {
    private let fixture = OfflineFixture()
    private var mock: MockService { fixture.mock }
    private var clock: TestClock { fixture.clock }

    private func post(_ path: String) -> Request { mock.service.request(.POST, path: path) }

    @Test("A change that takes place while another one is delivered is delivered after it")
    func order() async throws {
        mock.on(.POST, "/{n}", .status(400))
        let outbox = try await fixture.open()
        let ids = [try await outbox.submit(post("/0")), try await outbox.submit(post("/1"))]
        await clock.advance(by: .zero)
        let received = Collected<Outbox.Entry>()
        let executor = HookExecutor()
        let updates = outbox.updates
        let reader = Task(executorPreference: executor) {
            for await case .entry(let entry) in updates { received.add(entry) }
        }
        executor.runJobs()
        // The delivery of the first change starts both entries.
        executor.setHook { outbox.sendNext() }
        outbox.retry()
        await clock.advance(by: .zero)
        await outbox.close()
        await reader.value
        for id in ids {
            #expect(received.values.filter { $0.id == id }.map(\.state) == [.waiting, .sending, .blocked])
        }
    }

    @Test("The changes of a request that a closed outbox cancels are delivered before the end")
    func closing() async throws {
        mock.on(.POST, "/a", .status(200).after(.seconds(10)))
        let outbox = try await fixture.open()
        let updates = outbox.updates
        try await outbox.submit(post("/a"))
        await clock.advance(by: .seconds(1))
        await outbox.close()
        var states: [Outbox.Entry.State] = []
        for await case .entry(let entry) in updates { states.append(entry.state) }
        #expect(states == [.waiting, .sending, .waiting])
    }
}

/// An executor that calls a closure once, when a job is added.
private final class HookExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "HookExecutor")
    private let hook = Mutex<(@Sendable () -> Void)?>(nil)

    func setHook(_ hook: @escaping @Sendable () -> Void) { self.hook.withLock { $0 = hook } }

    /// Runs the jobs that were added.
    func runJobs() { queue.sync {} }

    func enqueue(_ job: consuming ExecutorJob) {
        hook.withLock { $0.take() }?()
        let job = UnownedJob(job)
        queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
