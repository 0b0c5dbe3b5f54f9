/// Brings what a service does with its storages into order: of one key, one change after another, and reads behind them.
final class StorageOrder: Sendable {
    private struct Change {
        let id: UInt64
        let task: Task<Void, Never>
    }

    private struct State {
        /// The last change of each key that has any; it stands behind the earlier ones.
        var byKey: [StorageKey: Change] = [:]
        /// How many changes of each key wait, those of everything aside.
        var counts: [StorageKey: Int] = [:]
        /// The last change of everything.
        var ofAll: Change?
        var lastID: UInt64 = 0

        /// - Parameter key: `nil` for all.
        func before(_ key: StorageKey?) -> [Change] {
            if let key { [byKey[key], ofAll].compactMap(\.self) } else { Array(byKey.values) + [ofAll].compactMap(\.self) }
        }

        mutating func add(_ change: Change, _ key: StorageKey?) {
            guard let key else { return ofAll = change }
            byKey[key] = change
            counts[key, default: 0] += 1
        }

        mutating func remove(_ id: UInt64, _ key: StorageKey?) {
            if let key, byKey[key]?.id == id { byKey[key] = nil }
            if key == nil, ofAll?.id == id { ofAll = nil }
            if let key, let count = counts[key] { counts[key] = count > 1 ? count - 1 : nil }
        }
    }

    /// How many changes of one key may wait: each may hold the body of a response.
    private static let maximumCount = 64

    private let state = Mutex(State())

    /// Makes a change behind those that were begun before it.
    ///
    /// - Parameter key: What is changed; `nil` for all.
    @discardableResult
    func change(_ key: StorageKey?, _ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        state.withLock { add(work, key, to: &$0) }
    }

    /// Makes a change of a key, unless 64 of them wait for the storage.
    ///
    /// - Parameter last: A change that is made once in place of those that are too many.
    /// - Throws: ``WebServiceError/Code/storage`` when the change is not made.
    func changeWithinLimit(
        _ key: StorageKey, orElse last: (@Sendable () async -> Void)? = nil, _ work: @escaping @Sendable () async -> Void
    ) throws(WebServiceError) {
        let isMade = state.withLock { state in
            let count = state.counts[key] ?? 0
            let isPossible = count < Self.maximumCount
            if isPossible { add(work, key, to: &state) } else if count == Self.maximumCount, let last { add(last, key, to: &state) }
            return isPossible
        }
        guard isMade else { throw WebServiceError(.storage, "too many changes of one key wait for the storage") }
    }

    @discardableResult
    private func add(_ work: @escaping @Sendable () async -> Void, _ key: StorageKey?, to state: inout State) -> Task<Void, Never> {
        let before = state.before(key)
        state.lastID += 1
        let id = state.lastID
        let task = Task {
            for change in before { await change.task.value }
            await work()
            self.state.withLock { $0.remove(id, key) }
        }
        state.add(Change(id: id, task: task), key)
        return task
    }

    /// Returns when the changes that were begun so far are made.
    func settled(_ key: StorageKey?) async {
        for change in state.withLock({ $0.before(key) }) { await change.task.value }
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
