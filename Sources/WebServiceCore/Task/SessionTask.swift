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
        if let action = shared.withLock({ $0.cancel() }) { perform(action) }
    }

    /// Changes the request; after the first ``resume()`` it has been encoded and stays as it is.
    func configure(_ change: (inout Request) -> Void) {
        shared.withLock { state in
            if case .created = state.phase { change(&state.request) }
        }
    }
}

// MARK: - What the pipeline tells the task

extension SessionTask {
    func watchDeadline(_ deadline: Duration) {
        let alarm = service.timekeeper.schedule(after: deadline, self)
        if !shared.withLock({ $0.watch(alarm) }) { service.timekeeper.cancel(alarm) }
    }

    func willRun(_ delegate: (any ServicePassthroughDelegate)?) {
        guard let delegate else { return }
        shared.withLock { $0.delegate = delegate }
    }

    func willSend(_ request: EncodedRequest) {
        shared.withLock { state in
            state.sent = request
            state.metrics.mark(.fetchStart)
        }
    }

    /// - Returns: Whether what is under way is still wanted; else it has been cancelled.
    @discardableResult
    func attach(_ transport: Transport) -> Bool {
        let isWanted = shared.withLock { $0.attach(transport) }
        if !isWanted { transport.cancel() }
        return isWanted
    }

    /// Brings an outcome; the first one counts.
    func complete(_ outcome: Outcome, isInterrupted: Bool = false) {
        if let action = shared.withLock({ $0.complete(outcome, isInterrupted: isInterrupted) }) { perform(action) }
    }

    private func perform(_ action: TaskState.CompleteAction) {
        if let alarm = action.alarm { service.timekeeper.cancel(alarm) }
        if action.runsHandlers { scheduleHandlers() }
        action.transport?.cancel()
    }
}

extension SessionTask: AlarmTarget {
    package func ring() {
        complete(Outcome(error: URLError(.timedOut)), isInterrupted: true)
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
    }

    private var context: Context {
        shared.withLock { Context(outcome: $0.outcome ?? Outcome(), delegate: $0.delegate) }
    }

    /// Runs handlers until there is none left or the next one belongs on the main actor, which then goes on with it.
    private func runHandlers() {
        let context = context
        var track = shared.withLock { $0.chain.pickUp() }
        while true {
            switch shared.withLock({ $0.nextStep(on: track) }) {
            case .rest:
                return
            case .run(let handler) where handler.runsOnMain:
                Task { @MainActor [track] in self.runMainHandlers(handler, track) }
                return
            case .run(let handler):
                let wasFailure = track.isFailure
                track = run(handler, track, context.outcome)
                if !wasFailure { report(track, context) }
            case .validate:
                track = validate(context)
                report(track, context)
            case .collectMetrics(let handlers, let isFirst):
                collectMetrics(handlers, isFirst: isFirst, context)
            }
        }
    }

    @MainActor
    private func runMainHandlers(_ first: Handler, _ track: Track) {
        let context = context
        var next: Handler? = first
        while let handler = next {
            shared.withLock { $0.metrics.mark(.updateUIStart) }
            context.delegate?.updateUIBegin(response: context.outcome.response)
            switch (handler, track) {
            case (.updateUI(let body), .success(let value)): body(value)
            case (.updateUI(let body), .pending): body(nil)
            case (.updateErrorUI(let body), .failure(let error)): body(error)
            default: break
            }
            context.delegate?.updateUIEnd(response: context.outcome.response)
            next = shared.withLock { $0.nextMainHandler(on: track) }
        }
        scheduleHandlers()
    }

    private func run(_ handler: Handler, _ track: Track, _ outcome: Outcome) -> Track {
        do {
            switch (handler, track) {
            case (.response(let body), _):
                return Track(try body(outcome.data, outcome.response))
            case (.lookAtResponse(let body), _):
                try body(outcome.data, outcome.response)
                return track.afterLook
            case (.responseJSON(let body), _):
                return Track(try body(try json(outcome), outcome.response))
            case (.lookAtJSON(let body), _):
                try body(try json(outcome), outcome.response)
                return track.afterLook
            case (.transform(let body), .success(let value)):
                return Track(try body(value))
            case (.lookAtValue(let body), .success(let value)):
                try body(value)
            case (.recover(let body), .failure(let error)):
                return Track(try body(error))
            case (.responseError(let body), .failure(let error)):
                body(error)
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
    private func json(_ outcome: Outcome) throws -> Any {
        if let json = shared.withLock({ $0.beginJSON() }) { return json.value }
        var json: HandlerChain.JSON?
        defer { shared.withLock { $0.endJSON(json) } }
        guard let data = outcome.data, !data.isEmpty else {
            throw WebServiceError(.emptyResponse, "the response has no body, so no JSON", request: request, response: outcome.response)
        }
        do {
            let value = try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
            json = HandlerChain.JSON(value: value)
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
}
