public import Foundation

/// A storage that writes each response to a file, in a custom folder.
///
/// A file contains the bytes of the response, its key (identifier, classification and account,
/// unencrypted) and the date at which it was stored. It contains no header fields and no data of
/// the request. (The entries of a `ResponseCache` include header fields, and their identifier is
/// the URL.) Files are accessible only to the user (mode 0600), as are folders that this storage
/// creates (0700); nothing is encrypted. File names are derived from a hash, so no identifier can
/// refer to a path outside the folder. A folder that is a symbolic link is refused, and no link in
/// it is followed; its parent folders are not checked.
///
/// Files are replaced atomically: at any time, even if the process is terminated, either the old or
/// the new file exists. With ``StorageEntry/Durability/power``, a store or a removal completes only
/// after it has been written to the disk. A damaged file counts as absent and is removed; the
/// checksum detects damage, but not tampering.
///
/// Several storages and several processes may use one folder. Storages with the same prefix share
/// their entries. Storages with prefixes that differ in more than case do not access each other's
/// files, nor any other files. All storages with one prefix must use the same ``Format``. Each
/// process enforces the limits based on the files that it has found and on its own changes; if
/// several processes write, the limits are met after a store by the process that scanned last. When
/// the folder is first used, incomplete files of terminated processes are removed if they are at
/// least one hour old.
///
/// Nothing is read or written before the first call. All calls are executed in order on a queue of
/// the storage, not on a thread of the Swift concurrency pool (in a forked process, on the caller's
/// thread). A call that has started is completed even if its task is cancelled. With limits, the
/// first store scans all files, and so does a store each time an eighth of them has been removed to
/// meet the limits; all other stores cost the same as without limits.
public final class FileStorage: ResponseStorage {
    /// The content of a file.
    public enum Format: Sendable, Hashable {
        /// The data with its key, date and checksum.
        case wrapped
        /// The data alone, for files that other programs read. Neither damage nor a collision of
        /// file names is detected. The date is unknown (`nil`), and an entry is read as
        /// ``StorageEntry/Content/unlabelled(_:)``, regardless of what was stored.
        case bare
    }

    /// The folder with the files.
    public let folder: URL
    /// The accepted classifications; `nil` for any.
    public let classifications: Set<DataClassification>?
    /// The maximum number of bytes of all files; `nil` for no limit.
    public let maximumBytes: Int?
    /// The maximum number of entries; `nil` for no limit.
    public let maximumCount: Int?

    struct State {
        var isTidy = false
        var isSynchronized = false
        var inventory: Inventory?
    }

    private let path: String
    let names: Names
    let format: Format
    let durability: StorageEntry.Durability
    private let clock: TaskClock
    private let queue = BlockingQueue("WebService.FileStorage")
    /// Changed only on the queue.
    let state = Mutex(State())

    /// Creates a storage without accessing the disk.
    ///
    /// - Parameters:
    ///   - folder: The folder for the files. The first store creates it if necessary.
    ///   - prefix: The start of every file name: at most 64 ASCII letters, digits, `_`, `-` and
    ///     `.`, not starting with `.`. Defaults to an empty string.
    ///   - format: The content of a file. Defaults to ``Format/wrapped``.
    ///   - classifications: The accepted classifications. Defaults to `nil`, any.
    ///   - maximumBytes: The maximum number of bytes of all files; with ``Format/wrapped``, a file
    ///     is 36 bytes longer than its key and data. Defaults to `nil`, no limit.
    ///   - maximumCount: The maximum number of entries; below 1, nothing can be stored. Defaults to
    ///     `nil`, no limit.
    ///   - durability: The guarantee for a stored entry. Defaults to
    ///     ``StorageEntry/Durability/process``.
    /// - Throws: ``WebServiceError/Code/storage`` if the URL is not that of a local folder, or the
    ///   prefix is invalid.
    public convenience init(
        folder: URL, prefix: String = "", format: Format = .wrapped, classifications: Set<DataClassification>? = nil,
        maximumBytes: Int? = nil,
        maximumCount: Int? = nil, durability: StorageEntry.Durability = .process
    ) throws {
        try self.init(
            folder: folder, prefix: prefix, format: format, classifications: classifications,
            maximumBytes: maximumBytes, maximumCount: maximumCount,
            durability: durability, timekeeper: nil)
    }

