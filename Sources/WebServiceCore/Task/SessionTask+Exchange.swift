import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The start and the end of the exchange.
extension SessionTask {
    /// Starts the work that provides the result. Custom code runs on the handler pool; all other
    /// work starts on the calling thread and continues on the pool after its first wait.
    func start(_ start: TaskState.Start) {
        do throws(WebServiceError) {
            let start = try enterScope(start)
            if let source = start.source {
                context.begin()
                if isListed { _ = try service.begin(self, isRetained: true) }
                source(self, start)
                // Another thread may have cancelled the task before the service listed it.
                if isListed, result != nil { service.end(workID) }
            } else {
                send(start.request, over: try makeExchange(for: start.request))
            }
        } catch {
            complete(.failure(error))
        }
    }

    /// Starts the work as ``start(_:)`` does. A request without custom code is sent in the calling
    /// Swift task, and the method returns when its exchange has ended.
    ///
    /// - Returns: Whether all handlers have run.
    func startInPlace(_ start: TaskState.Start) async -> Bool {
        guard start.source == nil else {
            self.start(start)
            return false
        }
        let request: Request
        let exchange: Exchange
        do throws(WebServiceError) {
            request = try enterScope(start).request
            exchange = try makeExchange(for: request)
        } catch {
            complete(.failure(error))
            return false
        }
        guard !exchange.stages.runsCustomCode(for: request) else {
            send(request, over: exchange)
            return false
        }
        scheduleDeadline(request.options.requestDeadline)
        let result = await Result.catching { try await exchange.response(to: request) }
        return settle(result)?.runsHandlers == true ? await runHandlers(isAwaiting: true) : false
    }

    private func makeExchange(for request: Request) throws(WebServiceError) -> Exchange {
        let exchange = try Exchange(beginning: request, in: context, of: isListed ? self : nil)
        observe(exchange.stages.delegateReference)
        return exchange
    }

    private func send(_ request: Request, over exchange: Exchange) {
        scheduleDeadline(request.options.requestDeadline)  // a delegate may block
        let run: @Sendable () async -> Void = { [self] in
            let result = await Result.catching { try await exchange.response(to: request) }
            guard settle(result)?.runsHandlers == true else { return }
            // A session may complete synchronously, within `resume()`.
            if HandlerPool.isCurrent { await runHandlers() } else { scheduleHandlers() }
        }
        guard exchange.stages.runsCustomCode(for: request) else {
            HandlerPool.startImmediately(on: context.clock.executor, run)
            return
        }
        // Custom code does not run on the calling thread, and is cancelled if it is still running
        // at the end. Without custom code, the end of the context ends the exchange.
        context.begin(.unencoded(request))
        attach(Task(executorPreference: context.clock.executor, operation: run))
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

    /// Completes the task. Only the first result counts.
    ///
    /// - Parameter isInterrupted: Whether to cancel the work in progress.
    /// - Returns: Whether this is the first result.
    @discardableResult
    func complete(_ result: Result<Response, any Error>, isInterrupted: Bool = false) -> Bool {
        guard let action = settle(result, isInterrupted: isInterrupted) else { return false }
        if action.runsHandlers { scheduleHandlers() }
        return true
    }

    /// Sets the result, unless there is one, and ends everything that belongs to the exchange.
    ///
    /// - Returns: The action, whose handlers the caller must run; `nil` if there already is a
    ///   result.
    private func settle(
        _ result: Result<Response, any Error>, isInterrupted: Bool = false
    ) -> TaskState.CompleteAction? {
        let result = result.mapError(context.locating)
        let action = shared.withLock { $0.complete(result, isInterrupted: isInterrupted) }
        if let action { end(action, result) }
        return action
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
