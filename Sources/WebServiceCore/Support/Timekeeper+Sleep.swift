extension TaskClock {
    /// Suspends the Swift task until the delay has passed on this clock.
    ///
    /// - Throws: `CancellationError` as soon as the Swift task is cancelled.
    package func sleep(for delay: Duration) async throws {
        try Task.checkCancellation()
        let end = Once<Result<Void, any Error>>()
        try await withTaskCancellationHandler {
            try await value(of: end, orAfter: delay, .success(())).get()
        } onCancel: {
            end.set(.failure(CancellationError()))
        }
    }

    /// Awaits a value, which this clock sets to `late` if it is not set within the delay.
    package func value<Value: Sendable>(of once: Once<Value>, orAfter delay: Duration, _ late: Value) async -> Value {
        let alarm = schedule(after: delay, Expiry(once, late))
        let value = await once.value
        cancel(alarm)
        return value
    }
}

/// Sets a value when an alarm fires.
private final class Expiry<Value: Sendable>: AlarmTarget {
    private let once: Once<Value>
    private let late: Value

    init(_ once: Once<Value>, _ late: Value) {
        (self.once, self.late) = (once, late)
    }

    func ring() { once.set(late) }
}
