import Foundation

/// Keeps answers in memory, the ones used last, within limits of number and size.
///
/// It also keeps values that cannot become bytes: requests that conform to ``StorableRequest`` alone. Reading and storing take constant time; reading
/// counts as use. All members may be used from any thread; nothing survives the process.
public final class MemoryStorage: ResponseStorage {
    /// What kinds of data belong here; `nil` for any.
    public let classifications: Set<DataClassification>?
    /// How many entries there are at most.
    public let maximumCount: Int
    /// How many bytes all entries may take, keys included. A value that is kept itself counts as 64 bytes: nobody knows its size.
    public let maximumBytes: Int

    private let entries = Mutex(LeastRecentlyUsed())

    /// - Parameters:
    ///   - classifications: What kinds of data belong here; `nil` for any.
    ///   - maximumCount: How many entries there are at most; none below 1.
    ///   - maximumBytes: How many bytes all entries may take, keys included; 64 MiB unless given.
    public init(classifications: Set<DataClassification>? = nil, maximumCount: Int = 10_000, maximumBytes: Int = 64 << 20) {
        self.classifications = classifications
        self.maximumCount = maximumCount
        self.maximumBytes = maximumBytes
    }

    /// Every request that says an identifier.
    public func supports(_ request: any StorableRequest) -> Bool { true }

    /// The entry of a key, which is now the one used last; `nil` when there is none.
    public func entry(for key: StorageKey) -> StorageEntry? {
        entries.withLock { $0.use(key) }
    }

    /// Keeps an entry; those that were not used for longest make room for it.
    ///
    /// - Throws: ``WebServiceError/Code/entryTooLarge`` when it alone is more than the limits allow; the old entry stays.
    public func store(_ entry: StorageEntry, for key: StorageKey) throws {
        let size = key.bytes.count + (entry.data?.count ?? 64)
        guard size <= maximumBytes, maximumCount >= 1 else {
            throw WebServiceError(.entryTooLarge, "an entry of \(size) bytes does not fit into a memory storage of \(maximumBytes) bytes")
        }
        // What has to go is freed outside the lock.
        let removed = entries.withLock { entries in
            var removed = [entries.insert(entry, size: size, for: key)]
            while entries.count > maximumCount || entries.bytes > maximumBytes { removed.append(entries.removeOldest()) }
            return removed
        }
        withExtendedLifetime(removed) {}
    }

    /// Removes the entry of a key.
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

    /// How many entries there are.
    public var count: Int { entries.withLock { $0.count } }

    /// How many bytes they take, keys included.
    public var bytes: Int { entries.withLock { $0.bytes } }
}

/// Entries in the order of their use: a list through places of an array, and where in it each key is.
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

    mutating func use(_ key: StorageKey) -> StorageEntry? {
        guard let place = places[key] else { return nil }
        if place != newest {
            unlink(place)
            link(place)
        }
        return nodes[place].content?.entry
    }

    /// - Returns: The entry that was there.
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
