/// Brings what a service does with its storages into order: of one key, one change after another, and reads behind them.
final class StorageOrder: Sendable {
    private struct Change {
        let id: UInt64
        let task: Task<Void, Never>
    }

    private struct State {
        /// The last change of each key that has any; it stands behind the earlier ones.
        var byKey: [StorageKey: Change] = [:]
        /// How many changes of each key wait; under `nil` those of everything.
        var counts: [StorageKey?: Int] = [:]
        /// The last change of everything.
        var ofAll: Change?
        var lastID: UInt64 = 0

        /// - Parameter key: `nil` for all.
        func before(_ key: StorageKey?) -> [Change] {
            if let key { [byKey[key], ofAll].compactMap(\.self) } else { Array(byKey.values) + [ofAll].compactMap(\.self) }
        }

        mutating func add(_ change: Change, _ key: StorageKey?) {
            counts[key, default: 0] += 1
            if let key { byKey[key] = change } else { ofAll = change }
        }

        mutating func remove(_ id: UInt64, _ key: StorageKey?) {
            if let key, byKey[key]?.id == id { byKey[key] = nil }
            if key == nil, ofAll?.id == id { ofAll = nil }
            if let count = counts[key] { counts[key] = count > 1 ? count - 1 : nil }
        }
    }

    /// How many changes of one key, or of everything, may wait: each may hold the body of a response.
    private static let maximumCount = 64

    private let state = Mutex(State())

    /// Makes a change behind those that were begun before it, unless 64 of its key wait for the storage.
    ///
    /// - Parameters:
    ///   - key: What is changed; `nil` for all.
    ///   - last: A change that is made once in place of those that are too many.
    /// - Throws: ``WebServiceError/Code/storage`` when the change is not made.
    @discardableResult
    func change(
        _ key: StorageKey?, orElse last: (@Sendable () async -> Void)? = nil, _ work: @escaping @Sendable () async -> Void
    ) throws(WebServiceError) -> Task<Void, Never> {
        let task = state.withLock { state -> Task<Void, Never>? in
            let count = state.counts[key] ?? 0
            if count < Self.maximumCount { return add(work, key, to: &state) }
            if count == Self.maximumCount, let last { add(last, key, to: &state) }
            return nil
        }
        guard let task else { throw WebServiceError(.storage, "too many changes of one key wait for the storage") }
        return task
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

    /// Returns when the changes that were begun so far are made, or after 10 seconds, in a cancelled task as well.
    ///
    /// - Returns: Whether they are made.
    func settled(_ clock: TaskClock) async -> Bool {
        await Task { (try? await clock.storageValue { await self.settled(nil) }) != nil }.value  // only the limit throws
    }

    /// Makes a change and waits for it, in a cancelled task as well.
    ///
    /// - Throws: ``WebServiceError/Code/storage`` when it is not made within 10 seconds, and at once where too many changes wait.
    func makeChange(_ key: StorageKey?, _ clock: TaskClock, _ work: @escaping @Sendable () async -> Void) async throws {
        let change = try change(key, orElse: work, work)
        try await Task { try await clock.storageValue { await change.value } }.value
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
