import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The life cycle of a ``SessionTask`` as a value: events in, actions out. No I/O, no lock, no
/// calls to other code.
///
/// ```
/// created ──resume──▶ running ──complete──▶ complete
///    └──────────────────── cancel ─────────────▲
/// ```
struct TaskState: Sendable {
    private enum Phase: Sendable {
        indirect case created(Request, revision: Int)  // boxed to keep the state small
        case running
        case complete(Result<Response, any Error>, wasCancelled: Bool)
    }

    /// The values released when the task completes.
    private struct InFlight: Sendable {
        /// The work in progress, which can be cancelled.
        var work: Pipeline.Running?
        /// The deadline.
        var alarm: Alarm?
        /// The stored value, which is delivered before the result.
        var early: (any Prelude)?
    }

    private var phase: Phase
    private var inFlight = InFlight()
    private(set) var isSuspended = false
    /// A Boolean value that indicates whether a setter has changed the request.
    private(set) var isConfigured = false
    /// Provides the result in place of the pipeline; `nil` if the task sends its request itself.
    private var driver: Driver?
    /// A Boolean value that indicates whether a Swift task that awaits the end may run the handlers
    /// itself. It does not wait for a ``Prelude``.
    private var isAdoptable = true
    var recordsHandlers = false
    var chain = HandlerChain()
    private var delegateReference: DelegateReference?
    private var steps = Steps()

    /// The steps of typed tasks.
    private struct Steps: Sendable {
        /// The asynchronous step in progress.
        var running: Task<Void, Never>?
        var areCancelled = false
        /// A Boolean value that indicates whether the delegate was notified of a failure.
        var hasReportedFailure = false
    }

    typealias Driver = @Sendable (SessionTask, Request) -> Void

    init(request: consuming Request, driver: Driver? = nil) {
        phase = .created(request, revision: 0)
        self.driver = driver
    }

    /// The delegate, held weakly.
    var delegate: (any ServicePassthroughDelegate)? { delegateReference?.delegate }

    /// The result; `nil` until there is one.
    var result: Result<Response, any Error>? {
        if case .complete(let result, _) = phase { result } else { nil }
    }

    private var isComplete: Bool { if case .complete = phase { true } else { false } }

    /// The request with the changes of all setters, and their number; `nil` after the task was
    /// resumed.
    var unsent: (request: Request, revision: Int)? {
        if case .created(let request, let revision) = phase { (request, revision) } else { nil }
    }

    /// A Boolean value that indicates whether `cancel()` was called, even if it had no effect on
    /// the result.
    var isCancelRequested: Bool {
        if case .complete(_, wasCancelled: true) = phase { true } else { steps.areCancelled }
    }

    mutating func configure(_ change: (inout Request) -> Void) {
        guard case .created(var request, let revision) = phase else { return }
        phase = .running  // avoids a copy of the request
        isConfigured = true
        change(&request)
        phase = .created(request, revision: revision &+ 1)
    }

    /// Returns `false` without an effect if the request was changed after the revision.
    mutating func replaceRequest(_ request: Request, ifRevision expected: Int) -> Bool {
        guard case .created(_, let revision) = phase else { return true }
        guard revision == expected else { return false }
        isConfigured = true
        phase = .created(request, revision: revision &+ 1)
        return true
    }

    var dataTaskState: DataTaskState {
        switch phase {
        case .created: .suspended
        case _ where isSuspended: .suspended
        case .running: .running
        case .complete(_, let wasCancelled): wasCancelled && !chain.isDrained ? .canceling : .completed
        }
    }

    // MARK: Resume and suspend

    /// Sets the closure that provides the result in place of the pipeline, with a ``Prelude``. Has
    /// no effect after the task was resumed.
    mutating func drive(by driver: @escaping Driver) {
        guard case .created = phase else { return }
        self.driver = driver
        isAdoptable = false
    }

    enum ResumeAction: Sendable {
        case start(Request, Driver?)
        case runHandlers
        case none
    }

    mutating func resume() -> ResumeAction {
        isSuspended = false
        if case .created(let request, _) = phase {
            phase = .running
            return .start(consume request, driver)
        }
        return chain.claim() ? .runHandlers : .none
    }

    mutating func suspend() {
        isSuspended = true
    }

    // MARK: In flight

    mutating func observe(_ delegate: DelegateReference?) {
        if let delegate { delegateReference = delegate }
    }

    /// Attaches work that `cancel()` cancels, and the alarm of the deadline.
    ///
    /// - Returns: Whether the work is still needed (otherwise the caller cancels it), and the work
    ///   that it replaces, to be released outside the lock.
    mutating func attach(
        _ work: Pipeline.Running, _ alarm: Alarm? = nil
    ) -> (isNeeded: Bool, replaced: Pipeline.Running?) {
        guard !isComplete else { return (false, nil) }
        defer { inFlight.work = work }
        if let alarm { inFlight.alarm = alarm }
        return (true, inFlight.work)
    }

