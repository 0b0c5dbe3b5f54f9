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
        let alarm = schedule(after: delay) { once.set(late) }
        defer { cancel(alarm) }
        return await once.value
    }

    /// Runs an operation and returns its value, unless the operation exceeds a limit on this clock.
    ///
    /// An operation that exceeds the limit is cancelled, and its value is discarded.
    ///
    /// - Returns: The value, or `nil` if the limit was exceeded.
    /// - Throws: The error of the operation, or `CancellationError` as soon as the Swift task is
    ///   cancelled.
    package func value<Value: Sendable>(
        within limit: Duration, of operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        try Task.checkCancellation()
        let end = Once<Result<Value?, any Error>>()
        let executor = executor
        // The limit ends the wait in a separate task: if all threads are busy, an operation that
        // also waits for a thread runs first.
        let alarm = schedule(after: limit) { Task(executorPreference: executor) { end.set(.success(nil)) } }
        defer { cancel(alarm) }
        let task = Task(executorPreference: executor) {
            do { end.set(.success(try await operation())) } catch { end.set(.failure(error)) }
        }
        defer { task.cancel() }
        return try await withTaskCancellationHandler {
            try await end.value.get()
        } onCancel: {
            end.set(.failure(CancellationError()))
        }
    }
}
