public import Foundation
import WebServiceCore
public import WebServiceStorage

/// A storage that stores responses as bytes in an SQLite database.
///
/// Several storages and several processes may use one file at the same time. The first use opens
/// the database. If necessary, it creates the database and its folder with access only for their
/// owner. A database that was deleted or replaced in the meantime is opened again. If the file is
/// damaged or is not a database of this class, it is renamed with the suffix `.damaged` and
/// replaced by a new one. A damaged entry is removed and reported as missing. The log (`-wal`,
/// `-shm`) and an empty `.lock` file are in the same folder as the database.
///
/// All members may be used from any thread. A read or a write usually takes a few microseconds on
/// the caller's thread. Operations that wait for the disk or for another process run on a queue of
/// the storage, for at most one minute. A forked process opens the database again and runs these
/// operations on the caller's thread. Reads do not wait for writes. A read that begins after a call
/// has returned includes the changes of that call.
///
/// Errors of the database have the code `WebServiceError.Code.storage`, or `entryTooLarge` if an
/// entry is too large for SQLite. Their underlying error is an ``SQLiteError`` or a system error.
/// After most errors, the next call opens the database again.
public final class SQLiteStorage: ResponseStorage {
    /// The accepted classifications; `nil` if any classification is accepted.
    public let classifications: Set<DataClassification>?
    /// The maximum size of all entries and their keys, in bytes; `nil` for no limit.
    public let maximumBytes: Int?
    /// The maximum number of entries; `nil` for no limit.
    public let maximumCount: Int?
    /// The failures that a stored entry survives.
    public let durability: StorageEntry.Durability

    /// A forked process must neither use nor close its parent's connections, so it opens new ones.
    private let pairs: PerProcess<ConnectionPair>
    private var connections: ConnectionPair { pairs.value }
    private var limits: StorageLimits { StorageLimits(bytes: maximumBytes, count: maximumCount) }

    /// The maximum size of an entry that is written on the caller's thread, in bytes.
    private static let mostBytesAtOnce = 256 << 10

    /// Creates a storage without opening the database.
    ///
    /// When `maximumBytes` or `maximumCount` is exceeded, the entries that were written first are
    /// deleted until a tenth of each limit is free. The database reuses the space of deleted
    /// entries. Its file does not shrink, and is larger than the entries. Each additional process
    /// that writes to the same file may exceed both limits by a tenth.
    ///
    /// - Parameters:
    ///   - file: The URL of the database file, which need not exist.
    ///   - classifications: The accepted classifications. Defaults to `nil`, which accepts any.
    ///   - maximumBytes: The maximum size of all entries and their keys, in bytes. Defaults to
    ///     `nil`, which means no limit.
    ///   - maximumCount: The maximum number of entries. Defaults to `nil`, which means no limit.
    ///   - durability: The failures that a stored entry survives. With
    ///     `StorageEntry.Durability.power`, every write waits for the disk. Defaults to
    ///     `StorageEntry.Durability.process`.
    /// - Throws: `WebServiceError.Code.storage` if the URL is not a file URL.
    public convenience init(
        file: URL,
        classifications: Set<DataClassification>? = nil,
        maximumBytes: Int? = nil,
        maximumCount: Int? = nil,
        durability: StorageEntry.Durability = .process
    ) throws {
        try self.init(
            file: file, classifications: classifications, maximumBytes: maximumBytes, maximumCount: maximumCount,
            durability: durability,
            clock: .system, patience: .seconds(60)
        )
    }

    init(
        file: URL, classifications: Set<DataClassification>? = nil, maximumBytes: Int? = nil, maximumCount: Int? = nil,
        durability: StorageEntry.Durability = .process, clock: TaskClock, patience: Duration
    ) throws {
        let path = file.absoluteURL.path
        guard file.isFileURL, !path.isEmpty, !path.utf8.contains(0) else {
            throw WebServiceError(.storage, "the URL of the database must be a file URL; use URL(fileURLWithPath:)")
        }
        self.classifications = classifications
        self.maximumBytes = maximumBytes
        self.maximumCount = maximumCount
        self.durability = durability
        pairs = PerProcess { isForked in
            ConnectionPair(
                files: DatabaseFiles(database: path), durability: durability, clock: clock, patience: patience,
                isForked: isForked)
        }
    }

