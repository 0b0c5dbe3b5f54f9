import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The values that a ``SessionTask`` records.
package enum ExchangeLog {
    /// The maximum number of requests of one exchange, including retries, redirects and repetitions
    /// with a newer credential.
    static let maximumAttempts = 100
    /// The maximum number of events in a record to which events of other tasks are added. The
    /// number is limited because a long download may have many events.
    static let maximumEvents = 1_000

    /// The account for which an exchange was begun.
    enum Account: Sendable, Equatable {
        /// The account after a number of log-outs.
        case afterLogOuts(Int)
        /// The UTF-8 bytes of the name of an account, or `nil` for no account.
        case named([UInt8]?)
        /// A named account, for a request in the background. No caller receives the response to
        /// such a request.
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
        /// The error of a body or of a failure, or the error with which a WebSocket was closed.
        var error: (any Error)?
        /// The number of bytes of a body that were received.
        var byteCount: Int64?
    }

    /// The result of an exchange, without its body.
    package struct Outcome: Sendable {
        package var error: (any Error)?
        package var status: Int?
        package var source: Response.Source?
        /// Whether the body follows.
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
        /// The request of the task, as it was before the interceptors; `nil` before the task is
        /// resumed or completed, and for a task without its own request.
        var request: Request?
        /// The request that was sent last.
        var sent: EncodedRequest?
        package var metrics = ServiceTaskMetrics()
        /// The number of requests that were sent.
        var attempts = 0
        /// The attempt that was sent last, until the next one is sent.
        private var attempt: Attempt?
        private(set) var number = 0
        private(set) var attemptIsOpen = false
        /// The index of the last attempt among the events.
        private var index = 0
        var events: [Entry] = []
        /// The result; `nil` until the exchange has ended.
        var outcome: Outcome?

        /// All events in the order in which they began. An attempt without a result is not
        /// included.
        package var entries: [Entry] {
            var record = self
            record.closeAttempt()
            return record.events.sorted { $0.start < $1.start }
        }

        /// Returns whether every attempt after the first `count` attempts failed with an accepted
        /// error.
        func allAttempts(after count: Int = 0, failed isAccepted: (URLError) -> Bool) -> Bool {
            let ended = events.compactMap(\.attempt) + [attempt].compactMap(\.self)
            // Not every attempt of another task is among the events.
            return ended.count == attempts
                && ended.dropFirst(count).allSatisfy { ($0.error as? URLError).map(isAccepted) ?? false }
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

        /// Adopts the records of another exchange that sent the requests. The instant of `resume()`
        /// and the events of this exchange remain.
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
    package static func reason(_ error: any Error) -> String {
        (error as? WebServiceError)?.message ?? Attempt.kind(of: error)
    }
}

extension ExchangeLog.Entry {
    /// Creates the event of a streamed body.
    ///
    /// - Parameters:
    ///   - byteCount: The number of bytes received, before decompression unless the session
    ///     decompresses them.
    ///   - start: The instant of the head.
    init(bodyEndingWith result: Result<Headers, any Error>, byteCount: Int64, from start: UInt64, to end: UInt64) {
        if case .failure(let failure) = result { error = failure }
        let failure = ExchangeLog.Attempt.kind(of: error)
        (kind, self.start, self.end, self.byteCount) = (.body, start, end, byteCount)
        detail = "\(byteCount) bytes" + (failure.isEmpty ? "" : ", \(failure)")
    }

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

/// The deprecation of resources (RFC 9745) and their end (RFC 8594).
extension ExchangeLog {
    /// Returns the events with a notice after each response whose resource is deprecated or ends.
    /// Equal notices are added only once.
    ///
    /// - Parameter date: The date of `resume()`.
    static func addingDeprecations(to entries: [Entry], _ date: Date?) -> [Entry] {
        guard let date else { return entries }
        var details: Set<String> = []
        return entries.flatMap { entry in
            let note = entry.attempt?.head.flatMap { Entry(deprecationIn: $0, at: entry.end ?? entry.start, date) }
            guard let note, details.insert(note.detail).inserted else { return [entry] }
            return [entry, note]
        }.sorted { $0.start < $1.start }
    }
}

extension ExchangeLog.Entry {
    /// Creates the event of a response with the field `Deprecation` or `Sunset`.
    ///
    /// - Parameter now: The date with which the dates of the fields are compared.
    /// - Returns: `nil` if neither field has a valid value.
    init?(deprecationIn head: ResponseHead, at instant: UInt64, _ now: Date) {
        var facts: [String] = []
        if let date = head.headers["Deprecation"].flatMap(Self.structuredDate), let day = HTTPDate.day(date) {
            facts.append(date <= now ? "has been deprecated since \(day)" : "will be deprecated on \(day)")
        }
        if let date = head.headers["Sunset"].flatMap({ HTTPDate.parse($0, now: now) }), let day = HTTPDate.day(date) {
            facts.append("\(date <= now ? "ended" : "ends") on \(day)")
        }
        guard !facts.isEmpty else { return nil }
        self.init(kind: .deprecation, start: instant, detail: facts.joined(separator: " and "))
    }

    /// Returns the date in a field (RFC 9651, section 3.3.7). Parameters are ignored.
    private static func structuredDate(_ field: String) -> Date? {
        let value = ASCII.trimmed(field.utf8.prefix { $0 != UInt8(ascii: ";") })
        let digits = value.dropFirst()
        guard value.first == UInt8(ascii: "@"), digits.count <= 16, digits.first != UInt8(ascii: "+") else {
            return nil
        }
        return Int64(Substring(digits)).map { Date(timeIntervalSince1970: Double($0)) }
    }
}
