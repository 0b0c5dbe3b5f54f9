import Foundation
import WebServiceCore

/// Access to the storage.
extension ResponseCache {
    /// Waits for all earlier changes to a key, and then returns the responses stored under it.
    ///
    /// Returns none if the storage cannot be read or does not respond within its timeout.
    ///
    /// - Throws: `CancellationError`.
    func variants(for key: StorageKey, _ clock: TaskClock) async throws -> CachedVariants {
        do {
            let entry = try await storage.entry(for: key, after: order, clock)
            return entry?.data.flatMap { CachedVariants($0, for: key) } ?? CachedVariants()
        } catch {
            try Task.checkCancellation()
            report(.read, key, error)
            return CachedVariants()
        }
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

    /// Changes the stored responses after all earlier changes, unless the flight has been
    /// overtaken. If too many changes are pending, the stored responses are removed instead.
    ///
    /// - Returns: Whether the change will be made.
    func update(
        _ key: StorageKey, _ flight: CacheFlight, at date: Date,
        _ change: @escaping @Sendable (inout CachedVariants) -> Void
    ) -> Bool {
        queue(.store, key) { [self] in
            guard !flight.isOvertaken else { return }
            let old = await read(key)
            var variants = old ?? CachedVariants()
            change(&variants)
            if variants.responses.isEmpty { return old?.responses.isEmpty == true ? () : await erase(key) }
            do {
                try await storage.store(StorageEntry(.value(variants.data(for: key)), date: date), for: key)
                count(variants.changes)
            } catch {
                report(.store, key, error)
                await erase(key)  // the stored entry is older than the response already delivered
            }
        }
    }

    /// Removes the responses stored under a key. Responses to requests in flight are not stored.
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
        do { try await storage.removeEntry(for: key) } catch { report(.remove, key, error) }
    }

    /// - Parameter key: The key to remove, or `nil` for all.
    func removal(of key: StorageKey?) async throws {
        overtake(key)
        let result = Once<Result<Void, any Error>>()
        try await order.makeChange(key, clock ?? .system) { [self] in
            do {
                if let key { try await storage.removeEntry(for: key) } else { try await storage.removeAll() }
                result.set(.success(()))
            } catch {
                report(.remove, key, error)
                result.set(.failure(error))
            }
        }
        try await result.value.get()
    }

    private func report(_ operation: StorageEntry.Failure.Operation, _ key: StorageKey?, _ error: any Error) {
        state.withLock { $0.statistics.storageFailures += 1 }
        observer?(StorageEntry.Failure(operation: operation, key: key, storage: storage, error: error))
    }
}
