public import WebServiceCore

/// An entry in a log of exchanges (``ExchangeLogger``). It consists of a text and of its values for
/// the metadata of a logging library.
public struct LogEntry: Sendable, CustomStringConvertible {
    /// The importance of an entry. The levels have the names that are common in logging libraries.
    public enum Level: String, Sendable, Comparable, CaseIterable {
        /// The requests and responses with header fields and bodies, and the messages of a
        /// WebSocket.
        case trace
        /// Most events, one line each.
        case debug
        /// The results of exchanges, one line each.
        case info
        /// Exchanges that end with a status of 400 or more, and attempts that end with an error,
        /// except cancelled ones.
        case warning
        /// Exchanges and handlers that failed, except cancelled exchanges.
        case error

        private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

        /// Returns whether a level is less important than another one.
        public static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }
    }

    /// The importance of the entry.
    public let level: Level
    /// The exchange, with its request and the template of the request's path.
    public let exchange: ObservedExchange
    /// The status of the response that the entry describes; `nil` if the entry describes no
    /// response or if there was no HTTP response.
    public let status: Int?
    /// The duration from `resume()` to the event. In the last entry of an exchange, this is the
    /// duration of the exchange.
    public let duration: Duration
    /// The number of the attempt that the entry describes, starting at 1. In the last entry of an
    /// exchange, this is the number of attempts. `nil` for all other entries.
    public let attempt: Int?
    /// The kind of the error that the entry describes, without its values, such as `URLError
    /// -1004`; `nil` for all other entries.
    public let failure: String?
    /// The text of the entry: one line, or several lines at the level ``Level/trace``. Secrets are
    /// redacted, and control characters are escaped.
    public let text: String

    /// The same string as ``text``.
    public var description: String { text }
}
