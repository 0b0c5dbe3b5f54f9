package import WebServiceCore

/// A storage for successful responses.
///
/// Use ``MemoryStorage``, ``FileStorage``, `SQLiteStorage`, or a custom type.
///
/// A service has an ordered list of storages (`WebService.storages`). The first storage that
/// supports a request and its classification stores the response. The other storages are not called
/// for the request. A service executes the operations on one key in order, so a read after a write
/// returns the written entry. Operations on different keys, and operations of different services,
/// run concurrently. Every member may therefore be called from any thread at any time.
///
/// A storage error never fails a request that is sent. The service passes the error to
/// `WebService.storageErrorObserver`.
///
/// A service and a `ResponseCache` wait at most 10 seconds for an entry, including the time for
/// earlier changes to its key. After that, the read fails with `WebServiceError.Code.storage`.
/// Their methods that remove entries also throw this error after 10 seconds. In that case, the
/// entries are removed when the storage responds again. At most 64 changes to one key may be
/// pending. Beyond this limit, a response is not stored, and this error is reported as a failure. A
/// removal throws this error immediately.
public protocol ResponseStorage: Sendable {
    /// The accepted classifications; `nil` if any classification is accepted. Defaults to `nil`.
    var classifications: Set<DataClassification>? { get }

    /// Returns whether responses to the request can be stored, regardless of their classification.
    ///
    /// Defaults to `true` for requests whose responses have a byte representation
    /// (``RawStorableRequest`` and ``ValueStorableRequest``), and to `false` for others.
    func supports(_ request: any StorableRequest) -> Bool

    /// Returns the entry for a key.
    ///
    /// - Returns: `nil` if there is no entry. A damaged entry counts as absent and is removed.
    /// - Throws: Any error that prevents reading.
    func entry(for key: StorageKey) async throws -> StorageEntry?

    /// Stores an entry, and replaces the previous entry for the same key.
    ///
    /// When the method returns, the entry is stored.
    ///
    /// - Throws: Any error that prevents storing. In that case, the previous entry remains.
    func store(_ entry: StorageEntry, for key: StorageKey) async throws

    /// Removes the entry for a key. It is not an error if there is no entry.
    func removeEntry(for key: StorageKey) async throws

    /// Removes all entries of this storage.
    func removeAll() async throws

    /// Removes the entries whose keys have the classification (``StorageKey/isOf(_:)``).
    ///
    /// If the storage accepts only this classification, the default implementation calls
    /// ``removeAll()``. Otherwise, it throws an error with the code `WebServiceError.Code.storage`.
    func removeEntries(of classification: DataClassification) async throws

    /// Returns summaries of entries without their contents, in an order that the storage defines.
    /// The call does not count as a use of the entries.
    ///
    /// An entry that is stored or removed between two calls may be omitted or listed. The default
    /// implementation throws an error with the code `WebServiceError.Code.storage`.
    ///
    /// - Parameters:
    ///   - key: The key after which the list begins, or `nil` to begin with the first entry. The
    ///     entry for the key may have been removed.
    ///   - limit: The maximum number of summaries.
    /// - Returns: The summaries, or an empty array if there are no further entries.
    /// - Throws: Any error that prevents reading.
    func summaries(after key: StorageKey?, limit: Int) async throws -> [StorageEntry.Summary]
}

extension ResponseStorage {
    /// `nil`. Any classification is accepted.
    public var classifications: Set<DataClassification>? { nil }

    /// Removes all entries if the storage accepts only this classification.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the storage accepts other classifications, or
    ///   any error of ``removeAll()``.
    public func removeEntries(of classification: DataClassification) async throws {
        guard classifications == [classification] else {
            throw WebServiceError(
                .storage,
                "a storage that accepts several classifications must implement removeEntries(of:)")
        }
        try await removeAll()
    }

    /// Throws `WebServiceError.Code.storage`, because the storage cannot list its entries.
    public func summaries(after key: StorageKey?, limit: Int) async throws -> [StorageEntry.Summary] {
        throw WebServiceError(.storage, "the storage cannot list its entries; implement summaries(after:limit:)")
    }

    /// Returns whether responses to the request have a byte representation.
    public func supports(_ request: any StorableRequest) -> Bool {
        request is any RawStorableRequest || request is any ValueStorableRequest
    }

    /// Reads an entry after all earlier changes to its key, within 10 seconds.
    ///
    /// - Throws: `WebServiceError.Code.storage` after 10 seconds; any error of the storage; or
    ///   `CancellationError`.
    package func entry(for key: StorageKey, after order: StorageOrder, _ clock: TaskClock) async throws -> StorageEntry?
    {
        try await clock.storageValue {
            await order.settled(key)
            return try await self.entry(for: key)
        }
    }

    /// Lists entries within 10 seconds.
    ///
    /// - Throws: `WebServiceError.Code.storage` after 10 seconds; any error of the storage; or
    ///   `CancellationError`.
    package func summaries(
        after key: StorageKey?, limit: Int, _ clock: TaskClock
    ) async throws -> [StorageEntry.Summary] {
        try await clock.storageValue { try await self.summaries(after: key, limit: limit) }
    }

    /// Returns whether this storage stores the responses to the request.
    package func isFor(_ request: any StorableRequest) -> Bool {
        classifications?.contains(request.dataClassification) ?? true && supports(request)
    }
}

/// A storage that can remove more data than its entries.
package protocol ErasableStorage: ResponseStorage {
    /// Removes all data of the storage, including traces of removed entries, such as those in logs.
    func erase() async throws
}

extension ResponseStorage {
    /// Removes all data of the storage.
    package func eraseAll() async throws {
        if let storage = self as? any ErasableStorage { try await storage.erase() } else { try await removeAll() }
    }
}

extension TaskClock {
    /// Waits at most 10 seconds for an operation of a storage.
    ///
    /// - Throws: `WebServiceError.Code.storage` after 10 seconds; any error of the operation; or
    ///   `CancellationError`.
    package func storageValue<Value: Sendable>(
        _ operation: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let value = try await value(within: .seconds(10), of: operation)
        guard let value else {
            throw WebServiceError(.storage, "the storage did not respond within 10 seconds; try again later")
        }
        return value
    }
}

extension StorageEntry {
    /// The guarantee for a stored entry.
    public enum Durability: Sendable, Hashable {
        /// A stored entry survives the end of the process at any time, including `SIGKILL`. The
        /// system decides when to write the entry to the disk. A power failure can lose the last
        /// entries, but never leaves a partial entry.
        case process
        /// A stored entry also survives a power failure, because it is written to the disk
        /// (`fsync`) before `store(_:for:)` returns. This takes milliseconds.
        case power
    }
}
