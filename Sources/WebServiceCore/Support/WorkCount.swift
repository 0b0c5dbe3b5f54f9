package import Dispatch

/// The work in progress that a test clock waits for: tokens, and the jobs of an executor.
///
/// A Swift task with the executor counts while it is running or ready to run. A suspended task does
/// not count: what it waits for is counted separately, or is outside the package.
package final class WorkCount: TaskExecutor {
    /// Work in progress, from the creation of the token until its deallocation.
    ///
    /// The closure that does the work retains the token.
    package final class Token: Sendable {
        private let work: WorkCount

        fileprivate init(_ work: WorkCount) { self.work = work }

        deinit { work.end(isToken: true) }
    }

    private enum Job: Sendable {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    private struct State {
        var count = 0
        /// The number of tokens, which are a part of the count.
        var tokens = 0
        /// Whether a thread other than the driving one has added a job or recorded an event while
        /// no token existed.
        var hasForeignJobs = false
        var waiters: [Once<Bool>] = []
        /// The jobs that wait for ``runJobs()``, in order.
        var jobs = Queue<Job>()
        var driving = Driving.driven
    }

    /// The handling of the jobs of a driven count.
    private enum Driving {
        case driven, released, abandoned
    }

    private let state = Mutex(State())
    /// A closure that is called when there is a job, and when no work is in progress; `nil` if
    /// ``HandlerPool`` runs the jobs.
    private let wakeDriver: (@Sendable () -> Void)?

    package init() { wakeDriver = nil }

    /// Creates a count whose jobs run only within ``runJobs()``, one at a time and in order.
    ///
    /// - Parameter wakeDriver: A closure that is called on any thread when there is a job to run,
    ///   and when no work is in progress. It must not call the count.
    package init(wakeDriver: @escaping @Sendable () -> Void) { self.wakeDriver = wakeDriver }

    /// The count of the clock whose executor runs the current Swift task; `nil` for other tasks,
    /// and on earlier systems.
    package static var current: WorkCount? {
        guard #available(macOS 26.4, iOS 26.4, tvOS 26.4, watchOS 26.4, visionOS 26.4, *) else { return nil }
        return withUnsafeCurrentTask { $0?.unownedTaskExecutor?.asTaskExecutor() } as? WorkCount
    }

    package func begin() -> Token {
        state.withLock { state in
            state.count += 1
            state.tokens += 1
        }
        return Token(self)
    }

    private func end(isToken: Bool = false) {
        let waiters = state.withLock { state -> [Once<Bool>]? in
            state.count -= 1
            if isToken { state.tokens -= 1 }
            guard state.count == 0 else { return nil }
            defer { state.waiters = [] }
            return state.waiters
        }
        guard let waiters else { return }
        for waiter in waiters { waiter.set(true) }
        wakeDriver?()
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if !add(.job(job)) { HandlerPool.shared.enqueue(job, of: asUnownedTaskExecutor(), begin()) }
    }

    // MARK: Driving

    /// The count that the calling thread drives.
    private static let driver = ThreadFlag()

    private var isDriving: Bool {
        Self.driver.pointer == UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
    }

    /// Calls a closure on the thread that runs the jobs.
    package func drive<Value>(_ body: () -> Value) -> Value {
        Self.driver.pointer = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        defer { Self.driver.pointer = nil }
        state.withLock { $0.hasForeignJobs = false }
        return body()
    }

    /// Records an event on the calling thread, which ``hasForeignEvents`` reports.
    package func noteEvent() {
        if !isDriving { state.withLock { $0.hasForeignJobs = $0.hasForeignJobs || $0.tokens == 0 } }
    }

    /// Whether a thread other than the driving one has added a job or recorded an event while no
    /// token existed, for example in a Swift task without the executor.
    package var hasForeignEvents: Bool { state.withLock { $0.hasForeignJobs } }

    /// Whether work is in progress.
    package var isActive: Bool { state.withLock { $0.count > 0 } }

    /// Adds a closure, which ``runJobs()`` runs.
    ///
    /// - Returns: `false` if the count is not driven or no longer driven. The closure is then not
    ///   retained. An abandoned count discards it and returns `true`.
    func add(_ body: @escaping @Sendable () -> Void) -> Bool { add(.closure(body)) }

    private func add(_ job: Job) -> Bool {
        guard let wakeDriver else { return false }
        let driving = state.withLock { state in
            guard state.driving == .driven else { return state.driving }
            state.count += 1
            state.jobs.append(job)
            if state.tokens == 0, !isDriving { state.hasForeignJobs = true }
            return .driven
        }
        if driving == .driven { wakeDriver() }
        return driving != .released
    }

    /// Runs the waiting jobs of a driven count, and the jobs that they add, on the calling thread.
    ///
    /// - Returns: The number of jobs.
    package func runJobs(maximum: Int = .max) -> Int {
        var count = 0
        HandlerPool.asWorker {
            while count < maximum, let job = state.withLock({ $0.jobs.popFirst() }) {
                switch job {
                case .job(let job): job.runSynchronously(on: asUnownedTaskExecutor())
                case .closure(let body): body()
                }
                count += 1
                end()
            }
        }
        return count
    }

    /// Ends the handling of jobs by ``runJobs()``.
    ///
    /// - Parameter isAbandoned: Whether the waiting jobs and later ones never run. Otherwise, the
    ///   waiting jobs run during the call, and ``HandlerPool`` runs later ones.
    package func stopDriving(isAbandoned: Bool) {
        state.withLock { $0.driving = isAbandoned ? .abandoned : .released }
        if !isAbandoned { _ = runJobs() }
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

    /// Whether the clock waits for work in progress.
    package var countsWork: Bool { work != nil }

    /// Begins work that this clock waits for; `nil` for clocks that do not wait.
    package func beginWork() -> WorkCount.Token? { work?.begin() }

    /// Runs a closure on a queue. The closure counts as work in progress until it returns.
    ///
    /// - Parameter queue: The queue. Defaults to `nil`: the global queue, or the driver of a driven
    ///   count.
    package func async(on queue: DispatchQueue? = nil, _ body: @escaping @Sendable () -> Void) {
        guard let work else { return (queue ?? .global()).async(execute: body) }
        if queue == nil, work.add(body) { return }
        let token = work.begin()
        (queue ?? .global()).async {
            body()
            withExtendedLifetime(token) {}
        }
    }
}
