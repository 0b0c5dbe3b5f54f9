import Dispatch
import Foundation

/// The threads on which exchanges continue and handlers run, on the global dispatch queue.
///
/// A transport delivers responses in batches, and waking a thread for each response costs more than
/// most handlers do. A worker therefore runs one job after another. Another worker starts if
/// several jobs wait, or if no job was started for a millisecond because a handler blocks. Each
/// blocking handler therefore delays others by about a millisecond, provided that Dispatch has
/// threads available (`Documentation/Concurrency.md`).
package final class HandlerPool: TaskExecutor {
    package static let shared = HandlerPool()

    private struct State {
        var waiting = Queue<Work>()
        var workers = 0
        /// The number of jobs that were started, which indicates progress.
        var begun: UInt64 = 0
        var isWatched = false
        /// The number of batches that are being delivered.
        var batches = 0

        /// Returns the action that the waiting work requires.
        mutating func need() -> Need {
            guard !waiting.isEmpty else { return .nothing }
            // A delivery may block until a job of its own batch has run, so it is watched as well.
            if batches == 0, workers == 0 || workers < HandlerPool.processors && waiting.count > HandlerPool.patience {
                workers += 1
                return .worker
            }
            defer { isWatched = true }
            return isWatched ? .nothing : .watch(begun)
        }
    }

    private struct Work {
        let job: UnownedJob
        let executor: UnownedTaskExecutor
        /// The token of the work, which is retained until the job has run.
        let token: WorkCount.Token?
    }

    private enum Need {
        case nothing, worker
        case watch(UInt64)
    }

    private let state = Mutex(State())
    private static let processors = max(2, ProcessInfo.processInfo.activeProcessorCount)
    /// The number of jobs that may wait before another worker starts.
    private static let patience = 8

    /// The number of waiting jobs at which threads that add further jobs yield the processor.
    private static let backlog = 1_000

    private static let worker = ThreadFlag()

    /// Whether the calling code runs on a thread of the pool, and not within a call of
    /// ``startImmediately(on:_:)``.
    static var isCurrent: Bool { worker.isSet }

    /// Calls a closure on the calling thread, which counts as a thread of the pool during the call.
    static func asWorker(_ body: () -> Void) {
        let wasSet = worker.isSet
        worker.isSet = true
        body()
        worker.isSet = wasSet
    }

    /// Schedules a job, which does not run during the call.
    package func enqueue(_ job: consuming ExecutorJob) {
        add(Work(job: UnownedJob(job), executor: asUnownedTaskExecutor(), token: nil))
    }

    /// Schedules a job of another executor. The job does not run during the call.
    ///
    /// - Parameter token: The work of a test clock, which ends when the job has run.
    package func enqueue(_ job: UnownedJob, of executor: UnownedTaskExecutor, _ token: WorkCount.Token? = nil) {
        add(Work(job: job, executor: executor, token: token))
    }

    private func add(_ work: Work) {
        let (need, isBehind) = state.withLock { state in
            state.waiting.append(work)
            return (state.need(), state.waiting.count > Self.backlog)
        }
        carryOut(need)
        // Threads that resume and cancel tasks in a loop would otherwise outrun the workers.
        if isBehind, !Self.isCurrent { sched_yield() }
    }

    /// Schedules work as a batch: no worker starts for it until `deliver` returns, unless `deliver`
    /// blocks.
    ///
    /// `deliver` must return quickly.
    package func together(_ deliver: () -> Void) {
        state.withLock { $0.batches += 1 }
        deliver()
        carryOut(
            state.withLock { state in
                state.batches -= 1
                return state.need()
            })
    }

    private func carryOut(_ need: Need) {
        switch need {
        case .nothing: break
        case .worker: addWorker()
        case .watch(let begun): watch(begun)
        }
    }

    private func addWorker() {
        DispatchQueue.global().async { [self] in
            Self.worker.isSet = true
            while let work = next() {
                work.job.runSynchronously(on: work.executor)
                withExtendedLifetime(work.token) {}
            }
            Self.worker.isSet = false
        }
    }

    private func next() -> Work? {
        state.withLock { state in
            guard let work = state.waiting.popFirst() else {
                state.workers -= 1
                return nil
            }
            state.begun &+= 1
            return work
        }
    }

    /// Checks for progress again in a millisecond, while work is waiting.
    private func watch(_ begun: UInt64) {
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(1)) { [self] in
            let (isStuck, next) = state.withLock { state -> (Bool, UInt64?) in
                guard !state.waiting.isEmpty else {
                    state.isWatched = false
                    return (false, nil)
                }
                let isStuck = state.begun == begun
                if isStuck { state.workers += 1 }
                return (isStuck, state.begun)
            }
            if isStuck { addWorker() }
            if let next { watch(next) }
        }
    }

    // MARK: Starting

    /// Starts a Swift task that runs on the calling thread until it first waits (SE-0472), and then
    /// on an executor.
    ///
    /// This avoids waking another thread, and preserves the order of several starts. A nonisolated
    /// asynchronous function never runs on the main actor. On earlier systems, the task starts on
    /// the executor.
    @discardableResult
    package static func startImmediately(
        on executor: (any TaskExecutor)?, _ operation: @escaping @Sendable () async -> Void
    ) -> Task<Void, Never> {
        guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
            return Task(executorPreference: executor, operation: operation)
        }
        let wasSet = worker.isSet
        if wasSet { worker.isSet = false }
        defer { if wasSet { worker.isSet = true } }
        return Task.immediate(executorPreference: executor, operation: operation)
    }
}
