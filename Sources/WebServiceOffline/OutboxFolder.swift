import Foundation
import WebServiceCore

/// The files of an outbox.
///
/// Each entry is a file `NUMBER-ID.entry`. The names are in the order of the submissions: a number
/// is greater than those of all files that existed before the submission began. The file
/// `outbox.lock` is locked by the process that sends. All members block the thread, except `queue`,
/// on which they are called.
final class OutboxFolder: Sendable {
    /// The entries and the renamed damaged files, in order.
    struct Names {
        var entries: [String] = []
        var damaged: [String] = []
        fileprivate var temporary: [String] = []
    }

    enum Content {
        case request(StoredRequest)
        case missing
        case damaged
    }

    let url: URL
    let queue = BlockingQueue("WebService.Outbox")
    private let folder: Folder
    private let lockFile: Descriptor

    init(_ url: URL) throws {
        guard url.isFileURL, !url.path.utf8.contains(0) else {
            throw WebServiceError(
                .storage, "the folder of an outbox must be a local file URL; use URL(fileURLWithPath:)")
        }
        self.url = url
        do {
            let path = url.absoluteURL.path
            try Folder.create(path, synchronize: true)
            guard let folder = try Folder(path) else { throw SystemFailure(call: "open", number: ENOENT) }
            lockFile = try folder.openFile("outbox.lock", isNew: false)
            self.folder = folder
        } catch let failure as SystemFailure {
            throw failure.error(.storage, "the folder of the outbox could not be opened")
        }
        guard try lockFile.lock(isShared: true) != .unsupported else {
            throw WebServiceError(
                .storage, "the file system does not support locks; choose another folder for the outbox")
        }
        lockFile.unlock()
    }

    /// Returns whether this object holds the lock, which it tries to take.
    func takeLock() throws(SystemFailure) -> Bool { try lockFile.lock() == .taken }

    func unlock() { lockFile.unlock() }

    // MARK: Names

    func names() throws(SystemFailure) -> Names {
        var names = Names()
        try folder.forEachName { name throws(SystemFailure) in
            if Self.number(of: name) != nil {
                names.entries.append(name)
            } else if name.hasSuffix(".damaged") {
                names.damaged.append(name)
            } else if name.hasSuffix(".temporary") {
                names.temporary.append(name)
            }
        }
        names.entries.sort()
        return names
    }

    /// Returns the number in the name of an entry; `nil` for another name.
    private static func number(of name: String) -> UInt64? {
        let bytes = name.utf8
        guard bytes.count == 59, name.hasSuffix(".entry"), bytes.dropFirst(16).first == UInt8(ascii: "-"),
            bytes.prefix(16).allSatisfy({ ASCII.isDigit($0) || (0x61...0x66).contains($0) })
        else { return nil }
        return UInt64(String(decoding: bytes.prefix(16), as: UTF8.self), radix: 16)
    }

    /// Removes files that processes left when they were killed, if the files are older than a date.
    func removeTemporaryFiles(before date: Date) {
        guard let names = try? names() else { return }  // the next process tries again
        for name in names.temporary {
            guard let status = try? folder.status(of: name), status.modified < date else { continue }  // see above
            try? folder.remove(name)  // see above
        }
    }

    // MARK: Entries

    /// Stores an entry durably after all others, and returns its name and the earlier names.
    func add(_ request: StoredRequest, maximumCount: Int) throws -> (name: String, earlier: [String]) {
        let names = try names().entries
        guard names.count < maximumCount else {
            throw WebServiceError(
                .outboxFull, "the outbox has \(names.count) entries; wait until some are sent, or increase maximumCount"
            )
        }
        let last = names.last.flatMap(Self.number) ?? 0
        let number = last < .max ? last + 1 : last
        let name = "\(number.hexadecimal)-\(request.head.id.uuidString.lowercased()).entry"
        do {
            try replace(name, with: request)
        } catch {
            try? folder.remove(name)  // the submission has failed, even if the file remains
            throw error
        }
        return (name, names)
    }

    /// Returns whether the file of an entry exists.
    func contains(_ name: String) throws(SystemFailure) -> Bool { try folder.status(of: name) != nil }

    /// Replaces an entry durably.
    func replace(_ name: String, with request: StoredRequest) throws {
        let bytes = try request.encoded()
        try folder.replace(
            name, with: bytes, through: "\(UUID().uuidString.lowercased()).temporary", date: Date(),
            synchronize: true)
        try folder.synchronize()
    }

    /// Removes an entry durably.
    func remove(_ name: String) throws(SystemFailure) {
        try folder.remove(name)
        try folder.synchronize()
    }

    /// Reads an entry.
    ///
    /// - Throws: `SystemFailure` if the file cannot be read now.
    func content(of name: String) throws(SystemFailure) -> Content {
        do throws(SystemFailure) {
            guard let (bytes, _) = try folder.content(of: name) else {
                return try folder.status(of: name) == nil ? .missing : .damaged
            }
            guard let request = StoredRequest(encoded: bytes), name.contains(request.head.id.uuidString.lowercased())
            else { return .damaged }
            return .request(request)
        } catch {
            // A link, or a file that is longer than the memory. Any other failure may be temporary.
            guard error.number == ELOOP || error.call == "malloc" else { throw error }
            return .damaged
        }
    }

    /// Renames a damaged entry, so that it is not read again.
    ///
    /// - Returns: The URL of the file.
    func setAside(_ name: String) -> URL {
        let newName = name + ".damaged"
        let isRenamed: Void? = try? folder.move(name, to: newName)  // the caller ignores a file that remains
        return url.appendingPathComponent(isRenamed == nil ? name : newName, isDirectory: false)
    }
}
