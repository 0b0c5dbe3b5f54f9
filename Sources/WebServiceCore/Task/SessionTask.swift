import Foundation
import Synchronization

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// An exchange of one request and its response.
///
/// A task sends its request once, when it is resumed, and passes the response to its handlers.
///
/// - Nothing is sent before ``resume()``. A task that is never resumed is deallocated together with
///   its handlers. A resumed task keeps itself alive until it completes.
/// - There is exactly one result: the response or an error, such as an error of the request or of
///   an interceptor, a transport error (a `URLError`, unless a custom session fails with another
///   error), the deadline (``WebServiceError/Code/deadline``) or ``cancel()``
///   (`URLError.cancelled`), whichever occurs first.
/// - Handlers run in the order in which they were added, one at a time, each at most once,
///   including handlers added after the result. Background handlers run on the handler pool, never
///   on the main thread or the thread of the session. UI handlers run on the main actor; later
///   handlers wait until the UI handlers return, without blocking a thread.
///
/// All members may be used from any thread. `Documentation/Concurrency.md` lists where code runs.
public final class SessionTask: Sendable {
    /// The core of the service.
    ///
    /// Only the task of a typed request also retains the `WebService` (`TaskOwner`).
    package let service: ServiceCore
    /// The state of the task. While its lock is held, only the locks of ``EventQueue``,
    /// ``BodyTail``, ``ResponseReceiver``, ``ProgressRelay`` and ``DelegateReference`` are taken.
    let call: Mutex<Call>
    /// A closure that returns the session to use instead of the service's session; `nil` to use the
    /// service's session.
    package let substitution: SessionSubstitution?
    /// The task in whose exchange this one is a concurrent request; `nil` if there is none.
    private let main: SessionTask?
    /// The storage of ``tail``, which is set before `resume()` and read without the lock.
    private let bodyTail = AtomicLazyReference<BodyTail>()
    /// Whether requests are held back. The value is read without the lock, because most tasks are
    /// never suspended.
    let holdsBack = Atomic(false)
    /// The type of a typed request.
    let type: (any Sendable.Type)?
    /// Whether the service lists the task as in flight. The value is `false` for requests on behalf
    /// of a listed task, such as those of a download, and for passive tasks.
    let isListed: Bool
    /// Whether the task ends at the deadline of its request.
    let hasDeadline: Bool

    /// - Parameters:
    ///   - type: The type of a typed request.
    ///   - substitution: A closure that returns the session to use instead of the service's
    ///     session. Defaults to `nil`.
    ///   - main: The task whose exchange includes this one as a concurrent request. Defaults to
    ///     `nil`.
    ///   - isListed: Whether the service lists the task as in flight.
    ///   - hasDeadline: Whether the task ends at the deadline of its request.
    ///   - producer: A closure that provides the result. Defaults to `nil`: the task sends its
    ///     request.
    init(
        _ service: ServiceCore, _ request: consuming Request, type: (any Sendable.Type)? = nil,
        over substitution: SessionSubstitution? = nil, in main: SessionTask? = nil, isListed: Bool = true,
        hasDeadline: Bool = true, producer: Call.Producer? = nil
    ) {
        self.service = service
        self.type = type
        self.substitution = substitution
        self.main = main
        self.isListed = isListed
        self.hasDeadline = hasDeadline
        call = Mutex(Call(request: request, producer: producer))
    }

    /// Creates a task that sends a request, for another module.
    package convenience init(
        _ service: ServiceCore, _ request: consuming Request, type: (any Sendable.Type)?,
        over session: (any Session)?, isListed: Bool = true, hasDeadline: Bool = true
    ) {
        self.init(
            service, request, type: type, over: WebServiceCore.substitution(by: session), isListed: isListed,
            hasDeadline: hasDeadline)
    }

