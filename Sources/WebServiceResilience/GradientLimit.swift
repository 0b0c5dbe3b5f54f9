/// A limit that follows the ratio of a long-term round-trip time to the current one.
///
/// The formula is that of Gradient2 in Netflix's concurrency-limits. Four rules differ, because
/// Gradient2 does not settle while there are always more requests than the limit:
/// - The long-term round-trip time is measured without a queue. Otherwise, it would approach the
///   round-trip time of a full queue, and the limit would grow endlessly. After a number of
///   windows, the limit is lowered for a few windows, so that the queue empties.
/// - The ratio may exceed 1. If it could not, random variation of the round-trip time would lower
///   the limit.
/// - The ratio is computed for a window of requests, because a single round-trip time is not
///   reliable evidence.
/// - The growth accelerates, because otherwise a limit of half the capacity would take too long to
///   reach the capacity.
///
/// At first, the limit doubles with each round trip until it reaches the capacity (``LimitProbe``).
/// A request without a response counts with twice its duration. If most requests have no response,
/// the limit is halved.
struct GradientLimit: LimitAlgorithm {
    struct Parameters: Sendable {
        var bounds: ClosedRange<Double>
        var tolerance: Double
        var queueSize: Double
        var smoothing: Double
    }

    /// The minimum number of requests in a window. The mean of 30 exponentially distributed times
    /// deviates by 18 %.
    static let minimumSamples = 30
    /// The windows of a cycle in which the limit may change.
    static let changes = 12
    /// The windows of a cycle that measure the long-term round-trip time.
    static let measurements = 3
    /// The part of the limit that applies during a measurement. The queue is empty if the limit is
    /// at most a third above the capacity of the server; a higher limit decreases in each cycle.
    static let measuredPart = 0.75
    /// The number of measured windows over which the long-term round-trip time is averaged.
    static let memory = 120
    /// The number of windows in which a limit that is too low may double.
    static let settling = 12
    /// The number of requests without a response that lowers a small limit.
    static let minimumMissing = 10
    /// The range of the ratio in one window, which limits the effect of outliers.
    static let ratios = 0.7...1.4

    private let parameters: Parameters
    private var value: Double
    /// The initial growth; `nil` after it has ended.
    private var probe: LimitProbe?
    private var recovery = OverloadRecovery()
    /// The number of the window in its cycle. The first window of the changes and that of
    /// the measurement are skipped, because the queue fills or empties.
    private var position = GradientLimit.changes
    private var samples = Samples()
    private var longTerm = 0.0
    private var measured = 0
    /// The number of consecutive changes without evidence of a queue.
    private var growths = 0
    /// The number of windows since the initial growth.
    private var windows = 0
    /// The number by which requests without a response exceed those with a response.
    private var missing = 0

    /// - Parameter probes: Whether the limit doubles at first.
    init(initial: Int, _ parameters: Parameters, probes: Bool = true) {
        self.parameters = parameters
        value = Double(initial).clamped(to: parameters.bounds)
        probe = probes ? LimitProbe(initial: initial, bounds: parameters.bounds) : nil
    }

    var limit: Int {
        if let probe { return probe.limit }
        return position < Self.changes ? Int(value) : Int((value * Self.measuredPart).clamped(to: parameters.bounds))
    }

    var outlook: LimitOutlook {
        if let probe { return probe.outlook }
        return windows < Self.settling ? .settling : .steady
    }

    mutating func end(_ request: EndedRequest) {
        guard recovery.endsRequest() else {
            probe?.restart(at: request.instant)
            return
        }
        switch request.outcome {
        case .success: missing = max(missing - 1, 0)
        case .timeout, .late: missing += 1
        case .overload: return lower(by: ConcurrencyLimit.overloadFactor, request)
        case .neither: return
        }
        if missing >= max(Self.minimumMissing, limit / 2) { return lower(by: 0.5, request) }
        if probe != nil { return grow(request) }
        let factor: UInt64 = request.outcome == .success ? 1 : 2
        samples.add(request.roundTrip.multipliedSaturated(by: factor), request.inFlight)
        if samples.count >= max(limit, Self.minimumSamples) { endWindow() }
    }

    private mutating func grow(_ request: EndedRequest) {
        guard Double(request.inFlight) > Double(limit) * Self.measuredPart else {
            probe?.restart(at: request.instant)
            return
        }
        let step = probe?.end(request)
        value = probe?.value ?? value
        switch step {
        case .lowered: recovery.begin(inFlight: request.inFlight)
        case .reachedCapacity:
            probe = nil
            samples = Samples()
        case .none?, nil: break
        }
    }

    private mutating func lower(by factor: Double, _ request: EndedRequest) {
        value = (value * factor).clamped(to: parameters.bounds)
        probe = nil
        (samples, growths, missing) = (Samples(), 0, 0)
        recovery.begin(inFlight: request.inFlight)
    }

    private mutating func endWindow() {
        windows = min(windows + 1, Self.settling)
        switch position {
        case 0, Self.changes: break
        case ..<Self.changes where Double(samples.maximumInFlight) > value * Self.measuredPart: change()
        default: measure()
        }
        samples = Samples()
        position = (position + 1) % (Self.changes + 1 + Self.measurements)
    }

    private mutating func change() {
        // With a test clock, a request may take no time.
        let ratio = (parameters.tolerance * max(longTerm, 1) / max(samples.mean, 1)).clamped(to: Self.ratios)
        growths = ratio < 1 ? 0 : growths + 1
        let target = value * ratio + parameters.queueSize * Double(max(growths, 1))
        value = (value + parameters.smoothing * (target - value)).clamped(to: parameters.bounds)
    }

    /// The weights of the first windows increase, so that windows with a wrong initial limit lose
    /// their effect.
    private mutating func measure() {
        measured = min(measured + 1, Self.memory)
        longTerm += (samples.mean - longTerm) * 2 / Double(measured + 1)
    }
}