    /// - Parameter timekeeper: The clock for the order of entries and the age of incomplete files;
    ///   `nil` for the system clock.
    init(
        folder: URL, prefix: String = "", format: Format = .wrapped, classifications: Set<DataClassification>? = nil,
        maximumBytes: Int? = nil,
        maximumCount: Int? = nil, durability: StorageEntry.Durability = .process, timekeeper: (any Timekeeper)?
    ) throws {
        let isLocal = folder.isFileURL && [nil, "", "localhost"].contains(folder.host(percentEncoded: false))
        var path = isLocal ? folder.absoluteURL.path : ""
        // With a trailing `/` or `/.`, the path would follow a symbolic link.
        while path.utf8.count > 1,
            let end = [2, 1].first(where: { path.utf8.suffix($0).elementsEqual("/.".utf8.prefix($0)) })
        {
            path.removeLast(end)
        }
        guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
            throw WebServiceError(
                .storage, "the folder of a file storage must be a local file URL; use URL(fileURLWithPath:)")
        }
        names = try Names(prefix: prefix)
        self.path = path
        self.folder = folder
        self.format = format
        self.classifications = classifications
        self.maximumBytes = maximumBytes
        self.maximumCount = maximumCount
        self.durability = durability
        clock = TaskClock(timekeeper)
    }

    /// The folder `WebService` in the user's caches folder, or `nil` if there is none.
    ///
    /// On Linux, the caches folder is `$XDG_CACHE_HOME` or `~/.cache`. The system may purge it when
    /// storage space is low. Outside a sandbox, all programs share it: append a custom name.
    public static var defaultFolder: URL? {
        FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first?.appendingPathComponent(
            "WebService", isDirectory: true)
    }

    /// Returns the entry for a key.
    ///
    /// - Returns: `nil` if there is no entry. A file that is damaged or too large for memory counts
    ///   as absent and is removed; a file from a newer version of this library, or for another key
    ///   with the same file name, counts as absent and is retained.
    /// - Throws: ``WebServiceError/Code/storage`` if the file cannot be read, for example because
    ///   permission is denied; the underlying error is a `POSIXError`.
    public func entry(for key: StorageKey) async throws -> StorageEntry? {
        try await perform("an entry could not be read") { try self.read(key) }
    }

    /// Stores an entry in place of the one with the same key.
    ///
    /// The oldest entries are then removed until the remaining ones are within `maximumBytes` and
    /// `maximumCount`. An entry dated more than a minute in the future, because of an incorrect
    /// clock, counts as the oldest.
    ///
    /// - Throws: ``WebServiceError/Code/entryTooLarge`` if the entry alone exceeds `maximumBytes`,
    ///   or `maximumCount` is less than 1; ``WebServiceError/Code/storage`` for a value without
    ///   bytes, or, with a `POSIXError` as the underlying error, if the file cannot be written. The
    ///   previous entry remains. (If only the last step of ``StorageEntry/Durability/power`` fails,
    ///   the new entry is stored, but a power failure may lose it.)
    public func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        try await perform("an entry could not be written") { try self.write(entry, key) }
    }

    func perform<Result: Sendable>(
        _ complaint: String, _ work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        do { return try await queue.result(of: work) } catch let failure as SystemFailure {
            throw failure.error(.storage, complaint)
        }
    }

    // MARK: - On the queue

    /// - Returns: `nil` if the folder does not exist.
    func openFolder(making: Bool = false) throws -> Folder? {
        if making, durability == .power, !state.withLock(\.isSynchronized) {
            try Folder.create(path, synchronize: true)
            state.withLock { $0.isSynchronized = true }
        }
        if let folder = try Folder(path) {
            try tidy(folder)
            return folder
        }
        state.withLock { $0 = State() }
        guard making else { return nil }
        try Folder.create(path, synchronize: durability == .power)
        return try Folder(path)
    }

    /// Removes incomplete files of terminated processes, once.
    private func tidy(_ folder: borrowing Folder) throws {
        guard !state.withLock({ $0.isTidy }) else { return }
        let anHourAgo = Int((clock.date.timeIntervalSince1970 - 3600).rounded(.down))
        for name in try folder.names() where names.kind(of: name) == .temporary {
            guard let status = try folder.status(of: name), !status.isFolder, status.modifiedSeconds < anHourAgo else {
                continue
            }
            try? folder.remove(name)  // harmless; the next process tries again
        }
        state.withLock { $0.isTidy = true }
    }

    private func read(_ key: StorageKey) throws -> StorageEntry? {
        guard let folder = try openFolder() else { return nil }
        let name = names.entry(key)
        let found: (bytes: Data, status: FileStatus)?
        do throws(SystemFailure) {
            found = try folder.content(of: name) { format == .bare || WrappedFile.isWhole($0, count: $1) }
        } catch {
            guard error.isTooLong, let status = try folder.status(of: name) else { throw error }
            discard(name, status, key, in: folder)
            return nil
        }
        guard let (bytes, status) = found else {
            if let status = try folder.status(of: name), !status.isRegular, !status.isFolder {
                discard(name, status, key, in: folder)
            }
            return nil
        }
        guard format == .wrapped else { return StorageEntry(.unlabelled(bytes), date: nil) }
        switch WrappedFile.read(bytes, for: key) {
        case .entry(let entry): return entry
        case .foreign: return nil
        case .damaged:
            discard(name, status, key, in: folder)
            return nil
        }
    }

    private func discard(_ name: String, _ status: FileStatus, _ key: StorageKey, in folder: borrowing Folder) {
        try? folder.remove(name, ifStill: status, aside: names.temporary(key))  // a file that remains is a miss as well
        state.withLock { $0.inventory = nil }
    }

    private func write(_ entry: StorageEntry, _ key: StorageKey) throws {
        guard let data = entry.data else {
            throw WebServiceError(.storage, "a file storage stores only bytes; use a MemoryStorage for other values")
        }
        let size = format == .wrapped ? data.count + key.bytes.count + WrappedFile.overhead : data.count
        guard maximumCount ?? 1 >= 1 else {
            throw WebServiceError(
                .entryTooLarge, "the storage accepts no entries; set maximumCount to at least 1, or to nil")
        }
        guard size <= maximumBytes ?? .max else {
            throw WebServiceError(
                .entryTooLarge,
                "an entry of \(size) bytes exceeds the maximum size of the storage; increase maximumBytes")
        }
        guard let folder = try openFolder(making: true) else { throw SystemFailure(call: "open", number: ENOENT) }
        let isLimited = maximumBytes != nil || maximumCount != nil
        let (name, now) = (names.entry(key), clock.date)
        var inventory =
            isLimited
            ? try state.withLock { $0.inventory.take() } ?? Inventory(of: folder, names, now: now, keeping: name) : nil
        defer { state.withLock { $0.inventory = inventory } }
        let old = isLimited ? try folder.status(of: name) : nil
        try folder.replace(
            name, with: format == .wrapped ? WrappedFile.bytes(entry, data, key) : data,
            through: names.temporary(key), date: now, synchronize: durability == .power)
        inventory?.add(size, replacing: old)
        try? inventory?.makeRoom(  // the entry is stored; the next store tries again
            in: folder, names, maximumBytes: maximumBytes ?? .max, maximumCount: maximumCount ?? .max, now: now,
            keeping: name)
        if durability == .power { try folder.synchronize() }
    }
}
