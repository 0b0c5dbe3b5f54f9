extension ExchangeLog.Entry {
    init(_ attempt: ExchangeLog.Attempt, to end: UInt64) {
        self.init(kind: .attempt, start: attempt.start, end: end, detail: attempt.failure, attempt: attempt)
    }
}
