/// An observer that reports the metrics of each exchange.
///
/// ```swift
/// service.observers = [.metrics { requests.record($0.duration, status: $0.status) }]
/// ```
/// Typed requests and downloads are not reported: the exchanges that they send are.
public struct MetricsObserver: Observer {
    private let report: @Sendable (ExchangeMetrics) -> Void

    /// Creates an observer.
    ///
    /// - Parameter report: Called with the metrics of each exchange when it has ended, on any
    ///   thread.
    public init(_ report: @escaping @Sendable (_ metrics: ExchangeMetrics) -> Void) {
        self.report = report
    }

    /// Reports the metrics if the exchange has ended.
    public func observe(_ event: ExchangeEvent) {
        guard case .ended(let summary) = event.kind, !event.exchange.isComposite else { return }
        let response = try? summary.result.get()  // an error has no response
        let failure: String? =
            if case .failure(let error) = summary.result { ExchangeLog.Attempt.kind(of: error) } else { nil }
        report(
            ExchangeMetrics(
                exchange: event.exchange, duration: event.time, attempts: summary.attempts,
                status: response?.head.flatMap { $0.isHTTP ? $0.status : nil }, failure: failure,
                source: response?.source, byteCount: response?.data.count ?? 0,
                transport: summary.metrics.transport))
    }
}

extension Observer where Self == MetricsObserver {
    /// Returns an observer that reports the metrics of each exchange; see ``MetricsObserver``.
    public static func metrics(_ report: @escaping @Sendable (_ metrics: ExchangeMetrics) -> Void) -> MetricsObserver {
        MetricsObserver(report)
    }
}
