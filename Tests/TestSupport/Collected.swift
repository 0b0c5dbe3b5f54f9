import WebServiceCore

/// A thread-safe list of the values that handlers add, in order. Tests wait for values without
/// sleeping.
package final class Collected<Value: Sendable>: Sendable {
    private struct State {
        var values: [Value] = []
        var waiters: [(count: Int, continuation: CheckedContinuation<Int, Never>)] = []
    }

    private let state = Mutex(State())

    package init() {}

    package var values: [Value] { state.withLock { $0.values } }

    package func add(_ value: Value) {
        let (ready, count) = state.withLock { state in
            state.values.append(value)
            let count = state.values.count
            let ready = state.waiters.filter { $0.count <= count }
            state.waiters.removeAll { $0.count <= count }
            return (ready, count)
        }
        for waiter in ready { waiter.continuation.resume(returning: count) }
    }

    package func removeAll() {
        let removed = state.withLock { state in
            defer { state.values = [] }
            return state.values
        }
        withExtendedLifetime(removed) {}  // values are deallocated outside the lock
    }

    /// Waits until the list contains at least `count` values, and returns the values until then.
    @discardableResult
    package func wait(for count: Int = 1) async -> [Value] {
        let reached = await withCheckedContinuation { continuation in
            let reached = state.withLock { state -> Int? in
                if state.values.count >= count { return state.values.count }
                state.waiters.append((count, continuation))
                return nil
            }
            if let reached { continuation.resume(returning: reached) }
        }
        // Under the lock, because the thread sanitizer does not see the order of a continuation
        // that is resumed before its task suspends.
        return Array(values.prefix(reached))
    }
}

/// An object that calls a closure when it is deallocated.
package final class Canary: Sendable {
    private let onDeinit: @Sendable () -> Void
    package init(_ onDeinit: @escaping @Sendable () -> Void) { self.onDeinit = onDeinit }
    deinit { onDeinit() }
    package func touch() {}
}
