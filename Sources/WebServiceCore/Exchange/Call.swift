import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The state of a ``SessionTask`` as a value: its life cycle, its handlers, and the log of its
/// exchange. Its methods receive events and return actions. They perform no I/O and call no code of
/// the program.
///
/// ```
/// created ──resume──▶ running ──complete──▶ complete
///    └──────────────────── cancel ─────────────▲
/// ```
/// Other files, such as `SessionTask+Recording.swift` and `SessionTask+Exchange.swift`, change the
/// log, the permission to send and the settings of the body.
///
/// A value that exists only in one phase belongs to a case of ``Phase``. A value that is released
/// with the result belongs to ``InFlight``. The lock of the task protects the state;
/// `Documentation/Concurrency.md` lists the locks that are taken while this lock is held.
struct Call: Sendable {
    private enum Phase: Sendable {
        case created(Request, revision: Int)
        case running
        case complete(Result<Response, any Error>, wasCancelled: Bool)
    }

    /// The values released when the task completes.
    private struct InFlight: Sendable {
        /// The work in progress, which can be cancelled.
        var work: (any Cancellable)?
        /// The alarm that rings at the deadline.
        var alarm: Alarm?
        /// The values that are delivered before the result.
        var preludes: [any Prelude] = []
    }

    private var phase: Phase
    private var inFlight = InFlight()
    private(set) var isSuspended = false
    private var isConfigured = false
    /// Whether only a queue can resume the task.
    private var isQueued = false
    /// The closure that produces the result in place of an exchange; `nil` if the task sends its
    /// request itself.
    private var producer: Producer?
    /// Whether the producer is a ``TaskWork``, such as that of a download or a resumable upload.
    private(set) var isDownload = false
    /// The scope in which the task was resumed, and to which its handlers belong.
    var scope: DeadlineScope?
    var recordsHandlers = false
    /// Whether the service counts the handlers that run next, which include custom closures
    /// (``ServiceCore/endHandlers()``).
    var countsHandlers = false
    var chain = HandlerChain()
    private var delegateReference: DelegateReference?
    private var steps = Steps()
    /// The Swift task that waits for the result, and then runs the handlers if they contain no
    /// custom closure. This avoids waking another thread.
    private var awaiter: Awaiter?

    // MARK: The exchange

    var log = ExchangeLog.Record()
    /// The events for the observers; `nil` if there are no observers.
    var events: EventQueue?
    var permission = Permission.granted
    /// The receivers whose replies the exchange waits for, of which there is usually one.
    var receivers = ShortList<ResponseReceiver>()
    /// The settings of the receivers.
    var options = ResponseReceiver.Options()
    var progress = ProgressReceivers()
    /// The identifier of the exchange on whose behalf this one is sent.
    var parent: UInt64?
    /// The values of interceptors for this exchange, by the object or the type that stores them.
    var values: [ObjectIdentifier: any Sendable] = [:]
    var trace: TraceParent?
    /// The instant of `resume()` on the system's clock; see ``SessionClosure``.
    var systemStart: UInt64?
    #if DEBUG
    /// The place that created the task; `nil` once its request was read, and for a task of the
    /// library.
    var creation: UnsentTasks.Creation?
    #endif

    /// The permission to send requests.
    enum Permission: Sendable {
        case granted
        /// The task is suspended. The value contains the waiting requests, in order.
        case held([Once<Bool>])
        /// The exchange has ended.
        case refused
    }

    /// The steps of typed tasks.
    private struct Steps: Sendable {
        /// The asynchronous step in progress.
        var running: (any Cancellable)?
        var areCancelled = false
        /// Whether a failure of a step was reported.
        var hasReportedFailure = false
    }

    /// A closure that produces the result of a task in place of an exchange, such as that of a
    /// download, a typed request or a ``PassiveTask``.
    ///
    /// The closure is called at most once, when the task starts, on the thread that starts it. It
    /// must complete the task, unless the task has another owner that completes it.
    typealias Producer = @Sendable (SessionTask, Start) -> Void

