import CSQLite
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
public import WebServiceStorage

@testable import WebServiceSQLite

extension StorageKey: ExpressibleByStringLiteral {
    /// Creates a key without account, of the default classification.
    public init(stringLiteral identifier: String) {
        self.init(identifier: identifier)
    }
}

extension ResponseStorage {
    func put(_ text: String, _ key: StorageKey) async throws {
        try await store(StorageEntry(.raw(Data(text.utf8)), date: nil), for: key)
    }

    func text(_ key: StorageKey) async throws -> String? {
        try await entry(for: key)?.data.map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Expects an error with a code, and returns the underlying error of SQLite.
@discardableResult
func expectFailure(
    _ code: WebServiceError.Code, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation,
    _ step: () async throws -> Void
) async -> SQLiteError? {
    let error = await #expect(throws: WebServiceError.self, comment, sourceLocation: sourceLocation) {
        try await step()
    }
    #expect(error?.code == code, comment, sourceLocation: sourceLocation)
    return error?.underlying as? SQLiteError
}

/// Another connection to the same database, as from another program.
struct Foreigner: ~Copyable {
    private let handle: OpaquePointer

    init(_ file: URL) throws {
        var handle: OpaquePointer?
        try #require(sqlite3_open(file.path, &handle) == SQLITE_OK)
        self.handle = try #require(handle)
        sqlite3_busy_timeout(self.handle, 10_000)
    }

    deinit {
        sqlite3_close(handle)
    }

    borrowing func run(_ sql: String) throws {
        try #require(
            sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK, "\(String(cString: sqlite3_errmsg(handle)))")
    }

    /// Returns the first column of the first row.
    borrowing func value(_ sql: String) throws -> String? {
        var statement: OpaquePointer?
        try #require(sqlite3_prepare_v2(handle, sql, -1, &statement, nil) == SQLITE_OK)
        defer { sqlite3_finalize(statement) }
        guard sqlite3_step(statement) == SQLITE_ROW else { return nil }
        return sqlite3_column_text(statement, 0).map { String(cString: $0) }
    }
}

/// A clock that advances only when the test advances it.
final class ManualClock: Timekeeper {
    private let time = Mutex<UInt64>(0)
    private let alarms = AlarmTimer()

    var instant: UInt64 { time.withLock { $0 } }

    func advance(milliseconds: UInt64) { time.withLock { $0 += milliseconds * 1_000_000 } }

    func schedule(after delay: Duration, _ target: any AlarmTarget) -> Alarm {
        alarms.add(at: instant.addingSaturated(delay), target)
    }

    func cancel(_ alarm: Alarm) { alarms.cancel(alarm) }
}

/// The program `storage-probe`, which is in the folder of the test executable.
struct Probe {
    let process: ChildProcess
    private let output = Pipe()

    init(_ arguments: [String], environment: [String: String] = [:]) throws {
        process = ChildProcess(
            programPath("storage-probe"), arguments,
            environment: ["SWIFT_BACKTRACE": "enable=no"].merging(environment) { $1 }, input: .null,
            output: .pipe(output), errors: .null)
        try process.run()
    }

    /// Returns the lines that the program writes until its end. It is killed after a number of
    /// lines.
    func lines(killAfter count: Int = .max) throws -> [String] {
        var text = Data()
        var lines = 0
        if count == 0 { process.send(SIGKILL) }
        while case let more = output.fileHandleForReading.availableData, !more.isEmpty {
            text += more
            let before = lines
            lines += more.count { $0 == UInt8(ascii: "\n") }
            if before < count, lines >= count { process.send(SIGKILL) }
        }
        process.waitUntilExit()
        // An incomplete last line is dropped.
        return text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast().map {
            String(decoding: $0, as: UTF8.self)
        }
    }
}
