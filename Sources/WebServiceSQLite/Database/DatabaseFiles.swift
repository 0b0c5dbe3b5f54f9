import CSQLite
import Foundation
import WebServiceCore
import WebServiceStorage

/// The identity of a file, independent of its path.
struct FileIdentity: Equatable {
    let device: dev_t
    let inode: ino_t
}

/// The files of a database: the database, its log, the index of the log, and a lock file.
///
/// The lock file is locked while one of the other files is created or moved aside.
struct DatabaseFiles: Sendable {
    /// The files at one instant. The value for a missing file is `nil`.
    struct Snapshot {
        var database, log, index: (file: FileIdentity, size: Int64)?
    }

    /// The purpose of a database. The raw value is the `user_version` of the database, which also
    /// identifies the layout of its table. A database with another version is not used.
    enum Purpose: Int64 {
        case storage = 1
        case outbox = 1001
    }

    /// The size to which the log is truncated when it restarts, in bytes.
    static let mostLogBytes: Int64 = 16 << 20

    let database: String
    let purpose: Purpose
    private let log: String
    private let index: String
    private let lock: String

    init(database: String, purpose: Purpose = .storage) {
        self.database = database
        self.purpose = purpose
        log = database + "-wal"
        index = database + "-shm"
        lock = database + ".lock"
    }

    /// - Throws: An error if it cannot be determined whether a file exists. If the database were
    ///   treated as deleted, its log would also be deleted.
    func snapshot() throws(SystemFailure) -> Snapshot {
        Snapshot(database: try Self.look(database), log: try Self.look(log), index: try Self.look(index))
    }

    /// Executes the body while the lock file is locked. Throws a busy error if it is already
    /// locked.
    func exclusively<Value>(_ durability: StorageEntry.Durability, _ body: () throws -> Value) throws -> Value {
        try Folder.create((database as NSString).deletingLastPathComponent, synchronize: durability == .power)
        let descriptor = try system("open") { open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600) }
        defer { close(descriptor) }
        let isTaken =
            try system("flock") { flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? 1 : -1 } == 1
        guard !isTaken else { throw SQLiteError(SQLITE_BUSY, "another connection is opening the database; try again") }
        return try body()
    }

    /// Creates an empty file that only its owner can access, unless the file exists.
    func makeDatabase() throws {
        var status = stat()
        if try system("lstat", { lstat(database, &status) == 0 ? 1 : errno == ENOENT ? 0 : -1 }) == 1 {
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw WebServiceError(.storage, "the database path does not name a regular file; use another path")
            }
            return
        }
        // A log without a database belongs to a deleted database.
        unlink(log)
        unlink(index)
        close(try system("open") { open(database, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600) })
    }

    /// Deletes a log that belongs to another database, because SQLite would apply it to this
    /// database.
    func deleteLog(ifStrangeTo snapshot: Snapshot) throws(SystemFailure) {
        guard snapshot.hasStrangeLog(try self.snapshot()) else { return }
        unlink(log)
        unlink(index)
    }

    /// Flushes the log and the names of the files to the disk. A change of a killed process may be
    /// in the log without having been flushed. If there is no log, all changes are in the database
    /// and were flushed.
    func flush() throws(SystemFailure) {
        let path = (database as NSString).deletingLastPathComponent
        guard let folder = try Folder(path, followsLink: true) else { return }
        if let file = try folder.existingFile((log as NSString).lastPathComponent) { try file.synchronize() }
        try folder.synchronize()
    }

    /// Appends the suffix `.damaged` to the name of the database, and renames its log accordingly.
    /// Existing files with these names are replaced. For an outbox, the names are unique.
    func moveAside() throws {
        let aside = database + (purpose == .outbox ? ".\(UUID().uuidString.lowercased())" : "") + ".damaged"
        try system("rename") { rename(database, aside) }
        if rename(log, aside + "-wal") < 0 { unlink(aside + "-wal") }
        unlink(index)
    }

    /// Deletes all files, including those that were moved aside.
    func delete() throws(SystemFailure) {
        let aside = database + ".damaged"
        for path in [database, log, index, database + "-journal", lock, aside, aside + "-wal"] {
            try system("unlink") { unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR ? 0 : -1 }
        }
    }

    private static func look(_ path: String) throws(SystemFailure) -> (file: FileIdentity, size: Int64)? {
        var status = stat()
        let isThere =
            try system("lstat") { lstat(path, &status) == 0 ? 1 : errno == ENOENT || errno == ENOTDIR ? 0 : -1 } == 1
        guard isThere else { return nil }
        return (FileIdentity(device: status.st_dev, inode: status.st_ino), Int64(status.st_size))
    }
}

extension DatabaseFiles.Snapshot {
    /// Returns whether a connection that was opened with these files can continue with the current
    /// files.
    ///
    /// No file may have been deleted, replaced or truncated, except for a log that SQLite has
    /// truncated.
    func isStill(_ now: Self) -> Bool {
        hasSameDatabase(now) && hasSameIndex(now) && log?.file == now.log?.file && !hasShorterLog(now)
    }

    func hasSameDatabase(_ now: Self) -> Bool {
        database?.file == now.database?.file && database?.size ?? 0 <= now.database?.size ?? 0
    }

    /// Returns whether the index is the same file and is not shorter. SQLite maps the index into
    /// memory, and reading beyond its end would terminate the process.
    func hasSameIndex(_ now: Self) -> Bool {
        index?.file == now.index?.file && index?.size ?? 0 <= now.index?.size ?? 0
    }

    func hasShorterLog(_ now: Self) -> Bool {
        log?.file == now.log?.file && min(log?.size ?? 0, DatabaseFiles.mostLogBytes) > now.log?.size ?? 0
    }

    /// Returns whether the database was replaced but its log was not.
    func hasStrangeLog(_ now: Self) -> Bool {
        database?.file != now.database?.file && log?.file == now.log?.file
    }
}
