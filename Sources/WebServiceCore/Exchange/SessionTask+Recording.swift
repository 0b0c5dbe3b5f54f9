import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The recording of requests, responses and decisions, with their instants.
extension SessionTask {
    /// Records the start of a concurrent request.
    func begin(_ request: Request) {
        let now = clock.instant
        call.withLock { $0.begin(request, at: now) }
    }

    /// Encodes a request. If the encoding fails, records the request of the error.
    func encode(_ request: Request) throws(WebServiceError) -> EncodedRequest {
        do throws(WebServiceError) { return try request.encode() } catch {
            if let request = error.request {
                let replaced = call.withLock { call in
                    defer { call.log.request = request }
                    return call.log.request
                }
                withExtendedLifetime(replaced) {}
            }
            throw error
        }
    }

    /// Records that a request is about to be sent.
    ///
    /// - Parameters:
    ///   - announcement: The object that notifies the delegate of the request.
    ///   - source: The source of the response.
    /// - Returns: The receiver of the response. The exchange waits for the reply of the receiver.
    /// - Throws: `URLError.cancelled` if the exchange has ended;
    ///   ``WebServiceError/Code/tooManyAttempts`` if the maximum number of requests is exceeded.
    @discardableResult
    func willSend(_ request: EncodedRequest, _ announcement: Announcement? = nil, source: Response.Source) throws
        -> ResponseReceiver
    {
        let now = clock.now
        let (receiver, replaced, events) = try call.withLock { call in
            if case .refused = call.permission { throw URLError(.cancelled) }
            guard call.log.attempts < ExchangeLog.maximumAttempts else {
                return (nil, nil, nil) as (ResponseReceiver?, EncodedRequest?, EventQueue?)
            }
            call.options.start = call.log.metrics.origin?.instant
            let receiver = ResponseReceiver(
                request.source, bodyLength: request.bodyLength, source: source, announcement: announcement,
                clock: clock, options: call.options, progress: call.progress)
            call.receivers.append(receiver)
            let replaced = call.log.sent
            // An interceptor may have abandoned the previous attempt.
            let endsAnother = call.endOpenAttempt(.failure(URLError(.cancelled)), at: now)
            call.log.begin(request, at: now)
            let starts = call.events?.startAttempt(call.log.attempts, request, at: now) == true
            return (receiver, replaced, endsAnother || starts ? call.events : nil)
        }
        withExtendedLifetime(replaced) {}
        events?.deliver()
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
        var body: BodyTail?
        if case .success(let response) = result, response.isStreamed, !isDiscarded { body = tail }
        let events = call.withLock { call in
            // Another exchange may have replaced the body in the meantime.
            if let body, !receiver.isDiscarded { body.begin(receiver, call.log.request, call.events) }
            call.receivers.removeAll { $0 === receiver }
            let delivers = call.log.attemptIsOpen && call.endAttempt(result, metrics, at: now)
            return delivers ? call.events : nil
        }
        events?.deliver()
    }

    /// Removes a receiver that is no longer awaited. The attempt ends when the next one starts or
    /// the exchange ends.
    func didAbandon(_ receiver: ResponseReceiver) {
        call.withLock { $0.receivers.removeAll { $0 === receiver } }
    }

    /// Adopts the records of another task that sent requests in place of this one.
    package func takeOver(_ other: ExchangeLog.Record) {
        let replaced = call.withLock { call in
            let replaced = call.log
            call.log.takeOver(other)
            return replaced
        }
        withExtendedLifetime(replaced) {}
    }

    /// Adds the records of another task that sent some of the requests of this one.
    ///
    /// - Parameter kind: The kind of the events that are not added; `nil` to add all events.
    func add(_ other: ExchangeLog.Record, without kind: Timeline.Kind? = nil) {
        let entries = other.entries.filter { $0.kind != kind }
        call.withLock { call in
            call.log.attempts += other.attempts
            call.log.sent = other.sent ?? call.log.sent
            call.log.metrics.transport = other.metrics.transport ?? call.log.metrics.transport
            call.log.events += entries.prefix(max(0, ExchangeLog.maximumEvents - call.log.events.count))
        }
    }

    // MARK: Events

    /// Records an event without a duration.
    ///
    /// - Parameters:
    ///   - related: The identifier of another exchange.
    ///   - error: The error with which a WebSocket was closed.
    package func record(
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

    /// Records an event with a duration that ends now.
    func record(_ kind: Timeline.Kind, _ detail: String, lasting nanoseconds: UInt64) {
        let now = clock.now
        add(ExchangeLog.Entry(kind: kind, start: now - min(nanoseconds, now), end: now, detail: detail))
    }

    /// Records an event with a duration that began at an instant and ends now.
    package func record(_ kind: Timeline.Kind, _ detail: String, from start: UInt64) {
        add(ExchangeLog.Entry(kind: kind, start: start, end: clock.now, detail: detail))
    }

    private func add(_ entry: ExchangeLog.Entry) {
        call.withLock { $0.add(entry) }?.deliver()
    }

    /// Records when a stage of the handlers began or ended.
    func mark(_ stage: ServiceTaskMetrics.Stage, at instant: UInt64) {
        let date = clock.date
        call.withLock { $0.log.metrics.mark(stage, at: instant, date) }
    }

    // MARK: Observers

    /// Sets the exchange on whose behalf this one is sent. This method is called before `resume()`.
    package func setParent(_ id: UInt64?) {
        call.withLock { $0.parent = id }
    }

    /// The identifier of the exchange; `nil` if there are no observers.
    var exchangeID: UInt64? { call.withLock { $0.events?.exchange.id } }

    /// Sets the observers and reports the first event. This method is called at `resume()`.
    ///
    /// - Parameters:
    ///   - request: The request; `nil` for a typed request.
    ///   - type: The type of a typed request.
    ///   - isComposite: Whether the exchange consists of other exchanges.
    ///   - id: The identifier of the exchange; `nil` to create one.
    package func observe(
        by observers: [any Observer], _ request: Request?, type: (any Sendable.Type)? = nil, isComposite: Bool = true,
        id: UInt64? = nil
    ) {
        guard !observers.isEmpty else { return }
        let id = id ?? EventQueue.makeID()
        let streamedBodyLimit = observers.map(\.streamedBodyLimit).max() ?? 0
        let events = call.withLock { call -> EventQueue? in
            guard let origin = call.log.metrics.origin else { return nil }  // unreachable: called after `resume()`
            let exchange = ObservedExchange(
                id: id, parent: call.parent, request: request, type: type, isComposite: isComposite,
                date: origin.date)
            let events = EventQueue(
                exchange, observers, streamedBodyLimit: streamedBodyLimit, clock, start: origin.instant)
            let delivers = events.add(.created, at: origin.instant)
            (call.events, call.options.events) = (events, events)
            // Another thread has cancelled the task in the meantime.
            if let error = call.log.outcome?.error {
                _ = events.end(ExchangeSummary(.failure(error), call.log), at: origin.instant)
            }
            return delivers ? events : nil
        }
        events?.deliver()
    }
}

extension Call {
    /// Adds an event to the log.
    ///
    /// - Parameter metrics: The metrics of a streamed body; `nil` if they are unknown.
    /// - Returns: The events that the caller must deliver.
    mutating func add(_ entry: ExchangeLog.Entry, _ metrics: TransportMetrics? = nil) -> EventQueue? {
        if let metrics { log.metrics.transport = metrics }
        log.events.append(entry)
        return events?.add(entry) == true ? events : nil
    }
}
