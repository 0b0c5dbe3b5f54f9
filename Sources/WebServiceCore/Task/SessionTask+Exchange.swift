import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The start and the end of the exchange.
extension SessionTask {
    /// Starts the work that provides the result. Body providers, interceptors and collected
    /// sequences run on the handler pool; all other work starts on the calling thread and continues
    /// on the pool after its first wait. On systems earlier than macOS 26 and iOS 26, all requests
    /// start on the pool.
    func start(_ start: Call.Start) {
        guard let (request, exchange) = begin(start), !startsOnPool(request, exchange) else { return }
        HandlerPool.startImmediately(on: clock.executor) { [self] in
            await run(request, over: exchange, isAwaited: false)
        }
    }

    /// Starts the work as ``start(_:)`` does. A request without custom code is sent in the calling
    /// Swift task, and the method returns when its exchange has ended.
    ///
    /// - Returns: Whether all handlers have run. If not, ``finished()`` waits for the result, and
    ///   then runs the handlers or waits for them.
    func startInPlace(_ start: Call.Start) async -> Bool {
        guard let (request, exchange) = begin(start), !startsOnPool(request, exchange) else { return false }
        return await run(request, over: exchange, isAwaited: true)
    }

    /// Begins the work.
    ///
    /// - Returns: The request and the exchange that sends it; `nil` if a producer provides the
    ///   result, or the task has failed.
    private func begin(_ start: Call.Start) -> (Request, Exchange)? {
        do throws(WebServiceError) {
            let start = try enterScope(start)
            guard let producer = start.producer else {
                let exchange = try Exchange(beginning: start.request, of: self)
                observe(exchange.setup.delegateReference)
                scheduleDeadline(start.request.options.requestDeadline)  // before the delegate, which may block
                return (start.request, exchange)
            }
            if isListed { try service.begin(self, isRetained: true) }
            producer(self, start)
            // Another thread may have cancelled the task before the service listed it.
            if isListed, result != nil { service.end(workID) }
        } catch {
            complete(.failure(error))
        }
        return nil
    }

    /// Starts the exchange on the handler pool if it runs custom code.
    ///
    /// Custom code does not run on the calling thread, and is cancelled if the task is cancelled or
    /// reaches its deadline. An exchange without custom code ends with its task, whose receivers
    /// are abandoned.
    ///
    /// - Returns: Whether the exchange was started on the pool.
    private func startsOnPool(_ request: Request, _ exchange: Exchange) -> Bool {
        guard exchange.setup.runsCustomCode(for: request) else { return false }
        attach(
            Task(executorPreference: clock.executor) {
                await self.run(request, over: exchange, isAwaited: false)
            })
        return true
    }

