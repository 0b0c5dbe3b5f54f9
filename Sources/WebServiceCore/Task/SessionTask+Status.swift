extension SessionTask {
    /// A snapshot of a task at one instant. The values are consistent with each other.
    public struct Status: Sendable {
        /// The state; see ``SessionTask/state``.
        public let state: DataTaskState
        /// The metrics so far.
        public let metrics: ServiceTaskMetrics
        /// The progress that was reported last; `nil` before the first report, and if no handler
        /// observes the progress.
        public let progress: TransferProgress?
        /// The request with the changes of all setters.
        public let request: Request
    }

    /// The events recorded so far. Handlers are included only if ``recordHandlers()`` was called.
    public var timeline: Timeline { record.timeline }

    /// The record of the exchange.
    package var record: ExchangeLog.Record { context.record }

    /// The state, the metrics, the progress and the request at one instant.
    public var status: Status {
        shared.withLock { state in
            let record = context.record
            let request = state.unsent?.request ?? record.request ?? Request(url: "")
            return Status(
                state: state.dataTaskState, metrics: record.metrics, progress: context.progress?.latest,
                request: request)
        }
    }
}
