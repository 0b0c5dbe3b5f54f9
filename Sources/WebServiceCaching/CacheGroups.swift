public import Foundation
import WebServiceCore
import WebServiceFields
import WebServiceStorage

/// The groups of responses (RFC 9875), and the entries that invalidate them.
///
/// An entry contains the date of the invalidation, and is stored in the same storage as the grouped
/// responses. A storage that evicts the least recently used entries removes it after these
/// responses, because it is stored later and read whenever one of them is read. All responses whose
/// requests were sent before that date are invalid, including those that arrive later.
enum CacheGroups {
    /// The maximum number of groups in a field. A response with more is not stored, and one that
    /// invalidates more invalidates all groups of its origin.
    static let maximumCount = 128

    /// Returns the members of a field that is a list of strings; any other field is ignored.
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
    /// A response belongs to the groups that its field `Cache-Groups` names (RFC 9875). The
    /// responses to requests that were sent before the call are invalid, including those that
    /// arrive later. Values in a ``GroupedStorage`` of this cache are included.
    ///
    /// - Parameters:
    ///   - group: The name of the group. Letter case is significant.
    ///   - url: Any URL of the origin. A URL without an origin has no stored responses.
    /// - Throws: The same errors as ``remove(_:)``.
    public func invalidate(group: String, for url: URL) async throws {
        guard let origin = Origin(url) else { return }
        let key = CacheGroups.key(group, origin, account())
        // The dates of the stored responses are those of this clock.
        let clock = clock ?? state.withLock { $0.clock } ?? .system
        try await order.makeChange(key, clock) { [self] in try await storeInvalidation(key, clock).get() }
    }

    /// Invalidates the groups that the responses to unsafe requests name (RFC 9875, section 3).
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
            // The date is read when the change is made, because one change replaces those beyond
            // the limit of pending changes.
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

    /// Returns whether one of several groups was invalidated at or after the time of a request.
    ///
    /// - Parameter order: The order of pending changes to wait for; `nil` within a change, which
    ///   must not wait for another.
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
