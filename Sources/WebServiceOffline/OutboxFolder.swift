import Foundation
import WebServiceCore

/// The files of an outbox: one for each entry, each copied body, and each stored response.
///
/// The process that sends holds a lock on the file `outbox.lock`.
final class OutboxFolder: OutboxStore {
    enum Content {
        case request(StoredRequest)
        case missing
        case damaged
    }

    let url: URL
    let queue = BlockingQueue("WebService.Outbox")
    let copies: OutboxCopies
    private let files: LockedFolder
    private let willFlush: @Sendable () throws(SystemFailure) -> Void

    /// - Parameter willFlush: Called before the names of the entries are flushed to the disk. An
    ///   error counts as a failed flush. Defaults to a closure without an effect.
    init(_ url: URL, willFlush: @escaping @Sendable () throws(SystemFailure) -> Void = {}) throws {
        self.url = url
        self.willFlush = willFlush
        files = try LockedFolder(url, lockName: "outbox.lock", followsLink: false)
        copies = OutboxCopies(files, url)
    }

    var place: URL { url }
    var lockFile: URL { files.url }

    func takeLock() throws(SystemFailure) -> Bool { try files.takeLock() }

    func unlock() { files.unlock() }

    // MARK: Names

    func names() throws(SystemFailure) -> OutboxNames {
        var names = OutboxNames()
        try files.folder.forEachName { name throws(SystemFailure) in
            if name.hasSuffix(".damaged") { names.damaged.append(name) } else { names.add(name) }
        }
        names.entries.sort()
        names.responses.sort()
        if !names.responses.isEmpty { removeSent(&names) }
        return names
    }

    /// Removes the entries whose responses a killed process has already stored.
    ///
    /// Until such an entry has been removed, its response is not listed. Otherwise the response
    /// could be removed first, and the entry would be sent again.
    private func removeSent(_ names: inout OutboxNames) {
        let entries = Set(names.entries)
        let sent = Set(names.responses.map { OutboxNames.entry(of: $0) }.filter { entries.contains($0) })
        guard !sent.isEmpty else { return }
        // The killed process may not have flushed the response. If the entry were removed before
        // that, neither of them might exist after a power failure.
        let isFlushed = (try? flush()) != nil  // if this fails, the next call tries again
        names.responses.removeAll { response in
            let entry = OutboxNames.entry(of: response)
            return sent.contains(entry) && (!isFlushed || (try? remove(entry)) == nil)  // see above
        }
        names.entries.removeAll { sent.contains($0) }
    }

    func damagedNames() throws(SystemFailure) -> [String] { try names().damaged }

    func removeTemporaryFiles(before date: Date) {
        var names: [String] = []
        try? files.folder.forEachName { name throws(SystemFailure) in  // if this fails, the next process tries again
            if name.hasSuffix(".temporary") { names.append(name) }
        }
        for name in names {
            let status = try? files.folder.status(of: name)  // see above
            guard let status, status.modified < date else { continue }
            try? files.folder.remove(name)  // see above
        }
    }

    // MARK: Entries

    func file(of name: String) -> URL { url.appendingPathComponent(name, isDirectory: false) }

    func add(
        _ bytes: Data, suffix: String, maximumCount: Int, replacing isReplaced: (Data) -> Bool
    ) throws -> OutboxAddition {
        let names = try names()
        let replaced = try names.replaceable(by: suffix).filter { try self.bytes(of: $0).map(isReplaced) ?? false }
        let name = try OutboxNames.new(
            suffix, after: names.entries.last, count: names.entries.count + names.responses.count - replaced.count,
            maximumCount: maximumCount)
        do {
            try replace(name, with: bytes)
            for name in replaced { try files.folder.remove(name) }
        } catch {
            try? files.folder.remove(name)  // the submission fails even if the file remains
            try? flush()  // otherwise the file may reappear after a power failure
            throw error
        }
        if !replaced.isEmpty {
            // The new entry is on the disk, so the submission has succeeded. If this flush fails, a
            // replaced entry that reappears after a power failure is removed when it is read.
            if (try? flush()) != nil { replaced.forEach { copies.remove($0) } }
            files.announce()
        }
        return OutboxAddition(name, earlier: names.entries.filter { !replaced.contains($0) }, replaced: replaced)
    }

    func contains(_ name: String) throws(SystemFailure) -> Bool { try files.folder.status(of: name) != nil }

    func replace(_ name: String, with bytes: Data) throws(SystemFailure) {
        try files.folder.replace(
            name, with: bytes, through: "\(UUID().uuidString.lowercased()).temporary", date: Date(),
            synchronize: true)
        try flush()
        files.announce()
    }

    /// Flushes the names of the files to the disk.
    func flush() throws(SystemFailure) {
        try willFlush()
        try files.folder.synchronize()
    }

    func replace(_ name: String, with bytes: Data, asResponse response: String) throws(SystemFailure) {
        try replace(response, with: bytes)
        try remove(name)
    }

    func remove(_ name: String) throws(SystemFailure) {
        try files.folder.remove(name)
        try flush()
        copies.remove(name)
        files.announce()
    }

    func bytes(of name: String) throws(SystemFailure) -> Data? {
        do throws(SystemFailure) {
            if let (bytes, _) = try files.folder.content(of: name) { return bytes }
            return try contains(name) ? Data() : nil
        } catch {
            // The name is that of a link, or the file does not fit into memory. Any other failure
            // may be temporary.
            guard error.number == ELOOP || error.call == "malloc" else { throw error }
            return Data()
        }
    }

    func setAside(_ name: String) -> URL {
        let newName = name + ".damaged"
        let isRenamed: Void? = try? files.folder.move(name, to: newName)  // the caller ignores a file that remains
        let remains = isRenamed == nil && (try? contains(name)) != false  // another process may have renamed it
        return file(of: remains ? name : newName)
    }
}
