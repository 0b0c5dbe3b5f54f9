/// The growth of a limit until it reaches the capacity of the server.
///
/// The limit grows by one with each success, so it doubles with each round trip, as in the slow
/// start of TCP (RFC 5681, section 3.1). If the throughput hardly grows while the limit doubles,
/// the server may be at its capacity. An experiment then follows, in which the limit is lowered to
/// at most half. If the throughput remains the same, requests were waiting in the server, and the
/// probe ends. Otherwise, the limit grows again.
///
/// The throughput is the evidence, because the round-trip times of a growing number of requests do
/// not represent the server. The responses that arrive first are the fast ones.
struct LimitProbe: Sendable {
    enum Step: Equatable {
        case none
        /// The limit was lowered for the experiment.
        case lowered
        /// The capacity of the server is reached.
        case reachedCapacity
    }

    /// The minimum number of responses in a window.
    static let minimumSamples = 20
    /// The growth of the throughput, as a factor, that shows that the capacity is not reached.
    /// Without random variation, the factor is 2.
    static let minimumGrowth = 1.3
    /// The increase of the round-trip time, as a factor, that shows a queue if the callers do not
    /// reach the limit.
    static let slowdown = 1.5
    /// The limit of the experiment, relative to the capacity that the throughput indicates. The
    /// first measurement of a ``GradientLimit`` uses three quarters of this limit.
    static let tolerance = 4.0 / 3

    let bounds: ClosedRange<Double>
    private(set) var value: Double
    private var samples = Samples()
    private var start: UInt64?
    /// Whether the limit was always reached in the current window.
    private var isFull = true
    /// The number of responses after which the current window ends.
    private var target: Int
    /// The number of windows since the limit began to grow.
    private var windows = 0
    /// The responses per nanosecond in the last window.
    private var throughput = 0.0
    private var lastRoundTrip = 0.0
    /// The lowest mean of a window in which the limit was always reached, in nanoseconds; `nil`
    /// before the first such window.
    private var lowestRoundTrip: Double?
    /// The throughput and the limit before the experiment; `nil` if there is none.
    private var suspect: (throughput: Double, limit: Double)?

    init(initial: Int, bounds: ClosedRange<Double>) {
        self.bounds = bounds
        value = Double(initial).clamped(to: bounds)
        target = max(Self.minimumSamples, Int(value))
    }

    var limit: Int { Int(value) }

    var outlook: LimitOutlook {
        windows < 2 || suspect != nil ? .unknown : .doubling(roundTrip: lastRoundTrip, maximum: bounds.upperBound)
    }

    /// Begins a new window.
    mutating func restart(at instant: UInt64) {
        samples = Samples()
        start = instant
        isFull = true
    }

    /// Updates the limit after a request that has ended while most of the limit is in use.
    mutating func end(_ request: EndedRequest) -> Step {
        if start == nil { start = request.instant - min(request.roundTrip, request.instant) }
        samples.add(request.roundTrip, request.inFlight)
        if request.inFlight < limit { isFull = false }
        if windows > 0, isFull, suspect == nil, request.outcome == .success, !request.isTight {
            value = (value + 1).clamped(to: bounds)
        }
        guard samples.count >= target else { return .none }
        let step = endWindow(at: request.instant)
        target = max(Self.minimumSamples, limit)
        restart(at: request.instant)
        return step
    }

    private mutating func endWindow(at instant: UInt64) -> Step {
        let duration = Double(max(instant - min(start ?? instant, instant), 1))
        let current = Double(samples.count) / duration
        defer { throughput = current }
        guard isFull else { return endPartialWindow(current) }
        lastRoundTrip = samples.mean
        if let suspect {
            // Without a queue in the server, the throughput is proportional to the limit, whose
            // mean in the window before the experiment was three quarters of its last value.
            let part = value / (0.75 * suspect.limit)
            if current >= (1 + part) / 2 * suspect.throughput { return .reachedCapacity }
            self.suspect = nil
            value = (suspect.limit / 2).clamped(to: bounds)
            windows = 1
            return .none
        }
        windows += 1
        let lowest = min(lowestRoundTrip ?? .infinity, samples.mean)
        lowestRoundTrip = lowest
        guard windows > 2, value < bounds.upperBound, current < Self.minimumGrowth * throughput else { return .none }
        let capacity = Self.tolerance * current * lowest
        let lowered = min(max(capacity, value / 4), value / 2).clamped(to: bounds)
        guard lowered < 0.75 * value else { return .reachedCapacity }
        suspect = (current, value)
        value = lowered
        return .lowered
    }

    /// Ends a window in which the callers did not always reach the limit. The limit therefore does
    /// not grow, and only longer round-trip times show that requests wait in the server.
    private mutating func endPartialWindow(_ current: Double) -> Step {
        guard let lowestRoundTrip, suspect == nil, samples.mean > Self.slowdown * lowestRoundTrip else { return .none }
        value = min(Self.tolerance * current * lowestRoundTrip, value).clamped(to: bounds)
        return .reachedCapacity
    }
}

/// The round-trip times of a window.
struct Samples: Sendable {
    private(set) var count = 0
    private(set) var maximumInFlight = 0
    private var sum = 0.0

    /// The mean in nanoseconds.
    var mean: Double { sum / Double(max(count, 1)) }

    mutating func add(_ roundTrip: UInt64, _ inFlight: Int) {
        count += 1
        maximumInFlight = max(maximumInFlight, inFlight)
        sum += Double(roundTrip)
    }
}
