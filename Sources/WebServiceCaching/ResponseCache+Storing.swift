import Foundation
import WebServiceCore
import WebServiceStorage

/// Access to the storage.
extension ResponseCache {
    /// Waits for all earlier changes to a key. Then returns the stored response that matches a
    /// request, and whether one of its groups was invalidated.
    ///
    /// Returns `nil` if no stored response matches, or if the storage cannot be read or does not
    /// respond within its timeout.
    ///
    /// - Throws: `CancellationError`.
    func response(
        for key: StorageKey, matching request: Request, _ clock: TaskClock
    ) async throws -> (stored: CachedResponse, isInvalidated: Bool)? {
        do {
            return try await clock.storageValue { [self] in
                await order.settled(key)
                guard let variants = try await storage.entry(for: key)?.data.flatMap({ CachedVariants($0, for: key) }),
                    let stored = variants.match(request)
                else { return nil }
                return (stored, try await isInvalidated(stored, key.account, after: order))
            }
        } catch {
            try Task.checkCancellation()
            report(.read, key, error)
            return nil
        }
    }

    /// Returns whether at least one group of a stored response was invalidated.
    func isInvalidated(
        _ stored: CachedResponse, _ account: String?, after order: StorageOrder?
    ) async throws -> Bool {
        try await isInvalidated(
            stored.groups, of: stored.origin, [account], requestTime: stored.requestTime, in: storage, after: order)
    }

    /// Removes the responses that belong to an invalidated group. If they were stored again, they
    /// could outlast the entry that invalidates them.
    private func removeInvalidated(from variants: inout CachedVariants, _ key: StorageKey) async {
        var positions: Set<Int> = []
        for (position, response) in variants.responses.enumerated() {
            do {
                let isInvalid = try await isInvalidated(response, key.account, after: nil)
                if isInvalid { positions.insert(position) }
            } catch {
                report(.read, key, error)
                positions.insert(position)
            }
        }
        variants.remove(at: positions)
    }

    /// - Returns: `nil` if the storage cannot be read and may contain an entry.
    private func read(_ key: StorageKey) async -> CachedVariants? {
        do {
            guard let entry = try await storage.entry(for: key) else { return CachedVariants() }
            return entry.data.flatMap { CachedVariants($0, for: key) }
        } catch {
            report(.read, key, error)
            return nil
        }
    }

    /// Changes the stored responses after all earlier changes. If the flight has been overtaken,
    /// the change is not made. If too many changes are pending, the stored responses are removed
    /// instead.
    ///
    /// - Parameters:
    ///   - draft: The body that the change refers to. If it cannot be published, the change is not
    ///     made. Defaults to `nil`, which means that the body is in memory.
    ///   - onRefusal: Called with the reason why the draft cannot be published.
    /// - Returns: Whether the change has been scheduled.
    func update(
        _ key: StorageKey, _ flight: CacheFlight, at date: Date, with draft: BodyDraft? = nil,
        onRefusal: @escaping @Sendable (CacheRefusal) -> Void = { _ in },
        _ change: @escaping @Sendable (inout CachedVariants) -> Void
    ) -> Bool {
        queue(.store, key) { [self] in
            guard !flight.isOvertaken else { return draft?.discard() ?? () }
            do throws(CacheRefusal) { try await draft?.publish() } catch { return onRefusal(error) }
            defer { draft?.close() }  // unlocks the file after the response has been stored
            let old = await read(key)
            var variants = old ?? CachedVariants()
            change(&variants)
            await removeInvalidated(from: &variants, key)
            let files = await write(variants, insteadOf: old, key, at: date)
            guard let bodies else { return }
            var unused = old?.files ?? []
            if let draft { unused.insert(draft.file.name) }
            bodies.remove(unused.subtracting(files))
            guard let draft, files.contains(draft.file.name) else { return }
            count((0, await bodies.makeRoom(for: draft.file)))
        }
    }

    /// Stores the responses for a key, or removes the entry if there are no responses.
    ///
    /// - Returns: The names of the files that the entry refers to.
    private func write(
        _ variants: CachedVariants, insteadOf old: CachedVariants?, _ key: StorageKey, at date: Date
    ) async -> Set<String> {
        if variants.responses.isEmpty {
            if old?.responses.isEmpty != true { await eraseEntry(key) }
            return []
        }
        do {
            try await storage.store(StorageEntry(.value(variants.data(for: key)), date: date), for: key)
            count(variants.changes)
            // An invalidation may have been stored in the meantime.
            var valid = variants
            await removeInvalidated(from: &valid, key)
            if valid.responses.count == variants.responses.count { return variants.files }
        } catch {
            report(.store, key, error)
        }
        await eraseEntry(key)  // the stored entry is older than the response already delivered
        return []
    }

    /// Removes the responses stored for a key. Responses to requests in flight are not stored.
    func invalidate(_ key: StorageKey) {
        overtake(key)
        queue(.remove, key) { [self] in await erase(key) }
    }

    @discardableResult
    private func queue(
        _ operation: StorageEntry.Failure.Operation, _ key: StorageKey, _ work: @escaping @Sendable () async -> Void
    ) -> Bool {
        do throws(WebServiceError) {
            try order.change(key, orElse: { [self] in await erase(key) }, work)
            return true
        } catch {
            report(operation, key, error)
            return false
        }
    }

    private func erase(_ key: StorageKey) async {
        let files = await files(of: key)
        await eraseEntry(key)
        bodies?.remove(files)
    }

    private func eraseEntry(_ key: StorageKey) async {
        do { try await storage.removeEntry(for: key) } catch { report(.remove, key, error) }
    }

    /// Returns the names of the files that an entry refers to.
    private func files(of key: StorageKey) async -> Set<String> {
        bodies == nil ? [] : await read(key)?.files ?? []
    }

    /// - Parameter key: The key whose responses are removed, or `nil` for all keys.
    func removal(of key: StorageKey?) async throws {
        overtake(key)
        try await order.makeChange(key, clock ?? .system) { [self] in
            do {
                if let key {
                    let files = await files(of: key)
                    try await storage.removeEntry(for: key)
                    bodies?.remove(files)
                } else {
                    try await storage.removeAll()
                    try await bodies?.removeAll()
                }
            } catch {
                report(.remove, key, error)
                throw error
            }
        }
    }

    /// - Parameter other: The storage that failed, if it is not the storage of the cache.
    func report(
        _ operation: StorageEntry.Failure.Operation, _ key: StorageKey?, _ error: any Error,
        in other: (any ResponseStorage)? = nil
    ) {
        state.withLock { $0.statistics.storageFailures += 1 }
        observer?(StorageEntry.Failure(operation: operation, key: key, storage: other ?? storage, error: error))
    }
}
