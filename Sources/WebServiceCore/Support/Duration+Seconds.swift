extension Duration {
    /// The duration in seconds.
    package var inSeconds: Double { (Double(components.seconds) * 1e9 + Double(components.attoseconds) / 1e9) / 1e9 }

    /// Returns a number of seconds as a duration, rounded to nanoseconds.
    ///
    /// A positive number becomes at least a nanosecond. The result is limited to 1e12 seconds in
    /// both directions. NaN becomes zero.
    package static func clamping(seconds: Double) -> Duration {
        guard !seconds.isNaN else { return .zero }
        let seconds = min(max(seconds, -1e12), 1e12)
        let whole = seconds.rounded(.down)
        let nanoseconds = Int64(((seconds - whole) * 1e9).rounded())
        let duration = Duration.seconds(Int64(whole)) + .nanoseconds(nanoseconds)
        return seconds > 0 ? max(duration, .nanoseconds(1)) : duration
    }
}
