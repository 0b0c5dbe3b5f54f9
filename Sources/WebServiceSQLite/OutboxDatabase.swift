import Foundation
import WebServiceCore
import WebServiceOffline
import WebServiceStorage

/// The database of an outbox, with one row for each entry and each stored response.
///
/// The process that sends holds a lock on the file `NAME.sending`. A damaged entry becomes the file
/// `NAME.ENTRY.damaged`. If an entry cannot be removed, for example because a full disk has no
/// space for the log, the file `NAME.ENTRY.removed`, which needs no space, marks the entry as
/// removed. The copies of files that are bodies are not in the database. Their names begin with
/// `NAME.`.
final class OutboxDatabase: OutboxStore {
    let url: URL
    let queue = BlockingQueue("WebService.Outbox")
    let place: URL
    let copies: OutboxCopies
    private let name: String
    private let files: LockedFolder
    private let pairs: PerProcess<ConnectionPair>

    init(_ file: URL, patience: Duration = .seconds(60)) throws {
        let path = file.absoluteURL.path
        (url, place, name) = (file.deletingLastPathComponent(), file, file.lastPathComponent)
        guard !name.isEmpty, name != "/" else {
            throw WebServiceError(.storage, "the URL of an outbox's database has no file name; use the URL of a file")
        }
        files = try LockedFolder(url, lockName: name + ".sending", followsLink: true)
        copies = OutboxCopies(files, url, prefix: name + ".")
        pairs = PerProcess { isForked in
            ConnectionPair(
                files: DatabaseFiles(database: path, purpose: .outbox), durability: .power, clock: .system,
                patience: patience, isForked: isForked)
        }
    }

    var lockFile: URL { files.url }

    func takeLock() throws -> Bool { try files.takeLock() }

    func unlock() {
        files.unlock()
        pairs.value.close()
    }

    private func use<Value>(_ name: String, _ work: (Connection) throws -> Value) throws -> Value {
        let pair = pairs.value
        return try pair.use(pair.writer, name, work)
    }

    // MARK: Names

    func names() throws -> OutboxNames {
        let removed = try removedNames()
        for name in removed { try? erase(name) }  // if this fails, the next call tries again
        var names = try use("list the entries") { try $0.names() }
        names.entries.removeAll { removed.contains($0) }
        names.responses.removeAll { removed.contains($0) }
        names.damaged = try damagedNames()  // after the query, which may move a damaged database aside
        return names
    }

    func damagedNames() throws -> [String] {
        var names: [String] = []
        try files.folder.forEachName { file throws(SystemFailure) in
            if file.hasPrefix(name + "."), file.hasSuffix(".damaged") { names.append(file) }
        }
        return names
    }

    /// Returns the names of the entries that are marked as removed.
    private func removedNames() throws(SystemFailure) -> Set<String> {
        var names: Set<String> = []
        try files.folder.forEachName { file throws(SystemFailure) in
            if file.hasPrefix(name + "."), file.hasSuffix(Self.removed) {
                names.insert(String(file.dropFirst(name.count + 1).dropLast(Self.removed.count)))
            }
        }
        return names
    }

    private static let removed = ".removed"

    private func removedFile(_ name: String) -> String { "\(self.name).\(name)\(Self.removed)" }

    func removeTemporaryFiles(before date: Date) {}

    // MARK: Entries

    func file(of name: String) -> URL { place }

