import WebServiceCore
import WebServiceMocking

/// A driver of one run on one thread. It runs the jobs of the test clock, releases the waiting
/// requests one at a time, and advances the clock if no request waits.
final class RunDriver: Sendable {
    /// A closure that cancels the Swift task of the explored code.
    typealias Cancel = @Sendable () -> Void

    /// The limits and settings of a run.
    struct Settings: Sendable {
        var maximumExchanges: Int
        /// Whether code is expected that the clock does not count: threads, tasks or actors.
        var isThorough = true
        /// The real time after which code that nothing can wake is considered hung, in
        /// milliseconds.
        var patience = 2_000
        /// The requests whose effects the check counts.
        let counted = CountedRequests()
    }

    /// A step of a plan with its fault.
    struct Step: Sendable {
        /// The name of the exchange without its number: `GET /socket` for `GET /socket#1`, and
        /// `GET /socket#1.` for the message `GET /socket#1.3`.
        let name: String
        let number: Int
        let isLasting: Bool
        let fault: Fault

        /// - Throws: ``FaultViolation`` that names what does not exist.
        init(_ step: FaultPlan.Step, of plan: FaultPlan, _ faults: [Fault]) throws(FaultViolation) {
            let sign = step.exchange.lastIndex(of: "#") ?? step.exchange.endIndex
            let end = step.exchange[sign...].lastIndex(of: ".")
            let digits = step.exchange[(end ?? sign)...].dropFirst()
            guard let number = Int(digits), number > 0 else {
                throw FaultViolation(
                    "the step '\(step)' of the plan '\(plan)' names no exchange; write one such as 'GET /path#1'")
            }
            guard let fault = faults.first(where: { $0.name == step.fault }) ?? Fault(positioned: step.fault) else {
                throw FaultViolation("the fault '\(step.fault)' of the plan '\(plan)' does not exist")
            }
            name = String(end == nil ? step.exchange[..<sign] : step.exchange[..<digits.startIndex])
            (self.number, isLasting, self.fault) = (number, step.isLasting, fault)
        }
    }

    struct State {
        var trace: FaultTrace
        var numbers: [String: Int] = [:]
        var end: FaultTrace.End?
        var isStopped = false
        /// The requests and messages that wait; `nil` after the run, when later ones wait forever.
        var parked: [Parked]? = []
        /// The names of released exchanges, for the messages of handshakes.
        var names: [ObjectIdentifier: String] = [:]
        /// The number of arrivals and of ends of the explored code.
        var events = 0
        /// Whether the run has ended, and has not been abandoned.
        var isComplete = false
        /// The alarm of ``watch(after:onStop:)``.
        var watch: Alarm?
    }

    let clock: TestClock
    let work: WorkCount
    let wake = ThreadSignal()
    let steps: [Step]
    private let settings: Settings
    private let flush: Flush
    let name: @Sendable (ReceivedRequest) -> String
    let onLateRequest: @Sendable () -> Void
    let state: Mutex<State>

    private static let maximumDuration = Duration.seconds(3600)
    /// The limits for the time after the end of the explored code.
    private static let (extraDuration, extraExchanges) = (Duration.seconds(120), 50)

    /// - Parameters:
    ///   - name: A closure that returns the name of an exchange without its number.
    ///   - onLateRequest: A closure that is called for each request that arrives after the run is
    ///     complete.
    init(
        _ plan: FaultPlan, _ steps: [Step], _ settings: Settings, _ flush: Flush,
        name: @escaping @Sendable (ReceivedRequest) -> String, onLateRequest: @escaping @Sendable () -> Void
    ) {
        let wake = wake
        work = WorkCount { wake.signal() }
        clock = TestClock(work: work)
        (self.steps, self.settings, self.flush) = (steps, settings, flush)
        (self.name, self.onLateRequest) = (name, onLateRequest)
        state = Mutex(State(trace: FaultTrace(plan: plan, counted: settings.counted)))
    }

    /// Notes the end of the explored code.
    func bodyDidEnd<Output>(_ result: Result<Output, any Error>) {
        let kind: String? = if case .failure(let error) = result { FaultTrace.kind(error) } else { nil }
        work.noteEvent()
        state.withLock { state in
            (state.end, state.trace.errorKind) = (kind == nil ? .returned : .threw, kind)
            state.events += 1
        }
        wake.signal()
    }

    /// Ends the run as soon as the driver's thread can.
    ///
    /// - Returns: The trace so far.
    func stop() -> FaultTrace {
        state.withLock { $0.isStopped = true }
        wake.signal()
        return trace(end: .busy)
    }

