import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The life of a ``SessionTask`` as a value: events go in, what is to be done comes out. No I/O, no lock, no call-out.
///
/// ```
/// created ──resume──▶ starting ──attach──▶ sending ──complete──▶ complete
///    └─────────────────cancel─────┴────────────┴──────────────────▲
/// ```
struct TaskState: Sendable {
    enum Phase: Sendable {
        case created
        /// Being encoded, by a body provider perhaps.
        case starting
        case sending
        case complete
    }

    private(set) var phase = Phase.created
    private(set) var isSuspended = false
    private(set) var wasCancelled = false
    private(set) var outcome: Outcome?
    /// The request as it was made; away while it is sent, because it is moved and not copied.
    private var unsent: Request?
    /// The request as it was sent last, for the delegate.
    private(set) var sent: EncodedRequest?
    /// How many messages were sent.
    private(set) var messages = 0
    /// Whether the last one has no answer yet.
    private var isMessageOpen = false
    /// When the last one was sent.
    private var sentAt: UInt64 = 0
    var timeline = TimelineRecorder()
    var recordsHandlers = false
    private var delegateReference: DelegateReference?
    /// Hears of what happens; held weakly.
    var delegate: (any ServicePassthroughDelegate)? {
        get { delegateReference?.delegate }
        set { delegateReference = newValue.map(DelegateReference.init) }
    }
    /// Whether the delegate has heard of the failure of a typed step.
    private var hasReportedStep = false
    var chain = HandlerChain()
    /// For handlers that want to know how far the exchange has come; `nil` without any.
    private(set) var progress: ProgressRelay?
    /// What typed observers are told ahead of the outcome; `nil` where there is no such thing.
    var early: (any Prelude)?
    var metrics = ServiceTaskMetrics()
    private var transport: Transport?
    private var alarm: Alarm?

    /// Whether somebody else brings the outcome; then the delegate has seen the exchange elsewhere.
    private let isDriven: Bool

    init(request: Request, isDriven: Bool = false) {
        unsent = request
        self.isDriven = isDriven
    }

    /// Takes over what was recorded of the exchange that was sent in place of this task.
    mutating func takeOver(_ exchange: TaskState) {
        unsent = exchange.request
        sent = exchange.sent
        messages = exchange.messages
        timeline = exchange.attempts
        metrics = exchange.metrics.measured(from: metrics)
    }

    /// The events, with the only attempt of a plain exchange taken from its metrics.
    var attempts: TimelineRecorder {
        guard !timeline.hasAttempts, let (start, end) = metrics.exchange, let sent, let outcome else { return timeline }
        var timeline = timeline
        timeline.add(TimelineRecorder.Attempt(sent, outcome), from: start, to: end)
        return timeline
    }

    /// Whether somebody asked for the end, also where it came too late.
    var isCancelRequested: Bool { wasCancelled || stepsAreCancelled }

    /// The request as the setters have left it.
    var request: Request {
        unsent ?? first?.source ?? Request(url: "")
    }

    /// The request in the form in which it was sent first.
    private var first: EncodedRequest?

    mutating func configure(_ change: (inout Request) -> Void) {
        guard case .created = phase, var request = unsent.take() else { return }
        change(&request)
        unsent = request
    }

    var dataTaskState: DataTaskState {
        switch phase {
        case .created: .suspended
        case _ where isSuspended: .suspended
        case .starting, .sending: .running
        case .complete: wasCancelled && !chain.isDrained ? .canceling : .completed
        }
    }

    enum ResumeAction: Sendable {
        case start(Request)
        /// Sends the requests that were held back.
        case send([@Sendable () -> Void])
        case runHandlers
        case none
    }

    mutating func resume(at now: UInt64 = 0) -> ResumeAction {
        isSuspended = false
        if case .created = phase {
            phase = .starting
            metrics.begin(at: now)
            return unsent.take().map(ResumeAction.start) ?? .none
        }
        if !held.isEmpty {
            defer { held = [] }
            return .send(held)
        }
        return chain.claim() ? .runHandlers : .none
    }

    /// Sends what was held back while the task was suspended; empty once there is an outcome.
    private var held: [@Sendable () -> Void] = []

