package import Foundation
package import WebServiceCore

/// The store of an outbox's entries: a folder or a database.
///
/// An entry has a name and bytes; see ``OutboxNames``. When a method that makes a change returns,
/// the change is on the disk. The methods that access the store block the thread, and are called on
/// `queue`.
package protocol OutboxStore: Sendable {
    var queue: BlockingQueue { get }
    /// The folder that contains the damaged files.
    var url: URL { get }
    /// The folder or the database, as it is named in errors.
    var place: URL { get }
    /// The file whose attributes are changed after each change of the entries to notify other
    /// processes.
    var lockFile: URL { get }
    /// The copies of files that are the bodies of entries. A method that removes an entry also
    /// removes its copies afterwards.
    var copies: OutboxCopies { get }

    /// Tries to take the lock of the process that sends. Returns whether this object holds the
    /// lock.
    func takeLock() throws -> Bool
    /// Releases the lock when the outbox is closed.
    func unlock()

    func names() throws -> OutboxNames
    /// Returns the names of the damaged files.
    func damagedNames() throws -> [String]
    /// Returns the URL of the file that contains an entry.
    func file(of name: String) -> URL
    /// Stores an entry after all others, and then removes the entries that it replaces. If an error
    /// is thrown, the last of these entries remains.
    ///
    /// - Parameters:
    ///   - suffix: The part of the name after the number.
    ///   - isReplaced: Returns whether an entry whose name has the same hashes is replaced. Its
    ///     argument is the bytes of that entry.
    func add(
        _ bytes: Data, suffix: String, maximumCount: Int, replacing isReplaced: (Data) -> Bool
    ) throws -> OutboxAddition
    /// Returns whether an entry or a response exists.
    func contains(_ name: String) throws -> Bool
    func replace(_ name: String, with bytes: Data) throws
    /// Stores the response to an entry, and removes the entry, which may already be missing. At any
    /// time, the store contains at least one of them.
    ///
    /// - Parameter response: The name of the response.
    func replace(_ name: String, with bytes: Data, asResponse response: String) throws
    /// Removes an entry or a response. It is not an error if it is missing.
    func remove(_ name: String) throws
    /// Flushes the entries and the responses to the disk. Before that, a power failure may undo the
    /// changes of another process, because that process may have been killed before it flushed
    /// them. For example, an entry that it has removed may reappear.
    func flush() throws
    /// Returns the bytes of an entry or a response, `nil` if it does not exist, or empty data if it
    /// is damaged.
    ///
    /// - Throws: An error if the entry temporarily cannot be read.
    func bytes(of name: String) throws -> Data?
    /// Moves a damaged entry or response to another file, so that it is not read again.
    ///
    /// - Returns: The URL of that file. If the entry remains, the URL contains the name of the
    ///   entry.
    func setAside(_ name: String) -> URL
    /// Removes files that killed processes have left behind and that were last changed before
    /// `date`.
    func removeTemporaryFiles(before date: Date)
}

/// The result of adding an entry: its name, and the names of the earlier and the replaced entries.
package struct OutboxAddition: Sendable {
    package var name: String
    /// The entries that existed before, except those that were replaced.
    package var earlier: [String]
    /// The entries that were removed because the new entry replaces them.
    package var replaced: [String] = []

    package init(_ name: String, earlier: [String], replaced: [String] = []) {
        (self.name, self.earlier, self.replaced) = (name, earlier, replaced)
    }
}

