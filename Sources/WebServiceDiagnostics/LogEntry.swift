public import WebServiceCore

/// One entry of a log of exchanges (``ExchangeLogger``).
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
    /// The exchange.
    public let exchange: ObservedExchange
    /// The text: one line, or several at the level ``Level/trace``. Secrets are redacted, and
    /// control characters are escaped.
    public let text: String

    /// The text.
    public var description: String { text }
}
