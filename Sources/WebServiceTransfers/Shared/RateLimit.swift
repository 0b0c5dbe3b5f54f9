import WebServiceCore

/// A rate limit for a transfer: bytes are taken first, and a delay compensates for them.
struct RateLimit: Sendable {
    private let bytesPerSecond: Int
    /// The maximum time that is made up for after a delay that took too long, in nanoseconds.
    private static let credit: UInt64 = 100_000_000

    /// The instant at which the delays for all taken bytes end.
    private var paid: UInt64

    /// - Parameter bytesPerSecond: The maximum rate. At least 1.
    init(bytesPerSecond: Int, now: UInt64) {
        self.bytesPerSecond = bytesPerSecond
        paid = now
    }

    /// Takes bytes.
    ///
    /// - Returns: The delay before further bytes may be taken.
    mutating func take(_ count: Int, at now: UInt64) -> Duration {
        let cost = Double(count) / Double(bytesPerSecond) * 1e9
        paid = max(paid, now - min(now, Self.credit)).addingSaturated(.nanoseconds(Int64(min(cost, 1e18))))
        return paid > now ? .nanoseconds(Int64(clamping: paid - now)) : .zero
    }
}