    init(request: consuming Request, producer: Producer? = nil) {
        phase = .created(request, revision: 0)
        self.producer = producer
    }

    /// Whether something other than an exchange provides the result.
    var hasProducer: Bool { producer != nil }

    /// The delegate, held weakly.
    var delegate: (any ServicePassthroughDelegate)? { delegateReference?.delegate }

    /// The result; `nil` until there is one.
    var result: Result<Response, any Error>? {
        if case .complete(let result, _) = phase { result } else { nil }
    }

    /// The result, or the error with which the delegate has rejected it.
    var outcome: Result<Response, any Error> {
        chain.rejection.map { .failure($0) } ?? result ?? .failure(URLError(.unknown))
    }

    mutating func reject(_ rejection: any Error) { chain.rejection = rejection }

    private var isComplete: Bool { if case .complete = phase { true } else { false } }

    /// The request with the changes of all setters, and the number of these changes; `nil` after
    /// the task was resumed.
    var unsent: (request: Request, revision: Int)? {
        if case .created(let request, let revision) = phase { (request, revision) } else { nil }
    }

    /// Whether `cancel()` was called, even if it had no effect on the result.
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

    /// Replaces the request, unless it was changed after the revision.
    ///
    /// - Returns: `false` if the caller must apply its change again, to the current request.
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

    /// Sets the producer of the result. This method has no effect after the task was resumed.
    ///
    /// - Returns: The replaced producer, to be released outside the lock.
    mutating func setProducer(isDownload: Bool = false, _ producer: @escaping Producer) -> Producer? {
        guard case .created = phase else { return nil }
        defer { (self.producer, self.isDownload) = (producer, isDownload) }
        return self.producer
    }

    /// The work that a task starts when it is first resumed.
    struct Start: Sendable {
        var request: Request
        /// Whether a setter has changed the request.
        let isConfigured: Bool
        fileprivate(set) var producer: Producer?

        /// Whether the task has its own request.
        var hasRequest: Bool { producer == nil || request.url != nil }
    }

    enum ResumeAction: Sendable {
        case start(Start)
        case runHandlers
        case none
    }

    /// - Parameters:
    ///   - isAwaited: Whether the caller waits for the result (``wait(_:)``).
    ///   - instant: The instant of the call.
    mutating func resume(isAwaited: Bool = false, at instant: TaskClock.Instant) -> ResumeAction {
        isSuspended = false
        if case .created(let request, _) = phase {
            guard !isQueued else { return .none }
            if isAwaited, producer != nil { awaiter = .coming }
            return .start(start(request, at: instant))
        }
        return chain.claim() ? .runHandlers : .none
    }

    private mutating func start(_ request: Request, at instant: TaskClock.Instant) -> Start {
        phase = .running
        let start = Start(request: request, isConfigured: isConfigured, producer: producer)
        begin(start.hasRequest ? request : nil, at: instant)
        return start
    }

    /// Records `resume()`, unless it is already recorded.
    ///
    /// - Parameter request: The request of the task, unless something else provides the result.
    mutating func begin(_ request: Request?, at instant: TaskClock.Instant) {
        if let request { log.request = request }
        guard log.metrics.origin == nil else { return }
        systemStart = systemStart ?? instant.system
        log.metrics.begin(at: instant.nanoseconds, instant.date)
    }

    mutating func suspend() {
        isSuspended = true
    }

    /// Reserves the task for a queue, which resumes it with ``leaveQueue(at:)``.
    ///
    /// - Returns: `false` if the task was already resumed or is already in a queue.
    mutating func enterQueue() -> Bool {
        guard case .created = phase, !isQueued else { return false }
        (isQueued, isSuspended) = (true, false)
        return true
    }

