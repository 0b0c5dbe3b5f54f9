import Dispatch
import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// One exchange: sends its request once, when it is resumed, and pushes the answer through its handlers.
///
/// - Nothing happens before ``resume()``. A task that is never resumed is freed with its handlers; a resumed one needs nobody to hold it.
/// - There is exactly one outcome: the answer, an error of the request, the transport's error (always a `URLError`), the deadline
///   (`URLError.timedOut`) or ``cancel()`` (`URLError.cancelled`), whichever comes first.
/// - Handlers run in the order they were added, one at a time, each at most once, also those that are added after the outcome. Background
///   handlers run on a concurrent pool, never on the main thread and never on the session's; main-queue handlers run on the main actor and
///   hold back the later ones until they return, without blocking a thread.
///
/// All members may be used from any thread.
public final class SessionTask: Sendable {
    private let service: WebService
    private let shared: Mutex<TaskState>

    init(service: WebService, request: Request) {
        self.service = service
        shared = Mutex(TaskState(request: request))
    }

    /// Where the task stands: `.suspended` before it is resumed and while it is suspended, `.canceling` from ``cancel()`` until the handlers have
    /// run, `.completed` when there is another outcome.
    public var state: DataTaskState { shared.withLock { $0.dataTaskState } }

    /// What was measured so far.
    public var metrics: ServiceTaskMetrics { shared.withLock { $0.metrics } }

    /// The request, as the setters have left it.
    public var request: Request { shared.withLock { $0.request } }

    /// Sends the request, at the first call; lets handlers run again after ``suspend()``; else harmless.
    @discardableResult
    public func resume() -> Self {
        switch shared.withLock({ $0.resume() }) {
        case .start(let request): service.run(request, for: self)
        case .runHandlers: scheduleHandlers()
        case .none: break
        }
        return self
    }

    /// Holds the task back until ``resume()``: an unsent request is not sent, and no further handler begins. An exchange that is on the wire goes
    /// on, and so does its deadline.
    @discardableResult
    public func suspend() -> Self {
        shared.withLock { $0.suspend() }
        return self
    }

    /// Asks the exchange to stop, also before it began. If there is no outcome yet, the outcome is `URLError.cancelled`, the error handlers get it,
    /// and a late answer is ignored. Otherwise nothing happens.
    public func cancel() {
        let now = service.clock.now
        if let action = shared.withLock({ $0.cancel(at: now) }) {
            perform(action)
        } else {
            shared.withLock { $0.cancelSteps() }?.cancel()
        }
    }

    /// More messages than this for one exchange, whatever retries, redirects and refreshes ask for, and it fails with
    /// ``WebServiceError/Code/tooManyMessages``.
    public static let maximumMessages = 100

    /// Has each handler written into the ``timeline`` with start and length; off by default, because it takes time.
    @discardableResult
    public func recordHandlers() -> Self {
        shared.withLock { $0.recordsHandlers = true }
        return self
    }

    /// Reads several things that belong together.
    func withState<Value: Sendable>(_ read: (TaskState) -> Value) -> Value {
        shared.withLock { read($0) }
    }

    /// Changes the request; after the first ``resume()`` it has been encoded and stays as it is.
    func configure(_ change: (inout Request) -> Void) {
        shared.withLock { $0.configure(change) }
    }
}

// MARK: - What the pipeline tells the task

extension SessionTask {
    func watchDeadline(_ deadline: Duration) {
        let alarm = service.clock.schedule(after: deadline, self)
        if !shared.withLock({ $0.watch(alarm) }) { service.clock.cancel(alarm) }
    }

    /// The request comes back: it could not be encoded, or it is sent by way of interceptors.
    func keep(_ request: Request) {
        shared.withLock { $0.keep(request) }
    }

    func willRun(_ delegate: (any ServicePassthroughDelegate)?) {
        guard let delegate else { return }
        shared.withLock { $0.delegate = delegate }
    }

    /// - Returns: Whether what is under way is still wanted; else it has been cancelled.
    @discardableResult
    func attach(_ transport: Transport) -> Bool {
        let isWanted = shared.withLock { $0.attach(transport) }
        if !isWanted { transport.cancel() }
        return isWanted
    }

    /// What interceptors share with this exchange.
    var exchangeContext: ExchangeContext {
        let clock = service.clock
        return ExchangeContext(clock: clock, baseOrigin: service.baseURL.flatMap(Origin.init)) { kind, detail in
            let now = clock.now
            self.shared.withLock { $0.timeline.add(kind, from: now, to: nil, detail) }
        } recordStretch: { kind, detail, length in
            let now = clock.now
            self.shared.withLock { $0.timeline.add(kind, from: now - min(length, now), to: now, detail) }
        }
    }

