import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// One exchange: sends its request once, when it is resumed, and pushes the answer through its handlers.
///
/// - Nothing happens before ``resume()``. A task that is never resumed is freed with its handlers; a resumed one needs nobody to hold it.
/// - There is exactly one outcome: the answer, an error of the request, the transport's error (a `URLError`, unless a session of your own fails with something else), the deadline
///   (``WebServiceError/Code/deadline``) or ``cancel()`` (`URLError.cancelled`), whichever comes first.
/// - Handlers run in the order they were added, one at a time, each at most once, also those that are added after the outcome. Background
///   handlers run on a concurrent pool, never on the main thread and never on the session's; main-queue handlers run on the main actor and
///   hold back the later ones until they return, without blocking a thread.
///
/// All members may be used from any thread.
public final class SessionTask: Sendable {
    let context: ExchangeContext
    let shared: Mutex<TaskState>
    /// Provides the result in place of the pipeline; `nil` where the task sends its request itself.
    let driver: (@Sendable (SessionTask) -> Void)?

    var service: any PipelineSource { context.service }

    init(_ service: any PipelineSource, _ request: Request) {
        context = ExchangeContext(service)
        driver = nil
        shared = Mutex(TaskState(request: request))
    }

    /// Creates a task whose result comes from elsewhere.
    ///
    /// - Parameter driver: Called once, when the task is first resumed, on the thread that resumes. It has to complete the task.
    init(_ service: any PipelineSource, driver: @escaping @Sendable (SessionTask) -> Void) {
        context = ExchangeContext(service)
        self.driver = driver
        shared = Mutex(TaskState(request: Request(url: ""), isDriven: true))
    }

    /// Where the task stands: `.suspended` before it is resumed and from ``suspend()`` to
    /// ``resume()``, `.canceling` from ``cancel()`` until the handlers have run, `.completed` when
    /// there is another outcome.
    public var state: DataTaskState { shared.withLock { $0.dataTaskState } }

    /// What was measured so far.
    public var metrics: ServiceTaskMetrics { context.log.record.metrics }

    /// The request, as the setters have left it.
    public var request: Request { shared.withLock { $0.unsentRequest } ?? context.log.record.request ?? Request(url: "") }

    /// Sends the request, at the first call; after ``suspend()`` sends what was held back and lets
    /// handlers run again. Otherwise it has no effect.
    @discardableResult
    public func resume() -> Self {
        let (action, held) = shared.withLock { state in
            let held = state.isSuspended ? context.gate.open() : []
            return (state.resume(), held)
        }
        switch action {
        case .start(let request):
            context.log.begin(at: context.clock.now)
            if let driver { driver(self) } else { start(request) }
        case .runHandlers: scheduleHandlers()
        case .none: break
        }
        for send in held { send() }
        return self
    }

    /// Holds the task back until ``resume()``: no further request is sent, neither the first one,
    /// which may wait for a body provider or an interceptor, nor a retry or a redirect; and no
    /// further handler begins. ``state`` is `.suspended`. A request in flight continues, and so
    /// does the deadline, which ends the exchange; ``cancel()`` ends the suspension. Of a typed
    /// request, whose exchange other tasks may share, only the handlers are held back.
    @discardableResult
    public func suspend() -> Self {
        shared.withLock { state in
            state.suspend()
            context.gate.close()
        }
        return self
    }

    /// Asks the exchange to stop, also before it began. If there is no outcome yet, the outcome is `URLError.cancelled`, the error handlers get it,
    /// and a late answer is ignored. Otherwise only steps of typed tasks that take their time are cancelled, such as `mapAsync`.
    public func cancel() {
        if let action = shared.withLock({ $0.cancel() }) {
            perform(action, .failure(URLError(.cancelled)))
        } else {
            shared.withLock { $0.cancelSteps() }?.cancel()
        }
    }

    /// More messages than this for one exchange, whatever retries, redirects and refreshes ask for, and it fails with
    /// ``WebServiceError/Code/tooManyMessages``.
    public static let maximumMessages = ExchangeLog.maximumAttempts

    /// Has each handler written into the ``timeline`` with start and length; off by default, because it takes time.
    @discardableResult
    public func recordHandlers() -> Self {
        shared.withLock { $0.recordsHandlers = true }
        return self
    }

    /// Changes the request; after the first ``resume()`` it has been encoded and stays as it is.
    func configure(_ change: (inout Request) -> Void) {
        // What a setter replaces may be the user's to free, and is freed outside the lock.
        let replaced = shared.withLock { state in
            defer { state.configure(change) }
            return state.unsentRequest
        }
        withExtendedLifetime(replaced) {}
    }
}
