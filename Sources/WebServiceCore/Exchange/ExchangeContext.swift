import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Returns the session that an exchange uses in place of that of its service.
typealias SessionSubstitution = @Sendable (any Session) -> any Session

/// Returns the substitution by a session; `nil` for the session of the service.
func substitution(by session: (any Session)?) -> SessionSubstitution? {
    guard let session else { return nil }
    return { _ in session }
}

/// The state that the stages, the interceptors and the streamed body of one exchange share: its
/// record, the permission to send, and the settings of its body.
///
/// The context is separate from the state of its task, because a streamed body retains the context,
/// and the result of the task retains the body. The lock of the context is a leaf: no other lock is
/// taken while it is held.
final class ExchangeContext: Sendable {
    let clock: TaskClock
    /// The core of the service, retained for as long as the task.
    ///
    /// Only the task of a typed request also retains the `WebService` (`TaskOwner`).
    let service: ServiceCore
    /// Returns the session to use in place of that of the service; `nil` for that of the service.
    let substitution: SessionSubstitution?
    /// The exchange in which this one is a concurrent request; `nil` if there is none.
    private let main: ExchangeContext?
    let state = Mutex(State())
    /// A Boolean value that indicates whether the progress has a receiver. Read without the lock,
    /// because progress is reported often and most exchanges have no receiver.
    private let reportsProgress = Atomic(false)
    /// A Boolean value that indicates whether requests are held back. Read without the lock,
    /// because most exchanges are never suspended.
    private let isHeld = Atomic(false)

    struct State {
        var record = ExchangeLog.Record()
        /// The events for the observers; `nil` without observers.
        var queue: EventQueue?
        /// The identifier of the exchange on whose behalf this one is sent.
        var parent: UInt64?
        var progress: ProgressRelay?
        /// A further receiver of the progress: that of the typed request whose endpoint sends this
        /// exchange.
        var progressListener: ProgressRelay.Handler?
        /// The values of interceptors for this exchange, by the object that keeps them.
        var values: [ObjectIdentifier: any Sendable] = [:]
        var trace: TraceParent?
        /// The instant of `resume()` on the system's clock; see ``SessionClosure``.
        var start: UInt64?
        var permission = Permission.granted
        /// The receivers whose replies the exchange waits for; usually one.
        var receivers = ShortList<ResponseReceiver>()
        var options = ResponseReceiver.Options()
        /// The receiver of the streamed body.
        weak var stream: ResponseReceiver?
        /// The exchange that has adopted the streamed body.
        var bodyOwner: ExchangeContext?
    }

    /// The permission to send requests.
    enum Permission {
        case granted
        /// The task is suspended. Contains the waiting requests, in order.
        case held([Once<Bool>])
        /// The exchange has ended.
        case refused
    }

    /// - Parameters:
    ///   - main: The exchange in which this one is a concurrent request. Defaults to `nil`.
    ///   - substitution: Returns the session to use in place of that of the service. Defaults to
    ///     `nil`.
    init(_ service: ServiceCore, over substitution: SessionSubstitution? = nil, in main: ExchangeContext? = nil) {
        self.service = service
        self.substitution = substitution
        self.main = main
        clock = service.clock
    }

    /// Returns a setup with the session that the exchange uses.
    func substitutingSession(of setup: Setup) -> Setup {
        substitution.map { substitute in setup.with { $0.session = substitute(setup.session) } } ?? setup
    }

    /// The exchange of the program, to which the values of interceptors and the deadline belong.
    var root: ExchangeContext { main ?? self }

    // MARK: Permission to send

    /// Waits while the task is suspended.
    ///
    /// - Throws: `URLError.cancelled` if the exchange has ended or the Swift task is cancelled.
    func permission() async throws {
        if Task.isCancelled { throw URLError(.cancelled) }
        guard isHeld.load(ordering: .acquiring) else { return }  // `willSend` refuses a request after the end
        let turn = state.withLock { state -> Once<Bool>? in
            guard case .held(let turns) = state.permission else { return nil }
            let turn = Once<Bool>()
            state.permission = .held(turns + [turn])
            return turn
        }
        guard let turn else { return }
        let isGranted = await withTaskCancellationHandler {
            await turn.value
        } onCancel: {
            turn.set(false)
        }
        if !isGranted { throw URLError(.cancelled) }
    }

    /// A Boolean value that indicates whether a request waits for ``grantPermission()``.
    var holdsRequests: Bool {
        state.withLock { if case .held(let turns) = $0.permission { !turns.isEmpty } else { false } }
    }

    /// Holds back all further requests.
    func holdRequests() {
        state.withLock { state in
            guard case .granted = state.permission else { return }
            state.permission = .held([])
            isHeld.store(true, ordering: .releasing)
        }
    }

    /// - Returns: The requests that were held back. The caller sets each to `true`, outside its
    ///   locks.
    func grantPermission() -> [Once<Bool>] {
        state.withLock { state in
            guard case .held(let turns) = state.permission else { return [] }
            state.permission = .granted
            isHeld.store(false, ordering: .releasing)
            return turns
        }
    }

