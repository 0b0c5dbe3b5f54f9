/// The response times of the last requests, and a quantile of them.
struct RecentTimes: Sendable {
    /// The number of times that are stored. If 2 % of all responses are slow, at most 4 % of the
    /// stored ones are slow with a probability of 99.99 %.
    private static let capacity = 1_000
    /// The number of times before the first quantile.
    static let minimum = 100
    /// The number of times after which the quantile is computed again.
    private static let step = 50

    private let quantile: Double
    private var times: [UInt64] = []
    private var count = 0
    /// The quantile, in nanoseconds; `nil` if there are too few times.
    private(set) var value: UInt64?
    /// The instant at which the last time was added.
    private(set) var latest: UInt64 = 0

    /// - Parameter quantile: The share of times that are below the quantile, from 0 to 1.
    init(quantile: Double) { self.quantile = quantile }

    mutating func add(_ time: UInt64, at now: UInt64) {
        latest = now
        if times.count < Self.capacity { times.append(time) } else { times[count % Self.capacity] = time }
        count &+= 1
        guard times.count >= Self.minimum, count % Self.step == 0 else { return }
        let index = Int(quantile * Double(times.count))
        value = times.sorted()[min(index, times.count - 1)]
    }
}
