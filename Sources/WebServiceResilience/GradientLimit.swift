/// A limit that follows the ratio of a long-term round-trip time to the current one.
///
/// The formula is that of Gradient2 in Netflix's concurrency-limits. Four rules differ, because
/// Gradient2 does not settle while there are always more requests than the limit:
/// - The long-term round-trip time is measured without a queue. Otherwise, it approaches that of a
///   full queue, and the limit grows without end. After a number of windows, the limit is lowered
///   for a few windows, so that the queue empties.
/// - The ratio may exceed 1. A ratio of at most 1 turns random variation of the round-trip time
///   into a lower limit.
/// - A ratio is that of a window of requests, since a single round-trip time is hardly evidence.
/// - The growth accelerates, since otherwise a limit that is half of the capacity takes too long.
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
    /// The number of measured windows that the long-term round-trip time is an average of.
    static let memory = 120
    /// The range of the ratio in one window, so that outliers have a limited effect.
    static let ratios = 0.7...1.4

    private let parameters: Parameters
    private var value: Double
    private var recovery = OverloadRecovery()
    /// The number of the window in its cycle. The first windows of the changes and of the
    /// measurement are skipped, because the queue fills and empties.
    private var position = GradientLimit.changes
    private var samples = Samples()
    private var longTerm = 0.0
    private var measured = 0
    /// The number of consecutive changes without evidence of a queue.
    private var growths = 0

    init(initial: Int, _ parameters: Parameters) {
        self.parameters = parameters
        value = Double(initial).clamped(to: parameters.bounds)
    }

    var limit: Int {
        position < Self.changes ? Int(value) : Int((value * Self.measuredPart).clamped(to: parameters.bounds))
    }

    mutating func end(roundTrip: UInt64, inFlight: Int, outcome: RequestOutcome) {
        guard recovery.endsRequest() else { return }
        switch outcome {
        case .success: samples.add(roundTrip, inFlight)
        case .overload:
            value = (value * ConcurrencyLimit.overloadFactor).clamped(to: parameters.bounds)
            (samples, growths) = (Samples(), 0)
            recovery.begin(inFlight: inFlight)
        case .neither: break
        }
        if samples.count >= max(limit, Self.minimumSamples) { endWindow() }
    }

    private mutating func endWindow() {
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

    /// The weights of the first windows increase, so that those of a wrong initial limit lose
    /// their effect.
    private mutating func measure() {
        measured = min(measured + 1, Self.memory)
        longTerm += (samples.mean - longTerm) * 2 / Double(measured + 1)
    }
}

/// The round-trip times of a window.
private struct Samples {
    private(set) var count = 0
    private(set) var maximumInFlight = 0
    private var sum: UInt64 = 0

    /// The mean in nanoseconds.
    var mean: Double { Double(sum) / Double(max(count, 1)) }

    mutating func add(_ roundTrip: UInt64, _ inFlight: Int) {
        count += 1
        maximumInFlight = max(maximumInFlight, inFlight)
        let (total, overflows) = sum.addingReportingOverflow(roundTrip)
        sum = overflows ? .max : total
    }
}