/// The names of the entries, the stored responses and the damaged files.
///
/// The name of an entry is `NUMBER-ID.entry`, `NUMBER-ID-LANE.entry` or `NUMBER-ID-LANE-KEY.entry`.
/// It determines the entry's place in the order of the submissions. The number is greater than the
/// numbers of all entries that existed before the submission began. The lane is a hash of the
/// entity or, if there is none, of the key. If an entry cannot be read, the lane ensures that only
/// later entries of the same lane are delayed. The key in the name is a hash of the entity and of
/// the key that a later entry can use to replace this one.
package struct OutboxNames {
    /// The names of the entries, in ascending order.
    package var entries: [String] = []
    /// The names of the stored responses, in ascending order. Each is the name of its entry with a
    /// different suffix.
    package var responses: [String] = []
    package var damaged: [String] = []

    package init() {}

    /// Adds a name if it is that of an entry or of a response.
    package mutating func add(_ name: String) {
        if Self.number(of: name) != nil {
            entries.append(name)
        } else if name.hasSuffix(Self.responseSuffix), Self.number(of: Self.entry(of: name)) != nil {
            responses.append(name)
        }
    }

    private static let responseSuffix = ".response"

    /// Returns the name of the response to an entry.
    package static func response(to entry: String) -> String { entry.dropLast(".entry".count) + responseSuffix }

    /// Returns the name of a response's entry.
    package static func entry(of response: String) -> String { response.dropLast(responseSuffix.count) + ".entry" }

    /// Returns the number in the name of an entry, or `nil` for any other name.
    package static func number(of name: String) -> UInt64? {
        let bytes = name.utf8
        let hyphens = [59: [16], 76: [16, 53], 93: [16, 53, 70]][bytes.count]
        guard let hyphens, name.hasSuffix(".entry"),
            hyphens.allSatisfy({ bytes.dropFirst($0).first == UInt8(ascii: "-") })
        else { return nil }
        return number(bytes.prefix(16))
    }

    private static func number(_ digits: Substring.UTF8View) -> UInt64? {
        guard digits.allSatisfy({ ASCII.isDigit($0) || (0x61...0x66).contains($0) }) else { return nil }
        return UInt64(String(decoding: digits, as: UTF8.self), radix: 16)
    }

    /// Returns the identifier in the name of an entry.
    static func id(of name: String) -> UUID? {
        UUID(uuidString: String(decoding: name.utf8.dropFirst(17).prefix(36), as: UTF8.self))
    }

    /// Returns the lane in the name of an entry, or `nil` if it has no lane.
    static func lane(of name: String) -> UInt64? {
        name.utf8.count >= 76 ? number(name.utf8.dropFirst(54).prefix(16)) : nil
    }

    /// Returns the part of an entry's name, or of its suffix, that contains the hashes of the
    /// entity and of the key. Returns `nil` if there is no key.
    package static func hashes(of name: String) -> String? {
        guard name.utf8.count == 93 || name.utf8.count == 77 else { return nil }
        return String(decoding: name.utf8.suffix(39), as: UTF8.self)
    }

    /// Returns the names of the entries that a new entry with the given suffix may replace.
    package func replaceable(by suffix: String) -> [String] {
        guard let hashes = Self.hashes(of: suffix) else { return [] }
        return entries.filter { Self.hashes(of: $0) == hashes }
    }

    /// The names of the entries that a later entry with the same hashes may replace, each with the
    /// name of the last such entry.
    var replaced: [(name: String, last: String)] {
        var last: [String: String] = [:]
        return entries.reversed().compactMap { name in
            guard let hashes = Self.hashes(of: name) else { return nil }
            if let last = last[hashes] { return (name, last) }
            last[hashes] = name
            return nil
        }
    }

    /// Returns the part of an entry's name after the number.
    static func suffix(_ id: UUID, _ entity: String?, _ key: String?) -> String {
        // If there is no entity, the entries with the same key are sent one after another.
        let lane = (entity ?? key).map { "-\(OutboxState.hash($0).hexadecimal)" } ?? ""
        let key = key.map { "-\(OutboxState.hash("\(entity ?? "")\0\($0)").hexadecimal)" } ?? ""
        return "-\(id.uuidString.lowercased())\(lane)\(key).entry"
    }

    /// Returns the name of a new entry.
    ///
    /// - Parameters:
    ///   - last: The name of the last entry.
    ///   - count: The number of entries and responses.
    /// - Throws: `outboxFull` if the maximum number is reached.
    package static func new(
        _ suffix: String, after last: String?, count: Int, maximumCount: Int
    ) throws(WebServiceError) -> String {
        guard count < maximumCount else {
            throw WebServiceError(
                .outboxFull,
                "the outbox has \(count) entries and stored responses; wait until some are sent, remove the responses, "
                    + "or increase maximumCount")
        }
        let last = last.flatMap(number) ?? 0
        return (last < .max ? last + 1 : last).hexadecimal + suffix
    }
}

