import CSQLite

/// An error of an SQLite database. It is the underlying error of a `WebServiceError` from
/// ``SQLiteStorage`` or an outbox.
public struct SQLiteError: Error, Sendable, Hashable {
    /// The primary result code, such as `SQLITE_FULL` (13).
    ///
    /// See <https://www.sqlite.org/rescode.html>.
    public let code: Int32
    /// The extended result code, such as `SQLITE_IOERR_WRITE` (778).
    public let extendedCode: Int32
    /// The description of the error, usually that of SQLite. It contains no stored data.
    public let message: String

    init(_ extendedCode: Int32, _ message: String) {
        code = extendedCode & 0xFF
        self.extendedCode = extendedCode
        self.message = message
    }

    /// Creates the error that a call has just reported.
    init(_ extendedCode: Int32, of database: OpaquePointer?) {
        let isOfTheCall = database != nil && sqlite3_extended_errcode(database) == extendedCode
        self.init(extendedCode, String(cString: isOfTheCall ? sqlite3_errmsg(database) : sqlite3_errstr(extendedCode)))
    }

    /// Whether the database is busy.
    ///
    /// If so, another connection is writing to the database, opening it, or recovering it after a
    /// crash. The call can be retried.
    var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }

    /// What the user can do; empty if the message already includes this.
    var remedy: String { code == SQLITE_FULL ? "; free up disk space" : "" }

    /// Whether the data exceeds `SQLITE_LIMIT_LENGTH`.
    var isTooBig: Bool { code == SQLITE_TOOBIG }

    /// Whether the file is damaged or not a database.
    var isDamage: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }

    /// Whether the database is damaged or belongs to another application.
    ///
    /// This is meaningful only for an error that occurs while a database is opened. If the database
    /// has other tables or an unknown format, the statements of this library then fail with
    /// `SQLITE_ERROR`.
    var isForeign: Bool { isDamage || code == SQLITE_ERROR }
}

extension SQLiteError: CustomStringConvertible {
    /// The message, and the extended result code.
    public var description: String { "\(message) (\(extendedCode))" }
}
