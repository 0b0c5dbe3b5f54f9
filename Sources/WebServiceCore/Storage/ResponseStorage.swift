/// Where successful answers are kept: ``MemoryStorage``, ``FileStorage``, `SQLiteStorage`, or a type of your own.
///
/// A service has an ordered list of them (``WebService/storages``). The first one that supports a request and its classification keeps its answer;
/// the others never hear of it. What a service does with one key happens one after another, so a read that follows a write sees it.
/// Different keys, and calls that do not come from one service, meet: every member may be called from any thread at any time.
///
/// What a storage throws never fails a request: the service hands it to ``WebService/storageErrorObserver``.
///
/// A storage may take its time, but a service and a ``ResponseCache`` wait at most 10 seconds until an entry is read, earlier changes of its
/// key included: then the read has failed with ``WebServiceError/Code/storage``. Their methods that remove entries throw
/// the same error after 10 seconds; the entries are removed when the storage continues. Of one key, at most 64 changes
/// wait for the storage; later responses are not stored, which is reported as such a failure as well, and later removals
/// throw it at once.
public protocol ResponseStorage: Sendable {
    /// What kinds of data belong here; `nil` for any. Left out, it is `nil`.
    var classifications: Set<DataClassification>? { get }

    /// Whether answers to the request can be kept here, whatever their kind. Left out, it is so for requests whose answers become bytes:
    /// ``RawStorableRequest`` and ``ValueStorableRequest``.
    func supports(_ request: any StorableRequest) -> Bool

    /// The entry of a key.
    ///
    /// - Returns: `nil` when there is none. An entry that is damaged counts as none, and is removed.
    /// - Throws: Whatever kept the storage from looking.
    func entry(for key: StorageKey) async throws -> StorageEntry?

    /// Keeps an entry in place of the one of the same key. When this returns, the entry is there.
    ///
    /// - Throws: Whatever kept the storage from it; then the old entry is still there.
    func store(_ entry: StorageEntry, for key: StorageKey) async throws

    /// Removes the entry of a key; that there is none is no error.
    func removeEntry(for key: StorageKey) async throws

    /// Removes everything that this storage keeps.
    func removeAll() async throws
}

extension ResponseStorage {
    /// Any kind.
    public var classifications: Set<DataClassification>? { nil }

    /// Whether the answers become bytes.
    public func supports(_ request: any StorableRequest) -> Bool {
        request is any RawStorableRequest || request is any ValueStorableRequest
    }

    /// Reads an entry after the changes that were begun before, within 10 seconds.
    ///
    /// - Throws: ``WebServiceError/Code/storage`` after that; what the storage throws; `CancellationError`.
    func entry(for key: StorageKey, after order: StorageOrder, _ clock: TaskClock) async throws -> StorageEntry? {
        try await clock.storageValue {
            await order.settled(key)
            return try await self.entry(for: key)
        }
    }

    /// Whether answers to the request are kept here.
    func isFor(_ request: any StorableRequest) -> Bool {
        classifications?.contains(request.dataClassification) ?? true && supports(request)
    }
}

extension TaskClock {
    /// Waits for a storage, 10 seconds at most.
    ///
    /// - Throws: ``WebServiceError/Code/storage`` after that; what the operation throws; `CancellationError`.
    func storageValue<Value: Sendable>(_ operation: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let value = try await value(within: .seconds(10), of: operation)
        guard let value else { throw WebServiceError(.storage, "the storage did not respond within 10 seconds") }
        return value
    }
}

/// What a promise that something is stored is good for.
public enum StorageDurability: Sendable, Hashable {
    /// A stored entry survives the end of the process at any moment, `SIGKILL` included. The system writes it to the disk when it likes: a power failure
    /// can cost the last entries, but never leaves half of one.
    case process
    /// A stored entry survives a power failure as well: the disk is asked to write it (`fsync`) before the storage says that it is stored. That takes
    /// milliseconds.
    case power
}
