import Dispatch
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Execution of the handlers.
extension SessionTask {
    @discardableResult
    func add(_ handler: Handler) -> Self {
        if call.withLock({ $0.add(handler) }) { scheduleHandlers() }
        return self
    }

    @discardableResult
    func add(_ metricsHandler: @escaping MetricsHandler) -> Self {
        if call.withLock({ $0.add(metricsHandler) }) { scheduleHandlers() }
        return self
    }

    /// Runs the handlers on the pool, so that a slow handler delays no other task and none runs on
    /// the session's queue.
    func scheduleHandlers() {
        Task(executorPreference: clock.executor) { await self.runHandlers() }
    }

    /// The inputs shared by all handlers of one task.
    struct Context {
        let observed: ObservedResult
        let recordsHandlers: Bool
        /// The body as JSON, once a handler has parsed it.
        var json: ChainValue?

        init(_ state: borrowing Call, _ task: SessionTask) {
            observed = ObservedResult(
                result: state.result ?? .failure(URLError(.unknown)),  // handlers run only after there is a result
                delegate: state.delegate, task: task)
            recordsHandlers = state.recordsHandlers
            json = state.chain.json
        }
    }

    /// Runs the remaining handlers, unless the task is suspended in the meantime. The task already
    /// has its result, its deadline no longer applies, and the service no longer lists it. A
    /// handler that never returns occupies its thread and blocks the handlers after it.
    ///
    /// This method is called after the chain is opened (``complete(_:isInterrupted:)``) or
    /// continued (``resume()``), and after a late handler is added, provided that no other caller
    /// runs the chain (``HandlerChain/claim()``).
    ///
    /// - Parameter isAwaiting: Whether the caller is an awaiting Swift task. Such a task usually
    ///   runs on Swift's cooperative thread pool, which custom closures must not block.
    /// - Returns: Whether all handlers have run.
    @discardableResult
    func runHandlers(isAwaiting: Bool = false) async -> Bool {
        await runHandlers(from: call.withLock { HandlerStart(&$0, self) }, isAwaiting: isAwaiting)
    }

    func runHandlers(from start: HandlerStart, isAwaiting: Bool) async -> Bool {
        let (context, track, step) = (start.context, start.track, start.step)
        guard start.scope !== DeadlineScope.current else {
            return await runHandlers(from: step, on: track, context, isAwaiting: isAwaiting)
        }
        return await DeadlineScope.$current.withValue(start.scope) {
            await runHandlers(from: step, on: track, context, isAwaiting: isAwaiting)
        }
    }

    /// The state with which the claimant of the chain begins to run its handlers.
    struct HandlerStart {
        fileprivate let context: Context
        fileprivate let track: Track
        fileprivate let step: HandlerChain.Step
        fileprivate let scope: DeadlineScope?

        init(_ state: inout Call, _ task: SessionTask) {
            track = state.chain.pickUp()
            context = Context(state, task)
            step = state.nextStep(on: track)
            scope = state.scope
        }
    }

    private func runHandlers(
        from first: HandlerChain.Step, on start: Track, _ initial: Context, isAwaiting: Bool
    ) async -> Bool {
        var (context, track, step) = (initial, start, first)
        while true {
            switch step {
            case .rest(let isDrained, _, let wereCounted):
                if wereCounted { service.endHandlers() }
                return isDrained
            case .run(let handler) where isAwaiting && !handler.isOwnStep:
                Task(executorPreference: self.clock.executor) { [context, track, step] in
                    await self.runHandlers(from: step, on: track, context, isAwaiting: false)
                }
                return false
            case .wait(let prelude):
                await prelude.delivered()
            case .validate:
                if let rejection = context.observed.rejection() {
                    track = .failure(rejection)
                    call.withLock { $0.reject(rejection) }
                }
            case .run(.wake(let continuation)):
                continuation.resume()
            case .run(.mainStep(let main)) where !main.applies():
                break
            case .run(let handler) where handler.runsOnMain:
                let token = self.clock.beginWork()
                await runMainHandlers(handler, track)
                withExtendedLifetime(token) {}
                context.json = call.withLock { $0.chain.json }
            case .run(let handler):
                let start = context.recordsHandlers ? self.clock.now : 0
                let wasFailure = track.isFailure
                if case .asyncStep(let step) = handler {
                    reportStep(await runAsync(step, input(track, context)), context)
                } else {
                    track = run(handler, track, &context)
                    if !wasFailure, let failure = track.error { context.observed.report(failure) }
                }
                if context.recordsHandlers { recordHandler(handler, from: start) }
            case .collectMetrics(let handlers, let isFirst, _):
                collectMetrics(handlers, isFirst: isFirst, context)
            }
            step = call.withLock { $0.nextStep(on: track) }
        }
    }