    /// Calls a closure if the run makes no progress for 10 seconds of real time. The closure may
    /// also be called after the end of the run.
    func watch(after last: Int? = nil, onStop: @escaping @Sendable () -> Void) {
        let events = events
        guard events != last else { return onStop() }
        let alarm = TaskClock.system.schedule(after: .seconds(10)) { [weak self] in
            self?.watch(after: events, onStop: onStop)
        }
        state.withLock { $0.watch = alarm }
    }

    // MARK: The run

    /// Runs until the explored code and its requests have ended, or a limit is reached.
    func drive(cancel: @escaping Cancel) -> FaultTrace {
        let abnormalEnd = work.drive { run(cancel) }
        let parked = state.withLock { state in
            state.isComplete = abnormalEnd == nil
            return state.parked.take()
        }
        withExtendedLifetime(parked) {}  // deallocated outside the lock
        work.stopDriving(isAbandoned: abnormalEnd != nil)
        if let watch = state.withLock({ $0.watch }) { TaskClock.system.cancel(watch) }
        return trace(end: abnormalEnd ?? .hung)
    }

    /// Returns the trace of the run so far.
    ///
    /// - Parameter end: How the run ends if the explored code has not ended.
    private func trace(end: FaultTrace.End) -> FaultTrace {
        state.withLock { state in
            (state.trace.elapsed, state.trace.end) = (clock.elapsed, state.end ?? end)
            state.trace.seesUncounted = work.hasForeignEvents
            state.trace.isStuck = state.isStopped || state.trace.end == .busy
            return state.trace
        }
    }

    /// - Returns: The reason why the run was abandoned; `nil` if it has ended.
    private func run(_ cancel: @escaping Cancel) -> FaultTrace.End? {
        var endCount: (exchanges: Int, instant: Duration)?
        while true {
            let events = events
            guard settle() else { return .busy }
            let (end, count, isStopped) = state.withLock { ($0.end, $0.trace.exchanges.count, $0.isStopped) }
            if isStopped { return .busy }
            if end != nil, endCount == nil { endCount = (count, clock.elapsed) }
            if count >= settings.maximumExchanges { return .endless }
            if let endCount, count - endCount.exchanges >= Self.extraExchanges { return .endless }
            if let next = takeNext() {
                release(next, cancel)
                continue
            }
            // Another thread may have set an alarm for a request that has not arrived yet.
            guard events == self.events else { continue }
            let limit = endCount.map { $0.instant + Self.extraDuration } ?? Self.maximumDuration
            if let delay = clock.timeToNextAlarm {
                guard clock.elapsed + delay <= limit else { return end == nil ? .overtime : nil }
                clock.fireNextAlarm()
                continue
            }
            if end != nil { return nil }
            let start = ContinuousClock.now
            // An alarm may have been set without a signal.
            guard wait(milliseconds: settings.patience) || events != self.events else { return .hung }
            state.withLock { $0.trace.realWait = max($0.trace.realWait, ContinuousClock.now - start) }
        }
    }

    /// Runs all work, including work that the clock does not count, until nothing more happens.
    ///
    /// If no uncounted work is expected, the driver does not wait for such work. If it occurs
    /// nevertheless, the run is repeated.
    ///
    /// - Returns: `false` if the work does not end.
    func settle() -> Bool {
        var quiet = 0
        while true {
            guard drain() else { return false }
            guard settings.isThorough, quiet < 4 else { return true }
            let before = events
            flush.round()
            quiet = work.isActive || events != before ? 0 : quiet + 1
        }
    }

    /// A number that changes with each request and each alarm.
    var events: Int { state.withLock { $0.events } + clock.scheduledCount }

    /// Runs the jobs of the clock, and waits for the work of other threads that the clock counts.
    func drain() -> Bool {
        var jobs = 0
        while true {
            jobs += work.runJobs(maximum: 10_000)
            guard work.isActive else { return true }
            if jobs > 1_000_000 || state.withLock({ $0.isStopped }) { return false }
            _ = wait(milliseconds: 10)
        }
    }

    /// Waits for signals, for at most the given number of milliseconds of real time.
    ///
    /// - Returns: Whether there was a signal. All signals so far are then discarded.
    private func wait(milliseconds: Int) -> Bool {
        guard wake.wait(milliseconds: milliseconds) else { return false }
        while wake.wait(milliseconds: 0) {}
        return true
    }
}
