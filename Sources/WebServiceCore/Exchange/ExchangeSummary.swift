/// The result of an exchange, with the metrics and the timeline recorded until its end.
public final class ExchangeSummary: Sendable {
    /// The response or the error of the task, before its handlers.
    public let result: Result<Response, any Error>

    /// A Boolean value that indicates whether the body of the response is streamed.
    ///
    /// The end of such a body is recorded later, as ``Timeline/Kind/body``.
    public let isStreamed: Bool

    private let record: ExchangeLog.Record

    init(_ result: Result<Response, any Error>, _ record: ExchangeLog.Record) {
        self.result = result.withoutStream
        isStreamed = if case .success(let response) = result { response.isStreamed } else { false }
        self.record = record
    }

    /// The number of requests that were sent.
    public var attempts: Int { record.attempts }

    /// The metrics, without those of the handlers.
    public var metrics: ServiceTaskMetrics { record.metrics }

    /// The timeline. Created on each access.
    public var timeline: Timeline { record.timeline }
}

extension Result where Success == Response {
    var withoutStream: Self { map(\.withoutStream) }
}