    /// Resumes the task when its turn has come. A suspended task remains suspended.
    mutating func leaveQueue(at instant: TaskClock.Instant) -> Start? {
        guard isQueued, case .created(let request, _) = phase else { return nil }
        isQueued = false
        return start(request, at: instant)
    }

    // MARK: In flight

    mutating func observe(_ delegate: DelegateReference?) {
        if let delegate { delegateReference = delegate }
    }

    /// Attaches work that `cancel()` cancels.
    ///
    /// - Returns: Whether the work is still needed (otherwise the caller cancels it), and the
    ///   replaced work, to be released outside the lock.
    mutating func attach(_ work: any Cancellable) -> (isNeeded: Bool, replaced: (any Cancellable)?) {
        guard !isComplete else { return (false, nil) }
        defer { inFlight.work = work }
        return (true, inFlight.work)
    }

    /// Sets the alarm of the deadline.
    ///
    /// - Returns: `false` if there already is a result.
    mutating func setAlarm(_ alarm: Alarm) -> Bool {
        if !isComplete { inFlight.alarm = alarm }
        return !isComplete
    }

    /// Attaches values that are delivered before the result.
    ///
    /// - Returns: `false` if there already is a result.
    mutating func attach(_ prelude: any Prelude) -> Bool {
        if !isComplete { inFlight.preludes.append(prelude) }
        return !isComplete
    }

    // MARK: Completion

    private enum Awaiter: Sendable {
        /// The Swift task starts the work before it waits.
        case coming
        case waiting(CheckedContinuation<Void, Never>)
    }

    /// - Returns: Whether the caller waits until there is a result.
    mutating func wait(_ continuation: CheckedContinuation<Void, Never>) -> Bool {
        if case .waiting = awaiter { return false }
        guard !isComplete, chain.holdsOnlyOwnSteps else { return false }
        awaiter = .waiting(continuation)
        return true
    }

    /// - Returns: Whether the caller must run the handlers.
    mutating func claimHandlers() -> Bool {
        !isSuspended && chain.holdsOnlyOwnSteps && chain.claim()
    }

    struct CompleteAction: Sendable {
        /// Continues the Swift task that waits for the result.
        var awaiter: CheckedContinuation<Void, Never>?
        /// Whether the caller must run the handlers.
        var runsHandlers = false
        /// Whether the service counts these handlers.
        var countsHandlers = false
        /// The sources of values that precede the result. They accept no further values.
        var preludes: [any Prelude] = []
        var alarm: Alarm?
        /// The work that was in progress, to be released outside the lock.
        var work: (any Cancellable)?
        var cancelsWork = false
        /// The events to deliver; `nil` if there are none, or another caller delivers them.
        var events: EventQueue?
        /// The receivers whose replies are no longer awaited.
        var receivers = ShortList<ResponseReceiver>()
        /// The held-back requests, which are refused.
        var held: [Once<Bool>] = []
    }

    /// Completes the task. An attempt in flight ends as well, and no further request is sent. Only
    /// the first result counts.
    ///
    /// - Parameters:
    ///   - instant: The instant of the end.
    ///   - isInterrupted: Whether to cancel the work in progress.
    /// - Returns: `nil` if there already is a result.
    mutating func complete(
        _ result: Result<Response, any Error>, at instant: UInt64, isInterrupted: Bool = false,
        wasCancelled: Bool = false
    ) -> CompleteAction? {
        guard !isComplete else { return nil }
        let delivers = endRecord(result, at: instant)
        defer { (receivers, permission) = (ShortList(), .refused) }
        var held: [Once<Bool>] = []
        if case .held(let requests) = permission { held = requests }
        if case .created(let request, _) = phase, request.url != nil { log.request = request }
        phase = .complete(result, wasCancelled: wasCancelled)
        var failure: (any Error)?
        var awaited = inFlight.preludes
        switch result {
        case .failure(let error): failure = error
        // The progress ends with the body.
        case .success(let response): if response.isStreamed { awaited.removeAll { $0 is ProgressRelay } }
        }
        chain.open(failure: failure, after: awaited, isObserved: delegate != nil && producer == nil)
        defer { inFlight = InFlight() }
        let awaiterRuns = awaiter != nil && chain.holdsOnlyOwnSteps
        var continuation: CheckedContinuation<Void, Never>?
        if case .waiting(let waiting) = awaiter { continuation = waiting }
        awaiter = nil
        let claims = !isSuspended && !awaiterRuns && chain.claim()
        countsHandlers = claims && !chain.holdsOnlyOwnSteps
        return CompleteAction(
            awaiter: continuation, runsHandlers: claims, countsHandlers: countsHandlers, preludes: awaited,
            alarm: inFlight.alarm, work: inFlight.work, cancelsWork: isInterrupted, events: delivers ? events : nil,
            receivers: receivers, held: held)
    }

