package import WebServiceCore

/// A queue that serializes changes to a storage per key. A read waits for earlier changes.
package final class StorageOrder: Sendable {
    private struct Change {
        let id: UInt64
        let task: Task<Void, Never>
    }

    /// The entries that a change concerns.
    private struct Subject: Hashable {
        /// The key, or `nil` for all entries.
        let key: StorageKey?
        /// The name of the entries if there is no key.
        let name: String
    }

    private struct State {
        /// The last change of each key with pending changes. It runs after the earlier changes.
        var byKey: [StorageKey: Change] = [:]
        /// The number of pending changes per subject.
        var counts: [Subject: Int] = [:]
        /// The last change to all entries.
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

        mutating func add(_ change: Change, _ subject: Subject) {
            counts[subject, default: 0] += 1
            if let key = subject.key { byKey[key] = change } else { ofAll = change }
        }

        mutating func remove(_ id: UInt64, _ subject: Subject) {
            if let key = subject.key, byKey[key]?.id == id { byKey[key] = nil }
            if subject.key == nil, ofAll?.id == id { ofAll = nil }
            if let count = counts[subject] { counts[subject] = count > 1 ? count - 1 : nil }
        }
    }

    /// The maximum number of pending changes per subject. There is a limit because each change may
    /// retain a response body.
    private static let maximumCount = 64

    private let state = Mutex(State())

    package init() {}

    /// Makes a change after all earlier changes, unless 64 changes to the same entries are pending.
    ///
    /// - Parameters:
    ///   - key: The key to change, or `nil` for all entries.
    ///   - name: If there is no key, a name that is equal only for changes with the same effect.
    ///     Defaults to an empty string.
    ///   - last: A change that is made once instead of all changes beyond the limit.
    /// - Throws: `WebServiceError.Code.storage` if the change is not made.
    @discardableResult
    package func change(
        _ key: StorageKey?, named name: String = "", orElse last: (@Sendable () async -> Void)? = nil,
        _ work: @escaping @Sendable () async -> Void
    ) throws(WebServiceError) -> Task<Void, Never> {
        let subject = Subject(key: key, name: name)
        let task = state.withLock { state -> Task<Void, Never>? in
            let count = state.counts[subject] ?? 0
            if count < Self.maximumCount { return add(work, subject, to: &state) }
            if count == Self.maximumCount, let last { add(last, subject, to: &state) }
            return nil
        }
        guard let task else {
            throw WebServiceError(
                .storage, "too many changes to the same entries are pending in the storage; wait for finishStoring()")
        }
        return task
    }

    @discardableResult
    private func add(
        _ work: @escaping @Sendable () async -> Void, _ subject: Subject, to state: inout State
    ) -> Task<Void, Never> {
        let before = state.before(subject.key)
        state.lastID += 1
        let id = state.lastID
        let task = Task(executorPreference: WorkCount.current) {
            for change in before { await change.task.value }
            await work()
            self.state.withLock { $0.remove(id, subject) }
        }
        state.add(Change(id: id, task: task), subject)
        return task
    }

    /// Waits until all changes to a key, or to all entries, that were started before the call are
    /// complete.
    package func settled(_ key: StorageKey?) async {
        for change in state.withLock({ $0.before(key) }) { await change.task.value }
    }

    /// Waits until all changes that were started before the call are complete, for at most 10
    /// seconds. Also waits if the task is cancelled.
    ///
    /// - Returns: Whether the changes are complete.
    package func settled(_ clock: TaskClock) async -> Bool {
        await Task(executorPreference: clock.executor) {
            (try? await clock.storageValue { await self.settled(nil) }) != nil  // nil on timeout
        }.value
    }

    /// Makes a change and waits for it. Also waits if the task is cancelled.
    ///
    /// - Throws: The error of the change, or `WebServiceError.Code.storage` if the change is not
    ///   complete within 10 seconds. If too many changes are pending, this error is thrown
    ///   immediately.
    package func makeChange(
        _ key: StorageKey?, named name: String = "", _ clock: TaskClock,
        _ work: @escaping @Sendable () async throws -> Void
    ) async throws {
        let result = Once<Result<Void, any Error>>()
        let body: @Sendable () async -> Void = {
            do { result.set(.success(try await work())) } catch { result.set(.failure(error)) }
        }
        let change = try change(key, named: name, orElse: body, body)
        try await Task(executorPreference: clock.executor) {
            try await clock.storageValue { await change.value }
        }.value
        try await result.value.get()
    }
}
