public import Foundation
import WebServiceCore
import WebServiceStorage

/// A folder with the bodies of streamed responses that a ``ResponseCache`` stores.
///
/// ```swift
/// let bodies = try BodyFolder(folder.appendingPathComponent("bodies"), maximumBytes: 2 << 30)
/// let cache = ResponseCache(storage: storage, bodies: bodies, account: { "ann" })
/// ```
/// Each body is one file, as received and decoded, which only the user can access (0600); nothing
/// is encrypted. The names are derived from hashes of the URLs and from random numbers. A file has
/// a temporary name (`.part`) until the body is complete. It is never changed afterwards, so a
/// reader receives the whole body even if the file is replaced or removed in the meantime.
///
/// A file that is missing or has another size than the stored one counts as not stored. Other
/// damage is not detected: after a power failure, a file may have wrong content where the system
/// had not yet written the data to disk.
///
/// Several caches and processes may use one folder if they share the storage of the responses. When
/// a cache is created, files that no stored response refers to are removed, such as those of
/// terminated processes. Files that another process is writing are retained; on a file system
/// without locks, those that are less than an hour old. If the storage cannot list its entries,
/// only incomplete files are removed.
///
/// The folder is opened once. If it is removed, no bodies are stored until another `BodyFolder` is
/// created.
public final class BodyFolder: Sendable {
    /// The folder.
    public let url: URL
    /// The maximum number of bytes of all complete bodies.
    ///
    /// When it is exceeded, the least recently used ones are removed. If several processes add
    /// bodies, the sum may exceed it by an eighth for each process.
    public let maximumBytes: Int64
    /// The maximum number of bytes of one body.
    public let maximumBodyBytes: Int64

    private let folder: Folder
    private let queue = BlockingQueue("WebService.BodyFolder")
    /// Changed only on the queue.
    private let inventory = Mutex(Inventory())

    /// Creates the folder, if necessary, with its missing parents, accessible only to the user
    /// (0700). Blocks the thread.
    ///
    /// - Parameters:
    ///   - url: The URL of the folder. Do not use it for anything else. A symbolic link is refused.
    ///   - maximumBytes: The maximum number of bytes of all complete bodies. Bodies that are being
    ///     received are not included.
    ///   - maximumBodyBytes: The maximum number of bytes of one body. Defaults to half of
    ///     `maximumBytes`.
    /// - Throws: `WebServiceError.Code.storage` if the URL is not that of a local folder, or if the
    ///   folder cannot be created or opened, with a `POSIXError` as the underlying error.
    public init(_ url: URL, maximumBytes: Int64, maximumBodyBytes: Int64? = nil) throws {
        guard let path = url.localFolderPath else {
            throw WebServiceError(
                .storage, "the folder for bodies must be a local file URL; use URL(fileURLWithPath:)")
        }
        do throws(SystemFailure) {
            try Folder.create(path, synchronize: false)
            guard let folder = try Folder(path) else { throw SystemFailure(call: "open", number: ENOENT) }
            self.folder = folder
        } catch {
            throw error.error(.storage, "the folder for bodies could not be opened")
        }
        self.url = url
        self.maximumBytes = max(0, maximumBytes)
        self.maximumBodyBytes = maximumBodyBytes.map { max(0, min($0, maximumBytes)) } ?? max(0, maximumBytes / 2)
    }

    // MARK: Names

    private static let (complete, incomplete) = (".body", ".part")

    /// Returns a new name for the body of a response with a key.
    func newName(for key: StorageKey) -> String { "\(key.fileName)-\(Self.random)\(Self.complete)" }

    private static var random: String { UInt64.random(in: .min ... .max).hexadecimal }

    /// Returns whether a name is one of a complete body. It begins with the 32 digits of the key.
    static func isComplete(_ name: String) -> Bool { digitCount(name) == 49 && name.hasSuffix(complete) }

    private static func isIncomplete(_ name: String) -> Bool { digitCount(name) == 16 && name.hasSuffix(incomplete) }

