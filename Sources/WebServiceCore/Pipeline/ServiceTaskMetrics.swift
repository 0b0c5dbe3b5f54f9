public import Foundation

/// When the stages of a ``SessionTask`` began and ended. A stage that did not take place is `nil`.
///
/// Durations are measured by a monotonic clock; the dates are its instants counted from the date of
/// `resume()`.
public struct ServiceTaskMetrics: Sendable {
    /// When the request was handed to the session, after encoding.
    public var fetchStart: Date? { date(.fetchStart) }
    /// When the answer or the transport's error arrived.
    public var responseEnd: Date? { date(.responseEnd) }
    /// When parsing of the body as JSON began.
    public var responseJSONStart: Date? { date(.responseJSONStart) }
    /// When parsing of the body as JSON ended.
    public var responseJSONEnd: Date? { date(.responseJSONEnd) }
    /// When the first main-queue handler began.
    public var updateUIStart: Date? { date(.updateUIStart) }
    /// When the last main-queue handler returned.
    public var updateUIEnd: Date? { date(.updateUIEnd) }

    /// What the session measured of the last message; `nil` where it measures nothing, as Foundation's sessions.
    public internal(set) var transport: TransportMetrics?

    /// Seconds from ``fetchStart`` to ``responseEnd``.
    public var responseTime: TimeInterval? { seconds(.fetchStart, .responseEnd) }
    /// Seconds from ``responseJSONStart`` to ``responseJSONEnd``.
    public var responseJSONTime: TimeInterval? { seconds(.responseJSONStart, .responseJSONEnd) }
    /// Seconds from ``updateUIStart`` to ``updateUIEnd``: all main-queue handlers and what ran between them.
    public var updateUITime: TimeInterval? { seconds(.updateUIStart, .updateUIEnd) }

    enum Stage: Int {
        case fetchStart, responseEnd, responseJSONStart, responseJSONEnd, updateUIStart, updateUIEnd
    }

    private var wallStart = Date.distantPast
    private var start: UInt64 = 0
    private var moments: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)

    /// The monotonic instant and the date of `resume()`, where that came; otherwise those of the
    /// first stage.
    var origin: (moment: UInt64, date: Date)? { start == 0 ? nil : (start, wallStart) }

    /// The monotonic moments between which the exchange took place.
    var exchange: (start: UInt64, end: UInt64)? { moments.0 == 0 || moments.1 == 0 ? nil : (moments.0, moments.1) }

    /// The task is resumed.
    mutating func begin(at now: UInt64) {
        wallStart = Date()
        start = now
    }

    /// The same stages with the origin of another task, which was resumed before or after them.
    func measured(from other: ServiceTaskMetrics) -> ServiceTaskMetrics {
        guard other.start != 0 else { return self }
        var metrics = self
        metrics.wallStart = other.wallStart
        metrics.start = other.start
        return metrics
    }

    /// - Parameter now: The moment on the task's clock.
    mutating func mark(_ stage: Stage, at moment: UInt64) {
        let now = max(moment, start)  // read before the lock, so another thread may have been here with a later one
        if start == 0 {
            wallStart = Date()
            start = now
        }
        switch stage {
        case .fetchStart: if moments.0 == 0 { moments.0 = now }
        case .responseEnd: moments.1 = now
        case .responseJSONStart: moments.2 = now
        case .responseJSONEnd: moments.3 = now
        case .updateUIStart: if moments.4 == 0 { moments.4 = now }
        case .updateUIEnd: moments.5 = now
        }
    }

    private func moment(_ stage: Stage) -> UInt64? {
        let moment =
            switch stage {
            case .fetchStart: moments.0
            case .responseEnd: moments.1
            case .responseJSONStart: moments.2
            case .responseJSONEnd: moments.3
            case .updateUIStart: moments.4
            case .updateUIEnd: moments.5
            }
        return moment == 0 ? nil : moment
    }

    private func date(_ stage: Stage) -> Date? {
        moment(stage).map { wallStart.addingTimeInterval(Double(Int64(bitPattern: $0 &- start)) / 1e9) }
    }

    private func seconds(_ first: Stage, _ last: Stage) -> TimeInterval? {
        guard let first = moment(first), let last = moment(last) else { return nil }
        return last < first ? 0 : Double(last - first) / 1e9
    }
}