extension OutboxStore {
    func add(_ request: StoredRequest, maximumCount: Int) throws -> OutboxAddition {
        let head = request.head
        return try add(
            try request.encoded(), suffix: OutboxNames.suffix(head.id, head.entity, head.key),
            maximumCount: maximumCount
        ) { StoredRequest(encoded: $0)?.isReplaced(by: request) ?? false }
    }

    func replace(_ name: String, with request: StoredRequest) throws {
        try replace(name, with: try request.encoded())
    }

    /// Removes the copies of an entry if another process has removed the entry.
    func removeCopies(ifMissing name: String) throws {
        guard try !contains(name) else { return }
        try flush()  // otherwise, the entry could reappear without its copies
        copies.remove(name)
    }

    /// Reads an entry.
    ///
    /// - Throws: An error if the entry temporarily cannot be read.
    func content(of name: String) throws -> OutboxFolder.Content {
        guard let bytes = try bytes(of: name) else { return .missing }
        guard var request = StoredRequest(encoded: bytes), name.contains(request.head.id.uuidString.lowercased())
        else { return .damaged }
        request.file = request.head.file.map { copies.file(of: request.head.id, $0) }
        return .request(request)
    }
}

/// A folder that contains a file which the sending process locks.
package final class LockedFolder: Sendable {
    package let folder: Folder
    /// The URL of the lock file.
    package let url: URL
    private let lockFile: Descriptor

    /// Opens a folder, and creates it if necessary. The names of the folder and its parents are
    /// flushed to the disk, because the caller or a killed process may have created them without
    /// flushing.
    ///
    /// - Parameters:
    ///   - lockName: The name of the lock file.
    ///   - followsLink: Whether a link to a folder is accepted.
    package init(_ url: URL, lockName: String, followsLink: Bool) throws {
        guard url.isFileURL, !url.path.utf8.contains(0) else {
            throw WebServiceError(
                .storage, "the folder of an outbox must be a local file URL; use URL(fileURLWithPath:)")
        }
        do {
            let path = url.absoluteURL.path
            try Folder.create(path, synchronize: true)
            var parent = (path as NSString).deletingLastPathComponent
            while !parent.isEmpty, parent != "/" {
                try? Folder.create(parent, synchronize: true)  // the process may have no access to its parent
                parent = (parent as NSString).deletingLastPathComponent
            }
            guard let folder = try Folder(path, followsLink: followsLink) else {
                throw SystemFailure(call: "open", number: ENOENT)
            }
            lockFile = try folder.openFile(lockName, isNew: false)
            self.folder = folder
            self.url = url.appendingPathComponent(lockName, isDirectory: false)
        } catch let failure as SystemFailure {
            throw failure.error(
                .storage,
                "the folder '\(url.path)' of the outbox could not be opened; check its permissions, or use another "
                    + "folder")
        }
        guard try lockFile.lock(isShared: true) != .unsupported else {
            throw WebServiceError(
                .storage,
                "the file system of the folder '\(url.path)' does not support locks; choose another folder for the "
                    + "outbox")
        }
        lockFile.unlock()
    }

    /// Tries to take the lock. Returns whether this object holds the lock.
    package func takeLock() throws(SystemFailure) -> Bool { try lockFile.lock() == .taken }

    package func unlock() {
        lockFile.unlock()
        announce()
    }

    /// Notifies the outboxes that watch the lock file.
    package func announce() {
        try? lockFile.setModified(Date())  // if this fails, they notice the change later
    }
}
