import WebServiceCore

/// A counter of events on any thread. Swift tasks can wait for a count.
final class Tally: Sendable {
    private typealias Waiter = (count: Int, isReached: Once<Bool>)

    private struct State {
        var count = 0
        var waiters: [Waiter] = []

        mutating func add() -> [Waiter] {
            count += 1
            let met = waiters.filter { $0.count <= count }
            waiters.removeAll { $0.count <= count }
            return met
        }

        /// Adds a waiter, unless its count has already been reached.
        ///
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
        for waiter in state.withLock({ $0.add() }) { waiter.isReached.set(true) }
    }

    /// Waits for the event with the given number, counted from 1.
    ///
    /// - Returns: Whether it occurred within the limit.
    func wait(for count: Int, limit: Duration) async -> Bool {
        let isReached = Once<Bool>()
        guard state.withLock({ $0.enter((count, isReached)) }) else { return true }
        return await TaskClock.system.value(of: isReached, orAfter: limit, false)
    }
}
