import Foundation
import WebServiceCore
public import WebServiceStorage

/// A storage of typed requests whose values become invalid together with their cache groups (RFC
/// 9875).
///
/// ```swift
/// let cache = ResponseCache(storage: MemoryStorage())
/// service.interceptors = [cache]
/// service.storages = [GroupedStorage(try FileStorage(folder: folder), of: cache)]
/// ```
/// A value is stored with the groups in the `Cache-Groups` field of its response. When the cache
/// invalidates one of these groups, the value counts as absent. The cache does this when it
/// receives a response with the field `Cache-Group-Invalidation`, or in
/// ``ResponseCache/invalidate(group:for:)``. An invalidation applies if its account is the account
/// of the value, or the account that the cache had when the value was stored.
///
/// The entries and the invalidations are stored in the underlying storage. The data of an entry
/// with groups begins with the groups. Create one `GroupedStorage` for each storage, and reuse it.
public struct GroupedStorage: ResponseStorage {
    private let storage: any ResponseStorage
    private let cache: ResponseCache

    /// Creates a storage on top of another storage.
    ///
    /// - Parameters:
    ///   - storage: The underlying storage.
    ///   - cache: The cache whose invalidations apply. The cache retains `storage`.
    public init(_ storage: any ResponseStorage, of cache: ResponseCache) {
        self.storage = storage
        self.cache = cache
        cache.state.withLock { $0.groupedStorages.append(storage) }
    }

    /// The classifications of the underlying storage.
    public var classifications: Set<DataClassification>? { storage.classifications }

    /// Returns whether the underlying storage supports a request.
    public func supports(_ request: any StorableRequest) -> Bool { storage.supports(request) }

    /// Returns the entry for a key, or `nil` if there is no entry or one of its groups is invalid.
    public func entry(for key: StorageKey) async throws -> StorageEntry? {
        guard var entry = try await storage.entry(for: key) else { return nil }
        guard let (grouping, content) = Grouping.separated(from: entry.content) else { return entry }
        guard try await !isInvalidated(grouping, key, after: cache.order) else { return nil }
        entry.content = content
        return entry
    }

    private func isInvalidated(_ grouping: Grouping, _ key: StorageKey, after order: StorageOrder?) async throws -> Bool
    {
        try await cache.isInvalidated(
            grouping.groups, of: Origin(grouping.origin), [grouping.account, key.account],
            requestTime: grouping.requestTime, in: storage, after: order)
    }

    /// Stores an entry with the groups of its response. If one of the groups was invalidated after
    /// the request was sent, the existing entry for the key is removed instead.
    ///
    /// - Throws: `WebServiceError.Code.storage` if the response belongs to more than 128 groups, in
    ///   which case the previous entry remains, or any error of the underlying storage.
    public func store(_ entry: StorageEntry, for key: StorageKey) async throws {
        var entry = entry
        if let (field, url, date) = entry.groups.take(), let origin = Origin(url) {
            let groups = CacheGroups.names(in: field)
            guard groups.count <= CacheGroups.maximumCount else { throw Self.tooManyGroups }
            let grouping = Grouping(
                groups: groups, origin: origin.description, account: cache.account(), requestTime: date)
            guard try await !isInvalidated(grouping, key, after: nil) else {
                // If the value were stored now, it could remain longer than the entry that
                // invalidates it.
                return try await storage.removeEntry(for: key)
            }
            if !groups.isEmpty {
                entry.content = grouping.joined(to: entry.content)
                try await storage.store(entry, for: key)
                // An invalidation may have been stored in the meantime.
                if try await isInvalidated(grouping, key, after: nil) { try await storage.removeEntry(for: key) }
                return
            }
        }
        try await storage.store(entry, for: key)
    }

    private static let tooManyGroups = WebServiceError(
        .storage,
        "the response belongs to more than \(CacheGroups.maximumCount) cache groups and is not stored; name fewer "
            + "groups in Cache-Groups")

    /// Removes the entry for a key.
    public func removeEntry(for key: StorageKey) async throws { try await storage.removeEntry(for: key) }

    /// Removes all entries of the underlying storage.
    public func removeAll() async throws { try await storage.removeAll() }

    /// Removes the entries with a classification from the underlying storage.
    public func removeEntries(of classification: DataClassification) async throws {
        try await storage.removeEntries(of: classification)
    }

    /// Returns descriptions of the entries, including invalid entries. The sizes include the
    /// groups.
    public func summaries(after key: StorageKey?, limit: Int) async throws -> [StorageEntry.Summary] {
        var last = key
        while true {
            let page = try await storage.summaries(after: last, limit: limit)
            let entries = page.filter { !$0.key.isOf(ResponseCache.classification) }
            guard entries.isEmpty, let end = page.last?.key, end != last else { return entries }
            last = end
        }
    }
}

extension GroupedStorage: ErasableStorage {
    /// Erases the underlying storage.
    package func erase() async throws { try await storage.eraseAll() }
}

/// The groups of a stored value, and the data that is needed to determine whether they are invalid.
private struct Grouping: Sendable {
    var groups: Set<String>
    var origin: String
    var account: String?
    var requestTime: Date

    /// A value without a byte representation, with its groups.
    private struct Value: Sendable {
        let grouping: Grouping
        let value: any Sendable
    }

    private static let mark = Array("WSG1".utf8)

    /// Returns the content, preceded by a signature, the groups and their checksum.
    func joined(to content: StorageEntry.Content) -> StorageEntry.Content {
        switch content {
        case .raw(let data): .raw(bytes + data)
        case .value(let data): .value(bytes + data)
        case .unlabelled(let data): .unlabelled(bytes + data)
        case .live(let value): .live(Value(grouping: self, value: value))
        }
    }

    /// - Returns: `nil` if the content has no groups.
    static func separated(from content: StorageEntry.Content) -> (Grouping, StorageEntry.Content)? {
        switch content {
        case .raw(let data): parse(data).map { ($0, .raw($1)) }
        case .value(let data): parse(data).map { ($0, .value($1)) }
        case .unlabelled(let data): parse(data).map { ($0, .unlabelled($1)) }
        case .live(let value): (value as? Value).map { ($0.grouping, .live($0.value)) }
        }
    }

    private var bytes: Data {
        var fields = EntryWriter()
        fields.append(requestTime.timeIntervalSince1970.bitPattern)
        fields.append(origin.utf8)
        fields.append(account == nil ? 0 : 1)
        fields.append((account ?? "").utf8)
        fields.append(UInt64(groups.count))
        for group in groups { fields.append(group.utf8) }
        var writer = EntryWriter(data: Data(Self.mark))
        writer.append(fields.data)
        writer.append(fields.data.withUnsafeBytes { XXHash64.hash($0) })
        return writer.data
    }

    private static func parse(_ data: Data) -> (Grouping, Data)? {
        guard data.starts(with: mark) else { return nil }
        var reader = EntryReader(rest: data.dropFirst(mark.count))
        guard let bytes = reader.bytes(), reader.number() == bytes.withUnsafeBytes({ XXHash64.hash($0) }) else {
            return nil
        }
        var fields = EntryReader(rest: bytes)
        guard let requestTime = fields.date(), let origin = fields.text(), let hasAccount = fields.number(),
            let account = fields.text(), let groups = fields.list({ $0.text() })
        else { return nil }
        let grouping = Grouping(
            groups: Set(groups), origin: origin, account: hasAccount == 1 ? account : nil, requestTime: requestTime)
        return (grouping, Data(reader.rest))
    }
}
