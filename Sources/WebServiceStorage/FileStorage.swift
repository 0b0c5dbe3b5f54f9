public import Foundation
import WebServiceCore

/// A storage that writes each response to a file in a custom folder.
///
/// A file contains the bytes of the response and, with ``Format/wrapped``, its key (identifier,
/// classification and account, unencrypted) and the date at which it was stored. It contains no
/// header fields and no other data of the request, except in the entries of a `ResponseCache`,
/// which include the header fields and the URL. Files are accessible only to the user (mode 0600),
/// as are folders that this storage creates (0700). Nothing is encrypted. File names are derived
/// from a hash, so no identifier can refer to a path outside the folder. A folder that is a
/// symbolic link is refused, and links inside the folder are not followed. The parent folders are
/// not checked.
///
/// Files are replaced atomically: at any time, even if the process is terminated, either the old or
/// the new file exists. With ``StorageEntry/Durability/power``, storing or removing an entry
/// completes only after the change has been written to the disk. A damaged file counts as absent
/// and is removed. The checksum detects damage, but not tampering.
///
/// Several storages and several processes may use one folder. Storages with the same prefix share
/// their entries. Storages whose prefixes differ in more than case do not access each other's
/// files, and no storage accesses any other files. All storages with one prefix must use the same
/// ``Format``.
///
/// Each process enforces the limits based on the files that it has found and on its own changes. If
/// several processes write, only the process that was the last to scan the folder is certain to
/// meet the limits when it stores an entry. When the folder is first used, incomplete files of
/// terminated processes are removed if they are at least one hour old.
///
/// Nothing is read or written before the first call. All calls are executed in order on a queue of
/// the storage, not on a thread of the Swift concurrency pool. In a forked process, they are
/// executed on the caller's thread. A call that has started is completed even if its task is
/// cancelled. If there are limits, the first store scans all files. Another scan takes place each
/// time an eighth of the files has been removed to meet the limits, and at the first store after
/// `removeAll()`, after `removeEntries(of:)`, or after a damaged file was found. All other stores
/// cost the same as without limits.
public final class FileStorage: ResponseStorage {
    /// The content of a file.
    public enum Format: Sendable, Hashable {
        /// The data together with its key, its date and a checksum.
        case wrapped
        /// Only the data, for files that other programs read. Neither damage nor a collision of
        /// file names is detected. The date is unknown (`nil`), and every entry is read as
        /// ``StorageEntry/Content/unlabelled(_:)``, regardless of what was stored.
        case bare
    }