    /// Runs a handler on the main actor, and then the handlers directly after it that also run
    /// there.
    @MainActor
    private func runMainHandlers(_ first: Handler, _ track: Track) {
        let context = call.withLock { Context($0, self) }
        var next: Handler? = first
        while let handler = next {
            let start = self.clock.now
            switch (handler, track) {
            case (.updateUI(let body), .success(let value)): updatingUI(context, from: start) { body(value?.value) }
            case (.updateUI(let body), .pending): updatingUI(context, from: start) { body(nil) }
            case (.updateErrorUI(let body), .failure(let error)): updatingUI(context, from: start) { body(error) }
            case (.mainStep(let main), _) where main.applies():
                var error: (any Error)?
                if main.isUI {
                    updatingUI(context, from: start) { error = main.body(input(track, context)) }
                } else {
                    error = main.body(input(track, context))
                }
                reportStep(error, context)
            default: break
            }
            if context.recordsHandlers { recordHandler(handler, from: start) }
            next = call.withLock { $0.nextMainHandler(on: track) }
        }
    }

    /// Runs an asynchronous step in a separate Swift task, which `cancel()` cancels. The step does
    /// not inherit a cancellation of the caller's Swift task.
    private func runAsync(
        _ step: @escaping @Sendable (StepInput) async -> (any Error)?, _ input: StepInput
    ) async -> (any Error)? {
        let task = Task(executorPreference: clock.executor) { await step(input) }
        if call.withLock({ $0.setRunningStep(task) }) { task.cancel() }
        let error = await task.value
        call.withLock { _ = $0.setRunningStep(nil) }
        return error
    }

    @MainActor
    private func updatingUI(_ context: Context, from start: UInt64, _ body: () -> Void) {
        self.mark(.updateUIStart, at: start)
        if let delegate = context.observed.delegate {
            let (request, response) = (request, context.observed.urlResponse)
            DelegateCall.$request.withValue(request) { delegate.updateUIBegin(response: response) }
            body()
            DelegateCall.$request.withValue(request) { delegate.updateUIEnd(response: response) }
        } else {
            body()
        }
        let end = self.clock.now
        self.mark(.updateUIEnd, at: end)
    }

    /// Reports the first failure of a typed step to the timeline and the delegate.
    private func reportStep(_ error: (any Error)?, _ context: Context) {
        guard let error, call.withLock({ $0.reportsStep() }) else { return }
        context.observed.report(error)
    }

    private func input(_ track: Track, _ context: Context) -> StepInput {
        StepInput(context.observed.result, of: self, failure: track.error ?? context.observed.error)
    }

    private func recordHandler(_ handler: Handler, from start: UInt64) {
        record(.handler, handler.name, from: start)
    }

    private func run(_ handler: Handler, _ track: Track, _ context: inout Context) -> Track {
        do {
            switch (handler, track) {
            case (.response(let body), _):
                return Track(try body(context.observed.data, context.observed.urlResponse))
            case (.observeResponse(let body), _):
                try body(context.observed.data, context.observed.urlResponse)
                return track.afterObserving
            case (.responseJSON(let body), _):
                return Track(try body(try json(&context), context.observed.urlResponse))
            case (.observeJSON(let body), _):
                try body(try json(&context), context.observed.urlResponse)
                return track.afterObserving
            case (.transform(let body), .success(let value)):
                return Track(try body(value?.value))
            case (.observeValue(let body), .success(let value)):
                try body(value?.value)
            case (.recover(let body), .failure(let error)):
                return Track(try body(error))
            case (.responseError(let body), .failure(let error)):
                body(error)
            case (.ownStep(let step), _):
                reportStep(step.run(input(track, context)), context)
            case (.step(let step, _), _):
                reportStep(step(input(track, context)), context)
            default:
                break
            }
            return track
        } catch {
            return .failure(error)
        }
    }

    /// Returns the body as JSON. The first handler that uses the JSON parses it for all handlers.
    private func json(_ context: inout Context) throws -> Any {
        if let json = context.json { return json.value }
        let start = self.clock.now
        defer {
            let end = self.clock.now
            self.mark(.responseJSONStart, at: start)
            self.mark(.responseJSONEnd, at: end)
            call.withLock { [json = context.json] in $0.chain.json = json }
        }
        guard let data = context.observed.data, !data.isEmpty else {
            throw WebServiceError(
                .emptyResponse, "the response has no body to parse as JSON; use response(_:) to accept an empty body",
                request: request, response: context.observed.response)
        }
        do {
            let value = try JSON.object(from: data)
            context.json = ChainValue(value)
            return value
        } catch {
            throw WebServiceError(
                .decoding, "the response body is not JSON; see the underlying error", request: request,
                response: context.observed.response, underlying: error)
        }
    }

    private func collectMetrics(_ handlers: [MetricsHandler], isFirst: Bool, _ context: Context) {
        guard !handlers.isEmpty || isFirst && context.observed.delegate != nil else { return }
        if isFirst { context.observed.reportMetrics() }
        let metrics = metrics
        for handler in handlers { handler(metrics, context.observed.urlResponse) }
    }
}