    /// Creates a task that has no request to change, such as that of a typed request.
    ///
    /// - Parameters:
    ///   - type: The type of a typed request.
    ///   - isListed: Whether the service lists the task as in flight.
    ///   - producer: A closure that provides the result; see ``Call/Producer``.
    package convenience init(
        _ service: ServiceCore, type: (any Sendable.Type)?, isListed: Bool = true,
        producer: @escaping @Sendable (SessionTask) -> Void
    ) {
        self.init(service, Request(url: ""), type: type, isListed: isListed) { task, start in
            guard start.isConfigured else { return producer(task) }
            let message =
                "the request of a typed task cannot be changed; set its options in request(for:) or with the "
                + "parameter 'configuring' of perform(_:)"
            task.complete(.failure(WebServiceError(.encoding, message)))
        }
    }

    #if DEBUG
    deinit {
        let (request, creation) = call.withLock { ($0.unsent?.request, $0.creation) }
        if let request, let creation { UnsentTasks.report(request, creation) }
    }
    #endif

    /// The clock of the task.
    package var clock: TaskClock { service.clock }

    /// The part of the task that a streamed body retains; `nil` if the body is not streamed.
    var tail: BodyTail? { bodyTail.load() }

    /// Whether the body of the response is streamed.
    package var isStreamed: Bool { tail != nil }

    /// Streams the body of the response; see ``ResponseReceiver/Options``. This method has no
    /// effect after `resume()`.
    func streamBody(bufferSize: Int, batchSize: Int = 1) {
        let tail = BodyTail(self)
        call.withLock { call in
            guard call.unsent != nil else { return }
            let tail = bodyTail.storeIfNil(tail)
            (call.options.bufferSize, call.options.batchSize) = (max(1, bufferSize), batchSize)
            call.options.tail = tail
        }
    }

    /// The task, or the task whose exchange includes it as a concurrent request. The values of
    /// interceptors and the deadline belong to the exchange of this root.
    var root: SessionTask { main ?? self }

    /// The state of the task.
    ///
    /// The state is `.suspended` before the task is resumed, while it waits in a `TaskQueue`, and
    /// between ``suspend()`` and ``resume()``. It is `.canceling` from ``cancel()`` until the
    /// handlers have run, and `.completed` after that and after any other result.
    public var state: DataTaskState { call.withLock { $0.dataTaskState } }

    /// The metrics collected so far.
    public var metrics: ServiceTaskMetrics { log.metrics }

    /// The events recorded so far. Handlers are included only if ``recordHandlers()`` was called.
    public var timeline: Timeline { log.timeline }

    /// The log of the exchange.
    package var log: ExchangeLog.Record { call.withLock { $0.log } }

    /// The request with the changes of all setters.
    public var request: Request {
        call.withLock { call in
            #if DEBUG
            call.creation = nil
            #endif
            return call.unsent?.request ?? call.log.request
        } ?? Request(url: "")
    }

    /// A snapshot of a task at one instant. The values are consistent with each other.
    public struct Status: Sendable {
        /// The state; see ``SessionTask/state``.
        public let state: DataTaskState
        /// The metrics collected so far.
        public let metrics: ServiceTaskMetrics
        /// The progress that was reported last; `nil` before the first report or if no handler
        /// observes the progress.
        public let progress: TransferProgress?
        /// The request with the changes of all setters.
        public let request: Request
    }

    /// The state, the metrics, the progress and the request at one instant.
    public var status: Status {
        call.withLock { call in
            let request = call.unsent?.request ?? call.log.request ?? Request(url: "")
            return Status(
                state: call.dataTaskState, metrics: call.log.metrics, progress: call.progress.relay?.latest,
                request: request)
        }
    }

    /// Sends the request when this method is called for the first time.
    ///
    /// After ``suspend()``, sends the request that was held back and continues with the handlers.
    /// Any other call has no effect.
    @discardableResult
    public func resume() -> Self {
        if let start = resumed() { self.start(start) }
        return self
    }

    /// Resumes the task and waits until the handlers added so far have run. Cancelling the awaiting
    /// Swift task cancels the exchange.
    ///
    /// A request that runs no custom code is sent by the awaiting Swift task, which also runs the
    /// steps without custom closures. This avoids waking another thread.
    func finished() async {
        await withTaskCancellationHandler {
            if let start = resumed(isAwaited: true), await startInPlace(start) { return }
            await result()
            if call.withLock({ $0.claimHandlers() }), await runHandlers(isAwaiting: true) { return }
            if call.withLock({ $0.chain.isDrained }) { return }
            await withCheckedContinuation { _ = add(.wake($0)) }
        } onCancel: {
            cancel()
        }
    }