    /// Runs the exchange, completes the task and runs its handlers.
    ///
    /// - Returns: Whether all handlers have run.
    @discardableResult
    private func run(_ request: Request, over exchange: Exchange, isAwaited: Bool) async -> Bool {
        let result = await Result.catching { try await exchange.response(to: request) }.mapError(locating)
        let now = clock.now
        // Steps without custom code can begin under the same lock unless there are observers, which
        // are notified of the end first and may suspend the task.
        let beginsAtOnce = isAwaited && exchange.setup.observers.isEmpty
        let (action, steps, hasNoHandlers) = call.withLock { call in
            let action = call.complete(result, at: now)
            let begins = beginsAtOnce && action?.runsHandlers == true && call.chain.beginsWithOwnSteps
            return (action, begins ? HandlerStart(&call, self) : nil, action != nil && call.chain.isDrained)
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
    package func observe(_ delegate: DelegateReference?) {
        guard let delegate else { return }
        call.withLock { $0.observe(delegate) }
    }

    /// Attaches work that `cancel()` cancels. If the task is complete, the work is cancelled
    /// immediately.
    package func attach(_ work: any Cancellable) {
        let (isNeeded, replaced) = call.withLock { $0.attach(work) }
        withExtendedLifetime(replaced) {}
        if !isNeeded { work.cancel() }
    }

    /// Attaches a value that is delivered before the result.
    ///
    /// - Returns: `false` if there already is a result.
    package func attach(_ prelude: any Prelude) -> Bool { call.withLock { $0.attach(prelude) } }

    /// The result; `nil` until there is one.
    var result: Result<Response, any Error>? { call.withLock { $0.result } }

    /// Returns the response of a completed task.
    package func receivedResponse() throws -> Response {
        guard let result else { throw URLError(.unknown) }  // unreachable: callers wait for completion
        return try result.get()
    }

    /// Whether `cancel()` was called, even if it had no effect on the result.
    package var isCancelRequested: Bool { call.withLock { $0.isCancelRequested } }

    /// Completes the task, unless it already has a result, and ends the exchange.
    ///
    /// - Parameter isInterrupted: Whether to cancel the work in progress.
    /// - Returns: Whether this is the first result.
    @discardableResult
    package func complete(_ result: Result<Response, any Error>, isInterrupted: Bool = false) -> Bool {
        let (result, now) = (result.mapError(locating), clock.now)
        guard let action = call.withLock({ $0.complete(result, at: now, isInterrupted: isInterrupted) }) else {
            return false
        }
        end(action, result)
        if action.runsHandlers { scheduleHandlers() }
        return true
    }

    func end(_ action: Call.CompleteAction, _ result: Result<Response, any Error>) {
        if action.countsHandlers { service.beginHandlers() }
        action.events?.deliver()
        for receiver in action.receivers.all { receiver.abandon() }
        for request in action.held { request.set(false) }
        if isListed {
            if case .success(let response) = result, response.isStreamed, let tail {
                service.replace(self, with: tail)
            } else {
                service.end(workID)
            }
        }
        for prelude in action.preludes { prelude.end() }
        if let alarm = action.alarm { clock.cancel(alarm) }
        // The work is cancelled before the handlers run, so that a request that follows the result
        // does not use the connection that the session is about to close.
        if action.cancelsWork { action.work?.cancel() }
        action.awaiter?.resume()
    }
}

// MARK: - Permission to send

extension SessionTask {
    /// Waits while the task is suspended.
    ///
    /// - Throws: `URLError.cancelled` if the exchange ends during the wait or the Swift task is
    ///   cancelled.
    func permission() async throws {
        if Task.isCancelled { throw URLError(.cancelled) }
        // After the exchange has ended, no request is held back; `willSend` refuses it instead.
        guard holdsBack.load(ordering: .acquiring) else { return }
        let turn = call.withLock { call -> Once<Bool>? in
            guard case .held(let turns) = call.permission else { return nil }
            let turn = Once<Bool>()
            call.permission = .held(turns + [turn])
            return turn
        }
        if await turn?.value(orIfCancelled: false) == false { throw URLError(.cancelled) }
    }

    /// Whether a request waits until the suspension ends.
    var holdsRequests: Bool {
        call.withLock { if case .held(let turns) = $0.permission { !turns.isEmpty } else { false } }
    }

    /// Holds back all further requests.
    func holdRequests(_ call: inout Call) {
        guard case .granted = call.permission else { return }
        call.permission = .held([])
        holdsBack.store(true, ordering: .releasing)
    }

    /// - Returns: The requests that were held back. The caller sets each to `true`, outside the
    ///   lock.
    func grantPermission(_ call: inout Call) -> [Once<Bool>] {
        guard case .held(let turns) = call.permission else { return [] }
        call.permission = .granted
        holdsBack.store(false, ordering: .releasing)
        return turns
    }

    /// Reserves the task for a queue, such as `TaskQueue` of `WebServiceResilience`, and ends a
    /// suspension. A queue also attaches a ``Prelude``, which the task ends when it has a result.
    ///
    /// - Returns: `false` if the task was already resumed or is already in a queue.
    package func enterQueue() -> Bool {
        call.withLock { call in
            guard call.enterQueue() else { return false }
            _ = grantPermission(&call)  // nothing is held back, because nothing was sent
            return true
        }
    }

    /// Starts the task on the calling thread if it is in a queue and has no result yet.
    ///
    /// - Parameter scope: The scope to which the task belongs.
    package func leaveQueue(in scope: DeadlineScope?) {
        let now = clock.instant
        guard let start = call.withLock({ $0.leaveQueue(at: now) }) else { return }
        DeadlineScope.$current.withValue(scope) { self.start(start) }
    }
}

// MARK: - Shared by the attempts

extension SessionTask {
    /// The instant on the system clock at which the program started the exchange; `nil` before
    /// that. A task that continues an earlier task takes over the instant of that task.
    var systemStart: UInt64? {
        get { call.withLock { $0.systemStart } }
        set { call.withLock { $0.systemStart = newValue } }
    }

    /// Returns whether an error was caused by a session that cancelled its requests after
    /// `resume()`.
    func isCancellation(_ error: WebServiceError) -> Bool {
        guard let instant = (error.underlying as? SessionClosure)?.cancellation, let systemStart else { return false }
        return systemStart <= instant
    }

    /// Returns the error with the request of the exchange, unless the error already has a request.
    /// A `URLError` contains the request in its description.
    ///
    /// If the session was closed and cancelled its requests, the error becomes
    /// `URLError.cancelled`.
    func locating(_ error: any Error) -> any Error {
        guard var error = error as? WebServiceError else { return error.describing(log.request) }
        guard !isCancellation(error) else { return URLError(.cancelled).describing(log.request) }
        guard error.request == nil, let request = log.request, request.url != nil else { return error }
        error.request = request
        return error
    }

    /// Returns the trace of the exchange, which is the first trace passed to this method.
    func trace(_ current: TraceParent) -> TraceParent {
        call.withLock { call in
            let trace = call.trace ?? current
            call.trace = trace
            return trace
        }
    }

    /// Returns the account for which the exchange was begun, which is the first one passed to this
    /// method.
    func account(_ id: ObjectIdentifier, _ current: ExchangeLog.Account) -> ExchangeLog.Account {
        withValue(of: id, current) { $0 }
    }

    /// Returns the rest of a duration that began with the exchange, or zero if it has elapsed.
    func timeLeft(of duration: Duration) -> Duration {
        let now = clock.now
        let start = root.call.withLock { $0.log.metrics.origin?.instant } ?? now
        return max(duration - .nanoseconds(Int64(clamping: now - min(start, now))), .zero)
    }

    /// Returns the value that an object stores for the exchange; `nil` if there is none.
    func value<Value: Sendable>(of id: ObjectIdentifier) -> Value? {
        root.call.withLock { $0.values[id] as? Value }
    }

    /// Changes the value that an object stores for the exchange.
    func withValue<Value: Sendable, Result>(
        of id: ObjectIdentifier, _ initial: Value, _ body: (inout Value) -> Result
    ) -> Result {
        root.call.withLock { call in
            var value = call.values[id] as? Value ?? initial
            defer { call.values[id] = value }
            return body(&value)
        }
    }

    // MARK: Settings of the body

    /// Passes the heads of interim responses to a closure, which sessions call on their own
    /// threads. This method must be called before `resume()`.
    func receiveInterim(by handler: @escaping @Sendable (ResponseHead) throws -> Void) {
        call.withLock { $0.options.onInterim = handler }
    }
}

/// The deadline of the exchange.
extension SessionTask {
    /// Sets the duration after which the task fails with ``WebServiceError/Code/deadline``.
    package func scheduleDeadline(_ deadline: Duration) {
        guard hasDeadline else { return }
        hold(clock.schedule(after: deadline, self))
    }

    /// Applies the scope in which the task is resumed.
    ///
    /// - Throws: ``WebServiceError/Code/deadline`` if the scope has ended.
    func enterScope(_ start: Call.Start) throws(WebServiceError) -> Call.Start {
        // A passive task has neither a request nor a type.
        guard let scope = DeadlineScope.current, start.hasRequest || type != nil else { return start }
        let rest = scope.rest
        var start = start
        start.request.options.scopeDeadline = rest
        call.withLock { call in
            call.scope = scope
            if start.hasRequest { call.log.request = start.request }
        }
        guard rest > .zero else {
            throw WebServiceError(
                .deadline, "the deadline of the enclosing withDeadline scope has passed, so no request was sent",
                request: start.hasRequest ? start.request : nil)
        }
        // The exchange of a typed request may be shared, so only this task ends with the scope.
        guard !start.hasRequest else { return start }
        hold(
            clock.schedule(after: rest) { [self] in
                complete(.failure(WebServiceError.deadline(rest)), isInterrupted: true)
            })
        return start
    }

    private func hold(_ alarm: Alarm) {
        if !call.withLock({ $0.setAlarm(alarm) }) {
            clock.cancel(alarm)
            // The task was cancelled before the service listed it.
            if isListed { service.end(workID) }
        }
    }
}

extension SessionTask: AlarmTarget {
    /// Ends the task at its deadline. After the head of a streamed response, `bodyDeadline` applies
    /// instead, if there is one (`ResponseReceiver+Reading.swift`).
    package func ring() {
        complete(.failure(WebServiceError.deadline(of: request)), isInterrupted: true)
    }
}

extension WebServiceError {
    /// Returns the error of an exchange that exceeded its deadline.
    static func deadline(of request: Request) -> WebServiceError {
        deadline(request.options.requestDeadline, of: request)
    }

    static func deadline(_ duration: Duration, of request: Request? = nil) -> WebServiceError {
        WebServiceError(
            .deadline,
            "the exchange exceeded its deadline of \(duration); set a longer one if the server needs more time",
            request: request)
    }
}
