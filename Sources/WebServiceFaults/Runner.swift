import Dispatch
import WebServiceCore
import WebServiceMocking

/// An object that makes the runs of an exploration.
final class Runner<Model: Sendable, Output: Sendable>: Sendable {
    typealias Run = FaultRun<Model, Output>

    private let explorer: FaultExplorer<Model>
    private let body: @Sendable (MockService) async throws -> Output
    private let flush = Flush()
    let thread = RunThread()
    private let late = Mutex<[FaultPlan]>([])

    init(_ explorer: FaultExplorer<Model>, _ body: @escaping @Sendable (MockService) async throws -> Output) {
        (self.explorer, self.body) = (explorer, body)
    }

    /// Removes and returns the plan of a run after whose end a request has arrived.
    func takeLate() -> FaultPlan? { late.withLock { $0.popLast() } }

    /// Waits until code that outlives its run has had its turn.
    nonisolated(nonsending) func flushLate() async {
        await withCheckedContinuation { continuation in
            thread.async { [flush] in
                for _ in 0..<4 { flush.round() }
                continuation.resume()
            }
        }
    }

    /// Returns the counted requests that occurred in no run and match no stub.
    func unknown(among counted: CountedRequests) -> [String] {
        let mock = MockService(baseURLString: explorer.baseURLString)
        _ = try? explorer.makeModel(mock)
        return counted.unknown(mock.stubTable)
    }

    /// - Throws: The error of the explorer's closure, or ``FaultViolation`` if a step of the plan
    ///   does not exist.
    nonisolated(nonsending) func run(_ plan: FaultPlan, _ settings: RunDriver.Settings) async throws -> Run {
        let steps = try plan.steps.map { try RunDriver.Step($0, of: plan, explorer.faults) }
        let driver = RunDriver(plan, steps, settings, flush, name: explorer.exchangeName) { [weak self] in
            self?.late.withLock { if $0.last != plan { $0.append(plan) } }
        }
        let mock = MockService(baseURLString: explorer.baseURLString, clock: driver.clock, gate: driver)
        let model = try explorer.makeModel(mock)
        let outcome = Mutex<Result<Output, any Error>?>(nil)
        let task = Task(executorPreference: driver.work) { [body] in
            let result: Result<Output, any Error>
            do { result = .success(try await body(mock)) } catch { result = .failure(error) }
            outcome.withLock { $0 = result }
            driver.bodyDidEnd(result)
        }
        let end = Once<FaultTrace?>()
        driver.watch { [thread] in
            if end.isSet { return }
            thread.abandon()
            end.set(nil)
        }
        thread.async { end.set(driver.drive { task.cancel() }) }
        let trace = await end.value ?? driver.stop()
        return FaultRun(trace: trace, model: model, outcome: outcome.withLock { $0 })
    }
}

/// The thread of the drivers. The exploration and its checks also run on it, unless the main actor
/// or an actor with an executor runs them, because a change of the thread for each run would take
/// longer than most exchanges.
final class RunThread: TaskExecutor {
    private let queue = Mutex(DispatchQueue(label: "WebService.faults"))

    func async(_ body: @escaping @Sendable () -> Void) { queue.withLock { $0 }.async(execute: body) }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    /// Replaces the thread if code of a run never returns.
    func abandon() { queue.withLock { $0 = DispatchQueue(label: "WebService.faults") } }
}
