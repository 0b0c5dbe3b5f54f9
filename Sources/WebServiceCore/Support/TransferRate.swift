/// The rate of a transfer over the last few seconds.
package struct TransferRate: Sendable {
    /// The counts at instants that are at least a tenth of a second apart, for the last three
    /// seconds.
    private var samples: [(instant: UInt64, count: Int64)] = []

    private static let spacing: UInt64 = 100_000_000
    private static let window: UInt64 = 3_000_000_000

    package init() {}

    /// Adds the count at an instant, in nanoseconds. A count below the last one restarts the
    /// measurement.
    ///
    /// - Returns: The increase per second; `nil` before a tenth of a second has passed.
    package mutating func add(_ count: Int64, at now: UInt64) -> Double? {
        guard let last = samples.last, count >= last.count else {
            samples = [(now, count)]
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

    /// Discards the counts after they were reset.
    package mutating func reset() { samples = [] }
}
