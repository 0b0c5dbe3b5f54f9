import CSQLite
import Foundation

/// An open database. It is closed when the object is deallocated. Two threads must not use it at
/// the same time.
///
/// The mutexes of the SQLite connection are disabled.
final class Database {
    let handle: OpaquePointer

    init(path: String) throws {
        // If SQLite was compiled without locks, its connections share unprotected memory, so
        // several threads must not use them.
        guard sqlite3_threadsafe() != 0 else {
            throw SQLiteError(SQLITE_MISUSE, "SQLite was compiled for a single thread; use a thread-safe build")
        }
        var handle: OpaquePointer?
        let code = sqlite3_open_v2(
            path, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nil)
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

    /// Executes statements that return no rows.
    func execute(_ sql: String) throws {
        try check(sqlite3_exec(handle, sql, nil, nil, nil))
    }

    func prepare(_ sql: String) throws -> Statement {
        var statement: OpaquePointer?
        try check(sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil))
        guard let statement else { throw SQLiteError(SQLITE_MISUSE, "the statement is empty") }
        return Statement(statement, of: handle)
    }

    /// Executes changes as one transaction. The transaction is rolled back if the body throws an
    /// error.
    func transaction(_ body: () throws -> Void) throws {
        try execute("BEGIN IMMEDIATE")
        do {
            try body()
            try execute("COMMIT")
        } catch {
            sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)  // fails if SQLite has already rolled back
            throw error
        }
    }

    func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw SQLiteError(code, of: handle) }
    }
}

/// A prepared statement. Bound bytes must remain valid until the statement is reset.
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

    /// Binds bytes without copying them.
    func bind(_ bytes: UnsafeRawBufferPointer, at index: Int32) throws {
        // A null pointer would bind NULL instead of an empty BLOB.
        let code =
            bytes.isEmpty
            ? sqlite3_bind_zeroblob(handle, index, 0)
            : sqlite3_bind_blob64(handle, index, bytes.baseAddress, UInt64(bytes.count), nil)
        guard code == SQLITE_OK else { throw SQLiteError(code, of: database) }
    }

    func bind(_ value: Int64?, at index: Int32) {
        if let value { sqlite3_bind_int64(handle, index, value) } else { sqlite3_bind_null(handle, index) }
    }

    /// Executes the statement up to the next row. Returns whether there is a row.
    func step() throws -> Bool {
        let code = sqlite3_step(handle)
        guard code == SQLITE_ROW || code == SQLITE_DONE else { throw SQLiteError(code, of: database) }
        return code == SQLITE_ROW
    }

    /// Resets the statement and ends its transaction. ``step()`` has already thrown any error.
    func reset() {
        sqlite3_reset(handle)
    }

    /// Executes the statement to the end.
    func run() throws {
        defer { reset() }
        while try step() {}
    }

    /// Executes the statement to the end and returns a value for each row.
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