    /// A Boolean value that indicates whether requests are held back.
    var holdsRequests: Bool { !held.isEmpty }

    /// Keeps a request back until the task is resumed.
    ///
    /// - Returns: Whether the task is still suspended; otherwise the caller sends.
    mutating func hold(_ send: @escaping @Sendable () -> Void) -> Bool {
        guard isSuspended, phase != .complete else { return false }
        held.append(send)
        return true
    }

    mutating func suspend() {
        isSuspended = true
    }

    /// The request comes back: it could not be encoded, or it is sent by way of interceptors.
    mutating func keep(_ request: Request) {
        unsent = request
    }

    /// The deadline is being watched.
    ///
    /// - Returns: Whether it is still wanted; else the caller takes the alarm back.
    mutating func watch(_ alarm: Alarm, _ request: EncodedRequest) -> Bool {
        if unsent == nil { first = request }
        guard phase != .complete else { return false }
        self.alarm = alarm
        return true
    }

    /// Something is under way that can be cancelled.
    ///
    /// - Returns: Whether it is still wanted, else the caller cancels it; and what it replaces, to be freed outside the lock.
    mutating func attach(_ transport: Transport) -> (isWanted: Bool, replaced: Transport?) {
        guard phase != .complete else { return (false, nil) }
        if case .preparation = transport, phase == .sending { return (true, nil) }  // it was quick: its exchange is what can be cancelled
        if case .exchange = transport { phase = .sending }
        defer { self.transport = transport }
        return (true, self.transport)
    }

    /// The accounts for which the exchange was begun.
    private var accounts: [ObjectIdentifier: Int] = [:]

    mutating func account(_ id: ObjectIdentifier, _ current: Int) -> Int {
        if let account = accounts[id] { return account }
        accounts[id] = current
        return current
    }

    /// A typed step has failed.
    ///
    /// - Returns: Whether it is the first, so that the delegate has to hear of it.
    mutating func reportsStep() -> Bool {
        defer { hasReportedStep = true }
        return !hasReportedStep
    }

    /// A request is about to be sent.
    ///
    /// - Returns: Whether it may be; and the one before, to be freed outside the lock.
    mutating func willSend(_ request: EncodedRequest, at now: UInt64) -> (permission: SendPermission, previous: EncodedRequest?) {
        guard phase != .complete else { return (.refused, nil) }
        guard !isSuspended else { return (.held, nil) }
        guard messages < SessionTask.maximumMessages else { return (.refused, nil) }
        messages += 1
        let previous = sent
        sent = request
        isMessageOpen = true
        sentAt = now
        metrics.mark(.fetchStart, at: now)
        return (.granted, previous)
    }

    /// The message that was sent last has been answered, and was not the only one, or may not be.
    mutating func recordAttempt(_ request: EncodedRequest, _ outcome: Outcome, at now: UInt64) {
        isMessageOpen = false
        timeline.add(TimelineRecorder.Attempt(request, outcome), from: sentAt, to: now)
    }

    /// A Swift task that awaits the end and runs the handlers itself, where they are only steps of typed tasks: so no other thread has to be woken.
    private var adopter: Adopter?

    private enum Adopter: Sendable {
        case coming
        case waiting(CheckedContinuation<Void, Never>)
    }

    /// A Swift task is going to await the end.
    ///
    /// - Returns: Whether it may run the handlers then.
    mutating func adopt() -> Bool {
        guard phase != .complete, adopter == nil, chain.holdsOnlyOwnSteps else { return false }
        adopter = .coming
        return true
    }

    /// The adopter waits for the outcome.
    ///
    /// - Returns: Whether there is one already.
    mutating func wait(_ continuation: CheckedContinuation<Void, Never>) -> Bool {
        if phase == .complete { return true }
        adopter = .waiting(continuation)
        return false
    }

    /// The adopter goes on.
    ///
    /// - Returns: Whether it has to run the handlers.
    mutating func takeOver() -> Bool {
        adopter = nil
        return !isSuspended && chain.claim()
    }

