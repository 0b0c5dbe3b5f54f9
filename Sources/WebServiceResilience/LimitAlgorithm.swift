/// The state machine that determines a limit of concurrent requests.
///
/// It has no lock and no clock: the limiter reports the end of each request to it.
protocol LimitAlgorithm: Sendable {
    /// The number of requests that may be in flight; at least 1.
    var limit: Int { get }

    /// Applies the end of a request.
    ///
    /// - Parameters:
    ///   - roundTrip: The duration of the request in nanoseconds.
    ///   - inFlight: The number of requests in flight, including this one.
    mutating func end(roundTrip: UInt64, inFlight: Int, outcome: RequestOutcome)
}

/// The result of a request, as far as a limit depends on it.
enum RequestOutcome: Sendable {
    /// The server responded.
    case success
    /// The server, or a timeout, indicates an overload.
    case overload
    /// Neither, such as a cancellation. The duration of the request has no significance.
    case neither
}

/// A limit that does not change.
struct FixedLimit: LimitAlgorithm {
    let limit: Int

    mutating func end(roundTrip: UInt64, inFlight: Int, outcome: RequestOutcome) {}
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

    mutating func end(roundTrip: UInt64, inFlight: Int, outcome: RequestOutcome) {
        guard recovery.endsRequest() else { return }
        switch outcome {
        case .success where Double(inFlight) * 2 > value: value = (value + 1 / value).clamped(to: bounds)
        case .overload:
            value = (value * decrease).clamped(to: bounds)
            recovery.begin(inFlight: inFlight)
        case .success, .neither: break
        }
    }
}

/// The period after an overload in which a limit does not change.
///
/// It ends with the requests that were in flight when the limit was lowered: their results belong
/// to the earlier limit.
struct OverloadRecovery: Sendable {
    private var remaining = 0

    mutating func begin(inFlight: Int) { remaining = max(inFlight - 1, 0) }

    /// Applies the end of a request.
    ///
    /// - Returns: Whether its result counts.
    mutating func endsRequest() -> Bool {
        guard remaining > 0 else { return true }
        remaining -= 1
        return false
    }
}

extension Double {
    func clamped(to bounds: ClosedRange<Double>) -> Double { max(bounds.lowerBound, min(self, bounds.upperBound)) }
}
