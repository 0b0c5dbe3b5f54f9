import CSQLite
import Foundation

/// A database that is open, until nothing holds it any more. Not for two threads at a time: SQLite is told to take no locks of its own.
final class Database {
    let handle: OpaquePointer

    init(path: String) throws {
        // A library without any locks shares its memory between connections, which are on several threads here.
        guard sqlite3_threadsafe() != 0 else { throw SQLiteError(SQLITE_MISUSE, "SQLite was built for a single thread") }
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nil)
        guard let handle, code == SQLITE_OK else {
            defer { sqlite3_close_v2(handle) }
            throw SQLiteError(handle.map(sqlite3_extended_errcode) ?? code, of: handle)
        }
        sqlite3_extended_result_codes(handle, 1)
        self.handle = handle
    }

    deinit {
        sqlite3_close_v2(handle)
    }

    var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") != 0 }

    /// Runs a statement whose rows nobody needs.
    func execute(_ sql: String) throws {
        try check(sqlite3_exec(handle, sql, nil, nil, nil))
    }

    func prepare(_ sql: String) throws -> Statement {
        var statement: OpaquePointer?
        try check(sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil))
        guard let statement else { throw SQLiteError(SQLITE_MISUSE, "an empty statement") }
        return Statement(statement, of: handle)
    }

    /// All or nothing.
    func transaction(_ body: () throws -> Void) throws {
        try execute("BEGIN IMMEDIATE")
        do {
            try body()
            try execute("COMMIT")
        } catch {
            sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)  // fails where SQLite has rolled back by itself
            throw error
        }
    }

    func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw SQLiteError(code, of: handle) }
    }
}

/// A prepared statement. What is bound to it has to stay where it is until the statement is reset.
final class Statement {
    private let handle: OpaquePointer
    private let database: OpaquePointer

    init(_ handle: OpaquePointer, of database: OpaquePointer) {
        self.handle = handle
        self.database = database
    }

    deinit {
        sqlite3_finalize(handle)
    }

    /// Binds bytes without a copy.
    func bind(_ bytes: UnsafeRawBufferPointer, at index: Int32) throws {
        // No address would be NULL, which is not the same as no bytes.
        let code =
            bytes.isEmpty
            ? sqlite3_bind_zeroblob(handle, index, 0)
            : sqlite3_bind_blob64(handle, index, bytes.baseAddress, UInt64(bytes.count), nil)
        guard code == SQLITE_OK else { throw SQLiteError(code, of: database) }
    }

    func bind(_ value: Int64?, at index: Int32) {
        if let value { sqlite3_bind_int64(handle, index, value) } else { sqlite3_bind_null(handle, index) }
    }

    /// Whether there is a row.
    func step() throws -> Bool {
        let code = sqlite3_step(handle)
        guard code == SQLITE_ROW || code == SQLITE_DONE else { throw SQLiteError(code, of: database) }
        return code == SQLITE_ROW
    }

    /// Ends what was stepped through, with its transaction. The error was told by ``step()``.
    func reset() {
        sqlite3_reset(handle)
    }

    /// Steps to the end.
    func run() throws {
        defer { reset() }
        while try step() {}
    }

    /// Steps to the end and takes something of each row.
    func rows<Value>(_ read: (Statement) -> Value) throws -> [Value] {
        defer { reset() }
        var values: [Value] = []
        while try step() { values.append(read(self)) }
        return values
    }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func text(_ column: Int32) -> String { sqlite3_column_text(handle, column).map { String(cString: $0) } ?? "" }

    func data(_ column: Int32) -> Data {
        guard let bytes = sqlite3_column_blob(handle, column) else { return Data() }
        return Data(bytes: bytes, count: Int(sqlite3_column_bytes(handle, column)))
    }
}