    // MARK: Settings of the body

    /// A Boolean value that indicates whether the body of the response is streamed.
    var isStreamed: Bool { state.withLock { $0.options.bufferSize != nil } }

    /// Streams the body of the response; see ``ResponseReceiver/Options``. Called before
    /// `resume()`.
    func streamBody(bufferSize: Int, batchSize: Int = 1) {
        state.withLock { ($0.options.bufferSize, $0.options.batchSize) = (max(1, bufferSize), batchSize) }
    }

    /// Passes the interim heads to a closure on the threads of sessions. Called before `resume()`.
    func receiveInterim(by handler: @escaping @Sendable (ResponseHead) throws -> Void) {
        state.withLock { $0.options.onInterim = handler }
    }

    /// The receiver of the streamed body; `nil` before its head is accepted and after its end.
    var stream: ResponseReceiver? { state.withLock { $0.stream } }

    // MARK: Shared by the attempts

    /// The instant of the system's clock at which the program started the exchange; `nil` before
    /// that. Set for an exchange that continues an earlier one.
    var start: UInt64? {
        get { state.withLock { $0.start } }
        set { state.withLock { $0.start = newValue } }
    }

    /// Returns whether an error is that of a session that cancelled its requests after `resume()`.
    func isCancellation(_ error: WebServiceError) -> Bool {
        guard let instant = (error.underlying as? SessionClosure)?.cancellation, let start else { return false }
        return start <= instant
    }

    /// Returns the trace of the exchange: the first one passed.
    func trace(_ current: TraceParent) -> TraceParent {
        state.withLock { state in
            let trace = state.trace ?? current
            state.trace = trace
            return trace
        }
    }

    /// Returns the account for which the exchange was begun: the first one passed.
    func account(_ id: ObjectIdentifier, _ current: ExchangeLog.Account) -> ExchangeLog.Account {
        withValue(of: id, current) { $0 }
    }

    /// Returns the remaining part of a duration that began with the exchange, at least zero.
    func timeLeft(of duration: Duration) -> Duration {
        let now = clock.now
        let start = root.state.withLock { $0.record.metrics.origin?.instant } ?? now
        return max(duration - .nanoseconds(Int64(clamping: now - min(start, now))), .zero)
    }

    /// Returns the value that an object stores for the exchange; `nil` if there is none.
    func value<Value: Sendable>(of id: ObjectIdentifier) -> Value? {
        root.state.withLock { $0.values[id] as? Value }
    }

    /// Changes the value that an object keeps for the exchange.
    func withValue<Value: Sendable, Result>(
        of id: ObjectIdentifier, _ initial: Value, _ body: (inout Value) -> Result
    ) -> Result {
        root.state.withLock { state in
            var value = state.values[id] as? Value ?? initial
            defer { state.values[id] = value }
            return body(&value)
        }
    }

    // MARK: Progress

    /// Adds a progress handler.
    ///
    /// - Returns: The relay, if it is new.
    func addProgressHandler(_ handler: @escaping ProgressRelay.Handler) -> ProgressRelay? {
        let (relay, isNew, receiver) = state.withLock { state in
            let receiver = state.stream ?? state.receivers.last
            if let progress = state.progress { return (progress, false, receiver) }
            let relay = ProgressRelay(clock)
            state.progress = relay
            return (relay, true, receiver)
        }
        reportsProgress.store(true, ordering: .releasing)
        let earlier = receiver?.latestProgress
        relay.add(handler, after: earlier.flatMap { $0.bytesSent + $0.bytesReceived > 0 ? $0 : nil })
        return isNew ? relay : nil
    }

    var hasProgressHandlers: Bool { reportsProgress.load(ordering: .acquiring) }

    /// Reports progress to the handlers added so far, including those added during the attempt.
    /// Called on the threads of sessions.
    func report(_ progress: TransferProgress) {
        guard hasProgressHandlers else { return }
        let (relay, listener) = state.withLock { ($0.progress, $0.progressListener) }
        relay?.update(progress)
        listener?(progress)
    }

    /// Sets a listener that also receives the progress. Called before `resume()`.
    func forwardProgress(to listener: @escaping ProgressRelay.Handler) {
        state.withLock { $0.progressListener = listener }
        reportsProgress.store(true, ordering: .releasing)
    }

    /// The progress relay; `nil` if there are no progress handlers.
    var progress: ProgressRelay? { state.withLock { $0.progress } }
}

/// A streamed body whose head was accepted.
extension ExchangeContext: InFlightWork {
    var workID: ObjectIdentifier { ObjectIdentifier(self) }

    var snapshot: InFlightExchange? {
        InFlightExchange(self, .stream, record.request, progress: latestProgress)
    }

    func cancel() { stream?.cancel() }

    /// The progress of the exchange, or of the request that was sent last.
    var latestProgress: TransferProgress? {
        let (relay, receiver) = state.withLock { ($0.progress, $0.stream ?? $0.receivers.last) }
        return relay?.latest ?? receiver?.latestProgress
    }
}
