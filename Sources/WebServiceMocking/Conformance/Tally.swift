import WebServiceCore

/// Counts events from any thread. Swift tasks can wait for a count.
final class Tally: Sendable {
    private struct State {
        var count = 0
        var waiters: [Waiter] = []

        mutating func add() -> [Waiter] {
            count += 1
            let met = waiters.filter { $0.count <= count }
            waiters.removeAll { $0.count <= count }
            return met
        }

        /// - Returns: Whether the count has yet to be reached.
        mutating func enter(_ waiter: Waiter) -> Bool {
            guard count < waiter.count else { return false }
            waiters.append(waiter)
            return true
        }
    }

    private let state = Mutex(State())

    var count: Int { state.withLock { $0.count } }

    func add() {
        for waiter in state.withLock({ $0.add() }) { waiter.end(true) }
    }

    /// Waits for the event with that number.
    ///
    /// - Returns: Whether it occurred within the limit.
    func wait(for count: Int, limit: Duration) async -> Bool {
        await withCheckedContinuation { continuation in
            let waiter = Waiter(count, continuation)
            guard state.withLock({ $0.enter(waiter) }) else { return waiter.end(true) }
            waiter.watch(TaskClock.system.schedule(after: limit, waiter))
        }
    }
}

/// A Swift task that waits for a count. Its continuation is resumed once.
private final class Waiter: AlarmTarget {
    let count: Int
    private let state: Mutex<(continuation: CheckedContinuation<Bool, Never>?, alarm: Alarm?)>

    init(_ count: Int, _ continuation: CheckedContinuation<Bool, Never>) {
        self.count = count
        state = Mutex((continuation, nil))
    }

    /// Stores the alarm, which is cancelled when the wait ends.
    func watch(_ alarm: Alarm) {
        let isOver = state.withLock { state in
            state.alarm = alarm
            return state.continuation == nil
        }
        if isOver { TaskClock.system.cancel(alarm) }
    }

    func ring() {
        end(false)
    }

    func end(_ hasCome: Bool) {
        let (continuation, alarm) = state.withLock { state in
            defer { state = (nil, nil) }
            return state
        }
        if let alarm { TaskClock.system.cancel(alarm) }
        continuation?.resume(returning: hasCome)
    }
}
