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

extension TaskClock {
    /// Runs an operation and returns its value, unless it exceeds the limit on this clock.
    ///
    /// An operation that has not finished by then is cancelled, and its value is discarded.
    ///
    /// - Returns: The value, or `nil` if the limit was exceeded.
    /// - Throws: The error of the operation, or `CancellationError` as soon as the Swift task is
    ///   cancelled.
    func value<Value: Sendable>(
        within limit: Duration, of operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        let race = Race<Value>(self)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { race.begin($0, limit, operation) }
        } onCancel: {
            race.end(.failure(CancellationError()))
        }
    }
}

/// A race between an operation and the alarm of its limit. The first to end determines the result.
private final class Race<Value: Sendable>: AlarmTarget {
    private struct State {
        var continuation: CheckedContinuation<Value?, any Error>?
        var alarm: Alarm?
        var task: Task<Void, Never>?
        var isOver = false
    }

    private let clock: TaskClock
    private let state = Mutex(State())

    init(_ clock: TaskClock) { self.clock = clock }

    func begin(
        _ continuation: CheckedContinuation<Value?, any Error>, _ limit: Duration,
        _ operation: @escaping @Sendable () async throws -> Value
    ) {
        let isOver = state.withLock { state in
            if !state.isOver { state.continuation = continuation }
            return state.isOver
        }
        guard !isOver else { return continuation.resume(throwing: CancellationError()) }
        let alarm = clock.schedule(after: limit, self)
        let task = Task(executorPreference: clock.executor) { [self] in
            let result: Result<Value?, any Error>
            do { result = .success(try await operation()) } catch { result = .failure(error) }
            end(result)
        }
        let hasEnded = state.withLock { state in
            if !state.isOver { (state.alarm, state.task) = (alarm, task) }
            return state.isOver
        }
        guard hasEnded else { return }
        clock.cancel(alarm)
        task.cancel()
    }

    func ring() {
        // In a separate task: if all threads are busy, an operation that also waits for a thread
        // runs first.
        Task(executorPreference: clock.executor) { [self] in end(.success(nil)) }
    }

    func end(_ result: Result<Value?, any Error>) {
        let ended = state.withLock { state -> State? in
            guard !state.isOver else { return nil }
            defer { state = State(isOver: true) }
            return state
        }
        guard let ended else { return }
        if let alarm = ended.alarm { clock.cancel(alarm) }
        ended.task?.cancel()
        ended.continuation?.resume(with: result)
    }
}