    deinit {
        close()
    }

    /// Returns the entry for a key, or `nil` if there is none.
    ///
    /// The date of the entry is rounded to whole microseconds.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the database cannot be read or is busy for one
    ///   minute.
    public func entry(for key: StorageKey) async throws -> StorageEntry? {
        let key = key.bytes
        let record: Record?
        if let known = connections.now(connections.reader, { .some(try $0.record(for: key)) }) {
            record = known
        } else {
            record = try await connections.later(connections.reader, "read an entry") { try $0.record(for: key) }
        }
        guard let record else { return nil }
        if let entry = record.entry(for: key) { return entry }
        // A failed removal does not fail the read. The entry remains damaged, and the next read
        // tries again.
        try? await connections.later(connections.writer, "remove a damaged entry") {  // see above
            try $0.remove(key, checksum: record.checksum)
        }
        return nil
    }

    /// Stores an entry, and replaces the previous entry for the same key.
    ///
    /// - Throws: `WebServiceError.Code.entryTooLarge` if the entry alone exceeds ``maximumBytes``
    ///   or the limit of SQLite, or if ``maximumCount`` is less than 1;
    ///   `WebServiceError.Code.storage` if the entry is a value without bytes, or if the database
    ///   cannot be written or is busy for one minute. The previous entry remains.
    public func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        let (key, limits) = (key.bytes, limits)
        guard let record = Record(entry, for: key) else {
            throw WebServiceError(.storage, "a database stores only bytes; use a MemoryStorage for other values")
        }
        let size = key.count + record.data.count
        guard limits.count ?? .max >= 1 else {
            throw WebServiceError(
                .entryTooLarge, "the database accepts no entries; set maximumCount to at least 1, or to nil")
        }
        guard size <= limits.bytes ?? .max else {
            throw WebServiceError(
                .entryTooLarge,
                "an entry of \(size) bytes exceeds the maximum size of the database; increase maximumBytes")
        }
        if durability == .process, size <= Self.mostBytesAtOnce,
            connections.now(connections.writer, { try $0.writeWithinBudget(record, for: key, limits) ? true : nil })
                != nil
        {
            return
        }
        try await connections.later(connections.writer, "store an entry") { try $0.write(record, for: key, limits) }
    }

    /// Removes the entry for a key.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the database cannot be written or is busy for
    ///   one minute.
    public func removeEntry(for key: StorageKey) async throws {
        let key = key.bytes
        if durability == .process, connections.now(connections.writer, { try $0.remove(key) }) != nil { return }
        try await connections.later(connections.writer, "remove an entry") { try $0.remove(key) }
    }

    /// Removes all entries. If an error occurs, no entry is removed.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the database cannot be written or is busy for
    ///   one minute.
    public func removeAll() async throws {
        try await connections.later(connections.writer, "remove all entries") { try $0.removeAll() }
    }

    /// Removes the entries with a classification. If an error occurs, no entry is removed.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the database cannot be written or is busy for
    ///   one minute.
    public func removeEntries(of classification: DataClassification) async throws {
        let prefix = StorageKey.prefix(of: classification)
        try await connections.later(connections.writer, "remove entries") { try $0.removeAll(keysWith: prefix) }
    }

    /// Returns summaries of entries, in the order of the bytes of their keys.
    ///
    /// Damage to an entry's data is not detected.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the database cannot be read or is busy for one
    ///   minute.
    public func summaries(after key: StorageKey?, limit: Int) async throws -> [StorageEntry.Summary] {
        let key = key?.bytes ?? []
        return try await connections.later(connections.reader, "list entries") {
            try $0.summaries(after: key, limit: limit)
        }
    }

    /// Closes the database after the operations in progress have ended. The next use opens it
    /// again.
    ///
    /// The database is also closed when the storage is deallocated.
    public func close() {
        connections.close()
    }
}

extension SQLiteStorage: ErasableStorage {
    /// Closes the database and deletes its files, including its log and the databases that were
    /// renamed because they were damaged.
    package func erase() async throws {
        try await connections.erase()
    }
}
