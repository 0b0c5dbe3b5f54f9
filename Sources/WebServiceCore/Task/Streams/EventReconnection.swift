/// When an event stream connects again after its connection has ended.
public struct EventReconnection: Sendable {
    /// `nil` for streams that do not connect again.
    let delays: Delays?

    struct Delays: Sendable {
        let base: Duration
        let maximum: Duration
        let attempts: Int?
        /// Returns a number from 0 to 1.
        var random: @Sendable () -> Double = { Double.random(in: 0...1) }

        /// Returns the delay before a connection.
        ///
        /// - Parameters:
        ///   - failures: The number of connections without an event since the last event.
        ///   - time: The reconnection time of the stream; `nil` if it has not set one.
        func delay(after failures: Int, _ time: Duration?) -> Duration {
            let whole = min((time ?? base) * (1 << min(max(failures, 0), 16)), max(maximum, time ?? .zero))
            return whole * (1 - random() / 2)
        }
    }

    /// The end of the connection ends the sequence.
    public static let never = EventReconnection(delays: nil)

    /// Connects again after the connection has ended, by an error of the transport or by the server.
    ///
    /// The next request contains the ID of the last event as `Last-Event-ID`, and its credentials
    /// are determined again. The status 204 ends the sequence. The statuses 408, 425, 429, 500, 502,
    /// 503 and 504 connect again, not before `Retry-After`; any other status than 200 to 299 and a
    /// media type other than `text/event-stream` is an error.
    ///
    /// The delay is the reconnection time of the stream or `baseDelay`, doubled for each connection
    /// without an event, up to `maximumDelay`, and reduced by a random part of up to one half.
    ///
    /// - Parameters:
    ///   - baseDelay: The delay before the server has set one. Defaults to 1 second.
    ///   - maximumDelay: The longest delay. Defaults to 30 seconds.
    ///   - maximumAttempts: The number of connections without an event after which the error is
    ///     thrown. Defaults to `nil`, no limit.
    public static func reconnecting(
        baseDelay: Duration = .seconds(1), maximumDelay: Duration = .seconds(30), maximumAttempts: Int? = nil
    ) -> EventReconnection {
        EventReconnection(delays: Delays(base: baseDelay, maximum: maximumDelay, attempts: maximumAttempts))
    }
}
