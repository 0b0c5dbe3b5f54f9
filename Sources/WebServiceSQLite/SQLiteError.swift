import CSQLite

/// A failure of SQLite, as the database told it: what a `WebServiceError` of ``SQLiteStorage`` has as its underlying error.
public struct SQLiteError: Error, Sendable, Hashable {
    /// The primary result code, such as `SQLITE_FULL` (13); see <https://www.sqlite.org/rescode.html>.
    public let code: Int32
    /// The extended result code, such as `SQLITE_IOERR_WRITE` (778).
    public let extendedCode: Int32
    /// What SQLite said. It holds nothing of what is stored.
    public let message: String

    init(_ extendedCode: Int32, _ message: String) {
        code = extendedCode & 0xFF
        self.extendedCode = extendedCode
        self.message = message
    }

    /// The error that a call has just returned.
    init(_ extendedCode: Int32, of database: OpaquePointer?) {
        let isOfTheCall = database != nil && sqlite3_extended_errcode(database) == extendedCode
        self.init(extendedCode, String(cString: isOfTheCall ? sqlite3_errmsg(database) : sqlite3_errstr(extendedCode)))
    }

    /// Somebody else is writing, or opening, or starts the database again after a crash: to be tried once more.
    var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }

    /// Longer than SQLite can keep (`SQLITE_LIMIT_LENGTH`).
    var isTooBig: Bool { code == SQLITE_TOOBIG }

    /// The file is damaged or no database.
    var isDamage: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }

    /// While a database is opened: it is damaged or not ours. What is right SQL for us is wrong there, or its format is unknown.
    var isForeign: Bool { isDamage || code == SQLITE_ERROR }
}

extension SQLiteError: CustomStringConvertible {
    /// The message and the extended code.
    public var description: String { "\(message) (\(extendedCode))" }
}
