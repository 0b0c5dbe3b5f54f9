import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The values that an ``ExchangeContext`` records.
package enum ExchangeLog {
    /// The maximum number of requests of one exchange, including retries, redirects and refreshes.
    static let maximumAttempts = 100
    /// The maximum number of events from other tasks, because a long download may have many.
    static let maximumEvents = 1_000

    /// The account for which an exchange was begun.
    enum Account: Sendable, Equatable {
        /// The account after a number of log-outs.
        case afterLogOuts(Int)
        /// The UTF-8 bytes of the name of an account, or `nil` for no account.
        case named([UInt8]?)
        /// A named account, in the background: the response has no receiver.
        case background([UInt8]?)
    }

    /// One request that was sent, and its result.
    package struct Attempt: Sendable {
        package let request: EncodedRequest
        package let start: UInt64
        package var end: UInt64?
        package var head: ResponseHead?
        package var bodySize = 0
        var error: (any Error)?
        @Boxed package var transport: TransportMetrics?

        package init(request: EncodedRequest, start: UInt64) {
            self.request = request
            self.start = start
        }

        /// The kind of the error, without values.
        package var failure: String { Self.kind(of: error) }

        package static func kind(of error: (any Error)?) -> String {
            switch error {
            case let error as URLError: "URLError \(error.code.rawValue)"
            case let error as WebServiceError: error.code.description
            case let error?: "\(type(of: error))"
            case nil: ""
            }
        }

        package mutating func end(_ result: Result<Response, any Error>, _ metrics: TransportMetrics?, at now: UInt64) {
            end = now
            switch result {
            case .success(let response):
                head = response.head
                bodySize = response.data.count
                error = response.bodyFailure
                transport = metrics ?? response.transport
            case .failure(let failure):
                error = failure
                head = (failure as? WebServiceError)?.response?.head
                bodySize = (failure as? WebServiceError)?.body?.count ?? 0
                transport = metrics
            }
        }
    }

    /// An event of the timeline.
    package struct Entry: Sendable {
        var kind: Timeline.Kind
        var start: UInt64
        var end: UInt64?
        var detail: String
        package var attempt: Attempt?
        /// The identifier of another exchange.
        var related: UInt64?
        /// The error of a body or of a failure.
        var error: (any Error)?
        /// The number of bytes of a body that were received.
        var byteCount: Int64?
    }

    /// The result of an exchange, without its body.
    package struct Outcome: Sendable {
        package var error: (any Error)?
        package var status: Int?
        package var source: Response.Source?
        /// A Boolean value that indicates whether the body follows.
        package var isStreamed = false

        init(_ result: Result<Response, any Error>) {
            switch result {
            case .success(let response):
                (status, source, isStreamed) = (response.head?.status, response.source, response.isStreamed)
            case .failure(let failure): error = failure
            }
        }
    }

    /// The recorded data, as a value.
    package struct Record: Sendable {
        /// The request of the task, as it was before the interceptors.
        enum Source: Sendable {
            case encoded(EncodedRequest)
            case unencoded(Request)
        }

        var source: Source?
        /// The request that was sent last.
        var sent: EncodedRequest?
        package var metrics = ServiceTaskMetrics()
        /// The number of requests that were sent.
        var attempts = 0
        /// The attempt that was sent last, until the next one is sent, and its number.
        private var attempt: Attempt?
        private(set) var number = 0
        private(set) var attemptIsOpen = false
        /// The index of the last attempt among the events.
        private var index = 0
        var events: [Entry] = []
        /// The result; `nil` until the exchange has ended.
        var outcome: Outcome?

        var request: Request? {
            switch source {
            case .encoded(let encoded): encoded.source
            case .unencoded(let request): request
            case nil: nil
            }
        }

        /// All events in the order in which they began. An attempt without a result is not
        /// included.
        package var entries: [Entry] {
            var record = self
            record.closeAttempt()
            return record.events.sorted { $0.start < $1.start }
        }

        /// Returns whether every attempt failed with one of the errors.
        func allAttemptsFailed(with codes: Set<URLError.Code>) -> Bool {
            let ended = events.compactMap(\.attempt) + [attempt].compactMap(\.self)
            // Not every attempt of another task is among the events.
            return ended.count == attempts
                && ended.allSatisfy { attempt in (attempt.error as? URLError).map { codes.contains($0.code) } ?? false }
        }

        /// Moves the last attempt to the events. It is stored separately until then, so that an
        /// exchange with one attempt needs no array.
        private mutating func closeAttempt() {
            if let attempt, let end = attempt.end { events.insert(Entry(attempt, to: end), at: index) }
            attempt = nil
        }

        mutating func begin(_ request: EncodedRequest, at now: UInt64) {
            closeAttempt()
            index = events.count
            attempts += 1
            number = attempts
            attempt = Attempt(request: request, start: now)
            attemptIsOpen = true
            sent = request
            metrics.mark(.fetchStart, at: now)
        }

        /// Ends the last attempt.
        mutating func end(_ result: Result<Response, any Error>, _ transport: TransportMetrics?, at now: UInt64) {
            attemptIsOpen = false
            attempt?.end(result, transport, at: now)
            if let attempt { metrics.$lastAttempt = attempt.$transport }
        }

        var timeline: Timeline {
            let (start, date) = metrics.origin ?? (0, nil)
            let entries = ExchangeLog.addingDeprecations(to: entries, date)
            return Timeline(date: date, events: entries.map { Timeline.Event($0, start: start) }, outcome: outcome)
        }

        /// Adopts the records of another exchange, which sent the requests. The instant of
        /// `resume()` and the events of this one remain.
        mutating func takeOver(_ other: Record) {
            let own = self
            self = other
            metrics = other.metrics.measured(from: own.metrics)
            events = own.events + other.events
            index += own.events.count
            outcome = own.outcome
        }
    }

    /// Returns the reason for a failure, without values that may be secret: the message of an error
    /// of this package, or the kind of any other error.
    static func reason(_ error: any Error) -> String {
        (error as? WebServiceError)?.message ?? Attempt.kind(of: error)
    }
}

extension ExchangeLog.Entry {
    init(_ attempt: ExchangeLog.Attempt, to end: UInt64) {
        self.init(kind: .attempt, start: attempt.start, end: end, detail: attempt.failure, attempt: attempt)
    }
}

extension Timeline.Event {
    /// - Parameter start: The instant of `resume()`.
    init(_ entry: ExchangeLog.Entry, start: UInt64) {
        self.init(
            kind: entry.kind,
            start: .nanoseconds(Int64(clamping: entry.start - min(start, entry.start))),
            duration: entry.end.map { .nanoseconds(Int64(clamping: $0 - min($0, entry.start))) },
            detail: entry.detail,
            status: entry.attempt?.head.flatMap { $0.isHTTP ? $0.status : nil },
            request: entry.attempt?.request.summary,
            attemptMetrics: entry.attempt?.transport,
            related: entry.related,
            error: entry.error,
            byteCount: entry.byteCount
        )
    }
}