    /// The folder that contains the files.
    public let folder: URL
    /// The accepted classifications; `nil` if any classification is accepted.
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
    ///   - classifications: The accepted classifications. Defaults to `nil`, which accepts any.
    ///   - maximumBytes: The maximum number of bytes of all files. With ``Format/wrapped``, a file
    ///     is 36 bytes longer than its key and data. Defaults to `nil`, which means no limit.
    ///   - maximumCount: The maximum number of entries. If it is less than 1, nothing can be
    ///     stored. Defaults to `nil`, which means no limit.
    ///   - durability: The guarantee for a stored entry. Defaults to
    ///     ``StorageEntry/Durability/process``.
    /// - Throws: `WebServiceError.Code.storage` if the URL is not a local file URL, or if the
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
        guard let path = folder.localFolderPath else {
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
    /// On Linux, the caches folder is `$XDG_CACHE_HOME` or `~/.cache`. The system may purge the
    /// folder when storage space is low. Outside a sandbox, all programs share it, so append a
    /// custom name.
    public static var defaultFolder: URL? {
        FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first?.appendingPathComponent(
            "WebService", isDirectory: true)
    }

    /// Returns the entry for a key.
    ///
    /// - Returns: `nil` if there is no entry. A file that is damaged or too large for memory counts
    ///   as absent and is removed. A file that is from a newer version of this library, or for
    ///   another key with the same file name, counts as absent and is retained.
    /// - Throws: `WebServiceError.Code.storage` if the file cannot be read, for example because
    ///   permission is denied. The underlying error is a `POSIXError`.
    public func entry(for key: StorageKey) async throws -> StorageEntry? {
        try await perform("an entry could not be read") { try self.read(key) }
    }

    /// Stores an entry, and replaces the previous entry for the same key.
    ///
    /// The oldest entries are then removed until the remaining entries are within `maximumBytes`
    /// and `maximumCount`. An entry whose date is more than a minute in the future, because of an
    /// incorrect clock, counts as the oldest.
    ///
    /// - Throws: `WebServiceError.Code.entryTooLarge` if the entry alone exceeds `maximumBytes`, or
    ///   if `maximumCount` is less than 1; `WebServiceError.Code.storage` if the entry is a value
    ///   without bytes, or if the file cannot be written, with a `POSIXError` as the underlying
    ///   error. The previous entry remains. If only the last step of
    ///   ``StorageEntry/Durability/power`` fails, however, the new entry is stored, but a power
    ///   failure may lose it.
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

    /// Removes incomplete files of terminated processes. Has an effect only once.
    private func tidy(_ folder: borrowing Folder) throws {
        guard !state.withLock({ $0.isTidy }) else { return }
        let anHourAgo = Int((clock.date.timeIntervalSince1970 - 3600).rounded(.down))
        for name in try folder.names() where names.kind(of: name) == .temporary {
            guard let status = try folder.status(of: name), !status.isFolder, status.modifiedSeconds < anHourAgo else {
                continue
            }
            try? folder.remove(name)  // if this fails, the next process tries again
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
        try? folder.remove(name, ifStill: status, aside: names.temporary(key))  // a remaining file counts as absent
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
        try? inventory?.makeRoom(  // if this fails, the next store tries again
            in: folder, names, maximumBytes: maximumBytes ?? .max, maximumCount: maximumCount ?? .max, now: now,
            keeping: name)
        if durability == .power { try folder.synchronize() }
    }
}

extension FileStorage {
    /// The contents of a folder as this storage knows them. They are exact after a scan, and then
    /// updated with the storage's own changes.
    struct Inventory: Sendable {
        private var count = 0
        private var bytes = 0
        /// Some of the oldest entries. The oldest of them is last.
        private var oldest: [(name: String, status: FileStatus)] = []

        /// - Parameters:
        ///   - now: The current date. Entries that are dated more than a minute later, because of
        ///     an incorrect clock, count as the oldest.
        ///   - kept: The name of an entry that counts as the newest, regardless of its date.
        init(of folder: borrowing Folder, _ names: Names, now: Date, keeping kept: String) throws(SystemFailure) {
            var entries: [(name: String, status: FileStatus)] = []
            for name in try folder.names() where names.kind(of: name) == .entry {
                if let status = try folder.status(of: name), status.isRegular { entries.append((name, status)) }
            }
            count = entries.count
            bytes = entries.reduce(0) { $0.addingSaturated($1.status.size) }
            let future = now.timeIntervalSince1970 + 60
            entries.sort { Self.order($0, future, kept) < Self.order($1, future, kept) }
            oldest = entries.prefix(entries.count / 8 + 1).reversed()
        }

        mutating func add(_ size: Int, replacing old: FileStatus?) {
            if let old { remove(old) }
            count += 1
            bytes = bytes.addingSaturated(size)
        }

        mutating func remove(_ old: FileStatus) {
            guard old.isRegular else { return }
            count -= 1
            bytes -= old.size
        }

        /// Removes the oldest entries, except `kept`, until both limits are met. Scans the folder
        /// again when the list of old entries is exhausted.
        mutating func makeRoom(
            in folder: borrowing Folder, _ names: Names, maximumBytes: Int, maximumCount: Int, now: Date,
            keeping kept: String
        ) throws(SystemFailure) {
            var countHelps = true
            while bytes > maximumBytes || count > maximumCount {
                if let (name, status) = oldest.popLast() {
                    // Otherwise, the entry was written again or removed after the scan.
                    guard name != kept, try folder.status(of: name) == status else { continue }
                    try folder.remove(name)
                    remove(status)
                    countHelps = true
                } else {
                    guard countHelps else { return }
                    self = try Self(of: folder, names, now: now, keeping: kept)
                    countHelps = false
                }
            }
        }

        private static func order(
            _ entry: (name: String, status: FileStatus), _ future: TimeInterval, _ kept: String
        ) -> (Int, Int, Int, String) {
            let (seconds, nanoseconds) = (entry.status.modifiedSeconds, entry.status.modifiedNanoseconds)
            return (entry.name == kept ? 2 : Double(seconds) > future ? 0 : 1, seconds, nanoseconds, entry.name)
        }
    }
}

extension Int {
    /// Returns the sum, or the maximum on overflow. Sparse files may have any length.
    fileprivate func addingSaturated(_ other: Int) -> Int {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? .max : sum
    }
}

/// Listing of entries.
extension FileStorage {
    /// The number of bytes of a file that are read to describe it. If the key is longer, more bytes
    /// are read.
    private static let headCount = 4 << 10

    /// Returns summaries of entries; see ``ResponseStorage/summaries(after:limit:)``.
    ///
    /// Damage to an entry's data is not detected.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the folder cannot be read, or if the format is
    ///   ``Format/bare``, because files in this format do not contain keys.
    public func summaries(after key: StorageKey?, limit: Int) async throws -> [StorageEntry.Summary] {
        guard format == .wrapped else {
            throw WebServiceError(
                .storage,
                "a file storage with format: .bare cannot list its entries, because it stores no keys; create it with "
                    + "format: .wrapped")
        }
        return try await perform("the entries could not be listed") {
            guard let folder = try self.openFolder() else { return [] }
            let start = key.map(self.names.entry) ?? ""
            let names = try folder.names().filter { $0 > start && self.names.kind(of: $0) == .entry }.sorted()
            var summaries: [StorageEntry.Summary] = []
            for name in names {
                guard summaries.count < limit else { break }
                if let summary = try Self.summary(of: name, in: folder) { summaries.append(summary) }
            }
            return summaries
        }
    }

    /// - Returns: `nil` if the file does not exist, is damaged, or is of another version.
    private static func summary(
        of name: String, in folder: borrowing Folder
    ) throws(SystemFailure) -> StorageEntry.Summary? {
        var count = headCount
        while let (head, status) = try folder.content(
            of: name, limit: count, headCount: count, isWhole: { _, _ in false })
        {
            guard let needed = WrappedFile.headCount(head, fileSize: status.size) else { return nil }
            guard needed > head.count, needed > count else { return WrappedFile.summary(head, fileSize: status.size) }
            count = needed
        }
        return nil
    }
}

/// Removal of entries.
extension FileStorage {
    /// Removes the entry for a key. It is not an error if there is no entry.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the entry cannot be removed. The underlying
    ///   error is a `POSIXError`.
    public func removeEntry(for key: StorageKey) async throws {
        try await perform("an entry could not be removed") {
            guard let folder = try self.openFolder() else { return }
            if let status = try folder.status(of: self.names.entry(key)), !status.isFolder {
                try folder.remove(self.names.entry(key))
                self.state.withLock { $0.inventory?.remove(status) }
            }
            // A killed process may have removed the entry without flushing the folder.
            if self.durability == .power { try folder.synchronize() }
        }
    }

    /// Removes all entries with this storage's prefix. All other files are retained.
    ///
    /// Incomplete files of other processes are also removed, so their stores fail.
    ///
    /// - Throws: `WebServiceError.Code.storage` if a file cannot be removed. All other files are
    ///   removed first. The underlying error is a `POSIXError`.
    public func removeAll() async throws {
        try await perform("the entries could not be removed") {
            try self.removeFiles { _, name throws(SystemFailure) in self.names.kind(of: name) != nil }
        }
    }

    /// Removes the entries with a classification.
    ///
    /// If the storage accepts only this classification, all entries are removed, as by
    /// ``removeAll()``. Otherwise, every file is read. A file is retained if its classification
    /// cannot be read because the file is damaged or from a newer version of this library.
    ///
    /// - Throws: `WebServiceError.Code.storage` if a file cannot be read or removed, with a
    ///   `POSIXError` as the underlying error. All other files are processed first. This error is
    ///   also thrown if the format is ``Format/bare``, whose files contain no classification, and
    ///   the storage accepts other classifications.
    public func removeEntries(of classification: DataClassification) async throws {
        guard format == .wrapped, classifications != [classification] else {
            guard classifications == [classification] else {
                throw WebServiceError(
                    .storage,
                    "a file storage with format: .bare stores no classifications; use one storage for each "
                        + "classification")
            }
            return try await removeAll()
        }
        let prefix = StorageKey.prefix(of: classification)
        try await perform("the entries could not be removed") {
            try self.removeFiles { folder, name throws(SystemFailure) in
                guard self.names.kind(of: name) == .entry, let (bytes, _) = try folder.content(of: name) else {
                    return false
                }
                return WrappedFile.isFor(keyWith: prefix, bytes)
            }
        }
    }

    /// Removes files, and then throws the first failure if there was one.
    private func removeFiles(
        where isRemoved: (borrowing Folder, _ name: String) throws(SystemFailure) -> Bool
    ) throws {
        guard let folder = try openFolder() else { return }
        state.withLock { $0.inventory = nil }
        var failure: SystemFailure?
        for name in try folder.names() {
            do throws(SystemFailure) {
                guard try isRemoved(folder, name), try folder.status(of: name)?.isFolder == false else { continue }
                try folder.remove(name)
            } catch {
                failure = failure ?? error
            }
        }
        if durability == .power { try folder.synchronize() }
        if let failure { throw failure }
    }
}

extension URL {
    /// The path of a local folder; `nil` for any other URL. A symbolic link at the end of the path
    /// is not followed.
    package var localFolderPath: String? {
        let isLocal = isFileURL && [nil, "", "localhost"].contains(host(percentEncoded: false))
        var path = isLocal ? absoluteURL.path : ""
        // With a trailing `/` or `/.`, the system would follow a link at the end of the path.
        while path.utf8.count > 1,
            let end = [2, 1].first(where: { path.utf8.suffix($0).elementsEqual("/.".utf8.prefix($0)) })
        {
            path.removeLast(end)
        }
        return path.utf8.first == UInt8(ascii: "/") && !path.utf8.contains(0) ? path : nil
    }
}
