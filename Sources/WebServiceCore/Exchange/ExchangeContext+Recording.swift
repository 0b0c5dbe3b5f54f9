import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The recording of requests, responses and decisions, with their instants.
extension ExchangeContext {
    /// The data recorded so far.
    var record: ExchangeLog.Record { state.withLock { $0.record } }

    // MARK: Stages

    /// Records `resume()`, unless it is already recorded.
    ///
    /// - Parameter source: The request of the task, unless something else provides the result.
    func begin(_ source: ExchangeLog.Record.Source? = nil) {
        let (now, date) = (clock.now, clock.date)
        let replaced = state.withLock { state in
            defer { state.record.source = source ?? state.record.source }
            guard state.record.metrics.origin == nil else { return state.record.source }
            state.start = state.start ?? (clock.isInjected ? TaskClock.system.now : now)
            state.record.metrics.begin(at: now, date)
            return state.record.source
        }
        withExtendedLifetime(replaced) {}
    }

    /// Encodes a request, and records it and `resume()`.
    func encode(_ request: Request) throws(WebServiceError) -> EncodedRequest {
        do throws(WebServiceError) {
            let encoded = try request.encode()
            begin(.encoded(encoded))
            return encoded
        } catch {
            begin(error.request.map { .unencoded($0) })
            throw error
        }
    }

    /// Records that a request is about to be sent.
    ///
    /// - Parameters:
    ///   - announcement: The object that notifies the delegate of the request.
    ///   - source: The source of the response.
    /// - Returns: The receiver of the response, for whose reply the exchange waits.
    /// - Throws: `URLError.cancelled` if the exchange has ended;
    ///   ``WebServiceError/Code/tooManyAttempts`` beyond the maximum number of requests.
    @discardableResult
    func willSend(_ request: EncodedRequest, _ announcement: Announcement? = nil, source: Response.Source) throws
        -> ResponseReceiver
    {
        let now = clock.now
        let (receiver, replaced, delivers) = try state.withLock { state in
            if case .refused = state.permission { throw URLError(.cancelled) }
            guard state.record.attempts < ExchangeLog.maximumAttempts else {
                return (nil, nil, false) as (ResponseReceiver?, EncodedRequest?, Bool)
            }
            let receiver = ResponseReceiver(
                request.source, bodyLength: request.bodyLength, source: source, announcement: announcement,
                context: self, options: state.options)
            state.receivers.append(receiver)
            let replaced = state.record.sent
            // An interceptor may have abandoned the previous attempt.
            let endsAnother = state.endOpenAttempt(.failure(URLError(.cancelled)), at: now)
            state.record.begin(request, at: now)
            let starts = state.queue?.start(state.record.attempts, request, at: now) == true
            return (receiver, replaced, endsAnother || starts)
        }
        withExtendedLifetime(replaced) {}
        if delivers { deliver() }
        if let receiver { return receiver }
        let message =
            "the exchange needs more than \(ExchangeLog.maximumAttempts) requests; check the interceptors for a loop"
        throw WebServiceError(.tooManyAttempts, message, request: request.source)
    }

    /// Records the result of the request that was sent last.
    func didReceive(
        _ result: Result<Response, any Error>, _ metrics: TransportMetrics?, _ receiver: ResponseReceiver
    ) {
        let now = clock.now
        // A cancelled request may have been replaced by another one.
        let isDiscarded = Task.isCancelled
        if isDiscarded { receiver.discard() }
        let delivers = state.withLock { state in
            state.receivers.removeAll { $0 === receiver }
            if case .success(let response) = result, response.isStreamed, !isDiscarded { state.stream = receiver }
            let isOpen = state.record.attemptIsOpen
            if isOpen { state.record.end(result, metrics, at: now) }
            return isOpen && state.reportEnd(result, at: now)
        }
        if delivers { deliver() }
    }

    /// Removes a receiver that is no longer awaited. The attempt ends when the next one starts or
    /// the exchange ends.
    func didAbandon(_ receiver: ResponseReceiver) {
        state.withLock { $0.receivers.removeAll { $0 === receiver } }
    }

    /// Records the end of a streamed body and ends the progress. Called on the threads of sessions.
    ///
    /// - Parameters:
    ///   - byteCount: The number of bytes received, before decompression.
    ///   - start: The instant of the head.
    func reportEnd(
        _ result: Result<Headers, any Error>, byteCount: Int64, _ metrics: TransportMetrics?, from start: UInt64
    ) {
        let error: (any Error)? = if case .failure(let error) = result { error } else { nil }
        let failure = ExchangeLog.Attempt.kind(of: error)
        let detail = "\(byteCount) bytes" + (failure.isEmpty ? "" : ", \(failure)")
        var entry = ExchangeLog.Entry(kind: .body, start: start, end: clock.now, detail: detail)
        (entry.error, entry.byteCount) = (error, byteCount)
        endBody(entry, metrics)
    }

