public import Foundation

/// Keeps answers in files, one for each, in a folder of your choice.
///
/// A file holds the bytes of the answer, its key (identifier, classification and account, in clear) and when it was stored: nothing else of the
/// exchange, so no header fields, and nothing of the request. (What a ``ResponseCache`` keeps has header fields, and its identifier is the URL.) Files
/// are the user's alone (mode 0600), and so are folders that this storage makes (0700); nothing is encrypted. Names of files come from a hash, so no identifier leads out of the folder. A folder that is a symbolic link is
/// refused, and no link in it is followed; the folders above it are not judged.
///
/// A new file takes the place of the old one as a whole: at any moment, and after the end of the process at any moment, there is the one or the
/// other. ``StorageDurability/power`` asks the disk to write it before it counts as stored, and removals likewise. A file that is damaged (a checksum
/// tells; it is no defence against a forger) counts as none and is removed.
///
/// Several storages and several processes may use one folder: with the same prefix they share what is there, with different ones (in more than upper
/// and lower case) they do not touch each other's, nor anything else there. One prefix has one ``Format``. With limits, each process counts what it
/// found and what it does itself, so where several write, the limits hold for the last one that counted. What a process that ended left half written
/// is removed once it is an hour old, when the folder is first used.
///
/// Nothing is read or written before the first call. Everything happens on a queue of the storage, one call after another, on none of the threads of
/// Swift's own pool (in a forked process, on the thread of the caller); a call that has begun is finished, also when its task is cancelled. With limits, the first store counts all files, and so does
/// every store after as many removals for want of room as an eighth of them; the others cost no more than without.
public final class FileStorage: ResponseStorage {
    /// What is in a file.
    public enum Format: Sendable, Hashable {
        /// The data with its key, time and checksum.
        case wrapped
        /// The data alone, for files that others read. There is nothing then to notice damage by, or that two keys have one name; the time is unknown
        /// (`nil`), and what is read is ``StorageEntry/Content/unlabelled(_:)``, whatever it was when it was stored.
        case bare
    }

    /// Where the files are.
    public let folder: URL
    /// What kinds of data belong here; `nil` for any.
    public let classifications: Set<DataClassification>?
    /// How many bytes all files may take; `nil` for any number.
    public let maximumBytes: Int?
    /// How many entries there are at most; `nil` for any number.
    public let maximumCount: Int?

    private struct State {
        var isTidy = false
        var inventory: Inventory?
    }

    private let path: String
    private let names: Names
    private let format: Format
    private let durability: StorageDurability
    private let now: @Sendable () -> Date
    /// A forked process does not have the threads that the queue of its parent runs on.
    private let queue = PerProcess { _ in DispatchQueue(label: "WebService.FileStorage") }
    /// Changed on the queue only.
    private let state = Mutex(State())

    /// Makes a storage; the disk is not touched.
    ///
    /// - Parameters:
    ///   - folder: Where the files are; the first store makes it where it is missing.
    ///   - prefix: What names of files begin with: at most 64 ASCII letters and digits, `_`, `-` and `.`, and no `.` at the beginning.
    ///   - format: What is in a file.
    ///   - classifications: What kinds of data belong here; `nil` for any.
    ///   - maximumBytes: How many bytes all files may take, each 36 bytes longer than key and data when wrapped; `nil` for any number.
    ///   - maximumCount: How many entries there are at most, none below 1; `nil` for any number.
    ///   - durability: What a stored entry survives.
    /// - Throws: ``WebServiceError/Code/storage`` when the URL is not one of a folder of this computer, or for such a prefix.
    public convenience init(
        folder: URL, prefix: String = "", format: Format = .wrapped, classifications: Set<DataClassification>? = nil, maximumBytes: Int? = nil,
        maximumCount: Int? = nil, durability: StorageDurability = .process
    ) throws {
        try self.init(
            folder: folder, prefix: prefix, format: format, classifications: classifications, maximumBytes: maximumBytes, maximumCount: maximumCount,
            durability: durability, now: { Date() })
    }

    /// - Parameter now: The clock for the order of entries and the age of what was left behind.
    init(
        folder: URL, prefix: String = "", format: Format = .wrapped, classifications: Set<DataClassification>? = nil, maximumBytes: Int? = nil,
        maximumCount: Int? = nil, durability: StorageDurability = .process, now: @escaping @Sendable () -> Date
    ) throws {
        let isLocal = folder.isFileURL && [nil, "", "localhost"].contains(folder.host(percentEncoded: false))
        var path = isLocal ? folder.absoluteURL.path : ""
        // With one of these at its end, a path follows a link.
        while path.utf8.count > 1, let end = [2, 1].first(where: { path.utf8.suffix($0).elementsEqual("/.".utf8.prefix($0)) }) {
            path.removeLast(end)
        }
        guard path.utf8.first == UInt8(ascii: "/"), !path.utf8.contains(0) else {
            throw WebServiceError(.storage, "the folder of a file storage is no folder of this computer")
        }
        names = try Names(prefix: prefix)
        self.path = path
        self.folder = folder
        self.format = format
        self.classifications = classifications
        self.maximumBytes = maximumBytes
        self.maximumCount = maximumCount
        self.durability = durability
        self.now = now
    }

    /// `WebService` in the system's folder for caches of this user (on Linux `$XDG_CACHE_HOME` or `~/.cache`), which the system may empty when space
    /// runs out; `nil` when there is none. Outside a sandbox all programs share it: append a name of your own.
    public static var defaultFolder: URL? {
        FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first?.appendingPathComponent("WebService", isDirectory: true)
    }

