import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The recorder that a task, its exchanges and its interceptors share: what was sent and when, what
/// was received, and what was decided.
///
/// It is a leaf: no other lock is taken while its lock is held.
struct ExchangeLog: ~Copyable, Sendable {
    /// The account for which an exchange was begun.
    enum Account: Sendable, Equatable {
        /// The account after a number of log-outs.
        case afterLogOuts(Int)
        /// The UTF-8 bytes of the name of an account, or `nil` for no account.
        case named([UInt8]?)
        /// A named account, in the background: the response has no receiver.
        case background([UInt8]?)
    }

    struct State {
        var record = Record()
        /// The accounts for which the exchange was begun, by the object that defines them.
        var accounts: [ObjectIdentifier: Account] = [:]
        var progress: ProgressRelay?
        /// Receives the progress as well: that of a typed request whose endpoint sends this
        /// exchange.
        var progressListener: ProgressRelay.Handler?
        /// The identifier of the exchange on whose behalf this one is sent.
        var parent: UInt64?
        /// The events for the observers; `nil` without observers.
        var queue: EventQueue?
    }

    /// The maximum number of requests of one exchange, including retries, redirects and refreshes.
    static let maximumAttempts = 100

    let clock: TaskClock
    let state = Mutex(State())

    init(_ clock: TaskClock) {
        self.clock = clock
    }

    /// The data recorded so far.
    var record: Record { state.withLock { $0.record } }

    // MARK: Stages

    /// Records the instant of `resume()`.
    func begin(at now: UInt64) {
        let date = clock.date
        state.withLock { $0.record.metrics.begin(at: now, date) }
    }

    /// Records the request as it was encoded first.
    func didEncode(_ request: EncodedRequest) {
        state.withLock { $0.record.source = .encoded(request) }
    }

    /// Records a request that cannot be encoded.
    func didNotEncode(_ request: Request?) {
        state.withLock { $0.record.source = request.map { .unencodable($0) } }
    }

    /// The receivers of the events of one attempt.
    struct Permit: Sendable {
        /// A Boolean value that indicates whether there are observers.
        var isObserved: Bool
        /// The number of bytes of a streamed body that the observers receive.
        var streamedBodyLimit = 0
    }

    /// Records that a request is about to be sent.
    ///
    /// - Throws: ``WebServiceError/Code/tooManyAttempts``.
    @discardableResult
    func willSend(_ request: EncodedRequest) throws -> Permit {
        let now = clock.now
        let (permit, replaced, delivery) = state.withLock { state in
            guard state.record.attempts < Self.maximumAttempts else {
                return (nil, nil, nil) as (Permit?, EncodedRequest?, EventQueue.Delivery?)
            }
            let replaced = state.record.sent
            // An interceptor may have abandoned the attempt before.
            let abandoned = state.endOpenAttempt(.failure(URLError(.cancelled)), at: now)
            state.record.begin(request, at: now)
            let permit = Permit(
                isObserved: state.queue != nil, streamedBodyLimit: state.queue?.streamedBodyLimit ?? 0)
            return (permit, replaced, abandoned.or(state.queue?.start(state.record.attempts, request, at: now)))
        }
        withExtendedLifetime(replaced) {}
        deliver(delivery)
        if let permit { return permit }
        let message = "more than \(Self.maximumAttempts) messages for one exchange"
        throw WebServiceError(.tooManyAttempts, message, request: request.source)
    }

    /// Records the result of the request that was sent last.
    func didReceive(_ result: Result<Response, any Error>, _ metrics: TransportMetrics?) {
        let now = clock.now
        let delivery = state.withLock { state in
            let isOpen = state.record.attemptIsOpen
            state.record.end(result, metrics, at: now)
            return isOpen ? state.reportEnd(result, at: now) : nil
        }
        deliver(delivery)
    }

    /// Records the end of a streamed body.
    ///
    /// - Parameters:
    ///   - byteCount: The number of bytes received, before decompression.
    ///   - start: The instant of the head.
    /// - Returns: The event, which must be delivered on another thread.
    func didEndBody(
        _ result: Result<Headers, any Error>, byteCount: Int64, _ metrics: TransportMetrics?, from start: UInt64
    ) -> EventQueue.Delivery? {
        let error: (any Error)? = if case .failure(let error) = result { error } else { nil }
        let failure = Attempt.kind(of: error)
        let detail = "\(byteCount) bytes" + (failure.isEmpty ? "" : ", \(failure)")
        var entry = Entry(kind: .body, start: start, end: clock.now, detail: detail)
        (entry.error, entry.byteCount) = (error, byteCount)
        return state.withLock { state in
            if let metrics { state.record.metrics.transport = metrics }
            state.record.events.append(entry)
            return state.queue?.add(entry)
        }
    }

