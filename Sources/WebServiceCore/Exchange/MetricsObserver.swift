/// An observer that reports the metrics of each exchange.
private struct MetricsObserver: Observer {
    let report: @Sendable (_ metrics: ObservedExchange.Metrics) -> Void

    func observe(_ event: ExchangeEvent) {
        guard case .ended(let summary) = event.kind, !event.exchange.isComposite else { return }
        let response = try? summary.result.get()  // an error has no response
        let failure: String? =
            if case .failure(let error) = summary.result { ExchangeLog.Attempt.kind(of: error) } else { nil }
        report(
            ObservedExchange.Metrics(
                exchange: event.exchange, duration: event.time, attempts: summary.attempts,
                status: response?.head.flatMap { $0.isHTTP ? $0.status : nil }, failure: failure,
                source: response?.source, byteCount: response?.data.count ?? 0,
                transport: summary.metrics.transport))
    }
}

/// The static functions of ``Observer`` that return `some Observer` are members of `Never`.
extension Never: Observer {
    /// Never called, because `Never` has no instances.
    public func observe(_ event: ExchangeEvent) { switch self {} }
}

extension Observer where Self == Never {
    /// Returns an observer that reports the metrics of each exchange.
    ///
    /// ```swift
    /// service.observers = [.metrics { requests.record($0.duration, status: $0.status) }]
    /// ```
    /// Typed requests and downloads are not reported, but the exchanges that they send are.
    ///
    /// - Parameter report: Called with the metrics of each exchange when it has ended, on any
    ///   thread.
    public static func metrics(
        _ report: @escaping @Sendable (_ metrics: ObservedExchange.Metrics) -> Void
    ) -> some Observer {
        MetricsObserver(report: report)
    }
}