    /// Records the end of the exchange.
    ///
    /// - Returns: Whether the caller must deliver the events.
    private mutating func endRecord(_ result: Result<Response, any Error>, at instant: UInt64) -> Bool {
        var endsAttempt = false
        if producer == nil, log.sent != nil {
            log.metrics.mark(.responseEnd, at: instant)
            endsAttempt = endOpenAttempt(result, at: instant)
        }
        log.outcome = ExchangeLog.Outcome(result)
        guard let events else { return false }
        return events.end(ExchangeSummary(result, log), at: instant) || endsAttempt
    }

    mutating func cancel(at instant: UInt64) -> CompleteAction? {
        guard !isComplete else { return nil }
        isSuspended = false
        let error = URLError(.cancelled).describing(unsent?.request ?? log.request)
        return complete(.failure(error), at: instant, isInterrupted: true, wasCancelled: true)
    }

    /// Ends an attempt that is still in flight.
    ///
    /// - Returns: Whether the caller must deliver the events.
    mutating func endOpenAttempt(_ result: @autoclosure () -> Result<Response, any Error>, at instant: UInt64) -> Bool {
        log.attemptIsOpen && endAttempt(result(), nil, at: instant)
    }

    /// Ends the attempt in flight.
    ///
    /// - Returns: Whether the caller must deliver the events.
    mutating func endAttempt(
        _ result: Result<Response, any Error>, _ metrics: TransportMetrics?, at instant: UInt64
    ) -> Bool {
        log.end(result, metrics, at: instant)
        return events?.endAttempt(log.number, result, log.metrics.transport, at: instant) == true
    }

    // MARK: Steps of typed tasks

    /// - Returns: Whether the step must be cancelled immediately.
    mutating func setRunningStep(_ task: (any Cancellable)?) -> Bool {
        steps.running = task
        return steps.areCancelled
    }

    /// - Returns: The step in progress.
    mutating func cancelSteps() -> (any Cancellable)? {
        steps.areCancelled = true
        return steps.running
    }

    /// Records the failure of a typed step.
    ///
    /// - Returns: Whether this is the first failure, which is reported to the delegate.
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
        let step = isSuspended ? .rest(isDrained: false, spent: ShortList()) : chain.next(on: track)
        guard case .rest(let isDrained, let spent, _) = step else { return step }
        chain.release(copy track)
        defer { countsHandlers = false }
        return .rest(isDrained: isDrained, spent: spent, wereCounted: countsHandlers)
    }

    /// Returns the next handler if it also runs on the main actor, to avoid a thread change between
    /// two of them.
    mutating func nextMainHandler(on track: Track) -> Handler? {
        isSuspended ? nil : chain.nextOnMain(on: track)
    }
}

extension Result where Success: Sendable, Failure == any Error {
    /// Returns the result of an asynchronous closure. A `CancellationError` becomes
    /// `URLError.cancelled`.
    package static func catching(_ body: () async throws -> Success) async -> Self {
        do { return .success(try await body()) } catch {
            return .failure(error is CancellationError ? URLError(.cancelled) : error)
        }
    }
}
