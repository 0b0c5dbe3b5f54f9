public import Foundation

/// What happened during an exchange, in order: attempts, redirects, waits, decisions, handlers.
///
/// ```
///    0.0 ms  attempt    12.4 ms  GET https://h/v1/brewers -> 503
///   12.4 ms  retry               status 503, Retry-After asks for 2.0 seconds
///   12.5 ms  wait     2000.3 ms
/// 2012.9 ms  attempt     9.8 ms  GET https://h/v1/brewers -> 200
/// ```
/// It holds no query, header field or body, so it may be logged.
public struct Timeline: Sendable {
    /// What an event is: an open set.
    public struct Kind: Sendable, Hashable, CustomStringConvertible {
        /// The name of the kind.
        public let description: String

        /// Makes a kind of one's own.
        public init(_ name: String) {
            description = name
        }

        /// One message and its answer.
        public static let attempt = Kind("attempt")
        /// A redirect that was followed.
        public static let redirect = Kind("redirect")
        /// A decision to send again, and why.
        public static let retry = Kind("retry")
        /// A decision not to send again, and why.
        public static let noRetry = Kind("no retry")
        /// Time spent waiting before sending again.
        public static let wait = Kind("wait")
        /// A token refresh that this exchange waited for.
        public static let refresh = Kind("refresh")
        /// A handler of the task.
        public static let handler = Kind("handler")
    }

    /// One event.
    public struct Event: Sendable {
        /// What it is.
        public let kind: Kind
        /// Seconds from the task's `resume()`.
        public let start: TimeInterval
        /// Seconds; `nil` for a moment.
        public let length: TimeInterval?
        /// What there is to say about it.
        public let detail: String
        /// The status of an attempt; `nil` for everything else and for one that failed.
        public let status: Int?
        /// Method and URL of an attempt, the URL without its query.
        public let request: String?
    }

    /// When the task was resumed; `nil` when it was not.
    public let date: Date?

    /// What happened, in the order in which it began.
    public let events: [Event]
}

extension Timeline: CustomStringConvertible {
    /// One line for each event: start, kind, length, detail.
    public var description: String {
        events.map { event in
            let start = Self.milliseconds(event.start)
            let length = event.length.map(Self.milliseconds) ?? ""
            let request = event.request.map { "\($0) -> \(event.status.map(String.init) ?? "failed") " } ?? ""
            return "\(Self.padded(start, 12))  \(event.kind.description.padding(toLength: 9, withPad: " ", startingAt: 0))"
                + "\(Self.padded(length, 12))  \(request)\(event.detail)"
        }.joined(separator: "\n")
    }

    private static func milliseconds(_ seconds: TimeInterval) -> String {
        let tenths = Int64(clamping: Int((seconds * 10_000).rounded()))
        return "\(tenths / 10).\(tenths % 10) ms"
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