    /// Records the end of a streamed body, also for the exchange that has adopted the body.
    func endBody(_ entry: ExchangeLog.Entry, _ metrics: TransportMetrics?) {
        let (delivers, progress, owner) = state.withLock { state in
            if let metrics { state.record.metrics.transport = metrics }
            state.record.events.append(entry)
            return (state.queue?.add(entry) == true, state.progress, state.bodyOwner)
        }
        deliverInBackground(delivers)
        progress?.end()
        owner?.endBody(entry, metrics)
    }

    /// Records the end of the exchange: an attempt that is still in flight ends with it, replies
    /// are no longer awaited, and no further request is sent.
    ///
    /// - Parameter hasSource: Whether a ``TaskState/Source`` provided the result.
    /// - Returns: `false` without an effect if the exchange has already ended.
    @discardableResult
    func end(_ result: Result<Response, any Error>, hasSource: Bool = false) -> Bool {
        // The end of a task with a source has an instant only for observers.
        let now = hasSource && !isObserved ? 0 : clock.now
        let ended = state.withLock { state -> (Bool, ShortList<ResponseReceiver>, Permission)? in
            guard state.record.outcome == nil else { return nil }
            var endsAttempt = false
            if !hasSource, state.record.sent != nil {
                state.record.metrics.mark(.responseEnd, at: now)
                endsAttempt = state.endOpenAttempt(result, at: now)
            }
            state.record.outcome = ExchangeLog.Outcome(result)
            defer { (state.receivers, state.permission) = (ShortList(), .refused) }
            return (state.end(result, at: now) || endsAttempt, state.receivers, state.permission)
        }
        guard let (delivers, receivers, permission) = ended else { return false }
        if delivers { deliver() }
        for receiver in receivers.all { receiver.abandon() }
        if case .held(let turns) = permission { for turn in turns { turn.set(false) } }
        return true
    }

    /// Returns the error with the request of the exchange, unless it already has one.
    ///
    /// The error of a session that was closed and cancelled its requests becomes
    /// `URLError.cancelled`.
    func locating(_ error: any Error) -> any Error {
        guard var error = error as? WebServiceError else { return error }
        guard !isCancellation(error) else { return URLError(.cancelled) }
        guard error.request == nil, let request = record.request, request.url != nil else { return error }
        error.request = request
        return error
    }

    /// Adopts the records of another task that sent requests in place of this one.
    func takeOver(_ other: ExchangeLog.Record) {
        let replaced = state.withLock { state in
            let replaced = state.record
            state.record.takeOver(other)
            return replaced
        }
        withExtendedLifetime(replaced) {}
    }

    /// Adds the records of another task that sent some of the requests of this one.
    ///
    /// - Parameter kind: The kind of the events that are not added; `nil` for none.
    func add(_ other: ExchangeLog.Record, without kind: Timeline.Kind? = nil) {
        let entries = other.entries.filter { $0.kind != kind }
        state.withLock { state in
            state.record.attempts += other.attempts
            state.record.sent = other.sent ?? state.record.sent
            state.record.metrics.transport = other.metrics.transport ?? state.record.metrics.transport
            state.record.events += entries.prefix(max(0, ExchangeLog.maximumEvents - state.record.events.count))
        }
    }

    // MARK: Events

    /// Records an event without a duration.
    ///
    /// - Parameters:
    ///   - related: The identifier of another exchange.
    ///   - error: The error with which a WebSocket was closed.
    func record(
        _ kind: Timeline.Kind, _ detail: String = "", related: UInt64? = nil, error: (any Error)? = nil
    ) {
        var entry = ExchangeLog.Entry(kind: kind, start: clock.now, detail: detail, related: related)
        entry.error = error
        add(entry)
    }

    /// Records the failure of a handler, a step or the validation.
    func record(failure error: any Error) {
        var entry = ExchangeLog.Entry(kind: .failure, start: clock.now, detail: ExchangeLog.Attempt.kind(of: error))
        entry.error = error
        add(entry)
    }

    /// Records a duration that ends now.
    func record(_ kind: Timeline.Kind, _ detail: String, lasting nanoseconds: UInt64) {
        let now = clock.now
        add(ExchangeLog.Entry(kind: kind, start: now - min(nanoseconds, now), end: now, detail: detail))
    }

    /// Records a duration that began at an instant and ends now.
    func record(_ kind: Timeline.Kind, _ detail: String, from start: UInt64) {
        add(ExchangeLog.Entry(kind: kind, start: start, end: clock.now, detail: detail))
    }

    private func add(_ entry: ExchangeLog.Entry) {
        let delivers = state.withLock { state in
            state.record.events.append(entry)
            return state.queue?.add(entry) == true
        }
        if delivers { deliver() }
    }

    /// Records when a stage of the handlers began or ended.
    func mark(_ stage: ServiceTaskMetrics.Stage, at instant: UInt64) {
        let date = clock.date
        state.withLock { $0.record.metrics.mark(stage, at: instant, date) }
    }
}
