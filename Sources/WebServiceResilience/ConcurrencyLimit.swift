/// The number of concurrent requests that a ``ConcurrencyLimiter`` allows: fixed, or adapted to the
/// server.
///
/// - ``fixed(_:)`` is for a server with a known capacity, or for limiting the share of the
///   program's resources that one server takes.
/// - ``aimd(initial:minimum:maximum:decrease:)`` is for a server that rejects what it cannot
///   handle.
/// - ``gradient(initial:minimum:maximum:tolerance:queueSize:smoothing:)`` is for a server that
///   becomes slower instead. It lowers the limit before the server rejects requests.
public struct ConcurrencyLimit: Sendable {
    /// The factor by which the gradient's limit is lowered after an overload; see `decrease`.
    static let overloadFactor = 0.7

    let algorithm: any LimitAlgorithm
    /// Whether the limit may change.
    let isAdaptive: Bool

    /// Returns a limit that does not change.
    ///
    /// - Parameter limit: The number of concurrent requests. Values below 1 count as 1.
    public static func fixed(_ limit: Int) -> ConcurrencyLimit {
        ConcurrencyLimit(algorithm: FixedLimit(limit: max(limit, 1)), isAdaptive: false)
    }

    /// Returns a limit with additive increase and multiplicative decrease, like that of TCP (RFC
    /// 5681).
    ///
    /// While more than half of the limit is in use, the limit grows by one per round trip, which
    /// means by 1 / limit after each response. An overload multiplies the limit by `decrease`. The
    /// limit then does not change until the requests that were in flight have ended. The limit
    /// therefore alternates between the number that the server accepts, including those that wait
    /// in the server, and `decrease` times that number.
    ///
    /// - Parameters:
    ///   - initial: The limit before the first response. Defaults to 20, the value of Gradient2 in
    ///     Netflix's concurrency-limits.
    ///   - minimum: The minimum limit. Values below 1 count as 1. Defaults to 1, so that a single
    ///     request can show that the server has recovered.
    ///   - maximum: The maximum limit. Defaults to 1,000, which is more than the connections of a
    ///     `CurlSession`.
    ///   - decrease: The factor after an overload, from 0.1 to 0.99. Defaults to 0.7, the value of
    ///     CUBIC (RFC 9438, section 4.6). With this value, a server is overloaded less often than
    ///     with 0.9, and used better than with the 0.5 of RFC 5681.
    public static func aimd(
        initial: Int = 20, minimum: Int = 1, maximum: Int = 1_000, decrease: Double = 0.7
    ) -> ConcurrencyLimit {
        let limit = AIMDLimit(
            initial: initial, bounds: bounds(minimum, maximum), decrease: clamped(decrease, to: 0.1...0.99, 0.7))
        return ConcurrencyLimit(algorithm: limit, isAdaptive: true)
    }

    /// Returns a limit that follows the server's round-trip times.
    ///
    /// At first, the limit doubles with each round trip, until the throughput no longer grows with
    /// it. The limit is then halved, or lowered further, to confirm that requests were waiting in
    /// the server. If the throughput falls as well, the limit grows again.
    ///
    /// Afterwards, the limit is computed once per window. A window has as many requests as the
    /// limit, but at least 30:
    /// ```
    /// ratio = tolerance * long-term round-trip time / mean round-trip time of the window
    /// limit = (1 - smoothing) * limit + smoothing * (limit * ratio + growth)
    /// ```
    /// The growth is `queueSize` multiplied by the number of consecutive windows whose ratio is
    /// at least 1, or by 1 if there is none. Apart from the growth, the formula is that of
    /// Gradient2 in Netflix's concurrency-limits. While the server has no queue, the ratio is about
    /// 1 and the limit grows. When the server has a queue, the limit approaches the number of
    /// requests that the server handles concurrently.
    ///
    /// In 4 of 16 windows, only three quarters of the limit apply, so that the queue empties. The
    /// long-term round-trip time is a moving average of about 120 windows that used no more than
    /// three quarters of the limit. Such windows do not change the limit. The ratio is at least 0.7
    /// and at most 1.4.
    ///
    /// An overload multiplies the limit by 0.7, as described at
    /// ``aimd(initial:minimum:maximum:decrease:)``. Requests that time out or exceed their
    /// deadlines are not overloads for this limit. Each of them counts with twice its duration, and
    /// if most requests have no response, the limit is halved. Failures of the server have no
    /// effect.
    ///
    /// If the server becomes permanently slower, the limit decreases until the long-term round-trip
    /// time has followed. While requests are always waiting, about 7 % of the server's capacity
    /// remains unused in simulations.
    ///
    /// - Parameters:
    ///   - initial: The limit before the first window. Defaults to 20, the value of Gradient2.
    ///   - minimum: The minimum limit. Values below 1 count as 1. Defaults to 1.
    ///   - maximum: The maximum limit. Defaults to 1,000, which is more than the connections of a
    ///     `CurlSession`.
    ///   - tolerance: The increase of the round-trip time that is ignored, as a factor from 1 to 2.
    ///     Defaults to 1.02. The limit exceeds the capacity of the server by the same percentage.
    ///   - queueSize: The number of requests that may wait in the server, at least 0. Defaults to
    ///     1, the smallest whole number with which a small limit grows; concurrency-limits uses 4.
    ///   - smoothing: The weight of a window, from 0.01 to 1. Defaults to 0.4, with which a limit
    ///     of 20 doubles within 50 round trips; concurrency-limits uses 0.2.
    public static func gradient(
        initial: Int = 20, minimum: Int = 1, maximum: Int = 1_000, tolerance: Double = 1.02, queueSize: Double = 1,
        smoothing: Double = 0.4
    ) -> ConcurrencyLimit {
        let parameters = GradientLimit.Parameters(
            bounds: bounds(minimum, maximum), tolerance: clamped(tolerance, to: 1...2, 1.02),
            queueSize: clamped(queueSize, to: 0...1_000_000, 1), smoothing: clamped(smoothing, to: 0.01...1, 0.4))
        return ConcurrencyLimit(algorithm: GradientLimit(initial: initial, parameters), isAdaptive: true)
    }

    private static func bounds(_ minimum: Int, _ maximum: Int) -> ClosedRange<Double> {
        let range = 1...1_000_000
        let lower = min(max(minimum, range.lowerBound), range.upperBound)
        return Double(lower)...Double(min(max(maximum, lower), range.upperBound))
    }

    /// Returns a value within bounds, or the default in place of a NaN.
    private static func clamped(_ value: Double, to bounds: ClosedRange<Double>, _ standard: Double) -> Double {
        value.isNaN ? standard : value.clamped(to: bounds)
    }
}