    /// Records the end of the exchange: an attempt that is still in flight ends with it.
    ///
    /// - Parameter isDriven: Whether something other than the pipeline provided the result.
    /// - Returns: The progress relay; `nil` without handlers of the progress.
    func end(_ result: Result<Response, any Error>, isDriven: Bool = false) -> ProgressRelay? {
        // The end of a driven task has an instant only for observers.
        let now = isDriven && !isObserved ? 0 : clock.now
        let (progress, delivery) = state.withLock { state in
            var first: EventQueue.Delivery?
            if !isDriven, state.record.sent != nil {
                state.record.metrics.mark(.responseEnd, at: now)
                first = state.endOpenAttempt(result, at: now)
            }
            state.record.outcome = Outcome(result)
            return (state.progress, first.or(state.end(result, at: now)))
        }
        deliver(delivery)
        return progress
    }

    /// Adopts the records of another task that sent requests in place of this one.
    func takeOver(_ other: Record) {
        let replaced = state.withLock { state in
            let replaced = state.record
            state.record.takeOver(other)
            return replaced
        }
        withExtendedLifetime(replaced) {}
    }

    /// Adds the records of another task that sent some of the requests of this one.
    func add(_ other: Record) {
        let entries = other.entries
        state.withLock { state in
            state.record.attempts += other.attempts
            state.record.sent = other.sent ?? state.record.sent
            state.record.metrics.transport = other.metrics.transport ?? state.record.metrics.transport
            state.record.events += entries.prefix(max(0, Self.maximumEvents - state.record.events.count))
        }
    }

    /// The maximum number of events from other tasks, because a long download may have many.
    private static let maximumEvents = 1_000

    // MARK: Events

    /// Records an event that takes no time.
    ///
    /// - Parameter related: The identifier of another exchange.
    func record(_ kind: Timeline.Kind, _ detail: String = "", related: UInt64? = nil) {
        let now = clock.now
        add(Entry(kind: kind, start: now, detail: detail, related: related))
    }

    /// Records the failure of a handler, a step or the validation.
    func record(failure error: any Error) {
        var entry = Entry(kind: .failure, start: clock.now, detail: Attempt.kind(of: error))
        entry.error = error
        add(entry)
    }

    /// Records a duration that ends now.
    func record(_ kind: Timeline.Kind, _ detail: String, lasting nanoseconds: UInt64) {
        let now = clock.now
        add(Entry(kind: kind, start: now - min(nanoseconds, now), end: now, detail: detail))
    }

    /// Records a duration that began at an instant and ends now.
    func record(_ kind: Timeline.Kind, _ detail: String, from start: UInt64) {
        add(Entry(kind: kind, start: start, end: clock.now, detail: detail))
    }

    private func add(_ entry: Entry) {
        let delivery = state.withLock { state in
            state.record.events.append(entry)
            return state.queue?.add(entry)
        }
        deliver(delivery)
    }

    /// Records when a stage of the handlers began or ended.
    func mark(_ stage: ServiceTaskMetrics.Stage, at instant: UInt64) {
        let date = clock.date
        state.withLock { $0.record.metrics.mark(stage, at: instant, date) }
    }

    // MARK: Shared by the exchanges

    /// Returns the account for which the exchange was begun: the first one passed.
    func account(_ id: ObjectIdentifier, _ current: Account) -> Account {
        state.withLock { state in
            if let account = state.accounts[id] { return account }
            state.accounts[id] = current
            return current
        }
    }

    /// Adds an observer of progress.
    func addProgressHandler(_ handler: @escaping ProgressRelay.Handler) {
        state.withLock { state in
            state.progress = state.progress ?? ProgressRelay(clock)
            return state.progress
        }?.add(handler)
    }

    /// Reports progress to the handlers that were added so far, also during the attempt.
    func report(_ progress: TransferProgress) {
        let (relay, listener) = state.withLock { ($0.progress, $0.progressListener) }
        relay?.update(progress)
        listener?(progress)
    }

    /// Passes the progress on. Called before `resume()`.
    func forwardProgress(to listener: @escaping ProgressRelay.Handler) {
        state.withLock { $0.progressListener = listener }
    }

    /// The progress relay; `nil` if there are no observers.
    var progress: ProgressRelay? { state.withLock { $0.progress } }
}
