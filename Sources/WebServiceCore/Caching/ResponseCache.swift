public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Answers requests from what a storage keeps of earlier answers, by the rules of HTTP for the cache of one user (RFC 9111, RFC 5861).
///
/// ```swift
/// let cache = ResponseCache(storage: MemoryStorage(), account: { session.userID })
/// service.interceptors = [.retry(), authentication, cache]
/// ```
/// It works over every session, because it sees nothing but requests and answers. Install it behind whatever adds credentials or other header fields,
/// so that it sees what they make of a request.
/// - A stored answer that is fresh answers GET and HEAD: nothing is sent, the source is ``Response/Source/cache``, `Age` says how old it is. One that
///   is stale is validated with `If-None-Match` and `If-Modified-Since`; after a 304 the stored body is the answer, with the source
///   ``Response/Source/revalidated``.
/// - `Cache-Control` and `Expires` decide, of answers and of requests, and ``Request/cachePolicy``. `stale-while-revalidate` and `stale-if-error` are
///   heeded, and `must-revalidate` and `no-cache` before them. Of `s-maxage` and `proxy-revalidate` a private cache knows nothing.
/// - Every answer to GET that may be stored is stored, unless a redirect led to it: also one that says nothing about caching, for the policies that
///   take any age. 206 is never stored, and a request with `Range`, or with `If-Match`, `If-Unmodified-Since` or `If-Range`, passes through. To one
///   with `If-None-Match` or `If-Modified-Since` of its own, a fresh stored answer answers, with 304 where that is due; else the server does.
/// - `Vary` selects among up to 8 answers for one URL; the values of the request's fields are kept as fingerprints only, and a field that is absent
///   matches requests without it (RFC 9111, section 4.1). `Vary: *`, and a `Vary` that is no list of field names, prevent storing; so does
///   `Vary: Cookie` where the service's cookie jar has cookies for the URL, which are added after the cache.
/// - A 304 that names another entity tag than the stored one removes what is stored, and the request is sent again without a condition; a 304 to that
///   is `URLError.badServerResponse`.
/// - A successful request with a method that is not safe removes what is stored of its URL, and of `Location` and `Content-Location` in the same
///   origin. What a GET brings that was under way meanwhile is not stored.
///
/// Accounts never see each other's answers. Where `account` gives `nil`, a response is delivered only to requests whose credentials are the same: all
/// fields that ``Redaction/standard`` treats as secret, such as `Authorization`, `Cookie` and `X-Api-Key`, and those that an ``Authentication`` has
/// set. A cache that an ``Authentication`` follows, in the service's list or that of the request, then neither stores nor delivers anything. Name an
/// account where a cookie jar, or anything else after the cache, adds credentials, and where a field such as a signature changes with every request. What is stored is status, header
/// fields without `Set-Cookie` and without those of the connection, and the body, under a key that holds the URL and the account; nothing is
/// encrypted. The storage's own limits decide how much there is, and of the directives only `no-store` keeps an answer out.
///
/// A storage that fails never fails a request, and one that hangs delays it by 10 seconds at most: then nothing is stored as far as the request is
/// concerned, and the observer is notified. Answers are stored behind the answer's back, and every later request to the same cache sees them. All
/// members may be used from any thread. Every decision is in the task's ``Timeline``, each refusal to store a response to GET with its reason.
public final class ResponseCache: Interceptor {
    /// Whether answers that do not say how long they are fresh count as fresh for a tenth of the time since they were last modified, at most a week.
    public let usesHeuristics: Bool

    let storage: any ResponseStorage
    let account: @Sendable () -> String?
    let now: @Sendable () -> Date
    let order = StorageOrder()
    private let clock: TaskClock
    private let observer: (@Sendable (StorageFailure) -> Void)?
    private let state = Mutex(State())

    private struct State {
        /// What is validated behind the back of its answer.
        var validations: Set<StorageKey> = []
        /// How many requests are under way, and the last removal meanwhile.
        var flights: [StorageKey: (count: Int, removal: UInt64)] = [:]
        /// How many removals there were.
        var removals: UInt64 = 0
    }

    /// Makes a cache.
    ///
    /// - Parameters:
    ///   - storage: Where answers are kept. Give the cache one of its own: ``removeAll()`` empties it.
    ///   - account: Whose answers they are, asked when a request comes to the cache; `nil` for nobody's. An answer that comes when the account is
    ///     another one is not stored, and a request that is sent again by then, for a retry perhaps, passes through.
    ///   - usesHeuristics: Whether answers that do not say how long they are fresh count as fresh for a tenth of the time since they were last
    ///     modified.
    ///   - now: The wall clock. After it was set back, what seems to come from the future is stale.
    ///   - storageErrorObserver: Hears what the storage could not do, on any thread.
    public convenience init(
        storage: any ResponseStorage, account: @escaping @Sendable () -> String? = { nil }, usesHeuristics: Bool = false,
        now: @escaping @Sendable () -> Date = { Date() }, storageErrorObserver: (@Sendable (_ failure: StorageFailure) -> Void)? = nil
    ) {
        self.init(
            storage: storage, account: account, usesHeuristics: usesHeuristics, now: now, storageErrorObserver: storageErrorObserver,
            timekeeper: nil)
    }

