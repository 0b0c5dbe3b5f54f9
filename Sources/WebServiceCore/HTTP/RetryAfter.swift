import Foundation

/// The delay of a `Retry-After` field (RFC 9110, section 10.2.3).
struct RetryAfter {
    /// The maximum delay, six hours; longer delays are reduced to it.
    static let maximum = Duration.seconds(6 * 3600)

    let delay: Duration

    /// - Returns: `nil` for a value that is neither a number of seconds nor a date. A date in the
    ///   past means no delay.
    init?(_ value: String, now: Date) {
        let text = value.trimmingCharacters(in: .whitespaces)
        guard !text.isEmpty else { return nil }
        if let seconds = ASCII.number(text.utf8) {
            delay = min(.seconds(seconds), Self.maximum)
        } else if let date = HTTPDate.parse(text, now: now) {
            let seconds = date.timeIntervalSince(now)
            delay = seconds > 0 ? .seconds(min(seconds, Self.maximum.inSeconds)) : .zero  // NaN counts as 0
        } else {
            return nil
        }
    }
}