    func add(
        _ bytes: Data, suffix: String, maximumCount: Int, replacing isReplaced: (Data) -> Bool
    ) throws -> OutboxAddition {
        defer { files.announce() }
        // An error of the outbox must not close the connection.
        let added = try use("store an entry") { connection in
            var added = Result<OutboxAddition, any Error>.success(OutboxAddition("", earlier: []))
            try connection.database.transaction {
                let names = try connection.names()
                // A commit that was reported as failed may have taken effect.
                if let name = names.entries.first(where: { $0.hasSuffix(suffix) }) {
                    return added = .success(OutboxAddition(name, earlier: names.entries.filter { $0 != name }))
                }
                added = Result {
                    let replaced = try names.replaceable(by: suffix).filter { name in
                        let entry = try record(of: name, connection)?.entry(for: Array(name.utf8))
                        return entry?.data.map(isReplaced) ?? false
                    }
                    let name = try OutboxNames.new(
                        suffix, after: names.entries.last,
                        count: names.entries.count + names.responses.count - replaced.count, maximumCount: maximumCount)
                    let earlier = names.entries.filter { !replaced.contains($0) }
                    return OutboxAddition(name, earlier: earlier, replaced: replaced)
                }
                if case .success(let added) = added {
                    try connection.write(bytes, as: added.name)
                    for name in added.replaced { try connection.remove(Array(name.utf8)) }
                }
            }
            return added
        }.get()
        for name in added.replaced { copies.remove(name) }
        return added
    }

    func contains(_ name: String) throws -> Bool { try record(of: name) != nil }

    /// Returns the row of an entry or a response.
    private func record(of name: String) throws -> Record? {
        guard try files.folder.status(of: removedFile(name)) == nil else { return nil }
        return try use("read an entry") { try record(of: name, $0) }
    }

    /// Returns the row of an entry or a response, read through a connection.
    ///
    /// A row that cannot be read does not count as a damaged database, because its pages contain no
    /// other entry.
    private func record(of name: String, _ connection: Connection) throws -> Record? {
        do { return try connection.record(for: Array(name.utf8)) } catch let error as SQLiteError where !error.isBusy {
            throw WebServiceError(
                .storage,
                "an entry of the database '\(place.path)' could not be read: \(error.message); copy the database, and "
                    + "then restore or remove the entry", underlying: error)
        }
    }

    func replace(_ name: String, with bytes: Data) throws {
        try use("store an entry") { try $0.write(bytes, as: name) }
        files.announce()
    }

    func replace(_ name: String, with bytes: Data, asResponse response: String) throws {
        try use("store a response") { connection in
            try connection.database.transaction {
                try connection.remove(Array(name.utf8))
                try connection.write(bytes, as: response)
            }
        }
        copies.remove(name)
        files.announce()
    }

    func remove(_ name: String) throws {
        do { try erase(name) } catch {
            do throws(SystemFailure) {
                _ = try files.folder.openFile(removedFile(name), isNew: false)
                try files.folder.synchronize()
            } catch _ { throw error }
        }
        copies.remove(name)
        files.announce()
    }

    func flush() throws { try DatabaseFiles(database: place.absoluteURL.path).flush() }

    private func erase(_ name: String) throws {
        try use("remove an entry") { try $0.remove(Array(name.utf8)) }
        try files.folder.remove(removedFile(name))
    }

    func bytes(of name: String) throws -> Data? {
        guard let record = try record(of: name) else { return nil }
        return record.entry(for: Array(name.utf8))?.data ?? Data()
    }

    func setAside(_ name: String) -> URL {
        let key = Array(name.utf8)
        let file = "\(self.name).\(name).damaged"
        do {
            if let record = try use("read an entry", { try $0.record(for: key) }) {
                try files.folder.replace(
                    file, with: record.data, through: "\(self.name).\(UUID().uuidString.lowercased())", date: Date(),
                    synchronize: true)
                try files.folder.synchronize()
                try use("remove a damaged entry") { try $0.remove(key, checksum: record.checksum) }
            }
            return url.appendingPathComponent(file, isDirectory: false)
        } catch {
            return url.appendingPathComponent(name, isDirectory: false)  // the caller ignores a row that remains
        }
    }
}

extension Connection {
    fileprivate func names() throws -> OutboxNames {
        let keys = try database.prepare("SELECT key FROM entries ORDER BY key").rows {
            String(decoding: $0.data(0), as: UTF8.self)
        }
        var names = OutboxNames()
        for key in keys { names.add(key) }
        return names
    }

    fileprivate func write(_ bytes: Data, as name: String) throws {
        let key = Array(name.utf8)
        guard let record = Record(StorageEntry(.raw(bytes), date: nil), for: key) else { return }  // never `nil` here
        try write(record, for: key, StorageLimits(bytes: nil, count: nil))
    }
}