    /// The entry of a key.
    ///
    /// - Returns: `nil` when there is none. A damaged file, and one that is longer than the memory, counts as none and is removed; one of a newer version of this framework, or of another key
    ///   whose name is the same, counts as none and stays.
    /// - Throws: ``WebServiceError/Code/storage`` when it cannot be told, such as for want of permission; its underlying error is a `POSIXError`.
    public func entry(for key: StorageKey) async throws -> StorageEntry? {
        try await perform("an entry could not be read") { try self.read(key) }
    }

    /// Keeps an entry in place of the one of the same key; with limits, those written longest ago then go until the limits hold. One that was written
    /// more than a minute from now, because the clock was wrong, counts as the oldest.
    ///
    /// - Throws: ``WebServiceError/Code/entryTooLarge`` when it alone is more than the limits allow; ``WebServiceError/Code/storage`` for a value
    ///   that is no bytes, and when it cannot be written: its underlying error is a `POSIXError` then. The old entry is still there. (Where only the
    ///   last step of ``StorageDurability/power`` fails, the new one is, but a power failure may cost it.)
    public func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        try await perform("an entry could not be written") { try self.write(entry, key) }
    }

    /// Removes the entry of a key; that there is none is no error.
    ///
    /// - Throws: ``WebServiceError/Code/storage`` when it cannot be removed; its underlying error is a `POSIXError`.
    public func removeEntry(for key: StorageKey) async throws {
        try await perform("an entry could not be removed") {
            guard let folder = try self.openFolder(), let status = try folder.status(of: self.names.entry(key)), !status.isFolder else { return }
            try folder.remove(self.names.entry(key))
            self.state.withLock { $0.inventory?.remove(status) }
            if self.durability == .power { try folder.synchronize() }
        }
    }

    /// Removes all entries that have this storage's prefix, half-written ones of other processes included, whose stores then fail. Everything else in
    /// the folder stays.
    ///
    /// - Throws: ``WebServiceError/Code/storage`` when one cannot be removed, after all the others; its underlying error is a `POSIXError`.
    public func removeAll() async throws {
        try await perform("the entries could not be removed") {
            guard let folder = try self.openFolder() else { return }
            self.state.withLock { $0.inventory = nil }
            var failure: SystemFailure?
            for name in try folder.names() where self.names.kind(of: name) != nil {
                do throws(SystemFailure) {
                    if try folder.status(of: name)?.isFolder == false { try folder.remove(name) }
                } catch {
                    failure = failure ?? error
                }
            }
            if self.durability == .power { try folder.synchronize() }
            if let failure { throw failure }
        }
    }

    private func perform<Result: Sendable>(_ complaint: String, _ work: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            let body: @Sendable () -> Void = {
                do {
                    continuation.resume(returning: try work())
                } catch let failure as SystemFailure {
                    continuation.resume(throwing: failure.error(complaint))
                } catch {
                    continuation.resume(throwing: error)
                }
            }
            if queue.isForked { queue.value.sync(execute: body) } else { queue.value.async(execute: body) }
        }
    }

    // MARK: - On the queue

    /// - Returns: `nil` when there is none.
    private func openFolder(making: Bool = false) throws -> Folder? {
        if let folder = try Folder(path) {
            try tidy(folder)
            return folder
        }
        state.withLock { $0 = State() }
        guard making else { return nil }
        try Folder.create(path, synchronize: durability == .power)
        return try Folder(path)
    }

    /// Removes what processes that ended left half written, the first time.
    private func tidy(_ folder: borrowing Folder) throws {
        guard !state.withLock({ $0.isTidy }) else { return }
        let anHourAgo = Int((now().timeIntervalSince1970 - 3600).rounded(.down))
        for name in try folder.names() where names.kind(of: name) == .temporary {
            guard let status = try folder.status(of: name), !status.isFolder, status.modifiedSeconds < anHourAgo else { continue }
            try? folder.remove(name)  // it harms nobody, and the next process tries again
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
            if let status = try folder.status(of: name), !status.isRegular, !status.isFolder { discard(name, status, key, in: folder) }
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
        try? folder.remove(name, ifStill: status, aside: names.temporary(key))  // what cannot be removed is a miss all the same
        state.withLock { $0.inventory = nil }
    }

    private func write(_ entry: StorageEntry, _ key: StorageKey) throws {
        guard let data = entry.data else { throw WebServiceError(.storage, "a file storage keeps bytes only") }
        let size = format == .wrapped ? data.count + key.bytes.count + WrappedFile.overhead : data.count
        guard size <= maximumBytes ?? .max, maximumCount ?? 1 >= 1 else {
            throw WebServiceError(.entryTooLarge, "an entry of \(size) bytes does not fit into a file storage with these limits")
        }
        guard let folder = try openFolder(making: true) else { throw SystemFailure(call: "open", number: ENOENT) }
        let isLimited = maximumBytes != nil || maximumCount != nil
        let (name, now) = (names.entry(key), now())
        var inventory = isLimited ? try state.withLock { $0.inventory.take() } ?? Inventory(of: folder, names, now: now, keeping: name) : nil
        defer { state.withLock { $0.inventory = inventory } }
        let old = isLimited ? try folder.status(of: name) : nil
        try folder.replace(
            name, with: format == .wrapped ? WrappedFile.bytes(entry, data, key) : data,
            through: names.temporary(key), date: now, synchronize: durability == .power)
        inventory?.add(size, replacing: old)
        try? inventory?.makeRoom(  // the entry is there, so this is no failure of the store; the next one tries again
            in: folder, names, maximumBytes: maximumBytes ?? .max, maximumCount: maximumCount ?? .max, now: now, keeping: name)
        if durability == .power { try folder.synchronize() }
    }
}
