import CSQLite
import Foundation
import WebServiceCore
import WebServiceStorage

/// The limits of a storage; `nil` where there is no limit.
struct StorageLimits: Sendable {
    let bytes: Int?
    let count: Int?

    var areNone: Bool { bytes == nil && count == nil }
}

extension Connection {
    func record(for key: [UInt8]) throws -> Record? {
        try key.withUnsafeBytes { key in
            try find.bind(key, at: 1)
            defer { find.reset() }
            do {
                guard try find.step() else { return nil }
            } catch let error as SQLiteError where error.isTooBig {
                throw SQLiteError(SQLITE_CORRUPT, "a stored row is longer than the maximum length of a row")
            }
            return Record(
                form: find.integer(0), date: find.isNull(1) ? nil : find.integer(1), checksum: find.integer(2),
                data: find.data(3))
        }
    }

    /// Writes an entry, unless the limits must be checked first.
    ///
    /// - Returns: Whether the entry was written.
    func writeWithinBudget(_ record: Record, for key: [UInt8], _ limits: StorageLimits) throws -> Bool {
        if !limits.areNone {
            let size = key.count + record.data.count
            guard budget.count >= 1, budget.bytes >= size else { return false }
            budget = (budget.bytes - size, budget.count - 1)
        }
        try write(record, for: key)
        return true
    }

    /// Writes an entry. If the limits are exceeded, also removes the entries that were written
    /// first.
    func write(_ record: Record, for key: [UInt8], _ limits: StorageLimits) throws {
        guard try !writeWithinBudget(record, for: key, limits) else { return }
        try database.transaction {
            try write(record, for: key)
            budget = try makeRoom(limits)
        }
    }

    func remove(_ key: [UInt8]) throws {
        try key.withUnsafeBytes { key in
            try delete.bind(key, at: 1)
            try delete.run()
        }
        try flushIfUnchanged()
    }

    /// Removes a damaged row, unless another row has replaced it.
    func remove(_ key: [UInt8], checksum: Int64) throws {
        try key.withUnsafeBytes { key in
            try deleteDamaged.bind(key, at: 1)
            deleteDamaged.bind(checksum, at: 2)
            try deleteDamaged.run()
        }
    }

    func removeAll() throws {
        try database.execute("DELETE FROM entries")
        try flushIfUnchanged()
    }

    /// Removes the entries whose keys start with the given bytes.
    func removeAll(keysWith prefix: [UInt8]) throws {
        let delete = try database.prepare("DELETE FROM entries WHERE substr(key, 1, ?2) = ?1")
        try prefix.withUnsafeBytes { prefix in
            try delete.bind(prefix, at: 1)
            delete.bind(Int64(prefix.count), at: 2)
            try delete.run()
        }
        try flushIfUnchanged()
    }

    /// Returns the keys that follow a key, with the dates and sizes of their rows.
    func summaries(after key: [UInt8], limit: Int) throws -> [StorageEntry.Summary] {
        let list = try database.prepare(
            "SELECT key, date, length(data) FROM entries WHERE key > ?1 ORDER BY key LIMIT ?2")
        return try key.withUnsafeBytes { key in
            try list.bind(key, at: 1)
            list.bind(Int64(max(limit, 0)), at: 2)
            return try list.rows { row in
                StorageKey(bytes: Array(row.data(0))).map {
                    let date = row.isNull(1) ? nil : Date(timeIntervalSince1970: Double(row.integer(1)) / 1_000_000)
                    return StorageEntry.Summary(key: $0, date: date, byteCount: Int(row.integer(2)))
                }
            }.compactMap(\.self)
        }
    }

    /// Writes an entry and verifies that its key leads to this entry.
    ///
    /// If pages are damaged but SQLite considers them intact, the key may lead to an older entry.
    private func write(_ record: Record, for key: [UInt8]) throws {
        guard try !put(record, for: key) else { return }
        let failure = SQLiteError(SQLITE_CORRUPT, "a written entry cannot be found")
        guard sqlite3_get_autocommit(database.handle) != 0 else { throw failure }
        // Another connection may have replaced or removed the entry, but it cannot do so within a
        // transaction.
        try database.transaction {
            guard try put(record, for: key) else { throw failure }
        }
    }

    /// - Returns: Whether the key leads to the row that was written.
    private func put(_ record: Record, for key: [UInt8]) throws -> Bool {
        try key.withUnsafeBytes { key in
            try record.data.withUnsafeBytes { data in
                try put.bind(key, at: 1)
                put.bind(record.form, at: 2)
                put.bind(record.date, at: 3)
                put.bind(record.checksum, at: 4)
                try put.bind(data, at: 5)
                try put.run()
            }
            try locate.bind(key, at: 1)
            defer { locate.reset() }
            return try locate.step() && locate.integer(0) == sqlite3_last_insert_rowid(database.handle)
        }
    }

    /// If a limit is exceeded, deletes the oldest rows until a tenth of each limit is free.
    ///
    /// The free tenth makes it unnecessary to check all rows on every write.
    ///
    /// - Returns: The amount that may be written before the next check. It is at most a tenth of
    ///   each limit, because other connections also write.
    private func makeRoom(_ limits: StorageLimits) throws -> (bytes: Int, count: Int) {
        let written = sqlite3_last_insert_rowid(database.handle)
        let totals = try database.prepare("SELECT coalesce(sum(length(key) + length(data)), 0), count(*) FROM entries")
        var (bytes, count) = try totals.rows { (Int($0.integer(0)), Int($0.integer(1))) }.first ?? (0, 0)
        let (mostBytes, mostCount) = (limits.bytes ?? .max, limits.count ?? .max)
        if bytes > mostBytes || count > mostCount {
            let oldest = try database.prepare(
                "SELECT number, length(key) + length(data) FROM entries WHERE number < ?1 ORDER BY number")
            oldest.bind(written, at: 1)
            var last: Int64?
            while bytes > mostBytes - mostBytes / 10 || count > mostCount - mostCount / 10, try oldest.step() {
                last = oldest.integer(0)
                bytes -= Int(oldest.integer(1))
                count -= 1
            }
            oldest.reset()
            if let last { try database.execute("DELETE FROM entries WHERE number <= \(last)") }
        }
        return (min(mostBytes - bytes, max(mostBytes / 10, 1)), min(mostCount - count, max(mostCount / 10, 1)))
    }
}
