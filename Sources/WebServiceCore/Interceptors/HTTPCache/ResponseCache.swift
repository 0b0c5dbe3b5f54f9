public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A private HTTP cache that serves requests from stored responses (RFC 9111, RFC 5861).
///
/// ```swift
/// let cache = ResponseCache(storage: MemoryStorage(), account: { session.userID })
/// service.interceptors = [.retry(), authentication, cache]
/// ```
/// The cache works with any session, because it is an interceptor. Install it after every
/// interceptor that adds credentials or other header fields, so that it sees the request with these
/// fields.
/// - A fresh stored response is returned for GET and HEAD without sending the request; its source
///   is ``Response/Source/cache``, and `Age` contains its age. A stale one is validated with
///   `If-None-Match` and `If-Modified-Since`; after a 304, the stored body is returned with the
///   source ``Response/Source/revalidated``.
/// - The `Cache-Control` and `Expires` of responses, the `Cache-Control` of requests, and
///   ``Request/cachePolicy`` control the cache. `stale-while-revalidate` and `stale-if-error` are
///   supported; `must-revalidate` and `no-cache` take precedence over them. `s-maxage` and
///   `proxy-revalidate` are ignored, because they apply to shared caches only.
/// - Every response to GET that may be stored is stored unless it followed a redirect. This
///   includes responses without explicit freshness, for the policies that accept any age. A 206 is
///   never stored. A request with `Range`, `If-Match`, `If-Unmodified-Since` or `If-Range` bypasses
///   the cache. A request with its own `If-None-Match` or `If-Modified-Since` is served from a
///   fresh stored response, with 304 if the condition requires it; otherwise it is sent to the
///   server.
/// - `Vary` selects among up to 8 responses for one URL. The values of the request fields are
///   stored as fingerprints only, and an absent field matches requests without it (RFC 9111,
///   section 4.1). `Vary: *`, a malformed `Vary`, and `Vary: Cookie` prevent storing; the last only
///   if the service's cookie jar, which adds its cookies after the cache, has cookies for the URL.
/// - A 304 with an entity tag other than the stored one removes the stored response, and the
///   request is sent again without a condition. A 304 to that request is
///   `URLError.badServerResponse`.
/// - A successful request with an unsafe method removes the stored responses for its URL, and for
///   `Location` and `Content-Location` in the same origin. The response to a GET that is in flight
///   at that time is not stored.
///
/// Stored responses are never shared between accounts. If `account` returns `nil`, a stored
/// response is returned only for requests with the same credentials: all fields that
/// ``Redaction/standard`` treats as secret, such as `Authorization`, `Cookie` and `X-Api-Key`, and
/// those set by an ``Authentication``. In that case, a cache that precedes an ``Authentication`` in
/// the interceptors of the service or of the request neither stores nor returns anything. Name an
/// account if a cookie jar, or anything else after the cache, adds credentials, or if a field such
/// as a signature changes with every request.
///
/// The cache stores the status, the header fields without `Set-Cookie` and without those of the
/// connection, and the body, under a key that contains the URL and the account. Nothing is
/// encrypted. The limits of the storage bound the amount of data. Of the directives, only
/// `no-store` prevents storing.
///
/// A storage failure never fails a request. A storage that does not respond delays a request by at
/// most 10 seconds; the request then proceeds as if nothing were stored, and the observer is
/// notified. A response is delivered before it is stored, and every later request to the same cache
/// finds it. All members may be used from any thread. Every decision is recorded in the task's
/// ``Timeline``, including the reason why a response to GET is not stored.
public final class ResponseCache: Interceptor {
    /// A Boolean value that indicates whether heuristic freshness is used.
    ///
    /// Responses without explicit freshness are then fresh for a tenth of the time since they were
    /// last modified, for at most a week.
    public let usesHeuristics: Bool

    let storage: any ResponseStorage
    let account: @Sendable () -> String?
    let order = StorageOrder()
    let clock: TaskClock
    private let observer: (@Sendable (StorageFailure) -> Void)?
    private let state = Mutex(State())

    private struct State {
        /// The keys with a validation in progress in the background.
        var validations: Set<StorageKey> = []
        /// The number of requests in flight per key, and the number of the last removal since they
        /// started.
        var flights: [StorageKey: (count: Int, removal: UInt64)] = [:]
        /// The number of removals so far.
        var removals: UInt64 = 0
    }