    /// Runs the exchange of a task without handlers.
    ///
    /// - Returns: The result, or the error with which the delegate has rejected it.
    package func outcome() async -> Result<Response, any Error> {
        await finished()
        return call.withLock { $0.outcome }
    }

    /// Waits until there is a result. Returns immediately if another caller already waits for the
    /// result, or if a handler contains a custom closure, which this caller must not run.
    private func result() async {
        await withCheckedContinuation { continuation in
            if !call.withLock({ $0.wait(continuation) }) { continuation.resume() }
        }
    }

    /// Ends a suspension and runs the handlers if there is a result.
    ///
    /// - Returns: The work that the caller must start; `nil` if there is none, such as after the
    ///   first call.
    private func resumed(isAwaited: Bool = false) -> Call.Start? {
        let now = clock.instant
        let (action, held) = call.withLock { call in
            let held = call.isSuspended ? grantPermission(&call) : []
            return (call.resume(isAwaited: isAwaited, at: now), held)
        }
        for turn in held { turn.set(true) }
        switch consume action {
        case .start(let start): return start
        case .runHandlers: scheduleHandlers()
        case .none: break
        }
        return nil
    }

    /// Suspends the task until ``resume()``.
    ///
    /// No further request is sent and no further handler starts. This applies to the first request,
    /// which may wait for a body provider or an interceptor, and to retries and redirects. While
    /// the task is suspended, ``state`` is `.suspended`. A request in flight continues, the
    /// deadline still ends the exchange, and ``cancel()`` ends the suspension. For a typed request
    /// and after `setDuplicates(_:key:)`, the exchange may be shared with other tasks, so only the
    /// handlers are suspended.
    @discardableResult
    public func suspend() -> Self {
        call.withLock { call in
            call.suspend()
            holdRequests(&call)
        }
        return self
    }

    /// Cancels the exchange, even before the task is resumed.
    ///
    /// If there is no result yet, the result is `URLError.cancelled`: the error handlers receive
    /// it, and a late response is ignored. If there is a result, asynchronous steps of typed tasks,
    /// such as `mapAsync`, are cancelled, and a streamed body ends with `URLError.cancelled`.
    public func cancel() {
        let now = clock.now
        if let action = call.withLock({ $0.cancel(at: now) }) {
            end(action, .failure(URLError(.cancelled)))
            if action.runsHandlers { scheduleHandlers() }
        } else {
            call.withLock { $0.cancelSteps() }?.cancel()
            tail?.cancel()
        }
    }

    /// The maximum number of requests sent for one exchange.
    ///
    /// Retries, redirects and repetitions with a newer credential are included. An exchange that
    /// needs more requests fails with ``WebServiceError/Code/tooManyAttempts``.
    public static let maximumAttempts = ExchangeLog.maximumAttempts

    /// Records each handler in the ``timeline`` with its start and duration.
    ///
    /// Recording is off by default, because it takes time and memory.
    @discardableResult
    public func recordHandlers() -> Self {
        call.withLock { $0.recordsHandlers = true }
        return self
    }
}

extension SessionTask: InFlightWork {
    /// The identifier, which does not change when the streamed body is listed in place of the task.
    var workID: ObjectIdentifier { tail?.workID ?? ObjectIdentifier(self) }

    var snapshot: InFlightExchange? {
        let (request, state, isDownload, hasProducer) = call.withLock {
            ($0.unsent?.request ?? $0.log.request, $0.dataTaskState, $0.isDownload, $0.hasProducer)
        }
        let kind: InFlightExchange.Kind =
            if isDownload { request?.isUpload == true ? .upload : .download } else if hasProducer, type != nil {
                .typedRequest
            } else if isStreamed {
                .stream
            } else {
                request?.isUpload == true ? .upload : .request
            }
        return InFlightExchange(self, kind, request, type: type, state: state, progress: latestProgress)
    }
}
