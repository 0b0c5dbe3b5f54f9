import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The start and the end of the exchange, and its deadline.
///
/// ``attach(_:deadline:)`` schedules the deadline, and ``ring()`` ends the task.
extension SessionTask {
    /// Starts the pipeline, at the first `resume()`, on the calling thread.
    func start(_ request: consuming Request) {
        let pipeline = service.pipeline
        observe(pipeline.delegateReference)
        if !pipeline.observers.isEmpty {
            context.log.observe(by: pipeline.observers, copy request, isComposite: false)
        }
        let deadline = request.options.requestDeadline
        pipeline.run(request, in: context) { work in
            attach(work, deadline: deadline)
        } completion: { [self] result in
            complete(result)
        }
    }

    /// Sets the delegate for the handlers of the task.
    func observe(_ delegate: DelegateReference?) {
        guard let delegate else { return }
        shared.withLock { $0.observe(delegate) }
    }

    /// Attaches work that `cancel()` cancels. If the task is complete, the work is cancelled
    /// immediately.
    ///
    /// - Parameter deadline: The duration after which the task fails with
    ///   ``WebServiceError/Code/deadline``; `nil` to leave the deadline unchanged.
    func attach(_ work: Pipeline.Running, deadline: Duration? = nil) {
        let alarm = deadline.map { context.clock.schedule(after: $0, self) }
        let (isNeeded, replaced) = shared.withLock { $0.attach(work, alarm) }
        withExtendedLifetime(replaced) {}
        guard !isNeeded else { return }
        if let alarm { context.clock.cancel(alarm) }
        work.cancel()
    }

    /// Adopts the records of another task that sent requests in place of this one.
    func takeOver(_ other: SessionTask) {
        context.log.takeOver(other.context.log.record)
    }

    /// The result; `nil` until there is one.
    var result: Result<Response, any Error>? { shared.withLock { $0.result } }

    /// A Boolean value that indicates whether `cancel()` was called, even if it had no effect on
    /// the result.
    var isCancelRequested: Bool { shared.withLock { $0.isCancelRequested } }

    /// Completes the task. The first result counts.
    ///
    /// - Parameter isInterrupted: Whether the work in progress must be cancelled.
    /// - Returns: Whether this result counts.
    @discardableResult
    func complete(_ result: Result<Response, any Error>, isInterrupted: Bool = false) -> Bool {
        let result = result.mapError(locating)
        guard let action = shared.withLock({ $0.complete(result, isInterrupted: isInterrupted) }) else { return false }
        perform(action, result)
        return true
    }

    /// Returns the error with the request of this exchange, unless it already has one.
    ///
    /// If the session was closed and cancelled its requests in the meantime, so is this exchange.
    func locating(_ error: any Error) -> any Error {
        guard var error = error as? WebServiceError else { return error }
        guard !context.isCancellation(error) else { return URLError(.cancelled) }
        guard error.request == nil else { return error }
        let request = request
        if request.url != nil { error.request = request }
        return error
    }

    func perform(_ action: TaskState.CompleteAction, _ result: Result<Response, any Error>) {
        var progress = context.log.end(result, isDriven: action.isDriven)
        if case .success(let response) = result, response.isStreamed { progress = nil }  // ends with the body
        if let alarm = action.alarm { context.clock.cancel(alarm) }
        context.gate.end()
        // First, so that a request that follows the result does not use the connection that the
        // session is about to close.
        if action.cancelsWork { action.work?.cancel() }
        if progress == nil, action.early == nil {
            proceed(action)
        } else {
            finish(progress) { self.finish(action.early) { self.proceed(action) } }
        }
    }

    /// Finishes the delivery that precedes the handlers, then calls the closure.
    private func finish(_ prelude: (any Prelude)?, _ then: @escaping @Sendable () -> Void) {
        if let prelude { prelude.finish(then) } else { then() }
    }

    private func proceed(_ action: TaskState.CompleteAction) {
        if action.runsHandlers { scheduleHandlers() }
        action.adopter?()
    }
}

extension SessionTask: AlarmTarget {
    /// Ends the task at its deadline.
    package func ring() {
        let request = request
        let error = WebServiceError(
            .deadline, "the exchange exceeded its deadline of \(request.options.requestDeadline)", request: request)
        complete(.failure(error), isInterrupted: true)
    }
}
