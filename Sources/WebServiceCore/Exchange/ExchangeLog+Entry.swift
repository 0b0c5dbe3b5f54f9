extension ExchangeLog.Entry {
    init(_ attempt: ExchangeLog.Attempt, to end: UInt64) {
        self.init(kind: .attempt, start: attempt.start, end: end, detail: attempt.failure, attempt: attempt)
    }
}

extension Timeline.Event {
    /// - Parameter start: The instant of `resume()`.
    init(_ entry: ExchangeLog.Entry, start: UInt64) {
        self.init(
            kind: entry.kind,
            start: .nanoseconds(Int64(clamping: entry.start - min(start, entry.start))),
            duration: entry.end.map { .nanoseconds(Int64(clamping: $0 - min($0, entry.start))) },
            detail: entry.detail,
            status: entry.attempt?.head.flatMap { $0.isHTTP ? $0.status : nil },
            request: entry.attempt?.request.summary,
            related: entry.related,
            error: entry.error,
            byteCount: entry.byteCount
        )
    }
}
