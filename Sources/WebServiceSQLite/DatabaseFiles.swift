import CSQLite
import Foundation
import WebServiceCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Which file it is, whatever its name.
struct FileIdentity: Equatable {
    let device: dev_t
    let inode: ino_t
}

/// A database is a file, its log and the index of the log; beside them lies a file that is locked while one of them is made or moved away.
struct DatabaseFiles: Sendable {
    /// What was there at one moment; `nil` where there was no file.
    struct Snapshot {
        var database, log, index: (file: FileIdentity, size: Int64)?
    }

    /// The log is cut to this length when it begins anew.
    static let mostLogBytes: Int64 = 16 << 20

    let database: String
    private let log: String
    private let index: String
    private let lock: String

    init(database: String) {
        self.database = database
        log = database + "-wal"
        index = database + "-shm"
        lock = database + ".lock"
    }

    /// - Throws: Where it cannot be told whether a file is there. It must not pass for deleted: its log would be deleted as well.
    func snapshot() throws(SystemFailure) -> Snapshot {
        Snapshot(database: try Self.look(database), log: try Self.look(log), index: try Self.look(index))
    }

    /// Does something while nobody else does; what is locked already is an error that passes.
    func exclusively<Value>(_ durability: StorageDurability, _ body: () throws -> Value) throws -> Value {
        try Folder.create((database as NSString).deletingLastPathComponent, synchronize: durability == .power)
        let descriptor = try system("open") { open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600) }
        defer { close(descriptor) }
        let isTaken = try system("flock") { flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? 1 : -1 } == 1
        guard !isTaken else { throw SQLiteError(SQLITE_BUSY, "somebody else is opening the database") }
        return try body()
    }

    /// Makes an empty file, for nobody else to read, unless there is one.
    func makeDatabase() throws {
        var status = stat()
        if try system("lstat", { lstat(database, &status) == 0 ? 1 : errno == ENOENT ? 0 : -1 }) == 1 {
            guard status.st_mode & S_IFMT == S_IFREG else { throw WebServiceError(.storage, "what is in the database's place is no file") }
            return
        }
        // A log without its database is of one that was deleted.
        unlink(log)
        unlink(index)
        close(try system("open") { open(database, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600) })
    }

    /// Deletes a log that is of another database than the one beside it: SQLite would put the two together.
    func deleteLog(ifStrangeTo snapshot: Snapshot) throws(SystemFailure) {
        guard snapshot.hasStrangeLog(try self.snapshot()) else { return }
        unlink(log)
        unlink(index)
    }

    /// Gives the database another name, with its log, in place of one that had it before.
    func moveAside() throws {
        let aside = database + ".damaged"
        try system("rename") { rename(database, aside) }
        if rename(log, aside + "-wal") < 0 { unlink(aside + "-wal") }
        unlink(index)
    }

    private static func look(_ path: String) throws(SystemFailure) -> (file: FileIdentity, size: Int64)? {
        var status = stat()
        let isThere = try system("lstat") { lstat(path, &status) == 0 ? 1 : errno == ENOENT || errno == ENOTDIR ? 0 : -1 } == 1
        guard isThere else { return nil }
        return (FileIdentity(device: status.st_dev, inode: status.st_ino), Int64(status.st_size))
    }
}

extension DatabaseFiles.Snapshot {
    /// Whether a connection that was opened when the files were these can go on now that they are those: none was deleted or replaced, and none is shorter
    /// that gets no shorter by itself.
    func isStill(_ now: Self) -> Bool {
        hasSameDatabase(now) && hasSameIndex(now) && log?.file == now.log?.file && !hasShorterLog(now)
    }

    func hasSameDatabase(_ now: Self) -> Bool {
        database?.file == now.database?.file && database?.size ?? 0 <= now.database?.size ?? 0
    }

    /// SQLite maps this file into memory: to read behind its end is the end of the process.
    func hasSameIndex(_ now: Self) -> Bool {
        index?.file == now.index?.file && index?.size ?? 0 <= now.index?.size ?? 0
    }

    func hasShorterLog(_ now: Self) -> Bool {
        log?.file == now.log?.file && min(log?.size ?? 0, DatabaseFiles.mostLogBytes) > now.log?.size ?? 0
    }

    /// Whether another database lies now beside a log that was this one's.
    func hasStrangeLog(_ now: Self) -> Bool {
        database?.file != now.database?.file && log?.file == now.log?.file
    }
}
