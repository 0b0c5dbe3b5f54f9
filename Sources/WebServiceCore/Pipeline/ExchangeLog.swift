import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The recorder that a task, its exchanges and its interceptors share: what was sent and when, what
/// was received, and what was decided.
///
/// It is a leaf: no other lock is taken while its lock is held.
struct ExchangeLog: ~Copyable, Sendable {
    /// One request that was sent, and its result.
    struct Attempt: Sendable {
        let request: EncodedRequest
        let start: UInt64
        var end: UInt64?
        var head: ResponseHead?
        var bodySize = 0
        var error: (any Error)?
        var transport: TransportMetrics?

        /// The kind of the error, without values.
        var failure: String { Self.kind(of: error) }

        fileprivate static func kind(of error: (any Error)?) -> String {
            switch error {
            case let error as URLError: "URLError \(error.code.rawValue)"
            case let error as WebServiceError: error.code.description
            case let error?: "\(type(of: error))"
            case nil: ""
            }
        }

        mutating func end(_ result: Result<Response, any Error>, _ metrics: TransportMetrics?, at now: UInt64) {
            end = now
            switch result {
            case .success(let response):
                head = response.head
                bodySize = response.data.count
                transport = metrics ?? response.transport
            case .failure(let failure):
                error = failure
                head = (failure as? WebServiceError)?.response.map(ResponseHead.init)
                transport = metrics
            }
        }
    }

    /// An event of the timeline.
    struct Entry: Sendable {
        var kind: Timeline.Kind
        var start: UInt64
        var end: UInt64?
        var detail: String
        var attempt: Attempt?
    }

    /// The recorded data, as a value.
    struct Record: Sendable {
        /// The request as it was encoded first.
        fileprivate var encoded: EncodedRequest?
        /// The request if it could not be encoded.
        fileprivate var unencodable: Request?
        /// The request that was sent last.
        fileprivate(set) var sent: EncodedRequest?
        fileprivate(set) var metrics = ServiceTaskMetrics()
        /// The number of requests that were sent.
        fileprivate(set) var attempts = 0
        /// The attempt that was sent last, until the next one is sent.
        fileprivate var attempt: Attempt?
        /// The index of the last attempt among the events.
        private var index = 0
        fileprivate var attemptIsOpen: Bool { attempt.map { $0.end == nil } ?? false }
        fileprivate var events: [Entry] = []

        /// The request of the task, as it was before the interceptors.
        var request: Request? { encoded?.source ?? unencodable }

        /// All events in the order in which they began. An attempt without a result is not
        /// included.
        var entries: [Entry] {
            var record = self
            record.closeAttempt()
            return record.events.sorted { $0.start < $1.start }
        }

        /// Moves the last attempt to the events. It stays apart until then, so that an exchange
        /// with one attempt needs no array.
        private mutating func closeAttempt() {
            if let attempt, let end = attempt.end { events.insert(Entry(attempt, to: end), at: index) }
            attempt = nil
        }

        fileprivate mutating func begin(_ request: EncodedRequest, at now: UInt64) {
            closeAttempt()
            index = events.count
            attempts += 1
            attempt = Attempt(request: request, start: now)
            sent = request
            metrics.mark(.fetchStart, at: now)
        }

        var timeline: Timeline {
            let (start, date) = metrics.origin ?? (0, nil)
            let events = entries.map { entry in
                Timeline.Event(
                    kind: entry.kind,
                    start: .nanoseconds(Int64(clamping: entry.start - min(start, entry.start))),
                    duration: entry.end.map { .nanoseconds(Int64(clamping: $0 - min($0, entry.start))) },
                    detail: entry.detail,
                    status: entry.attempt?.head.flatMap { $0.isHTTP ? $0.status : nil },
                    request: entry.attempt?.request.summary
                )
            }
            return Timeline(date: date, events: events)
        }
    }

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
    }

    /// The maximum number of requests of one exchange, including retries, redirects and refreshes.
    static let maximumAttempts = 100

    private let clock: TaskClock
    private let state = Mutex(State())

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
        state.withLock { $0.record.encoded = request }
    }

    /// Records a request that cannot be encoded.
    func didNotEncode(_ request: Request?) {
        state.withLock { $0.record.unencodable = request }
    }

    /// Records that a request is about to be sent.
    ///
    /// - Returns: The progress relay; `nil` if there are no observers.
    /// - Throws: ``WebServiceError/Code/tooManyMessages``.
    @discardableResult
    func willSend(_ request: EncodedRequest) throws -> ProgressRelay? {
        let now = clock.now
        let (isPermitted, progress, replaced) = state.withLock { state in
            guard state.record.attempts < Self.maximumAttempts else {
                return (false, nil, nil) as (Bool, ProgressRelay?, EncodedRequest?)
            }
            let replaced = state.record.sent
            state.record.begin(request, at: now)
            return (true, state.progress, replaced)
        }
        withExtendedLifetime(replaced) {}
        guard !isPermitted else { return progress }
        let message = "more than \(Self.maximumAttempts) messages for one exchange"
        throw WebServiceError(.tooManyMessages, message, request: request.source)
    }

    /// Records the result of the request that was sent last.
    func didReceive(_ result: Result<Response, any Error>, _ metrics: TransportMetrics?) {
        let now = clock.now
        state.withLock { state in
            state.record.attempt?.end(result, metrics, at: now)
            state.record.metrics.transport = state.record.attempt?.transport
        }
    }

    /// Records the end of a streamed body.
    ///
    /// - Parameters:
    ///   - byteCount: The number of bytes received, before decompression.
    ///   - start: The instant of the head.
    func didEndBody(
        _ result: Result<Headers, any Error>, byteCount: Int64, _ metrics: TransportMetrics?, from start: UInt64
    ) {
        let error: (any Error)? = if case .failure(let error) = result { error } else { nil }
        let failure = Attempt.kind(of: error)
        record(.body, "\(byteCount) bytes" + (failure.isEmpty ? "" : ", \(failure)"), from: start)
        if let metrics { state.withLock { $0.record.metrics.transport = metrics } }
    }

    /// Records the end of the exchange: an attempt that is still in flight ends with it.
    ///
    /// - Returns: The progress relay; `nil` if there are no observers.
    func end(_ result: Result<Response, any Error>) -> ProgressRelay? {
        let now = clock.now
        return state.withLock { state in
            guard state.record.sent != nil else { return state.progress }
            state.record.metrics.mark(.responseEnd, at: now)
            if state.record.attemptIsOpen { state.record.attempt?.end(result, nil, at: now) }
            return state.progress
        }
    }

    /// Adopts the records of another task that sent requests in place of this one.
    func takeOver(_ other: Record) {
        let replaced = state.withLock { state in
            let replaced = state.record
            state.record = other
            state.record.metrics = other.metrics.measured(from: replaced.metrics)
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
    func record(_ kind: Timeline.Kind, _ detail: String = "") {
        let now = clock.now
        add(Entry(kind: kind, start: now, detail: detail))
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
        state.withLock { $0.record.events.append(entry) }
    }

    /// Records when a stage of the handlers began or ended.
    func mark(_ stage: ServiceTaskMetrics.Stage, at instant: UInt64) {
        state.withLock { $0.record.metrics.mark(stage, at: instant) }
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
            state.progress = state.progress ?? ProgressRelay()
            return state.progress
        }?.add(handler)
    }

    /// The progress relay; `nil` if there are no observers.
    var progress: ProgressRelay? { state.withLock { $0.progress } }
}
