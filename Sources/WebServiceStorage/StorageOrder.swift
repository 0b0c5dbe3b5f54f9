package import WebServiceCore

/// Serializes changes to a storage per key; a read waits for earlier changes.
package final class StorageOrder: Sendable {
    private struct Change {
        let id: UInt64
        let task: Task<Void, Never>
    }

    private struct State {
        /// The last change of each key with pending changes; it runs after the earlier ones.
        var byKey: [StorageKey: Change] = [:]
        /// The number of pending changes per key; for `nil`, of changes to all entries.
        var counts: [StorageKey?: Int] = [:]
        /// The last change of all entries.
        var ofAll: Change?
        var lastID: UInt64 = 0

        /// - Parameter key: The key, or `nil` for all entries.
        func before(_ key: StorageKey?) -> [Change] {
            if let key {
                [byKey[key], ofAll].compactMap(\.self)
            } else {
                Array(byKey.values) + [ofAll].compactMap(\.self)
            }
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

    /// The maximum number of pending changes per key or of all entries: each may retain a response
    /// body.
    private static let maximumCount = 64

    private let state = Mutex(State())

    package init() {}

    /// Makes a change after all earlier ones, unless 64 changes to its key are pending.
    ///
    /// - Parameters:
    ///   - key: The key to change, or `nil` for all entries.
    ///   - last: A change that is made once in place of those beyond the limit.
    /// - Throws: `WebServiceError.Code.storage` if the change is not made.
    @discardableResult
    package func change(
        _ key: StorageKey?, orElse last: (@Sendable () async -> Void)? = nil,
        _ work: @escaping @Sendable () async -> Void
    ) throws(WebServiceError) -> Task<Void, Never> {
        let task = state.withLock { state -> Task<Void, Never>? in
            let count = state.counts[key] ?? 0
            if count < Self.maximumCount { return add(work, key, to: &state) }
            if count == Self.maximumCount, let last { add(last, key, to: &state) }
            return nil
        }
        guard let task else {
            throw WebServiceError(
                .storage, "too many changes to one key are pending in the storage; wait for finishStoring()")
        }
        return task
    }

    @discardableResult
    private func add(
        _ work: @escaping @Sendable () async -> Void, _ key: StorageKey?, to state: inout State
    ) -> Task<Void, Never> {
        let before = state.before(key)
        state.lastID += 1
        let id = state.lastID
        let task = Task(executorPreference: WorkCount.current) {
            for change in before { await change.task.value }
            await work()
            self.state.withLock { $0.remove(id, key) }
        }
        state.add(Change(id: id, task: task), key)
        return task
    }

    /// Waits until all changes started so far are complete.
    package func settled(_ key: StorageKey?) async {
        for change in state.withLock({ $0.before(key) }) { await change.task.value }
    }

    /// Waits until all changes started so far are complete, for at most 10 seconds, even in a
    /// cancelled task.
    ///
    /// - Returns: Whether they are complete.
    package func settled(_ clock: TaskClock) async -> Bool {
        await Task(executorPreference: clock.executor) {
            (try? await clock.storageValue { await self.settled(nil) }) != nil  // nil on timeout
        }.value
    }

    /// Makes a change and waits for it, even in a cancelled task.
    ///
    /// - Throws: The error of the change, or `WebServiceError.Code.storage` if the change is not
    ///   complete within 10 seconds, and immediately if too many changes are pending.
    package func makeChange(
        _ key: StorageKey?, _ clock: TaskClock, _ work: @escaping @Sendable () async throws -> Void
    ) async throws {
        let result = Once<Result<Void, any Error>>()
        let body: @Sendable () async -> Void = {
            do { result.set(.success(try await work())) } catch { result.set(.failure(error)) }
        }
        let change = try change(key, orElse: body, body)
        try await Task(executorPreference: clock.executor) {
            try await clock.storageValue { await change.value }
        }.value
        try await result.value.get()
    }
}
