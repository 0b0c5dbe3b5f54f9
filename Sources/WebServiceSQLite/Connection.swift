import CSQLite
import WebServiceCore

/// A connection to a database of ours, with its statements.
///
/// @unchecked: it is used only by one at a time, who holds the lock of its ``ConnectionSlot`` or has taken it out of there.
final class Connection: @unchecked Sendable {
    /// The layout of the table; another number is not our database.
    static let version: Int64 = 1

    /// The keys are compared as the bytes they are. A row that is replaced gets a new number, the highest.
    private static let table = """
        CREATE TABLE entries (number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, \
        form INTEGER NOT NULL, date INTEGER, checksum INTEGER NOT NULL, data BLOB NOT NULL)
        """

    /// SQLite's own number of pages, behind which the log is copied into the database.
    private static let checkpointPages: Int32 = 1000

    let database: Database
    let find: Statement
    let put: Statement
    let locate: Statement
    let delete: Statement
    let deleteDamaged: Statement
    /// What may still be written before the limits are looked at again.
    var budget = (bytes: 0, count: 0)

    /// What the files were when it last looked.
    private(set) var snapshot: DatabaseFiles.Snapshot
    private let files: DatabaseFiles
    private var lastLook: UInt64
    /// How long the log was after the last write, or 0 when that was told.
    private var logPages: Int32 = 0

    /// Opens a database, empty ones included, and makes the table where there is nothing.
    ///
    /// - Throws: An error that ``SQLiteError/isForeign`` for a file that is not ours.
    init(_ files: DatabaseFiles, durability: StorageDurability, clock: TaskClock) throws {
        self.files = files
        lastLook = clock.now
        database = try Self.open(files.database, durability)
        find = try database.prepare("SELECT form, date, checksum, data FROM entries WHERE key = ?1")
        put = try database.prepare("REPLACE INTO entries (key, form, date, checksum, data) VALUES (?1, ?2, ?3, ?4, ?5)")
        locate = try database.prepare("SELECT number FROM entries WHERE key = ?1")
        delete = try database.prepare("DELETE FROM entries WHERE key = ?1")
        deleteDamaged = try database.prepare("DELETE FROM entries WHERE key = ?1 AND checksum = ?2")
        snapshot = try files.snapshot()
        // In place of SQLite's own hook, which copies the log at once.
        sqlite3_wal_hook(
            database.handle,
            { connection, _, _, pages in
                if let connection { Unmanaged<Connection>.fromOpaque(connection).takeUnretainedValue().logPages = pages }
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque()
        )
    }

    deinit {
        sqlite3_wal_hook(database.handle, nil, nil)
        // Whoever closes last copies the log into the database and deletes it; not where these are not what we know any more.
        let now = try? files.snapshot()  // where they cannot be looked at, they are not known either
        if now.map({ !snapshot.hasSameDatabase($0) || !snapshot.hasSameIndex($0) || snapshot.hasShorterLog($0) }) ?? true {
            csqlite_configure(database.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        }
    }

    /// Whether its files are still those at their path; looks again when the last look is older than `nanoseconds`.
    func isCurrent(_ clock: TaskClock, lookingEvery nanoseconds: UInt64) -> Bool {
        let moment = nanoseconds > 0 ? clock.now : 0
        if nanoseconds > 0, moment &- lastLook < nanoseconds { return true }
        let now = try? files.snapshot()  // where they cannot be looked at, the connection is closed, and opening one throws
        guard let now, snapshot.isStill(now) else { return false }
        (snapshot, lastLook) = (now, moment)
        return true
    }

    /// Whether the log has become so long that it should be copied; tells it once.
    func takeCheckpointIsDue() -> Bool {
        guard logPages >= Self.checkpointPages else { return false }
        logPages = 0
        return true
    }

    /// Copies the log into the database, as far as nobody needs it.
    func checkpoint() throws {
        let code = sqlite3_wal_checkpoint_v2(database.handle, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        if code != SQLITE_BUSY && code != SQLITE_LOCKED { try database.check(code) }
    }

    private static func open(_ path: String, _ durability: StorageDurability) throws -> Database {
        let database = try Database(path: path)
        // Before anything was read: that the file says so itself comes later.
        guard !database.isReadOnly else { throw SQLiteError(SQLITE_READONLY, "the file cannot be opened for writing") }
        // What a damaged or foreign schema holds is not run.
        csqlite_configure(database.handle, SQLITE_DBCONFIG_DEFENSIVE, 1)
        csqlite_configure(database.handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        try database.execute(
            """
            PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA journal_size_limit = \(DatabaseFiles.mostLogBytes); PRAGMA fullfsync = ON;
            PRAGMA synchronous = \(durability == .power ? "FULL" : "NORMAL");
            """
        )
        let isNew = try isEmpty(database)
        guard !database.isReadOnly else { throw SQLiteError(SQLITE_NOTADB, "a database of a newer version of SQLite") }
        guard try database.prepare("PRAGMA journal_mode = WAL").rows({ $0.text(0) }) == ["wal"] else {
            throw SQLiteError(SQLITE_CANTOPEN, "the file system is not able to keep a log")
        }
        if isNew {
            try database.transaction { try database.execute("\(table); PRAGMA user_version = \(version)") }
        }
        guard try !isEmpty(database) else { throw SQLiteError(SQLITE_NOTADB, "the table is not there") }
        return database
    }

    /// Whether there is nothing at all.
    ///
    /// - Throws: An error that ``SQLiteError/isForeign`` when there is something that is not ours.
    private static func isEmpty(_ database: Database) throws -> Bool {
        let version = try database.prepare("PRAGMA user_version")
        let schema = try database.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        let (number, sql) = (try version.rows { $0.integer(0) }, try schema.rows { $0.text(0) })
        if number == [0], sql.isEmpty { return true }
        guard number == [Self.version], sql == [table] else { throw SQLiteError(SQLITE_NOTADB, "another database") }
        return false
    }
}
