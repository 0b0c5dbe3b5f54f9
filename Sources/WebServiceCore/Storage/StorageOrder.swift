/// Brings what a service does with its storages into order: of one key, one change after another, and reads behind them.
final class StorageOrder: Sendable {
    private struct State {
        var changes: [UInt64: (key: StorageKey?, task: Task<Void, Never>)] = [:]
        var last: UInt64 = 0

        /// - Parameter key: `nil` for all.
        func before(_ key: StorageKey?) -> [Task<Void, Never>] {
            changes.values.filter { key == nil || $0.key == nil || $0.key == key }.map(\.task)
        }
    }

    private let state = Mutex(State())

    /// Makes a change behind those that were begun before it.
    ///
    /// - Parameter key: What is changed; `nil` for all.
    @discardableResult
    func change(_ key: StorageKey?, _ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        state.withLock { state in
            let before = state.before(key)
            state.last += 1
            let id = state.last
            let task = Task {
                for change in before { await change.value }
                await work()
                self.state.withLock { _ = $0.changes.removeValue(forKey: id) }
            }
            state.changes[id] = (key, task)
            return task
        }
    }

    /// Returns when the changes that were begun so far are made.
    func settled(_ key: StorageKey?) async {
        for change in state.withLock({ $0.before(key) }) { await change.value }
    }
}

/// Something that is decided once, and who waits for it.
final class Decision: Sendable {
    private struct State {
        var value: Bool?
        var waiter: CheckedContinuation<Bool, Never>?
    }

    private let state = Mutex(State())

    func make(_ value: Bool) {
        let waiter = state.withLock { state in
            state.value = value
            return state.waiter.take()
        }
        waiter?.resume(returning: value)
    }

    /// May be awaited once.
    var value: Bool {
        get async {
            await withCheckedContinuation { continuation in
                let value = state.withLock { state in
                    if state.value == nil { state.waiter = continuation }
                    return state.value
                }
                if let value { continuation.resume(returning: value) }
            }
        }
    }
}