    /// Brings an outcome; the first one counts.
    func complete(_ outcome: Outcome, isInterrupted: Bool) {
        let now = service.clock.now
        if let action = shared.withLock({ $0.complete(outcome, isInterrupted: isInterrupted, at: now) }) { perform(action) }
    }

    private func perform(_ action: TaskState.CompleteAction) {
        if let alarm = action.alarm { service.clock.cancel(alarm) }
        if action.runsHandlers { scheduleHandlers() }
        action.adopter?.resume()
        action.transport?.cancel()
    }
}

extension SessionTask: ExchangeOwner {
    var delegate: (any ServicePassthroughDelegate)? { shared.withLock { $0.delegate } }

    /// The metrics say enough of an attempt that is the only one.
    var recordsEveryAttempt: Bool { false }

    func willSend(_ request: EncodedRequest) -> Bool {
        let now = service.clock.now
        return shared.withLock { $0.willSend(request, at: now) }
    }

    func didReceive(_ outcome: Outcome, for request: EncodedRequest) {
        let now = service.clock.now
        shared.withLock { $0.recordAttempt(request, outcome, at: now) }
    }

    func record(_ kind: Timeline.Kind, _ detail: String) {
        let now = service.clock.now
        shared.withLock { $0.timeline.add(kind, from: now, to: nil, detail) }
    }

    func complete(_ outcome: Outcome) {
        complete(outcome, isInterrupted: false)
    }
}

extension SessionTask: AlarmTarget {
    package func ring() {
        let error = WebServiceError(.deadline, "the exchange took longer than \(request.deadline)", request: request)
        complete(Outcome(error: error), isInterrupted: true)
    }
}

// MARK: - Running the handlers

extension SessionTask {
    @discardableResult
    func add(_ handler: Handler) -> Self {
        if shared.withLock({ $0.add(handler) }) { scheduleHandlers() }
        return self
    }

    @discardableResult
    func add(_ metricsHandler: @escaping @Sendable (ServiceTaskMetrics) -> Void) -> Self {
        if shared.withLock({ $0.add(metricsHandler) }) { scheduleHandlers() }
        return self
    }

    /// Handlers run here: concurrent, so that a slow handler holds up no other task, and never the session's own queue.
    private static let pool = DispatchQueue.global()

    private func scheduleHandlers() {
        Self.pool.async { self.runHandlers() }
    }

    /// What the handlers of one task work with; the same for all of them.
    private struct Context {
        let outcome: Outcome
        let delegate: (any ServicePassthroughDelegate)?
        let recordsHandlers: Bool
        /// The body as JSON, when a handler has parsed it.
        var json: ChainValue?

        init(_ state: borrowing TaskState) {
            outcome = state.outcome ?? .none
            delegate = state.delegate
            recordsHandlers = state.recordsHandlers
            json = state.chain.json
        }
    }

    private var context: Context {
        shared.withLock { Context($0) }
    }

    /// Runs handlers until there is none left or the next one belongs elsewhere: on the main actor or in a Swift task, which then goes on.
    private func runHandlers() {
        var (context, track, step) = shared.withLock { state in
            let track = state.chain.pickUp()
            return (Context(state), track, state.nextStep(on: track))
        }
        while true {
            switch step {
            case .rest:
                return
            case .run(let handler) where handler.runsOnMain:
                Task { @MainActor [track] in self.runMainHandlers(handler, track) }
                return
            case .run(.asyncStep(let step)):
                runAsync(step, track, context)
                return
            case .run(let handler):
                let start = context.recordsHandlers ? service.clock.now : 0
                let wasFailure = track.isFailure
                track = run(handler, track, &context)
                if !wasFailure { report(track, context) }
                if context.recordsHandlers { recordHandler(handler, from: start) }
            case .validate:
                track = validate(context)
                report(track, context)
            case .collectMetrics(let handlers, let isFirst):
                collectMetrics(handlers, isFirst: isFirst, context)
            }
            step = shared.withLock { $0.nextStep(on: track) }
        }
    }

    @MainActor
    private func runMainHandlers(_ first: Handler, _ track: Track) {
        let context = context
        var next: Handler? = first
        while let handler = next {
            let start = service.clock.now
            shared.withLock { $0.metrics.mark(.updateUIStart, at: start) }
            context.delegate?.updateUIBegin(response: context.outcome.response)
            switch (handler, track) {
            case (.updateUI(let body), .success(let value)): body(value?.value)
            case (.updateUI(let body), .pending): body(nil)
            case (.updateErrorUI(let body), .failure(let error)): body(error)
            case (.mainStep(let step), _): step(input(track, context.outcome))
            default: break
            }
            context.delegate?.updateUIEnd(response: context.outcome.response)
            if context.recordsHandlers { recordHandler(handler, from: start) }
            let end = service.clock.now
            next = shared.withLock { $0.nextMainHandler(on: track, at: end) }
        }
        scheduleHandlers()
    }