    struct CompleteAction: Sendable {
        var adopter: CheckedContinuation<Void, Never>?
        var runsHandlers = false
        /// Whose handlers have to know the last news before any other handler runs.
        var preludes: [any Prelude] = []
        var alarm: Alarm?
        /// What was under way; also where it is not to be cancelled, so that it is freed outside the lock.
        var transport: Transport?
        var cancelsTransport = false
        /// What sends requests that were held back, to be freed outside the lock.
        var unsent: [@Sendable () -> Void] = []
    }

    /// The first outcome counts, whoever brings it; `nil` when there is one already.
    ///
    /// - Parameter isInterrupted: Whether the outcome is ours, so that what is under way has to be cancelled.
    mutating func complete(_ outcome: Outcome, isInterrupted: Bool = false, at now: UInt64 = 0) -> CompleteAction? {
        guard phase != .complete else { return nil }
        if let sent, !isDriven {
            metrics.mark(.responseEnd, at: now)
            metrics.transport = outcome.transport
            if isInterrupted, isMessageOpen, timeline.hasAttempts { recordAttempt(sent, outcome, at: now) }
        }
        phase = .complete
        self.outcome = outcome
        chain.open(failure: outcome.error, isObserved: delegate != nil && !isDriven)
        defer {
            alarm = nil
            transport = nil
            held = []
        }
        var action = CompleteAction(alarm: alarm, transport: transport, cancelsTransport: isInterrupted, unsent: held)
        if let progress { action.preludes.append(progress) }
        if let early { action.preludes.append(early) }
        switch adopter {
        case .coming: break
        case .waiting(let continuation): action.adopter = continuation
        case nil: action.runsHandlers = !isSuspended && chain.claim()
        }
        return action
    }

    mutating func cancel(at now: UInt64 = 0) -> CompleteAction? {
        guard phase != .complete else { return nil }
        wasCancelled = true
        isSuspended = false
        return complete(Outcome(error: URLError(.cancelled)), isInterrupted: true, at: now)
    }

    /// What `cancel()` cancels when there is an outcome already: the steps of a typed task that take their time.
    private var runningStep: Task<Void, Never>?
    private var stepsAreCancelled = false

    /// - Returns: Whether the step is to be cancelled at once.
    mutating func setRunningStep(_ task: Task<Void, Never>?) -> Bool {
        runningStep = task
        return stepsAreCancelled
    }

    /// - Returns: The step that runs.
    mutating func cancelSteps() -> Task<Void, Never>? {
        stepsAreCancelled = true
        return runningStep
    }

    mutating func add(_ progressHandler: @escaping ProgressRelay.Handler) {
        guard phase != .complete else { return }
        let relay = progress ?? ProgressRelay()
        relay.add(progressHandler)
        progress = relay
    }

    /// - Returns: Whether the caller has to run the handlers.
    mutating func add(_ handler: Handler) -> Bool {
        chain.add(handler)
        return !isSuspended && chain.claim()
    }

    /// - Returns: Whether the caller has to run the handlers.
    mutating func add(_ metricsHandler: @escaping @Sendable (ServiceTaskMetrics) -> Void) -> Bool {
        chain.add(metricsHandler)
        return !isSuspended && chain.claim()
    }

    /// What whoever runs the handlers does next, where the chain stands so. A suspended task lets the handler that runs return, and then rests.
    mutating func nextStep(on track: borrowing Track) -> HandlerChain.Step {
        let step = isSuspended ? .rest(spent: []) : chain.next(on: track)
        if case .rest = step { chain.release(copy track) }
        return step
    }

    /// The next handler where it belongs on the main actor as well, so that no thread is changed between two of them.
    mutating func nextMainHandler(on track: Track) -> Handler? {
        let handler = isSuspended ? nil : chain.nextOnMain(on: track)
        if handler == nil { chain.putDown(track) }
        return handler
    }

    /// The first handler that wanted JSON has parsed the body, or found that it cannot be parsed.
    mutating func parsedJSON(_ json: ChainValue?, from start: UInt64, to end: UInt64) {
        metrics.mark(.responseJSONStart, at: start)
        metrics.mark(.responseJSONEnd, at: end)
        chain.json = json
    }
}
