public import Foundation
import WebServiceCore
import WebServiceStorage

/// A folder with the bodies of streamed responses that a ``ResponseCache`` stores.
///
/// ```swift
/// let bodies = try BodyFolder(folder.appendingPathComponent("bodies"), maximumBytes: 2 << 30)
/// let cache = ResponseCache(storage: storage, bodies: bodies, account: { "ann" })
/// ```
/// Each body is one file that contains the decoded bytes. Only the user can access the file (0600).
/// The files are not encrypted. Their names are derived from hashes of the URLs and accounts, and
/// from random numbers. A file has a temporary name (`.part`) until the body is complete, and never
/// changes afterwards. A reader therefore receives the whole body even if the file is replaced or
/// removed in the meantime.
///
/// If a file is missing, or its size differs from the one in the stored response, the response
/// counts as not stored. Other damage is not detected. For example, a file may have wrong content
/// if the power failed before the system had written the data to the disk.
///
/// Several caches and processes may use one folder if they share the storage of the responses. When
/// a cache is created, it removes the files to which no stored response refers, such as those of
/// terminated processes. It retains files that another process is writing. On a file system without
/// locks, it retains files that are less than an hour old instead. If the storage cannot list its
/// entries, the cache removes only incomplete files.
///
/// The folder is opened once. If it is removed, no bodies are stored until another `BodyFolder` is
/// created.
public final class BodyFolder: Sendable {
    /// The URL of the folder that contains the bodies.
    public let url: URL
    /// The maximum total size of all complete bodies, in bytes.
    ///
    /// When the total exceeds this limit, the least recently used bodies are removed. If several
    /// processes add bodies, the total may exceed the limit by one eighth of the limit per process.
    public let maximumBytes: Int64
    /// The maximum number of bytes of one body.
    public let maximumBodyBytes: Int64

    private let folder: Folder
    private let queue = BlockingQueue("WebService.BodyFolder")
    /// Changed only on the queue.
    private let inventory = Mutex(Inventory())

    /// Opens the folder. If it does not exist, creates it and its missing parents with access only
    /// for the user (0700). Blocks the thread.
    ///
    /// - Parameters:
    ///   - url: The URL of the folder. Do not use the folder for anything else. A symbolic link is
    ///     refused.
    ///   - maximumBytes: The maximum total size of all complete bodies, in bytes. Bodies that are
    ///     being received are not included.
    ///   - maximumBodyBytes: The maximum number of bytes of one body. Defaults to half of
    ///     `maximumBytes`.
    /// - Throws: `WebServiceError.Code.storage` if the URL is not a local file URL. If the folder
    ///   cannot be created or opened, the error has a `POSIXError` as its underlying error.
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

    /// Returns a new file name for the body of a response that is stored under `key`.
    func newName(for key: StorageKey) -> String { "\(key.fileName)-\(Self.random)\(Self.complete)" }

    private static var random: String { UInt64.random(in: .min ... .max).hexadecimal }

    /// Returns whether a file name is that of a complete body. Such a name begins with the 32
    /// digits of the key.
    static func isComplete(_ name: String) -> Bool { digitCount(name) == 49 && name.hasSuffix(complete) }

    private static func isIncomplete(_ name: String) -> Bool { digitCount(name) == 16 && name.hasSuffix(incomplete) }

    /// Returns the number of characters before the suffix, or 0 if another program created the
    /// file.
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

    /// Opens a body and marks it as recently used.
    ///
    /// - Returns: `nil` if the file does not exist, cannot be opened, or has a different size.
    func open(_ file: CachedBody.File) async -> StoredBody? {
        guard Self.isComplete(file.name) else { return nil }
        return try? await queue.result { [self] in  // a body that cannot be opened counts as not stored
            guard let descriptor = try folder.existingFile(file.name), case let status = try descriptor.status(),
                status.isRegular, Int64(status.size) == file.count
            else { return nil }
            try? descriptor.setModified(Date())  // a failure only affects the order of removals
            return StoredBody(descriptor, count: file.count)
        }
    }

    // MARK: Writing

    /// A file that is being written. It is locked to prevent other processes from removing it.
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
            // Another process may have locked and removed the file before this one could lock it.
            let lock = try file.lock()
            if lock != .heldByAnother, try file.nameCount() > 0 { return Draft(file, name) }
        }
        throw SystemFailure(call: "flock", number: EWOULDBLOCK)
    }

    /// Gives the file of a complete body its final name.
    func publish(_ draft: Draft, as file: CachedBody.File) async throws {
        try await queue.result { [self] in
            try folder.move(draft.name, to: file.name)
            inventory.withLock { inventory in
                inventory.bytes += file.count
                inventory.added? += file.count
            }
        }
    }

    /// Removes a file that has not been published.
    func discard(_ draft: Draft) {
        queue.run { try? self.folder.remove(draft.name) }  // if this fails, the next process removes the file
    }

    // MARK: Removing

    /// Removes bodies that are no longer stored.
    func remove(_ names: Set<String>) {
        guard !names.isEmpty else { return }
        queue.run { [self] in
            for name in names where Self.isComplete(name) {
                guard let size = try? folder.status(of: name)?.size else { continue }  // already removed
                try? folder.remove(name)  // if this fails, the next cache removes it
                inventory.withLock { $0.bytes -= Int64(size) }
            }
        }
    }

    /// Removes all files, including those that are being written.
    ///
    /// - Throws: `WebServiceError.Code.storage` if a file cannot be removed. All other files are
    ///   removed first.
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

    /// Removes the incomplete files of terminated processes. Returns the names of the complete
    /// bodies, except those that a process is about to store.
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

    /// Waits until the removals that were started before the call are complete.
    func settled() async { _ = try? await queue.result {} }  // the work throws no error

    private func perform<Result: Sendable>(
        _ complaint: String, _ work: @escaping @Sendable (borrowing Folder) throws -> Result
    ) async throws -> Result {
        do { return try await queue.result { [self] in try work(folder) } } catch let failure as SystemFailure {
            throw failure.error(.storage, complaint)
        }
    }

    // MARK: Limits

    /// The complete bodies found by the last scan, and their current total size.
    private struct Inventory: Sendable {
        var bytes: Int64 = 0
        /// The number of bytes added since the last scan; `nil` before the first scan.
        var added: Int64?
        /// The bodies that the last scan found, ordered by last use. The least recently used body
        /// is last.
        var oldest: [(name: String, status: FileStatus)] = []
    }

    /// Removes the least recently used bodies until the total size is within the limit.
    ///
    /// - Parameter file: A new body, which is not removed.
    /// - Returns: The number of removed bodies.
    func makeRoom(for file: CachedBody.File) async -> Int {
        let removed = try? await queue.result { [self] in  // after a failure, the next body tries again
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
                // A body that was used after the scan is no longer one of the least recently used.
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
        // A date in the future, set by an incorrect clock, would retain a body for too long.
        let future = Date(timeIntervalSinceNow: 60)
        func use(_ status: FileStatus) -> Date { status.modified > future ? .distantPast : status.modified }
        inventory.oldest.sort { use($0.status) > use($1.status) }
        return inventory
    }
}
