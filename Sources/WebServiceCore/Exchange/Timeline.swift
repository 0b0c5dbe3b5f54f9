public import Foundation

/// The events of an exchange, in order: attempts, redirects, waits, decisions, handlers.
///
/// ```
///    0.0 ms  attempt    12.4 ms  GET https://h/v1/brewers -> 503
///   12.4 ms  retry               status 503, Retry-After of 2.0 seconds
///   12.5 ms  wait     2000.3 ms
/// 2012.9 ms  attempt     9.8 ms  GET https://h/v1/brewers -> 200
/// ```
/// A timeline contains no query, credential or body, so it is safe to log.
public struct Timeline: Sendable {
    /// The kind of an event. The set of kinds is open.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String

        /// Creates a custom kind with a name.
        public init(_ name: String) {
            description = name
        }

        /// One attempt and its response.
        public static let attempt = Kind("attempt")
        /// A redirect that was followed.
        public static let redirect = Kind("redirect")
        /// A decision to send the request again, with its reason.
        public static let retry = Kind("retry")
        /// A decision not to send the request again, with its reason.
        public static let noRetry = Kind("no retry")
        /// A wait before an attempt, such as the pause before a retry or the wait for a rate limit.
        public static let wait = Kind("wait")
        /// A credential refresh that this exchange waited for.
        public static let refresh = Kind("refresh")
        /// The transfer of a streamed body after its head.
        public static let body = Kind("body")
        /// A handler of the task.
        public static let handler = Kind("handler")
        /// A failure of a handler, of a step of a typed task, of the validation of the response, or
        /// of the decoding of a streamed body.
        public static let failure = Kind("failure")
        /// The start of a typed request's wait until an equal request has ended
        /// (`DuplicateMode.queue`).
        public static let queued = Kind("queued")
        /// The sharing of an equal request's response (`DuplicateMode.join`).
        public static let joined = Kind("joined")
        /// A read from a storage, or an attempt to store a response.
        public static let storage = Kind("storage")
        /// A decision of a `ResponseCache`.
        public static let cache = Kind("cache")
        /// A notice that the resource of a response is or will be deprecated (`Deprecation`, RFC
        /// 9745) or has an end date (`Sunset`, RFC 8594).
        public static let deprecation = Kind("notice")
    }

    /// An event of a timeline.
    public struct Event: Sendable {
        /// The kind of the event.
        public let kind: Kind
        /// The start, relative to the task's `resume()`.
        public let start: Duration
        /// The duration; `nil` for an instantaneous event.
        public let duration: Duration?
        /// A description of the event; empty if there is none.
        public let detail: String
        /// The status of an attempt; `nil` for an attempt without a response and for other events.
        public let status: Int?
        /// The method and the URL of an attempt, without the query of the URL; `nil` for other
        /// events.
        public let request: String?
        /// The metrics of an attempt: phases, address and TLS of its connection.
        ///
        /// The value is `nil` if the session measures nothing, and for other events.
        public var transport: TransportMetrics? { attemptMetrics }
        /// The metrics of an attempt, stored on the heap.
        @Boxed var attemptMetrics: TransportMetrics?
        /// The identifier of another exchange (``ObservedExchange/id``); `nil` for most events.
        ///
        /// The event of a ``Kind/queued`` or ``Kind/joined`` request has the identifier of the
        /// equal request.
        public let related: UInt64?
        /// The error of an incomplete body or of a failure, or the error with which a WebSocket was
        /// closed.
        package var error: (any Error)?
        /// The number of bytes of a streamed body that were received, before decompression unless
        /// the session decompresses them.
        package let byteCount: Int64?
    }

    /// The date of `resume()`; `nil` before that call.
    public let date: Date?

    /// The events, in the order in which they began.
    public private(set) var events: [Event]

    /// The result; `nil` before the exchange has ended.
    package let outcome: ExchangeLog.Outcome?

    /// Adds an event that was recorded later.
    package mutating func add(_ event: Event) {
        events.append(event)
    }
}

extension Timeline: CustomStringConvertible {
    /// One line for each event, with its start, kind, duration and detail, and the request and
    /// status of an attempt.
    public var description: String {
        events.map { event in
            let start = Self.milliseconds(event.start)
            let duration = event.duration.map(Self.milliseconds) ?? ""
            let request = event.request.map { "\($0) -> \(event.status.map(String.init) ?? "failed") " } ?? ""
            return
                "\(Self.padded(start, 12))  \(event.kind.description.padding(toLength: 9, withPad: " ", startingAt: 0))"
                + "\(Self.padded(duration, 12))  \(request)\(event.detail)"
        }.joined(separator: "\n")
    }

    package static func milliseconds(_ duration: Duration) -> String {
        let tenths = Int64(clamping: Int((duration.inSeconds * 10_000).rounded()))
        return "\(tenths / 10).\(tenths % 10) ms"
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
