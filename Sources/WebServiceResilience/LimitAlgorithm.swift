/// The state machine that determines a limit of concurrent requests.
///
/// The state machine has no lock and no clock. The limiter reports the end of each request to it.
protocol LimitAlgorithm: Sendable {
    /// The number of requests that may be in flight; at least 1.
    var limit: Int { get }
    /// The expected development of the limit, from which waits are estimated.
    var outlook: LimitOutlook { get }

    /// Updates the limit after a request has ended.
    mutating func end(_ request: EndedRequest)
}

extension LimitAlgorithm {
    var outlook: LimitOutlook { .steady }
}

/// The expected development of a limit.
enum LimitOutlook: Sendable, Equatable {
    /// Nothing is known about the server yet.
    case unknown
    /// The limit doubles with each round trip, up to a maximum.
    ///
    /// The round-trip time is in nanoseconds.
    case doubling(roundTrip: Double, maximum: Double)
    /// The limit may still be well below the capacity of the server.
    case settling
    /// Requests will end as fast as they do now.
    case steady
}

/// The end of a request, as far as a limit depends on it.
struct EndedRequest: Sendable {
    /// The duration of the request in nanoseconds.
    var roundTrip: UInt64
    /// The number of requests in flight, including this one.
    var inFlight: Int
    var outcome: RequestOutcome
    /// The instant of the end.
    var instant: UInt64
    /// Whether twice the duration would have exceeded the deadline of the request.
    var isTight = false
}

/// The result of a request, as far as a limit depends on it.
enum RequestOutcome: Sendable {
    /// The server responded with a status below 500.
    case success
    /// The server states that it is overloaded.
    case overload
    /// The attempt has timed out, so a response would have taken longer.
    case timeout
    /// The deadline of the request has passed, so a response would have taken longer.
    case late
    /// Any other result, such as a failure of the server or a cancellation. The duration of the
    /// request has no significance.
    case neither
}

/// A limit that does not change.
struct FixedLimit: LimitAlgorithm {
    let limit: Int

    mutating func end(_ request: EndedRequest) {}
}

/// A limit that grows by one per round trip, and is lowered by a factor after an overload.
struct AIMDLimit: LimitAlgorithm {
    private let bounds: ClosedRange<Double>
    private let decrease: Double
    private var value: Double
    private var recovery = OverloadRecovery()

    init(initial: Int, bounds: ClosedRange<Double>, decrease: Double) {
        self.bounds = bounds
        self.decrease = decrease
        value = Double(initial).clamped(to: bounds)
    }

    var limit: Int { Int(value) }

    mutating func end(_ request: EndedRequest) {
        guard recovery.endsRequest() else { return }
        switch request.outcome {
        case .success where Double(request.inFlight) * 2 > value: value = (value + 1 / value).clamped(to: bounds)
        case .overload, .timeout:
            value = (value * decrease).clamped(to: bounds)
            recovery.begin(inFlight: request.inFlight)
        case .success, .late, .neither: break
        }
    }
}

/// The period after an overload in which a limit does not change.
///
/// The period ends when as many requests have ended as were still in flight when the limit was
/// lowered, because their results belong to the earlier limit.
struct OverloadRecovery: Sendable {
    private var remaining = 0

    mutating func begin(inFlight: Int) { remaining = max(inFlight - 1, 0) }

    /// Counts a request that has ended.
    ///
    /// - Returns: Whether the result of the request counts.
    mutating func endsRequest() -> Bool {
        guard remaining > 0 else { return true }
        remaining -= 1
        return false
    }
}

extension Double {
    func clamped(to bounds: ClosedRange<Double>) -> Double { max(bounds.lowerBound, min(self, bounds.upperBound)) }
}

extension UInt64 {
    func multipliedSaturated(by factor: UInt64) -> UInt64 {
        let (product, overflows) = multipliedReportingOverflow(by: factor)
        return overflows ? .max : product
    }
}