    /// Runs a step that takes its time; the chain goes on when it is done. No thread is blocked meanwhile.
    private func runAsync(_ step: @escaping @Sendable (StepInput) async -> Void, _ track: Track, _ context: Context) {
        let input = input(track, context.outcome)
        let start = context.recordsHandlers ? service.clock.now : 0
        shared.withLock { state in
            state.chain.putDown(track)
            let task = Task {
                await step(input)
                if context.recordsHandlers { self.recordHandler(.asyncStep(step), from: start) }
                self.shared.withLock { _ = $0.setRunningStep(nil) }
                self.scheduleHandlers()
            }
            if state.setRunningStep(task) { task.cancel() }
        }
    }

    private func input(_ track: Track, _ outcome: Outcome) -> StepInput {
        StepInput(outcome: outcome, request: request, failure: track.error ?? outcome.error)
    }

    private func recordHandler(_ handler: Handler, from start: UInt64) {
        let now = service.clock.now
        shared.withLock { $0.timeline.add(.handler, from: start, to: now, handler.name) }
    }

    private func run(_ handler: Handler, _ track: Track, _ context: inout Context) -> Track {
        let outcome = context.outcome
        do {
            switch (handler, track) {
            case (.response(let body), _):
                return Track(try body(outcome.data, outcome.response))
            case (.lookAtResponse(let body), _):
                try body(outcome.data, outcome.response)
                return track.afterLook
            case (.responseJSON(let body), _):
                return Track(try body(try json(&context), outcome.response))
            case (.lookAtJSON(let body), _):
                try body(try json(&context), outcome.response)
                return track.afterLook
            case (.transform(let body), .success(let value)):
                return Track(try body(value?.value))
            case (.lookAtValue(let body), .success(let value)):
                try body(value?.value)
            case (.recover(let body), .failure(let error)):
                return Track(try body(error))
            case (.responseError(let body), .failure(let error)):
                body(error)
            case (.step(let step), _):
                step(input(track, outcome))
            default:
                break
            }
            return track
        } catch {
            return .failure(error)
        }
    }

    private func validate(_ context: Context) -> Track {
        do {
            try context.delegate?.validateResponse(response: context.outcome.response, data: context.outcome.data, error: nil)
            return .pending
        } catch {
            return .failure(error)
        }
    }

    /// Tells the delegate when a success has become a failure.
    private func report(_ track: Track, _ context: Context) {
        guard case .failure(let error) = track, let delegate = context.delegate else { return }
        delegate.serviceResultFailure(
            response: context.outcome.response, data: context.outcome.data, request: sentRequest, error: error
        )
    }

    /// The body as JSON, parsed by the first handler that wants it.
    private func json(_ context: inout Context) throws -> Any {
        if let json = context.json { return json.value }
        let start = service.clock.now
        defer {
            let end = service.clock.now
            shared.withLock { [json = context.json] in $0.parsedJSON(json, from: start, to: end) }
        }
        let outcome = context.outcome
        guard let data = outcome.data, !data.isEmpty else {
            throw WebServiceError(.emptyResponse, "the response has no body, so no JSON", request: request, response: outcome.response)
        }
        do {
            let value = try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
            context.json = ChainValue(value)
            return value
        } catch {
            throw WebServiceError(
                .decoding, "the response's body is not JSON", request: request, response: outcome.response, body: data, underlying: error
            )
        }
    }

    private func collectMetrics(_ handlers: [@Sendable (ServiceTaskMetrics) -> Void], isFirst: Bool, _ context: Context) {
        guard !handlers.isEmpty || isFirst && context.delegate != nil else { return }
        let metrics = metrics
        if isFirst, let delegate = context.delegate {
            delegate.didFinishCollectingTaskMetrics(
                metrics: metrics, request: sentRequest, response: context.outcome.response, error: context.outcome.error
            )
        }
        for handler in handlers { handler(metrics) }
    }

    private var sentRequest: URLRequest? {
        shared.withLock { $0.sent }?.urlRequestValue
    }

    /// Resumes the task and waits until everything that was added to it has run. Cancelling the awaiting Swift task cancels the exchange.
    func finished() async {
        await withTaskCancellationHandler {
            if shared.withLock({ $0.adopt() }) {
                resume()
                await withCheckedContinuation { continuation in
                    if shared.withLock({ $0.wait(continuation) }) { continuation.resume() }
                }
                if shared.withLock({ $0.takeOver() }) { runHandlers() }
                if shared.withLock({ $0.chain.isDrained }) { return }
            }
            await withCheckedContinuation { continuation in
                add(.step { _ in continuation.resume() })
                resume()
            }
        } onCancel: {
            cancel()
        }
    }

    /// The answer, once there is an outcome.
    func response() throws -> Response {
        let outcome = context.outcome
        if let error = outcome.error { throw error }
        return Response(outcome)
    }
}
