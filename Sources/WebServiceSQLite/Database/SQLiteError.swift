import CSQLite

/// An error reported by SQLite: the underlying error of a `WebServiceError` of ``SQLiteStorage``.
public struct SQLiteError: Error, Sendable, Hashable {
    /// The primary result code, such as `SQLITE_FULL` (13).
    ///
    /// See <https://www.sqlite.org/rescode.html>.
    public let code: Int32
    /// The extended result code, such as `SQLITE_IOERR_WRITE` (778).
    public let extendedCode: Int32
    /// The description reported by SQLite. Contains no stored data.
    public let message: String

    init(_ extendedCode: Int32, _ message: String) {
        code = extendedCode & 0xFF
        self.extendedCode = extendedCode
        self.message = message
    }

    /// Creates the error that a call has just returned.
    init(_ extendedCode: Int32, of database: OpaquePointer?) {
        let isOfTheCall = database != nil && sqlite3_extended_errcode(database) == extendedCode
        self.init(extendedCode, String(cString: isOfTheCall ? sqlite3_errmsg(database) : sqlite3_errstr(extendedCode)))
    }

    /// A Boolean value that indicates whether the database is busy.
    ///
    /// Another connection is writing to it, opening it, or recovering it after a crash. The call
    /// can be retried.
    var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }

    /// What the user can do, if the error does not name it.
    var remedy: String { code == SQLITE_FULL ? "; free space on the disk" : "" }

    /// A Boolean value that indicates whether the data exceeds `SQLITE_LIMIT_LENGTH`.
    var isTooBig: Bool { code == SQLITE_TOOBIG }

    /// A Boolean value that indicates whether the file is damaged or not a database.
    var isDamage: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }

    /// A Boolean value that indicates whether the database is damaged or belongs to another
    /// application.
    ///
    /// Meaningful only for an error that occurs while a database is opened. The statements of this
    /// library then fail with `SQLITE_ERROR` if the database has other tables or an unknown format.
    var isForeign: Bool { isDamage || code == SQLITE_ERROR }
}

extension SQLiteError: CustomStringConvertible {
    /// The message and the extended result code.
    public var description: String { "\(message) (\(extendedCode))" }
}