    /// Attaches a value that is delivered before the result.
    mutating func attach(_ early: (any Prelude)?) {
        inFlight.early = early
    }

    // MARK: Completion

    struct CompleteAction: Sendable {
        /// Continues the adopter.
        var adopter: (@Sendable () -> Void)?
        var runsHandlers = false
        var early: (any Prelude)?
        var alarm: Alarm?
        /// The work that was in progress, to be released outside the lock.
        var work: Pipeline.Running?
        var cancelsWork = false
        /// A Boolean value that indicates whether the pipeline has not provided the result.
        var isDriven = false
    }

    /// Completes the task. The first result counts.
    ///
    /// - Parameter isInterrupted: Whether the work in progress must be cancelled.
    /// - Returns: `nil` if there already is a result.
    mutating func complete(
        _ result: Result<Response, any Error>, isInterrupted: Bool = false, wasCancelled: Bool = false
    ) -> CompleteAction? {
        guard !isComplete else { return nil }
        phase = .complete(result, wasCancelled: wasCancelled)
        let failure: (any Error)? = if case .failure(let error) = result { error } else { nil }
        chain.open(failure: failure, isObserved: delegate != nil && driver == nil)
        defer { inFlight = InFlight() }
        var action = CompleteAction(
            early: inFlight.early, alarm: inFlight.alarm, work: inFlight.work, cancelsWork: isInterrupted,
            isDriven: driver != nil)
        switch adopter {
        case .coming: break
        case .waiting(let resume): action.adopter = resume
        case nil: action.runsHandlers = !isSuspended && chain.claim()
        }
        return action
    }

    mutating func cancel() -> CompleteAction? {
        guard !isComplete else { return nil }
        isSuspended = false
        return complete(.failure(URLError(.cancelled)), isInterrupted: true, wasCancelled: true)
    }

    // MARK: Adoption

    /// The Swift task that awaits the end and runs the handlers itself, provided that they are only
    /// steps of typed tasks. This avoids waking another thread.
    private var adopter: Adopter?

    private enum Adopter: Sendable {
        case coming
        case waiting(@Sendable () -> Void)
    }

    /// Registers a Swift task that is about to await the end.
    ///
    /// - Returns: Whether it may run the handlers.
    mutating func adopt() -> Bool {
        guard !isComplete, adopter == nil, isAdoptable, chain.holdsOnlyOwnSteps else { return false }
        adopter = .coming
        return true
    }

    /// Stores the closure that continues the adopter until there is a result.
    ///
    /// - Returns: Whether there already is a result.
    mutating func wait(_ resume: @escaping @Sendable () -> Void) -> Bool {
        if isComplete { return true }
        adopter = .waiting(resume)
        return false
    }

    /// Ends the wait of the adopter.
    ///
    /// - Returns: Whether the adopter must run the handlers.
    mutating func takeOver() -> Bool {
        adopter = nil
        return !isSuspended && chain.claim()
    }

    // MARK: Steps of typed tasks

    /// - Returns: Whether the step must be cancelled immediately.
    mutating func setRunningStep(_ task: Task<Void, Never>?) -> Bool {
        steps.running = task
        return steps.areCancelled
    }

    /// - Returns: The step in progress.
    mutating func cancelSteps() -> Task<Void, Never>? {
        steps.areCancelled = true
        return steps.running
    }

    /// Records the failure of a typed step.
    ///
    /// - Returns: Whether it is the first one, which is reported to the delegate.
    mutating func reportsStep() -> Bool {
        defer { steps.hasReportedFailure = true }
        return !steps.hasReportedFailure
    }

    // MARK: Handlers

    /// - Returns: Whether the caller must run the handlers.
    mutating func add(_ handler: Handler) -> Bool {
        chain.add(handler)
        return !isSuspended && chain.claim()
    }

    /// - Returns: Whether the caller must run the handlers.
    mutating func add(_ metricsHandler: @escaping MetricsHandler) -> Bool {
        chain.add(metricsHandler)
        return !isSuspended && chain.claim()
    }

    /// Returns the next step for the caller that runs the handlers. A suspended task rests after
    /// the current handler.
    mutating func nextStep(on track: borrowing Track) -> HandlerChain.Step {
        let step = isSuspended ? .rest(spent: []) : chain.next(on: track)
        if case .rest = step { chain.release(copy track) }
        return step
    }

    /// Returns the next handler if it also runs on the main actor, to avoid a thread change between
    /// two of them.
    mutating func nextMainHandler(on track: Track) -> Handler? {
        let handler = isSuspended ? nil : chain.nextOnMain(on: track)
        if handler == nil { chain.putDown(track) }
        return handler
    }
}
