package import Dispatch

/// The work in progress that a test clock waits for: tokens, and the jobs of an executor.
///
/// A Swift task with the executor counts while it is running or ready to run. A suspended task does
/// not count: what it waits for is counted separately, or is outside the package.
package final class WorkCount: TaskExecutor {
    /// Work in progress, from the creation of the token until its deallocation.
    ///
    /// The closure that does the work retains it.
    package final class Token: Sendable {
        private let work: WorkCount

        fileprivate init(_ work: WorkCount) { self.work = work }

        deinit { work.end() }
    }

    private struct State {
        var count = 0
        var waiters: [Once<Bool>] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// The count of the clock whose executor runs the current Swift task; `nil` for other tasks,
    /// and on earlier systems.
    package static var current: WorkCount? {
        guard #available(macOS 26.4, iOS 26.4, tvOS 26.4, watchOS 26.4, visionOS 26.4, *) else { return nil }
        return withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() } as? WorkCount
    }

    package func begin() -> Token {
        state.withLock { $0.count += 1 }
        return Token(self)
    }

    private func end() {
        let waiters = state.withLock { state in
            state.count -= 1
            guard state.count == 0 else { return [] as [Once<Bool>] }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.set(true) }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        HandlerPool.shared.enqueue(UnownedJob(job), of: asUnownedTaskExecutor(), begin())
    }

    /// Waits until no work is in progress.
    ///
    /// - Parameter limit: The maximum duration, measured by the system clock.
    /// - Returns: `false` if the limit is exceeded or the Swift task is cancelled first.
    package func finish(within limit: Duration) async -> Bool {
        let isFinished = Once<Bool>()
        let isAtRest = state.withLock { state in
            if state.count > 0 { state.waiters.append(isFinished) }
            return state.count == 0
        }
        guard !isAtRest else { return true }
        return await TaskClock.system.value(of: isFinished, orAfter: limit, false, orIfCancelled: false)
    }
}

extension TaskClock {
    /// The executor of exchanges and handlers: ``HandlerPool``, or one that this clock waits for.
    package var executor: any TaskExecutor { work ?? HandlerPool.shared }

    /// A Boolean value that indicates whether the clock waits for work in progress.
    package var countsWork: Bool { work != nil }

    /// Begins work that this clock waits for; `nil` for clocks that do not wait.
    package func beginWork() -> WorkCount.Token? { work?.begin() }

    /// Runs a closure on a queue. The closure counts as work in progress until it returns.
    package func async(on queue: DispatchQueue = .global(), _ body: @escaping @Sendable () -> Void) {
        guard let token = beginWork() else { return queue.async(execute: body) }
        queue.async {
            body()
            withExtendedLifetime(token) {}
        }
    }
}
