import Foundation

extension TaskClock {
    /// Suspends the Swift task until the delay has passed by this clock.
    ///
    /// - Throws: `CancellationError` as soon as the Swift task is cancelled.
    package func sleep(for delay: Duration) async throws {
        let sleeper = Sleeper()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard sleeper.begin(continuation) else { return }
                let alarm = schedule(after: delay, sleeper)
                if !sleeper.watch(alarm) { cancel(alarm) }
            }
        } onCancel: {
            if let alarm = sleeper.cancel() { cancel(alarm) }
        }
    }
}

/// A suspended Swift task, resumed once: by the clock or by its cancellation.
private final class Sleeper: AlarmTarget {
    private struct State {
        var continuation: CheckedContinuation<Void, any Error>?
        var alarm: Alarm?
        var isOver = false
    }

    private let state = Mutex(State())

    /// - Returns: `false` if the task was cancelled before, so that there is nothing to wait for.
    func begin(_ continuation: CheckedContinuation<Void, any Error>) -> Bool {
        let isOver = state.withLock { state in
            if !state.isOver { state.continuation = continuation }
            return state.isOver
        }
        if isOver { continuation.resume(throwing: CancellationError()) }
        return !isOver
    }

    /// - Returns: `false` if the wait is over, so that the alarm must be cancelled.
    func watch(_ alarm: Alarm) -> Bool {
        state.withLock { state in
            if !state.isOver { state.alarm = alarm }
            return !state.isOver
        }
    }

    package func ring() {
        end()?.continuation?.resume()
    }

    /// - Returns: The alarm that must be cancelled.
    func cancel() -> Alarm? {
        let ended = end()
        ended?.continuation?.resume(throwing: CancellationError())
        return ended?.alarm
    }

    private func end() -> State? {
        state.withLock { state in
            guard !state.isOver else { return nil }
            defer { state = State(isOver: true) }
            return state
        }
    }
}
