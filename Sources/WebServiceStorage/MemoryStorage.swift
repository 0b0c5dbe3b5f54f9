import Foundation
import WebServiceCore

/// A storage that retains the most recently used responses in memory, up to a maximum number and
/// size.
///
/// The storage also accepts values without a byte representation, such as those of requests that
/// conform only to ``StorableRequest``. Reading and storing take constant time, and reading counts
/// as use. All members may be used from any thread. Entries are lost when the process ends.
public final class MemoryStorage: ResponseStorage {
    /// The accepted classifications; `nil` if any classification is accepted.
    public let classifications: Set<DataClassification>?
    /// The maximum number of entries.
    public let maximumCount: Int
    /// The maximum number of bytes of all entries, including keys.
    ///
    /// A value without a byte representation counts as 64 bytes, because its size is unknown.
    public let maximumBytes: Int

    private let entries = Mutex(LeastRecentlyUsed())

    /// Creates an empty storage.
    ///
    /// - Parameters:
    ///   - classifications: The accepted classifications. Defaults to `nil`, which accepts any.
    ///   - maximumCount: The maximum number of entries. If it is less than 1, nothing can be
    ///     stored. Defaults to 10,000.
    ///   - maximumBytes: The maximum number of bytes of all entries, including keys. Defaults to 64
    ///     MiB.
    public init(
        classifications: Set<DataClassification>? = nil, maximumCount: Int = 10_000, maximumBytes: Int = 64 << 20
    ) {
        self.classifications = classifications
        self.maximumCount = maximumCount
        self.maximumBytes = maximumBytes
    }

    /// Returns `true`, because every request is supported.
    public func supports(_ request: any StorableRequest) -> Bool { true }

    /// Returns the entry for a key, or `nil` if there is none.
    ///
    /// The entry becomes the most recently used.
    public func entry(for key: StorageKey) -> StorageEntry? {
        entries.withLock { $0.use(key) }
    }

    /// Stores an entry, and replaces the previous entry for the same key.
    ///
    /// The least recently used entries are then removed until the remaining entries are within
    /// ``maximumBytes`` and ``maximumCount``.
    ///
    /// - Throws: `WebServiceError.Code.entryTooLarge` if the entry alone exceeds ``maximumBytes``,
    ///   or if ``maximumCount`` is less than 1. The previous entry remains.
    public func store(_ entry: StorageEntry, for key: StorageKey) throws {
        let size = key.bytes.count + (entry.data?.count ?? 64)
        guard maximumCount >= 1 else {
            throw WebServiceError(.entryTooLarge, "the storage accepts no entries; set maximumCount to at least 1")
        }
        guard size <= maximumBytes else {
            throw WebServiceError(
                .entryTooLarge,
                "an entry of \(size) bytes exceeds the maximum size of the storage; increase maximumBytes")
        }
        // Removed entries are deallocated outside the lock.
        let removed = entries.withLock { entries in
            var removed = [entries.insert(entry, size: size, for: key)]
            while entries.count > maximumCount || entries.bytes > maximumBytes {
                removed.append(entries.removeOldest())
            }
            return removed
        }
        withExtendedLifetime(removed) {}
    }

    /// Removes the entry for a key.
    public func removeEntry(for key: StorageKey) {
        let removed = entries.withLock { $0.remove(key) }
        withExtendedLifetime(removed) {}
    }

    /// Removes all entries.
    public func removeAll() {
        let removed = entries.withLock { entries in
            defer { entries = LeastRecentlyUsed() }
            return entries
        }
        withExtendedLifetime(removed) {}
    }

    /// Removes the entries with a classification.
    public func removeEntries(of classification: DataClassification) async {
        let removed = entries.withLock { $0.removeAll { $0.isOf(classification) } }
        withExtendedLifetime(removed) {}
    }

    /// Returns summaries of entries; see ``ResponseStorage/summaries(after:limit:)``.
    public func summaries(after key: StorageKey?, limit: Int) async -> [StorageEntry.Summary] {
        let summaries = entries.withLock { $0.summaries }
        let following = key.map { key in summaries.filter { Self.precedes(key, $0.key) } } ?? summaries
        return Array(following.sorted { Self.precedes($0.key, $1.key) }.prefix(max(limit, 0)))
    }

    private static func precedes(_ first: StorageKey, _ second: StorageKey) -> Bool {
        first.bytes.lexicographicallyPrecedes(second.bytes)
    }

    /// Returns the entry for a key without marking it as used.
    package func unusedEntry(for key: StorageKey) -> StorageEntry? {
        entries.withLock { $0.entry(for: key) }
    }

    /// The number of entries.
    public var count: Int { entries.withLock { $0.count } }

    /// The number of bytes of all entries, including keys.
    public var bytes: Int { entries.withLock { $0.bytes } }
}

/// Entries in the order of their use: a linked list in an array, and the array index of each key.
private struct LeastRecentlyUsed: Sendable {
    private struct Node: Sendable {
        var content: (key: StorageKey, entry: StorageEntry)?
        var size: Int
        var older: Int?
        var newer: Int?
    }

    private var places: [StorageKey: Int] = [:]
    private var nodes: [Node] = []
    private var free: [Int] = []
    private var oldest: Int?
    private var newest: Int?
    private(set) var bytes = 0

    var count: Int { places.count }

    var summaries: [StorageEntry.Summary] {
        nodes.compactMap(\.content).map { key, entry in
            StorageEntry.Summary(key: key, date: entry.date, byteCount: entry.data?.count)
        }
    }

    func entry(for key: StorageKey) -> StorageEntry? { places[key].flatMap { nodes[$0].content?.entry } }

    mutating func use(_ key: StorageKey) -> StorageEntry? {
        guard let place = places[key] else { return nil }
        if place != newest {
            unlink(place)
            link(place)
        }
        return nodes[place].content?.entry
    }

    /// - Returns: The previous entry.
    mutating func insert(_ entry: StorageEntry, size: Int, for key: StorageKey) -> StorageEntry? {
        let old = remove(key)
        let node = Node(content: (key, entry), size: size)
        let place = free.popLast() ?? nodes.count
        if place == nodes.count { nodes.append(node) } else { nodes[place] = node }
        places[key] = place
        bytes += size
        link(place)
        return old
    }

    mutating func remove(_ key: StorageKey) -> StorageEntry? {
        places.removeValue(forKey: key).flatMap { take($0) }
    }

    mutating func removeAll(where isRemoved: (StorageKey) -> Bool) -> [StorageEntry] {
        places.keys.filter(isRemoved).compactMap { remove($0) }
    }

    mutating func removeOldest() -> StorageEntry? {
        guard let oldest else { return nil }
        if let key = nodes[oldest].content?.key { places[key] = nil }
        return take(oldest)
    }

    private mutating func take(_ place: Int) -> StorageEntry? {
        unlink(place)
        bytes -= nodes[place].size
        free.append(place)
        return nodes[place].content.take()?.entry
    }

    private mutating func link(_ place: Int) {
        nodes[place].older = newest
        nodes[place].newer = nil
        if let newest { nodes[newest].newer = place } else { oldest = place }
        newest = place
    }

    private mutating func unlink(_ place: Int) {
        let (older, newer) = (nodes[place].older, nodes[place].newer)
        if let older { nodes[older].newer = newer } else { oldest = newer }
        if let newer { nodes[newer].older = older } else { newest = older }
    }
}
