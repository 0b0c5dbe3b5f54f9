public import WebServiceCore

/// One entry of a log of exchanges (``ExchangeLogger``): a text, and its values for the metadata of
/// a logging library.
public struct LogEntry: Sendable, CustomStringConvertible {
    /// The importance of an entry. The names are those of common logging libraries.
    public enum Level: String, Sendable, Comparable, CaseIterable {
        /// The requests and responses with header fields and bodies, and the messages of a
        /// WebSocket.
        case trace
        /// Every event, one line each.
        case debug
        /// The result of each exchange, one line each.
        case info
        /// Statuses of 400 or more, and attempts that failed.
        case warning
        /// Exchanges and handlers that failed, except cancelled ones.
        case error

        private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

        /// Returns whether a level is less important than another one.
        public static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }
    }

    /// The importance of the entry.
    public let level: Level
    /// The exchange, with its request and the template of its path.
    public let exchange: ObservedExchange
    /// The status of the response that the entry describes; `nil` for all other entries, and
    /// without an HTTP response.
    public let status: Int?
    /// The duration from `resume()` to the event; in the last entry of an exchange, the duration of
    /// the exchange.
    public let duration: Duration
    /// The number of the attempt that the entry describes, starting at 1; in the last entry of an
    /// exchange, the number of its attempts. `nil` for all other entries.
    public let attempt: Int?
    /// The kind of the error that the entry describes, without its values, such as
    /// `URLError -1004`; `nil` for all other entries.
    public let failure: String?
    /// The text: one line, or several at the level ``Level/trace``. Secrets are redacted, and
    /// control characters are escaped.
    public let text: String

    /// The text.
    public var description: String { text }
}
