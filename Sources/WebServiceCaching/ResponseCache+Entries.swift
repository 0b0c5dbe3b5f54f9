public import Foundation
import WebServiceCore
import WebServiceStorage

extension ResponseCache {
    /// A stored response, as ``ResponseCache/entries`` lists it.
    public struct Entry: Sendable, Hashable {
        /// The URL, or the key that the cache's `urlKey` closure returns for the URL.
        public let url: String
        /// The account of the request; `nil` if there was no account.
        public let account: String?
        /// The status code.
        public let status: Int
        /// The lowercase names of the request fields that select the response, from its `Vary`
        /// field, sorted.
        public let vary: [String]
        /// The cache groups that the response belongs to (RFC 9875), sorted.
        public let groups: [String]
        /// The date at which the response was received or last validated.
        public let date: Date
        /// The date until which the response is fresh; `nil` if the server must validate the
        /// response before each use (`no-cache`).
        public let freshUntil: Date?
        /// The number of bytes of the body.
        public let byteCount: Int
    }

    /// The stored responses of all accounts, except those of invalidated groups. The storage
    /// defines their order.
    ///
    /// ```swift
    /// for try await entry in cache.entries { print(entry.url, entry.byteCount) }
    /// ```
    /// Each element is read when it is requested, so at most the responses for one URL are in
    /// memory. A response that is stored or removed during the iteration may be omitted or
    /// included. If the storage fails, the iteration throws its error. If the storage does not
    /// respond within 10 seconds or cannot list its entries
    /// (`ResponseStorage.summaries(after:limit:)`), the iteration throws
    /// `WebServiceError.Code.storage`. If the storage is a `MemoryStorage`, a `FileStorage` or an
    /// `SQLiteStorage`, reading does not count as a use of the responses.
    public var entries: AsyncThrowingStream<Entry, any Error> {
        let list = EntryList(self)
        return AsyncThrowingStream(unfolding: { try await list.next() })
    }
}

/// An iteration over the entries of a cache.
private final class EntryList: Sendable {
    private struct State {
        /// The last key that the storage has listed.
        var last: StorageKey?
        /// The keys to read, in reverse order.
        var keys: [StorageKey] = []
        /// The entries to return, in reverse order.
        var entries: [ResponseCache.Entry] = []
    }

    /// The number of keys that the storage lists at once.
    private static let pageSize = 1_000

    private let cache: ResponseCache
    private let state = Mutex(State())

    init(_ cache: ResponseCache) { self.cache = cache }

    func next() async throws -> ResponseCache.Entry? {
        while true {
            try Task.checkCancellation()
            if let entry = state.withLock({ $0.entries.popLast() }) { return entry }
            if let key = state.withLock({ $0.keys.popLast() }) {
                let entries = try await cache.entries(for: key)
                state.withLock { $0.entries = entries.reversed() }
            } else {
                let last = state.withLock { $0.last }
                let clock = cache.clock ?? .system
                let page = try await cache.storage.summaries(after: last, limit: Self.pageSize, clock)
                guard let end = page.last?.key, end != last else { return nil }
                let keys = page.map(\.key).filter { $0.isOf(ResponseCache.classification) }
                state.withLock { ($0.last, $0.keys) = (end, keys.reversed()) }
            }
        }
    }
}

extension ResponseCache {
    /// Returns the stored responses. If the storage permits, this does not count as a use of them.
    func unusedVariants(for key: StorageKey) async throws -> CachedVariants? {
        let stored =
            if let memory = storage as? MemoryStorage {
                memory.unusedEntry(for: key)
            } else {
                try await storage.entry(for: key, after: order, clock ?? .system)
            }
        return stored?.data.flatMap { CachedVariants($0, for: key) }
    }

    fileprivate func entries(for key: StorageKey) async throws -> [Entry] {
        let method = "GET "
        guard key.identifier.hasPrefix(method) else { return [] }
        let stored = try await unusedVariants(for: key)
        let url = String(key.identifier.dropFirst(method.count))
        let listClock: TaskClock = clock ?? .system
        var valid: [CachedResponse] = []
        for response in stored?.responses ?? [] {
            let isInvalid = try await listClock.storageValue { [self] in
                try await self.isInvalidated(response, key.account, after: order)
            }
            if !isInvalid { valid.append(response) }
        }
        return valid.map { response in
            let rest = response.lifetime(usesHeuristics: usesHeuristics) - response.initialAge
            let isFresh = !response.control.isWhole("no-cache")
            return Entry(
                url: url, account: key.account, status: response.status,
                vary: response.selection.names, groups: response.groups.sorted(), date: response.responseTime,
                freshUntil: isFresh ? response.responseTime.addingTimeInterval(rest) : nil,
                byteCount: Int(clamping: response.body.count))
        }
    }
}
