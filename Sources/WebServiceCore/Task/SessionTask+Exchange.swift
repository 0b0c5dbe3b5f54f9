import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The start and the end of the exchange.
extension SessionTask {
    /// Starts the work that provides the result. Custom code runs on the handler pool; all other
    /// work starts on the calling thread and continues on the pool after its first wait.
    func start(_ start: TaskState.Start) {
        guard let (request, exchange) = begin(start), !startsOnPool(request, exchange) else { return }
        HandlerPool.startImmediately(on: context.clock.executor) { [self] in
            await run(request, over: exchange, isAwaited: false)
        }
    }

    /// Starts the work as ``start(_:)`` does. A request without custom code is sent in the calling
    /// Swift task, and the method returns when its exchange has ended.
    ///
    /// - Returns: Whether all handlers have run.
    func startInPlace(_ start: TaskState.Start) async -> Bool {
        guard let (request, exchange) = begin(start), !startsOnPool(request, exchange) else { return false }
        return await run(request, over: exchange, isAwaited: true)
    }

    /// Begins the work.
    ///
    /// - Returns: The request and the exchange that sends it; `nil` if a source provides the
    ///   result, or the task has failed.
    private func begin(_ start: TaskState.Start) -> (Request, Exchange)? {
        do throws(WebServiceError) {
            let start = try enterScope(start)
            guard let source = start.source else {
                let exchange = try Exchange(beginning: start.request, in: context, of: isListed ? self : nil)
                observe(exchange.setup.delegateReference)
                scheduleDeadline(start.request.options.requestDeadline)  // a delegate may block
                return (start.request, exchange)
            }
            context.begin()
            if isListed { try service.begin(self, isRetained: true) }
            source(self, start)
            // Another thread may have cancelled the task before the service listed it.
            if isListed, result != nil { service.end(workID) }
        } catch {
            complete(.failure(error))
        }
        return nil
    }

    /// Starts the exchange on the handler pool if it runs custom code.
    ///
    /// Custom code does not run on the calling thread, and is cancelled if it is still running at
    /// the end. Without custom code, the end of the context ends the exchange.
    ///
    /// - Returns: Whether the exchange was started there.
    private func startsOnPool(_ request: Request, _ exchange: Exchange) -> Bool {
        guard exchange.setup.runsCustomCode(for: request) else { return false }
        context.begin(.unencoded(request))
        attach(
            Task(executorPreference: context.clock.executor) {
                await self.run(request, over: exchange, isAwaited: false)
            })
        return true
    }

    /// Runs the exchange, completes the task and runs its handlers.
    ///
    /// - Returns: Whether all handlers have run.
    @discardableResult
    private func run(_ request: Request, over exchange: Exchange, isAwaited: Bool) async -> Bool {
        let result = await Result.catching { try await exchange.response(to: request) }.mapError(context.locating)
        // Steps without custom code can begin in the same lock. Observers, which are told of the
        // end first, may suspend the task.
        let beginsAtOnce = isAwaited && exchange.setup.observers.isEmpty
        let (action, steps, hasNoHandlers) = shared.withLock { state in
            let action = state.complete(result)
            let begins = beginsAtOnce && action?.runsHandlers == true && state.chain.beginsWithOwnSteps
            return (action, begins ? HandlerStart(&state, context) : nil, action != nil && state.chain.isDrained)
        }
        if let action { end(action, result) }
        if let steps { return await runHandlers(from: steps, isAwaiting: true) }
        guard action?.runsHandlers == true else { return hasNoHandlers }
        // A session may complete synchronously, within `resume()`.
        if isAwaited || HandlerPool.isCurrent { return await runHandlers(isAwaiting: isAwaited) }
        scheduleHandlers()
        return false
    }

    /// Sets the delegate for the handlers of the task.
    func observe(_ delegate: DelegateReference?) {
        guard let delegate else { return }
        shared.withLock { $0.observe(delegate) }
    }

    /// Attaches work that `cancel()` cancels. If the task is complete, the work is cancelled
    /// immediately.
    func attach(_ work: any Cancellable) {
        let (isNeeded, replaced) = shared.withLock { $0.attach(work) }
        withExtendedLifetime(replaced) {}
        if !isNeeded { work.cancel() }
    }

    /// Attaches a value that is delivered before the result.
    ///
    /// - Returns: `false` if there already is a result.
    package func attach(_ prelude: any Prelude) -> Bool { shared.withLock { $0.attach(prelude) } }

    /// The result; `nil` until there is one.
    var result: Result<Response, any Error>? { shared.withLock { $0.result } }

    /// Returns the response of a completed task.
    func response() throws -> Response {
        guard let result else { throw URLError(.unknown) }  // unreachable: callers wait for completion
        return try result.get()
    }

    /// A Boolean value that indicates whether `cancel()` was called, even if it had no effect on
    /// the result.
    var isCancelRequested: Bool { shared.withLock { $0.isCancelRequested } }

    /// Completes the task, unless there is a result, and ends everything that belongs to the
    /// exchange.
    ///
    /// - Parameter isInterrupted: Whether to cancel the work in progress.
    /// - Returns: Whether this is the first result.
    @discardableResult
    func complete(_ result: Result<Response, any Error>, isInterrupted: Bool = false) -> Bool {
        let result = result.mapError(context.locating)
        guard let action = shared.withLock({ $0.complete(result, isInterrupted: isInterrupted) }) else { return false }
        end(action, result)
        if action.runsHandlers { scheduleHandlers() }
        return true
    }

    func end(_ action: TaskState.CompleteAction, _ result: Result<Response, any Error>) {
        context.end(result, hasSource: action.hasSource)
        if isListed {
            if case .success(let response) = result, response.isStreamed {
                service.release(self, continuedBy: context)
            } else {
                service.end(workID)
            }
        }
        for prelude in action.preludes { prelude.end() }
        if let alarm = action.alarm { context.clock.cancel(alarm) }
        // Before the handlers, so that a request that follows the result does not use the
        // connection that the session is about to close.
        if action.cancelsWork { action.work?.cancel() }
        action.awaiter?.resume()
    }
}
