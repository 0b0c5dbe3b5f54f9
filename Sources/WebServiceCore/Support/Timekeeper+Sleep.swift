extension TaskClock {
    /// Suspends the Swift task until the delay has passed on this clock.
    ///
    /// - Parameter isWork: Whether the Swift task belongs to a ``SessionTask`` in flight, which
    ///   ``Timekeeper/recordWork(_:tasks:)`` has recorded. Defaults to `false`.
    /// - Throws: `CancellationError` as soon as the Swift task is cancelled.
    package func sleep(for delay: Duration, isWork: Bool = false) async throws {
        try Task.checkCancellation()
        let work = isWork ? Rest(self) : nil
        defer { work?.ring() }
        let end = Once<Result<Void, any Error>>()
        try await withTaskCancellationHandler {
            try await value(of: end, orAfter: delay, .success(()), work).get()
        } onCancel: {
            end.set(.failure(CancellationError()))
        }
    }

    /// Awaits a value, which this clock sets to `late` if it is not set within the delay.
    package func value<Value: Sendable>(of once: Once<Value>, orAfter delay: Duration, _ late: Value) async -> Value {
        await value(of: once, orAfter: delay, late, nil)
    }

    private func value<Value: Sendable>(
        of once: Once<Value>, orAfter delay: Duration, _ late: Value, _ rest: Rest?
    ) async -> Value {
        let alarm = schedule(after: delay, Expiry(once, late, rest))
        rest?.begin()
        let value = await once.value
        cancel(alarm)
        return value
    }
}

/// Sets a value when an alarm fires.
private final class Expiry<Value: Sendable>: AlarmTarget {
    private let once: Once<Value>
    private let late: Value
    private let rest: Rest?

    init(_ once: Once<Value>, _ late: Value, _ rest: Rest?) {
        (self.once, self.late, self.rest) = (once, late, rest)
    }

    func ring() {
        rest?.ring()
        once.set(late)
    }
}

/// The time in which a task waits for an alarm. The first end counts.
private final class Rest: AlarmTarget {
    private enum Phase { case created, resting, over }

    private let clock: TaskClock
    private let phase = Mutex(Phase.created)

    init(_ clock: TaskClock) { self.clock = clock }

    func begin() {
        let begins = phase.withLock { phase in
            guard phase == .created else { return false }
            phase = .resting
            return true
        }
        if begins { clock.recordWork(-1) }
    }

    func ring() {
        let ends = phase.withLock { phase in
            defer { phase = .over }
            return phase == .resting
        }
        if ends { clock.recordWork(1) }
    }
}