    /// Creates a cache.
    ///
    /// - Parameters:
    ///   - storage: The storage for responses. Do not use it for anything else: ``removeAll()``
    ///     empties it.
    ///   - account: Returns the account of a request when the cache receives it, or `nil` for no
    ///     account. A response that is received after the account has changed is not stored, and a
    ///     request that is sent again after that, for a retry for example, bypasses the cache.
    ///   - usesHeuristics: Whether responses without explicit freshness are fresh for a tenth of
    ///     the time since they were last modified, for at most a week. Defaults to `false`.
    ///   - storageErrorObserver: Receives every storage failure, on any thread.
    public convenience init(
        storage: any ResponseStorage, account: @escaping @Sendable () -> String? = { nil },
        usesHeuristics: Bool = false,
        storageErrorObserver: (@Sendable (_ failure: StorageFailure) -> Void)? = nil
    ) {
        self.init(
            storage: storage, account: account, usesHeuristics: usesHeuristics,
            storageErrorObserver: storageErrorObserver, timekeeper: nil)
    }

    /// - Parameter timekeeper: The clock for ages and the storage timeout. If its date is set back,
    ///   responses with a date in the future are stale.
    package init(
        storage: any ResponseStorage, account: @escaping @Sendable () -> String?, usesHeuristics: Bool,
        storageErrorObserver: (@Sendable (_ failure: StorageFailure) -> Void)?, timekeeper: (any Timekeeper)?
    ) {
        clock = TaskClock(timekeeper)
        self.storage = storage
        self.account = account
        self.usesHeuristics = usesHeuristics
        observer = storageErrorObserver
    }

    /// Returns a stored response, or sends the request and stores the response.
    ///
    /// - Throws: `URLError.resourceUnavailable` if the policy is `returnCacheDataDontLoad` and
    ///   nothing is stored; ``WebServiceError/Code/responseTooLarge``; `URLError.badServerResponse`
    ///   for a 304 to a request without a condition; and any error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        guard let exchange = CacheExchange(request, next, self) else { return try await next(request) }
        return try await exchange.response()
    }

    /// Removes the stored responses for a URL and the current account.
    ///
    /// Responses to requests in flight are not stored.
    ///
    /// - Throws: The error of the storage, or ``WebServiceError/Code/storage`` if the removal takes
    ///   longer than 10 seconds or 64 changes are already pending; in both cases, the responses are
    ///   removed when the storage continues.
    public func remove(_ url: URL) async throws {
        guard let key = CacheExchange.key(for: Request(url: url), account: account()) else { return }
        try await removal(of: key)
    }

    /// Empties the storage, including other data in it.
    ///
    /// Responses to requests in flight are not stored.
    ///
    /// - Throws: The same errors as ``remove(_:)``.
    public func removeAll() async throws {
        try await removal(of: nil)
    }

    /// Waits until the responses received so far are stored, for at most 10 seconds.
    ///
    /// Call it before a program exits, because a response is delivered before it is stored.
    ///
    /// - Returns: `false` if the storage has not finished within 10 seconds.
    @discardableResult
    public func finishStoring() async -> Bool {
        await order.settled(clock)
    }
}

/// Access to the storage.
extension ResponseCache {
    /// Returns the responses stored under a key after all earlier changes are complete, or none if
    /// the storage cannot be read within its timeout.
    ///
    /// - Throws: `CancellationError`.
    func variants(for key: StorageKey, _ clock: TaskClock) async throws -> CachedVariants {
        do {
            let entry = try await storage.entry(for: key, after: order, clock)
            return entry?.data.flatMap { CachedVariants($0, for: key) } ?? CachedVariants()
        } catch {
            try Task.checkCancellation()
            report(.read, key, error)
            return CachedVariants()
        }
    }

    /// - Returns: `nil` if the storage cannot be read and may contain an entry.
    private func read(_ key: StorageKey) async -> CachedVariants? {
        do {
            guard let entry = try await storage.entry(for: key) else { return CachedVariants() }
            return entry.data.flatMap { CachedVariants($0, for: key) }
        } catch {
            report(.read, key, error)
            return nil
        }
    }

