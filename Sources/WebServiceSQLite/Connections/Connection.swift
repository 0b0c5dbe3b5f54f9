import CSQLite
import WebServiceCore
import WebServiceStorage

/// A connection to the database, with its prepared statements.
///
/// @unchecked: used by only one thread at a time, which holds the lock of its ``ConnectionSlot`` or
/// has taken the connection from the slot.
final class Connection: @unchecked Sendable {
    /// Keys are compared as bytes. A row that replaces another one gets a new number, which is the
    /// highest.
    private static let table = """
        CREATE TABLE entries (number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, \
        form INTEGER NOT NULL, date INTEGER, checksum INTEGER NOT NULL, data BLOB NOT NULL)
        """

    /// The number of log pages at which the log is copied into the database. This is SQLite's
    /// default.
    private static let checkpointPages: Int32 = 1000

    let database: Database
    let find: Statement
    let put: Statement
    let locate: Statement
    let delete: Statement
    let deleteDamaged: Statement
    /// The number of bytes and the number of entries that may be written before the limits are
    /// checked again.
    var budget = (bytes: 0, count: 0)

    /// The files as they were at the last check.
    private(set) var snapshot: DatabaseFiles.Snapshot
    private let files: DatabaseFiles
    private let durability: StorageEntry.Durability
    private var lastLook: UInt64
    /// The length of the log after the last write, in pages. It is 0 after a checkpoint was
    /// requested.
    private var logPages: Int32 = 0

    /// Opens a database, and creates the table if the database is empty.
    ///
    /// - Throws: An error whose ``SQLiteError/isForeign`` is `true` if the file is not a database
    ///   of this library.
    init(_ files: DatabaseFiles, durability: StorageEntry.Durability, clock: TaskClock) throws {
        self.files = files
        self.durability = durability
        lastLook = clock.now
        database = try Self.open(files, durability)
        find = try database.prepare("SELECT form, date, checksum, data FROM entries WHERE key = ?1")
        put = try database.prepare("REPLACE INTO entries (key, form, date, checksum, data) VALUES (?1, ?2, ?3, ?4, ?5)")
        locate = try database.prepare("SELECT number FROM entries WHERE key = ?1")
        delete = try database.prepare("DELETE FROM entries WHERE key = ?1")
        deleteDamaged = try database.prepare("DELETE FROM entries WHERE key = ?1 AND checksum = ?2")
        snapshot = try files.snapshot()
        // Replaces SQLite's own hook, which copies the log immediately.
        sqlite3_wal_hook(
            database.handle,
            { connection, _, _, pages in
                if let connection {
                    Unmanaged<Connection>.fromOpaque(connection).takeUnretainedValue().logPages = pages
                }
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque()
        )
    }

    deinit {
        sqlite3_wal_hook(database.handle, nil, nil)
        // The last connection that is closed copies the log into the database and deletes the log.
        // This is disabled if the files were replaced or truncated.
        let now = try? files.snapshot()  // on failure, the files count as changed
        if now.map({ !snapshot.hasSameDatabase($0) || !snapshot.hasSameIndex($0) || snapshot.hasShorterLog($0) })
            ?? true
        {
            csqlite_configure(database.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        }
    }

    /// Returns whether the open files are still those at their paths.
    ///
    /// The files are checked again if the last check was at least `nanoseconds` ago.
    func isCurrent(_ clock: TaskClock, lookingEvery nanoseconds: UInt64) -> Bool {
        let instant = nanoseconds > 0 ? clock.now : 0
        if nanoseconds > 0, instant &- lastLook < nanoseconds { return true }
        let now = try? files.snapshot()  // on failure, the connection is closed, and opening one throws
        guard let now, snapshot.isStill(now) else { return false }
        (snapshot, lastLook) = (now, instant)
        return true
    }

    /// Returns whether the log should be copied into the database.
    ///
    /// If it returns `true`, it then returns `false` until the next write.
    func takeCheckpointIsDue() -> Bool {
        guard logPages >= Self.checkpointPages else { return false }
        logPages = 0
        return true
    }

    /// Copies the log into the database, except for the parts that other connections are still
    /// reading.
    func checkpoint() throws {
        let code = sqlite3_wal_checkpoint_v2(database.handle, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        if code != SQLITE_BUSY && code != SQLITE_LOCKED { try database.check(code) }
    }

    /// Flushes the log after a removal that has found nothing, because SQLite flushes only changes.
    /// A killed process may have made the same removal without flushing it.
    func flushIfUnchanged() throws {
        guard durability == .power, sqlite3_changes(database.handle) == 0 else { return }
        do throws(SystemFailure) { try files.flush() } catch {
            throw SQLiteError(SQLITE_IOERR, "the log could not be flushed to the disk")
        }
    }

    private static func open(_ files: DatabaseFiles, _ durability: StorageEntry.Durability) throws -> Database {
        let database = try Database(path: files.database)
        let version = files.purpose.rawValue
        // This is checked before the first read. A file format that permits only reading is
        // detected later.
        guard !database.isReadOnly else {
            throw SQLiteError(SQLITE_READONLY, "the file could not be opened for writing; check its permissions")
        }
        // The contents of a damaged or foreign schema must not be executed.
        csqlite_configure(database.handle, SQLITE_DBCONFIG_DEFENSIVE, 1)
        csqlite_configure(database.handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        try database.execute(
            """
            PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA fullfsync = ON;
            PRAGMA journal_size_limit = \(DatabaseFiles.mostLogBytes);
            PRAGMA synchronous = \(durability == .power ? "FULL" : "NORMAL");
            """
        )
        let isNew = try isEmpty(database, version)
        guard !database.isReadOnly else {
            throw SQLiteError(SQLITE_NOTADB, "the database requires a newer version of SQLite; update SQLite")
        }
        guard try database.prepare("PRAGMA journal_mode = WAL").rows({ $0.text(0) }) == ["wal"] else {
            throw SQLiteError(
                SQLITE_CANTOPEN, "the file system does not support a write-ahead log; use a local file system")
        }
        if isNew {
            try database.transaction { try database.execute("\(table); PRAGMA user_version = \(version)") }
        }
        guard try !isEmpty(database, version) else {
            throw SQLiteError(SQLITE_NOTADB, "the table 'entries' is missing")
        }
        return database
    }

    /// Returns whether the database is empty.
    ///
    /// - Throws: An error whose ``SQLiteError/isForeign`` is `true` if the database has other
    ///   contents.
    private static func isEmpty(_ database: Database, _ version: Int64) throws -> Bool {
        let found = try database.prepare("PRAGMA user_version")
        let schema = try database.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        let (number, sql) = (try found.rows { $0.integer(0) }, try schema.rows { $0.text(0) })
        if number == [0], sql.isEmpty { return true }
        guard number == [version], sql == [table] else {
            throw SQLiteError(SQLITE_NOTADB, "the schema of the database is unknown")
        }
        return false
    }
}
