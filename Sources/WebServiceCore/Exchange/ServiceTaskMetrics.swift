public import Foundation

/// The dates and durations of the stages of a ``SessionTask``; `nil` for a stage that did not take
/// place.
///
/// Durations are measured by a monotonic clock. Dates are computed from its instants and the date
/// of `resume()`.
public struct ServiceTaskMetrics: Sendable {
    /// The date when the first request was about to be passed to the session, after encoding.
    public var fetchStart: Date? { date(.fetchStart) }
    /// The date when the exchange ended, with the response or an error; `nil` if no request was
    /// sent.
    public var responseEnd: Date? { date(.responseEnd) }
    /// The date when a `responseJSON` handler began to parse the body.
    public var responseJSONStart: Date? { date(.responseJSONStart) }
    /// The date when this parsing ended.
    public var responseJSONEnd: Date? { date(.responseJSONEnd) }
    /// The date when the first UI handler began.
    public var updateUIStart: Date? { date(.updateUIStart) }
    /// The date when the last UI handler returned.
    public var updateUIEnd: Date? { date(.updateUIEnd) }

    /// The metrics of the session for the last attempt; `nil` if there are none, as is the case for
    /// HTTP requests over Foundation's sessions.
    public internal(set) var transport: TransportMetrics? {
        get { lastAttempt }
        set { lastAttempt = newValue }
    }

    /// The duration from ``fetchStart`` to ``responseEnd``.
    public var responseTime: Duration? { duration(.fetchStart, .responseEnd) }
    /// The duration from ``responseJSONStart`` to ``responseJSONEnd``.
    public var responseJSONTime: Duration? { duration(.responseJSONStart, .responseJSONEnd) }
    /// The duration from ``updateUIStart`` to ``updateUIEnd``: all UI handlers and all code that
    /// ran between them.
    public var updateUITime: Duration? { duration(.updateUIStart, .updateUIEnd) }

    enum Stage: Int {
        case fetchStart, responseEnd, responseJSONStart, responseJSONEnd, updateUIStart, updateUIEnd
    }

    @Boxed var lastAttempt: TransportMetrics?
    private var wallStart = Date.distantPast
    private var start: UInt64 = 0
    private var instants: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)

    /// The monotonic instant and the date of `resume()`, or of the first stage if the task was not
    /// resumed.
    package var origin: (instant: UInt64, date: Date)? { start == 0 ? nil : (start, wallStart) }

    /// The monotonic instants of ``fetchStart`` and ``responseEnd``.
    var exchange: (start: UInt64, end: UInt64)? { instants.0 == 0 || instants.1 == 0 ? nil : (instants.0, instants.1) }

    /// Records the instant of `resume()`.
    mutating func begin(at now: UInt64, _ date: Date) {
        wallStart = date
        start = now
    }

    /// Returns the same stages with the origin of another task.
    func measured(from other: ServiceTaskMetrics) -> ServiceTaskMetrics {
        guard other.start != 0 else { return self }
        var metrics = self
        metrics.wallStart = other.wallStart
        metrics.start = other.start
        return metrics
    }

    /// Records when a stage began or ended, on the task's clock.
    ///
    /// - Parameter date: The date of the instant, which becomes the origin if the task was not
    ///   resumed; `nil` for a stage of a resumed task.
    mutating func mark(_ stage: Stage, at instant: UInt64, _ date: Date? = nil) {
        let now = max(instant, start)  // read before the lock: another thread may have recorded a later one
        if start == 0, let date { begin(at: now, date) }
        switch stage {
        case .fetchStart: if instants.0 == 0 { instants.0 = now }
        case .responseEnd: instants.1 = now
        case .responseJSONStart: instants.2 = now
        case .responseJSONEnd: instants.3 = now
        case .updateUIStart: if instants.4 == 0 { instants.4 = now }
        case .updateUIEnd: instants.5 = now
        }
    }

    private func instant(_ stage: Stage) -> UInt64? {
        let instant =
            switch stage {
            case .fetchStart: instants.0
            case .responseEnd: instants.1
            case .responseJSONStart: instants.2
            case .responseJSONEnd: instants.3
            case .updateUIStart: instants.4
            case .updateUIEnd: instants.5
            }
        return instant == 0 ? nil : instant
    }

    private func date(_ stage: Stage) -> Date? {
        start == 0
            ? nil : instant(stage).map { wallStart.addingTimeInterval(Double(Int64(bitPattern: $0 &- start)) / 1e9) }
    }

    private func duration(_ first: Stage, _ last: Stage) -> Duration? {
        guard let first = instant(first), let last = instant(last) else { return nil }
        return last < first ? .zero : .nanoseconds(Int64(clamping: last - first))
    }
}
