import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCore

@Suite("Executors of completions", .permit)
struct CompletionExecutorTests {
    /// An executor that runs jobs on a queue and counts them.
    private final class QueueExecutor: TaskExecutor {
        let jobs = Collected<Void>()
        private let key = DispatchSpecificKey<Bool>()
        private let queue = DispatchQueue(label: "CompletionExecutorTests")

        init() { queue.setSpecific(key: key, value: true) }

        var isCurrent: Bool { DispatchQueue.getSpecific(key: key) == true }

        func enqueue(_ job: consuming ExecutorJob) {
            jobs.add(())
            let job = UnownedJob(job)
            queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }

    @Test("A completion runs on its executor, and later handlers wait for it")
    func executor() async throws {
        let executor = QueueExecutor()
        let events = Collected<String>()
        let task = WebService.make(HandSession(text: "ale")).GET("/x").string()
            .onSuccess { _ in events.add("before \(executor.isCurrent)") }
            .onCompletion(on: executor) { events.add("\((try? $0.get()) ?? "-") \(executor.isCurrent)") }
            .onSuccess { _ in events.add("after \(executor.isCurrent)") }
        #expect(try await task.value == "ale")
        #expect(await events.wait(for: 3) == ["before false", "ale true", "after false"])
        task.onCompletion(on: executor) { _ in events.add("late \(executor.isCurrent)") }
        #expect(await events.wait(for: 4).last == "late true")
        #expect(executor.jobs.values.count >= 2)
    }

    @Test("A completion on an executor receives the error and the cancellation of a typed request")
    func failures() async {
        let executor = QueueExecutor()
        let endpoint = HandEndpoint()
        let service = WebService(endpoints: [endpoint])
        let results = Collected<Bool>()
        let isCurrent = Collected<Bool>()
        for _ in 0..<2 {
            service.perform(TextRequest())
                .onCompletion(on: executor) {
                    isCurrent.add(executor.isCurrent)
                    results.add(ServiceResponse($0).isCanceled)
                }
                .resume()
        }
        for fetch in await endpoint.fetches.wait(for: 2).prefix(1) { fetch.fail(TestError()) }
        await results.wait()
        service.cancelRequests()
        #expect(await results.wait(for: 2) == [false, true])
        #expect(isCurrent.values == [true, true])
    }
}
