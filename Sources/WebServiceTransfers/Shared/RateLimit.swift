import WebServiceCore

/// A rate limit for a transfer. Bytes are transferred first, and a delay then compensates for them.
struct RateLimit: Sendable {
    private let bytesPerSecond: Int
    /// The maximum time, in nanoseconds, that a transfer makes up for after a delay lasted too
    /// long.
    private static let credit: UInt64 = 100_000_000

    /// The instant at which the delays for all transferred bytes end.
    private var paid: UInt64

    /// - Parameter bytesPerSecond: The maximum rate, at least 1.
    init(bytesPerSecond: Int, now: UInt64) {
        self.bytesPerSecond = bytesPerSecond
        paid = now
    }

    /// Counts transferred bytes against the limit.
    ///
    /// - Returns: The delay before further bytes may be transferred.
    mutating func take(_ count: Int, at now: UInt64) -> Duration {
        let cost = Double(count) / Double(bytesPerSecond) * 1e9
        paid = max(paid, now - min(now, Self.credit)).addingSaturated(.nanoseconds(Int64(min(cost, 1e18))))
        return paid > now ? .nanoseconds(Int64(clamping: paid - now)) : .zero
    }
}
