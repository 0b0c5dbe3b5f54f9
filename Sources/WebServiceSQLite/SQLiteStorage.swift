public import Foundation
public import WebServiceCore

/// Keeps answers in a database of SQLite, as bytes.
///
/// Several storages and several processes may use one file at the same time. It is opened at the first use, made with its folder where it is not, for
/// nobody else to read, and opened again where it was deleted or replaced meanwhile. A damaged file, or one that is no database of this class, is moved
/// aside to its name and `.damaged`, and a new one is begun; a damaged entry counts as none and is removed. Beside the file lie its log (`-wal`, `-shm`)
/// and an empty `.lock`.
///
/// All members may be used from any thread. A read or a write is done at once on the thread of the caller, some microseconds; what waits for the
/// disk or for another process does so on a queue of the storage, for a minute at most (in a forked process, which opens the database anew, on the thread of the
/// caller). Reads do not wait for writes. When a call returns, reads that begin afterwards see
/// what it did.
///
/// Errors are of the code `WebServiceError.Code.storage`; the underlying error is an ``SQLiteError`` or the system's. After one the database is opened
/// again by the next call.
public final class SQLiteStorage: ResponseStorage {
    /// What kinds of data belong here; `nil` for any.
    public let classifications: Set<DataClassification>?
    /// How many bytes all entries may take, keys included; `nil` for any number.
    public let maximumBytes: Int?
    /// How many entries there may be; `nil` for any number.
    public let maximumCount: Int?
    /// What a stored entry survives.
    public let durability: StorageDurability

    /// A forked process opens connections of its own: SQLite's must not be used there, nor closed.
    private let pairs: PerProcess<ConnectionPair>
    private var connections: ConnectionPair { pairs.value }
    private var limits: StorageLimits { StorageLimits(bytes: maximumBytes, count: maximumCount) }

    /// An entry that is longer is not written on the thread of the caller.
    private static let mostBytesAtOnce = 256 << 10

    /// Nothing is opened yet.
    ///
    /// When there is more than the limits allow, the entries written longest ago are deleted until a tenth is free. The database uses their place again;
    /// its file does not get shorter, and has some parts besides the entries. Other processes that write to the same file can pass the limits by a tenth
    /// each.
    ///
    /// - Parameters:
    ///   - file: Where the database is or will be.
    ///   - classifications: What kinds of data belong here; `nil` for any.
    ///   - maximumBytes: How many bytes all entries may take, keys included; `nil` for any number.
    ///   - maximumCount: How many entries there may be; `nil` for any number.
    ///   - durability: What a stored entry survives. With `StorageDurability.power` every write waits for the disk.
    /// - Throws: `WebServiceError.Code.storage` when the URL is not of a file.
    public convenience init(
        file: URL,
        classifications: Set<DataClassification>? = nil,
        maximumBytes: Int? = nil,
        maximumCount: Int? = nil,
        durability: StorageDurability = .process
    ) throws {
        try self.init(
            file: file, classifications: classifications, maximumBytes: maximumBytes, maximumCount: maximumCount, durability: durability,
            clock: .system, patience: .seconds(60)
        )
    }

    init(
        file: URL, classifications: Set<DataClassification>? = nil, maximumBytes: Int? = nil, maximumCount: Int? = nil,
        durability: StorageDurability = .process, clock: TaskClock, patience: Duration
    ) throws {
        let path = file.absoluteURL.path
        guard file.isFileURL, !path.isEmpty, !path.utf8.contains(0) else {
            throw WebServiceError(.storage, "a database needs the URL of a file")
        }
        self.classifications = classifications
        self.maximumBytes = maximumBytes
        self.maximumCount = maximumCount
        self.durability = durability
        pairs = PerProcess { isForked in
            ConnectionPair(
                files: DatabaseFiles(database: path), durability: durability, clock: clock, patience: patience, isForked: isForked)
        }
    }

    deinit {
        close()
    }

    /// The entry of a key; `nil` when there is none.
    ///
    /// Its date is that of the entry that was stored, in whole microseconds.
    ///
    /// - Throws: `WebServiceError.Code.storage` when the database cannot be read, or is busy for a minute.
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
        // That it cannot be deleted is no failure of the read: it stays damaged, and is tried again.
        try? await connections.later(connections.writer, "remove a damaged entry") { try $0.remove(key, checksum: record.checksum) }  // see above
        return nil
    }

    /// Keeps an entry in place of the one of the same key.
    ///
    /// - Throws: `WebServiceError.Code.entryTooLarge` when it alone is more than the limits or SQLite allow. `WebServiceError.Code.storage` when it
    ///   is not bytes, when the database cannot be written, or is busy for a minute. The old entry stays.
    public func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        let (key, limits) = (key.bytes, limits)
        guard let record = Record(entry, for: key) else {
            throw WebServiceError(.storage, "a database keeps bytes, and this value is kept as it is")
        }
        let size = key.count + record.data.count
        guard size <= limits.bytes ?? .max, limits.count ?? .max >= 1 else {
            throw WebServiceError(.entryTooLarge, "an entry of \(size) bytes does not fit into the limits of the database")
        }
        if durability == .process, size <= Self.mostBytesAtOnce,
            connections.now(connections.writer, { try $0.writeWithinBudget(record, for: key, limits) ? true : nil }) != nil
        {
            return
        }
        try await connections.later(connections.writer, "store an entry") { try $0.write(record, for: key, limits) }
    }

    /// Removes the entry of a key.
    ///
    /// - Throws: `WebServiceError.Code.storage` when the database cannot be written, or is busy for a minute.
    public func removeEntry(for key: StorageKey) async throws {
        let key = key.bytes
        if durability == .process, connections.now(connections.writer, { try $0.remove(key) }) != nil { return }
        try await connections.later(connections.writer, "remove an entry") { try $0.remove(key) }
    }

    /// Removes all entries, or none when it fails.
    ///
    /// - Throws: `WebServiceError.Code.storage` when the database cannot be written, or is busy for a minute.
    public func removeAll() async throws {
        try await connections.later(connections.writer, "remove all entries") { try $0.removeAll() }
    }

    /// Closes the database, or as soon as what is under way has ended; the next use opens it again.
    ///
    /// A storage that nobody holds any more is closed as well.
    public func close() {
        connections.close()
    }
}