    /// The number of characters before the suffix; 0 if the name belongs to another program.
    private static func digitCount(_ name: String) -> Int {
        let digits = name.utf8.dropLast(complete.utf8.count)
        let isOwn = digits.enumerated().allSatisfy { index, byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"): true
            default: index == 32 && byte == UInt8(ascii: "-")
            }
        }
        return isOwn ? digits.count : 0
    }

    // MARK: Reading

    /// Opens a body, and counts this as its use.
    ///
    /// - Returns: `nil` if the file does not exist, cannot be opened, or has another size.
    func open(_ file: CachedBody.File) async -> StoredBody? {
        guard Self.isComplete(file.name) else { return nil }
        return try? await queue.result { [self] in  // a file that cannot be opened is not stored
            guard let descriptor = try folder.existingFile(file.name), case let status = try descriptor.status(),
                status.isRegular, Int64(status.size) == file.count
            else { return nil }
            try? descriptor.setModified(Date())  // the order of removals is all that is lost
            return StoredBody(descriptor, count: file.count)
        }
    }

    // MARK: Writing

    /// A file that is being written. It is locked, so that no other process removes it.
    final class Draft: Sendable {
        let descriptor: Descriptor
        let name: String

        fileprivate init(_ descriptor: consuming Descriptor, _ name: String) {
            self.descriptor = descriptor
            self.name = name
        }
    }

    /// Creates a file. Blocks the thread.
    func makeDraft() throws -> Draft {
        for _ in 0..<64 {
            let name = Self.random + Self.incomplete
            let file = try folder.openFile(name, isNew: true)
            // Another process may have locked and removed the file before it was locked here.
            let lock = try file.lock()
            if lock != .heldByAnother, try file.nameCount() > 0 { return Draft(file, name) }
        }
        throw SystemFailure(call: "flock", number: EWOULDBLOCK)
    }

    /// Gives a complete file its name.
    func publish(_ draft: Draft, as file: CachedBody.File) async throws {
        try await queue.result { [self] in
            try folder.move(draft.name, to: file.name)
            inventory.withLock { inventory in
                inventory.bytes += file.count
                inventory.added? += file.count
            }
        }
    }

    /// Removes a file that is not published.
    func discard(_ draft: Draft) {
        queue.run { try? self.folder.remove(draft.name) }  // removed by the next process otherwise
    }

    // MARK: Removing

    /// Removes bodies that are no longer stored.
    func remove(_ names: Set<String>) {
        guard !names.isEmpty else { return }
        queue.run { [self] in
            for name in names where Self.isComplete(name) {
                guard let size = try? folder.status(of: name)?.size else { continue }  // removed before
                try? folder.remove(name)  // removed when the next cache is created otherwise
                inventory.withLock { $0.bytes -= Int64(size) }
            }
        }
    }

    /// Removes all files, including those that are being written.
    ///
    /// - Throws: `WebServiceError.Code.storage` if a file cannot be removed, after all others.
    func removeAll() async throws {
        try await perform("the bodies could not be removed") { folder in
            var failure: SystemFailure?
            for name in try folder.names() where Self.isComplete(name) || Self.isIncomplete(name) {
                do throws(SystemFailure) { try folder.remove(name) } catch { failure = failure ?? error }
            }
            self.inventory.withLock { $0 = Inventory() }
            if let failure { throw failure }
        }
    }

    /// Removes the files of terminated processes, and returns the names of the complete bodies that
    /// no process is about to store.
    func settledNames() async throws -> Set<String> {
        try await perform("the bodies could not be listed") { folder in
            var settled: Set<String> = []
            for name in try folder.names() {
                let isComplete = Self.isComplete(name)
                guard isComplete || Self.isIncomplete(name), try Self.isUnused(name, in: folder) else { continue }
                if isComplete { settled.insert(name) } else { try folder.remove(name) }
            }
            return settled
        }
    }

    private static func isUnused(_ name: String, in folder: borrowing Folder) throws(SystemFailure) -> Bool {
        guard let file = try folder.existingFile(name) else { return false }
        switch try file.lock() {
        case .taken: return true
        case .heldByAnother: return false
        case .unsupported: return try file.status().modified < Date(timeIntervalSinceNow: -3600)
        }
    }

    /// Waits until the removals so far are complete.
    func settled() async { _ = try? await queue.result {} }  // the work throws no error

    private func perform<Result: Sendable>(
        _ complaint: String, _ work: @escaping @Sendable (borrowing Folder) throws -> Result
    ) async throws -> Result {
        do { return try await queue.result { [self] in try work(folder) } } catch let failure as SystemFailure {
            throw failure.error(.storage, complaint)
        }
    }

    // MARK: Limits

    /// The complete bodies as of the last scan, and the bytes that were added and removed since.
    private struct Inventory: Sendable {
        var bytes: Int64 = 0
        /// The number of bytes that were added since the last scan; `nil` before the first one.
        var added: Int64?
        /// The bodies of the last scan; the least recently used one is last.
        var oldest: [(name: String, status: FileStatus)] = []
    }

    /// Removes the least recently used bodies until the limit is met.
    ///
    /// - Parameter file: A new body, which is not removed.
    /// - Returns: The number of bodies removed.
    func makeRoom(for file: CachedBody.File) async -> Int {
        let removed = try? await queue.result { [self] in  // the next body tries again
            var inventory = inventory.withLock { $0 }
            defer { self.inventory.withLock { [inventory] in $0 = inventory } }
            var isExact = false
            if inventory.added.map({ $0 > maximumBytes / 8 }) ?? true {
                inventory = try scan()
                isExact = true
            }
            var removed = 0
            while inventory.bytes > maximumBytes {
                guard let (name, status) = inventory.oldest.popLast() else {
                    if isExact { break }
                    inventory = try scan()
                    isExact = true
                    continue
                }
                // A body that was used after the scan is not one of the oldest.
                guard name != file.name, try folder.status(of: name) == status else { continue }
                try folder.remove(name)
                inventory.bytes -= Int64(status.size)
                removed += 1
            }
            return removed
        }
        return removed ?? 0
    }

    private func scan() throws(SystemFailure) -> Inventory {
        var inventory = Inventory(added: 0)
        for name in try folder.names() where Self.isComplete(name) {
            guard let status = try folder.status(of: name), status.isRegular else { continue }
            inventory.oldest.append((name, status))
            inventory.bytes += Int64(status.size)
        }
        // A date in the future, because of an incorrect clock, would retain a body for too long.
        let future = Date(timeIntervalSinceNow: 60)
        func use(_ status: FileStatus) -> Date { status.modified > future ? .distantPast : status.modified }
        inventory.oldest.sort { use($0.status) > use($1.status) }
        return inventory
    }
}
