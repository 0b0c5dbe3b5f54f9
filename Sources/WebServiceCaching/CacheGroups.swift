public import Foundation
import WebServiceCore
import WebServiceFields
import WebServiceStorage

/// The groups of responses (RFC 9875), and the entries that invalidate them.
///
/// An entry contains the date of the invalidation and is stored in the same storage as the
/// responses of the group. All responses whose requests were sent before that date are invalid,
/// including those that arrive later. A storage that evicts the least recently used entries removes
/// this entry after those responses, because the entry is stored later and is read whenever one of
/// the responses is read.
enum CacheGroups {
    /// The maximum number of groups in a field. A response that belongs to more groups is not
    /// stored. A response that invalidates more groups invalidates all groups of its origin.
    static let maximumCount = 128

    /// Returns the members of a field that is a list of strings, or no members for any other field.
    static func names(in field: String?) -> Set<String> {
        guard let members = StructuredField.list(parsing: field ?? "") else { return [] }
        let names = members.compactMap { $0.item?.value.string }
        return names.count == members.count ? Set(names) : []
    }

    /// - Parameter name: The name of a group, or `nil` for all groups of the origin.
    fileprivate static func key(_ name: String?, _ origin: Origin, _ account: String?) -> StorageKey {
        StorageKey(
            identifier: name.map { "group \(origin) \($0)" } ?? "groups \(origin)",
            classification: ResponseCache.classification, account: account)
    }

    fileprivate static func data(_ date: Date) -> Data {
        withUnsafeBytes(of: date.timeIntervalSince1970.bitPattern.littleEndian) { Data($0) }
    }

    /// Returns whether an entry invalidates a response. An entry that cannot be decoded invalidates
    /// every response.
    fileprivate static func invalidates(_ entry: StorageEntry, _ requestTime: Date) -> Bool {
        guard let data = entry.data, data.count == 8 else { return true }
        let seconds = Double(bitPattern: data.reversed().reduce(0) { $0 << 8 | UInt64($1) })
        return !(Date(timeIntervalSince1970: seconds) < requestTime)
    }
}

extension CachedResponse {
    /// The groups of the response.
    var groups: Set<String> { CacheGroups.names(in: headers["Cache-Groups"]) }
}

extension ResponseCache {
    /// Invalidates the stored responses of a group, for one origin and the current account.
    ///
    /// A response belongs to the groups that its `Cache-Groups` field names (RFC 9875). The
    /// responses to requests that were sent before the call become invalid, including those that
    /// arrive later. The same applies to the values in every ``GroupedStorage`` of this cache.
    ///
    /// - Parameters:
    ///   - group: The name of the group, which is case-sensitive.
    ///   - url: Any URL of the origin. If the URL has no origin, the call does nothing.
    /// - Throws: The same errors as ``remove(_:)``.
    public func invalidate(group: String, for url: URL) async throws {
        guard let origin = Origin(url) else { return }
        let key = CacheGroups.key(group, origin, account())
        // The dates of the stored responses are from this clock.
        let clock = clock ?? state.withLock { $0.clock } ?? .system
        try await order.makeChange(key, clock) { [self] in try await storeInvalidation(key, clock).get() }
    }

    /// Invalidates the groups that responses to unsafe requests name (RFC 9875, section 3).
    ///
    /// - Returns: The number of groups.
    func invalidateGroups(
        in responses: [(request: EncodedRequest, head: ResponseHead)], _ account: String?, _ clock: TaskClock
    ) -> Int {
        var keys: Set<StorageKey> = []
        for (request, head) in responses where (200..<400).contains(head.status) && !request.method.isSafe {
            guard let field = head.headers["Cache-Group-Invalidation"], let origin = Origin(request.url) else {
                continue
            }
            let names = CacheGroups.names(in: field)
            let isOverLimit = names.count > CacheGroups.maximumCount
            keys.formUnion(
                isOverLimit
                    ? [CacheGroups.key(nil, origin, account)] : names.map { CacheGroups.key($0, origin, account) })
        }
        for key in keys {
            // The date is read when the change is made, because one change replaces several if too
            // many are pending.
            let work: @Sendable () async -> Void = { [self] in _ = await storeInvalidation(key, clock) }
            do throws(WebServiceError) { try order.change(key, orElse: work, work) } catch {
                report(.store, key, error)
            }
        }
        return keys.count
    }

    private func storeInvalidation(_ key: StorageKey, _ clock: TaskClock) async -> Result<Void, any Error> {
        var result: Result<Void, any Error> = .success(())
        let date = clock.date
        for storage in [storage] + state.withLock({ $0.groupedStorages }) {
            do { try await storage.store(StorageEntry(.value(CacheGroups.data(date)), date: date), for: key) } catch {
                report(.store, key, error, in: storage)
                result = .failure(error)
            }
        }
        return result
    }

    /// Returns whether at least one of the groups was invalidated when or after a request was sent.
    ///
    /// - Parameter order: The order of pending changes to wait for. It is `nil` within a change,
    ///   which must not wait for another change.
    func isInvalidated(
        _ groups: Set<String>, of origin: Origin?, _ accounts: Set<String?>, requestTime: Date,
        in storage: any ResponseStorage, after order: StorageOrder?
    ) async throws -> Bool {
        guard !groups.isEmpty, let origin else { return false }
        for account in accounts {
            for name in [nil] + groups.map(Optional.some) {
                let key = CacheGroups.key(name, origin, account)
                await order?.settled(key)
                if let entry = try await storage.entry(for: key), CacheGroups.invalidates(entry, requestTime) {
                    return true
                }
            }
        }
        return false
    }
}