    /// Changes the stored responses after all earlier changes, unless the flight has been
    /// overtaken. If too many changes are pending, the stored responses are removed instead.
    ///
    /// - Returns: Whether the change will be made.
    func update(
        _ key: StorageKey, _ flight: CacheFlight, _ change: @escaping @Sendable (inout CachedVariants) -> Void
    ) -> Bool {
        queue(.store, key) { [self] in
            guard !flight.isOvertaken else { return }
            let old = await read(key)
            var variants = old ?? CachedVariants()
            change(&variants)
            if variants.responses.isEmpty { return old?.responses.isEmpty == true ? () : await erase(key) }
            do {
                try await storage.store(StorageEntry(.value(variants.data(for: key)), date: clock.date), for: key)
            } catch {
                report(.store, key, error)
                await erase(key)  // the stored entry is older than the response already delivered
            }
        }
    }

    /// Removes the responses stored under a key. Responses to requests in flight are not stored.
    func invalidate(_ key: StorageKey) {
        overtake(key)
        queue(.remove, key) { [self] in await erase(key) }
    }

    @discardableResult
    private func queue(
        _ operation: StorageFailure.Operation, _ key: StorageKey, _ work: @escaping @Sendable () async -> Void
    ) -> Bool {
        do throws(WebServiceError) {
            try order.change(key, orElse: { [self] in await erase(key) }, work)
            return true
        } catch {
            report(operation, key, error)
            return false
        }
    }

    private func erase(_ key: StorageKey) async {
        do { try await storage.removeEntry(for: key) } catch { report(.remove, key, error) }
    }

    /// - Parameter key: The key to remove, or `nil` for all.
    private func removal(of key: StorageKey?) async throws {
        overtake(key)
        let result = Answer<Void>()
        try await order.makeChange(key, clock) { [self] in
            do {
                if let key { try await storage.removeEntry(for: key) } else { try await storage.removeAll() }
                result.set(.success(()))
            } catch {
                report(.remove, key, error)
                result.set(.failure(error))
            }
        }
        try result.value
    }

    private func report(_ operation: StorageFailure.Operation, _ key: StorageKey?, _ error: any Error) {
        observer?(StorageFailure(operation: operation, key: key, storage: storage, error: error))
    }
}

/// Requests and validations in flight.
extension ResponseCache {
    func beginFlight(_ key: StorageKey) -> CacheFlight {
        let start = state.withLock { state in
            state.flights[key, default: (0, 0)].count += 1
            return state.removals
        }
        return CacheFlight(key, start, self)
    }

    fileprivate func endFlight(_ key: StorageKey) {
        state.withLock { state in
            guard let flight = state.flights[key] else { return }
            state.flights[key] = flight.count > 1 ? (flight.count - 1, flight.removal) : nil
        }
    }

    fileprivate func isOvertaken(_ key: StorageKey, since start: UInt64) -> Bool {
        state.withLock { $0.flights[key].map { $0.removal > start } ?? false }
    }

    /// - Parameter key: The key that was removed, or `nil` for all.
    private func overtake(_ key: StorageKey?) {
        state.withLock { state in
            state.removals += 1
            for flight in key.map({ [$0] }) ?? Array(state.flights.keys) {
                state.flights[flight]?.removal = state.removals
            }
        }
    }

    /// - Returns: Whether no validation is in progress for the key.
    func beginValidation(_ key: StorageKey) -> Bool {
        state.withLock { $0.validations.insert(key).inserted }
    }

    func endValidation(_ key: StorageKey) {
        state.withLock { _ = $0.validations.remove(key) }
    }
}

/// A request in flight until it is deallocated. Its response must not restore what is removed in
/// the meantime.
final class CacheFlight: Sendable {
    private let key: StorageKey
    /// The number of removals when the request started.
    private let start: UInt64
    private let cache: ResponseCache

    fileprivate init(_ key: StorageKey, _ start: UInt64, _ cache: ResponseCache) {
        self.key = key
        self.start = start
        self.cache = cache
    }

    /// A Boolean value that indicates whether the responses under the key have been removed since
    /// the request started.
    var isOvertaken: Bool { cache.isOvertaken(key, since: start) }

    deinit { cache.endFlight(key) }
}