    /// - Parameter timekeeper: The clock by which a storage hangs.
    package init(
        storage: any ResponseStorage, account: @escaping @Sendable () -> String?, usesHeuristics: Bool, now: @escaping @Sendable () -> Date,
        storageErrorObserver: (@Sendable (_ failure: StorageFailure) -> Void)?, timekeeper: (any Timekeeper)?
    ) {
        clock = TaskClock(timekeeper)
        self.storage = storage
        self.account = account
        self.usesHeuristics = usesHeuristics
        self.now = now
        observer = storageErrorObserver
    }

    /// Answers from the storage, or passes the request on and stores the answer.
    ///
    /// - Throws: `URLError.resourceUnavailable` when the policy is `returnCacheDataDontLoad` and nothing is stored,
    ///   ``WebServiceError/Code/responseTooLarge``, `URLError.badServerResponse` for a 304 to a request without a condition, and whatever `next`
    ///   throws.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        guard let exchange = CacheExchange(request, next, self) else { return try await next(request) }
        return try await exchange.response()
    }

    /// Removes what is stored of a URL for the account of now. What requests bring that are under way is not stored.
    ///
    /// - Throws: What the storage throws; ``WebServiceError/Code/storage`` when it was not done within 10 seconds, or 64
    ///   changes wait for it. Then the responses are removed when the storage continues.
    public func remove(_ url: URL) async throws {
        guard let key = CacheExchange.key(for: Request(url: url), account: account()) else { return }
        try await removal(of: key)
    }

    /// Empties the storage, whatever else is in it. What requests bring that are under way is not stored.
    ///
    /// - Throws: The same errors as ``remove(_:)``.
    public func removeAll() async throws {
        try await removal(of: nil)
    }

    /// Returns when the answers that have come so far are stored, or after 10 seconds. For programs that end
    /// themselves: a task has its answer before that is stored.
    ///
    /// - Returns: `false` where the storage was not done within 10 seconds.
    @discardableResult
    public func finishStoring() async -> Bool {
        await order.settled(clock)
    }
}

/// What is stored.
extension ResponseCache {
    /// What is stored under a key, as it is after all that was begun before; nothing where the storage cannot be read within its time.
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

    /// - Returns: `nil` where something may be there that cannot be read.
    private func read(_ key: StorageKey) async -> CachedVariants? {
        do {
            guard let entry = try await storage.entry(for: key) else { return CachedVariants() }
            return entry.data.flatMap { CachedVariants($0, for: key) }
        } catch {
            report(.read, key, error)
            return nil
        }
    }

    /// Changes what is stored, behind what was begun before, unless the flight was overtaken. Where too many changes wait for the storage, what
    /// is stored is removed instead.
    ///
    /// - Returns: Whether the change will be made.
    func update(_ key: StorageKey, _ flight: CacheFlight, _ change: @escaping @Sendable (inout CachedVariants) -> Void) -> Bool {
        queue(.store, key) { [self] in
            guard !flight.isOvertaken else { return }
            let old = await read(key)
            var variants = old ?? CachedVariants()
            change(&variants)
            if variants.responses.isEmpty { return old?.responses.isEmpty == true ? () : await erase(key) }
            do { try await storage.store(StorageEntry(.value(variants.data(for: key)), date: now()), for: key) } catch {
                report(.store, key, error)
                await erase(key)  // what is there is older than the answer that was given
            }
        }
    }

    /// Removes what is stored under a key: what requests bring that are under way comes too late.
    func invalidate(_ key: StorageKey) {
        overtake(key)
        queue(.remove, key) { [self] in await erase(key) }
    }

    @discardableResult
    private func queue(_ operation: StorageFailure.Operation, _ key: StorageKey, _ work: @escaping @Sendable () async -> Void) -> Bool {
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

    /// - Parameter key: `nil` for all.
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

/// What is under way.
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

    /// - Parameter key: `nil` for all.
    private func overtake(_ key: StorageKey?) {
        state.withLock { state in
            state.removals += 1
            for flight in key.map({ [$0] }) ?? Array(state.flights.keys) { state.flights[flight]?.removal = state.removals }
        }
    }

    /// - Returns: Whether nothing is validated under the key yet.
    func beginValidation(_ key: StorageKey) -> Bool {
        state.withLock { $0.validations.insert(key).inserted }
    }

    func endValidation(_ key: StorageKey) {
        state.withLock { _ = $0.validations.remove(key) }
    }
}

/// A request under way, until it is let go: what is removed meanwhile must not come back with its answer.
final class CacheFlight: Sendable {
    private let key: StorageKey
    /// How many removals there were when it began.
    private let start: UInt64
    private let cache: ResponseCache

    fileprivate init(_ key: StorageKey, _ start: UInt64, _ cache: ResponseCache) {
        self.key = key
        self.start = start
        self.cache = cache
    }

    /// Whether something has removed what is stored under the key since.
    var isOvertaken: Bool { cache.isOvertaken(key, since: start) }

    deinit { cache.endFlight(key) }
}
