/// A policy for reconnecting an event stream after its connection has ended.
public struct EventReconnection: Sendable {
    /// `nil` for streams that do not reconnect.
    let delays: Delays?

    struct Delays: Sendable {
        let base: Duration
        let maximum: Duration
        let attempts: Int?
        /// Returns a number from 0 to 1; `nil` for the generator of the clock.
        var random: (@Sendable () -> Double)?

        /// Returns the delay before a connection.
        ///
        /// - Parameters:
        ///   - failures: The number of consecutive connections that ended without an event.
        ///   - time: The reconnection time of the stream; `nil` if it has not set one.
        ///   - clock: The clock of the service.
        func delay(after failures: Int, _ time: Duration?, _ clock: TaskClock = .system) -> Duration {
            let whole = min((time ?? base) * (1 << min(max(failures, 0), 16)), max(maximum, time ?? .zero))
            return whole * (1 - (random?() ?? clock.random()) / 2)
        }
    }

    /// The end of the connection ends the sequence.
    public static let never = EventReconnection(delays: nil)

    /// Reconnects after a transport error and after the server has closed the connection.
    ///
    /// The next request contains the ID of the last event as `Last-Event-ID`, and its credentials
    /// are obtained again. The status 204 ends the sequence. After the statuses 408, 425, 429, 500,
    /// 502, 503 and 504, the sequence reconnects, but not before the time specified by
    /// `Retry-After`. Any other status outside 200 to 299, and any media type other than
    /// `text/event-stream`, is an error.
    ///
    /// A request whose body can be read only once fails with
    /// ``WebServiceError/Code/bodyNotReplayable`` before it is sent.
    ///
    /// The delay is the reconnection time of the stream, or `baseDelay` if the stream has not set
    /// one. It is doubled for each consecutive reconnection that ended without an event, up to
    /// `maximumDelay` or a longer reconnection time, and then reduced at random by up to half.
    ///
    /// - Parameters:
    ///   - baseDelay: The delay until the server sets one. Defaults to 1 second.
    ///   - maximumDelay: The maximum delay. Defaults to 30 seconds.
    ///   - maximumAttempts: The number of consecutive connections without an event after which the
    ///     error is thrown. Defaults to `nil`: no limit.
    public static func reconnecting(
        baseDelay: Duration = .seconds(1), maximumDelay: Duration = .seconds(30), maximumAttempts: Int? = nil
    ) -> EventReconnection {
        EventReconnection(delays: Delays(base: baseDelay, maximum: maximumDelay, attempts: maximumAttempts))
    }
}
