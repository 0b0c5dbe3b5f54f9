import WebServiceCore

/// The rate of a transfer over the last few seconds.
struct TransferRate: Sendable {
    /// The count at instants that are at least a tenth of a second apart, for three seconds.
    private var samples: [(instant: UInt64, count: Int64)] = []

    private static let spacing: UInt64 = 100_000_000
    private static let window: UInt64 = 3_000_000_000

    /// Adds the count at an instant, in nanoseconds.
    ///
    /// - Returns: The increase per second; `nil` before a tenth of a second has passed.
    mutating func add(_ count: Int64, at now: UInt64) -> Double? {
        guard let last = samples.last else {
            samples.append((now, count))
            return nil
        }
        if now >= last.instant + Self.spacing {
            samples.append((now, count))
            let oldest = samples.firstIndex { $0.instant + Self.window >= now } ?? 0
            samples = Array(samples[oldest...])
        }
        guard let first = samples.first, now >= first.instant + Self.spacing else { return nil }
        return Double(count - first.count) / (Double(now - first.instant) / 1e9)
    }

    /// Discards the counts, because they were reset.
    mutating func reset() { samples = [] }
}

/// A rate limit for a transfer: bytes are taken first and paid for by a delay.
struct RateLimit: Sendable {
    private let bytesPerSecond: Int
    /// The time that may be made up for after a delay that took too long, in nanoseconds.
    private static let credit: UInt64 = 100_000_000

    /// The instant until which all bytes are paid for.
    private var paid: UInt64

    /// - Parameter bytesPerSecond: Values below 1 count as 1.
    init(bytesPerSecond: Int, now: UInt64) {
        self.bytesPerSecond = max(1, bytesPerSecond)
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
