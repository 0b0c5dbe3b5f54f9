public import Foundation
public import WebServiceCore
public import WebServiceStorage

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A private HTTP cache that serves requests from stored responses (RFC 9111, RFC 5861).
///
/// ```swift
/// let cache = ResponseCache(storage: MemoryStorage(), account: { session.userID })
/// service.interceptors = [.retry(), authentication, cache]
/// ```
/// The cache is an interceptor and therefore works with any session. Install it after every
/// interceptor that adds credentials or other header fields, because it must receive the request
/// with these fields.
/// - A fresh stored response is returned for GET, HEAD and QUERY without sending the request. Its
///   source is `Response.Source.cache`, and its `Age` field contains its age. A stale response is
///   validated with `If-None-Match` and `If-Modified-Since`. After a 304, the stored body is
///   returned with the source `Response.Source.revalidated`.
/// - The `Cache-Control` and `Expires` of responses, the `Cache-Control` of requests, and
///   `Request.Options.cachePolicy` control the cache. `stale-while-revalidate` and `stale-if-error`
///   are supported. `must-revalidate` and `no-cache` take precedence over them. `s-maxage` and
///   `proxy-revalidate` are ignored, because they apply only to shared caches.
/// - Every response to GET or QUERY that may be stored is stored, unless it followed a redirect or
///   a newer response is already stored. This includes responses without explicit freshness, for
///   the cache policies that accept any age. A 206 response is never stored. Errors that another
///   attempt, other credentials or time can resolve are not stored either: 401, 403, 407, 408, 421,
///   425, 428, 429, 431, and 500 to 511 except 501.
/// - A request with `Range`, `If-Match`, `If-Unmodified-Since` or `If-Range` bypasses the cache. A
///   request with its own `If-None-Match` or `If-Modified-Since` is served from a fresh stored
///   response, with 304 if the condition requires it. If there is no such response, the request is
///   sent to the server.
/// - `Vary` selects among up to 8 responses to GET for one URL, and the body of a QUERY request
///   selects among up to 8 responses to QUERY (RFC 10008). A QUERY request whose body is not in
///   memory bypasses the cache. If a field that `Vary` names was absent from the request, the
///   response matches only requests without that field (RFC 9111, section 4.1). `Vary: *` and a
///   malformed `Vary` prevent storing. The values of the request fields are stored only as an
///   HMAC-SHA256, keyed with a random salt per response.
/// - Entity tags are compared weakly (`W/"1"` matches `"1"`). A 304 with a strong tag confirms a
///   stored response with a weak tag, but does not update its fields or its age (RFC 9111, section
///   4.3.4). A 304 with any other entity tag removes the stored response, and the request is sent
///   again without a condition. If that request also receives a 304, it fails with
///   `URLError.badServerResponse`.
/// - A request with an unsafe method that receives a status from 200 to 399 removes the stored
///   responses for its URL and the URLs of its redirects, and for `Location` and `Content-Location`
///   in the same origin. The response to a GET or QUERY that is in flight at that time is not
///   stored.
/// - The response to such a request can name groups in `Cache-Group-Invalidation` (RFC 9875). The
///   stored responses of these groups become invalid, for the origin and the account of the
///   request. A field with more than 128 groups invalidates all groups of the origin. A response
///   belongs to the groups in its `Cache-Groups` field. A response with more than 128 groups is not
///   stored.
///
/// Stored responses are never shared between accounts. If `account` returns `nil`, a stored
/// response is returned only for requests with the same credentials and the same other fields:
/// - Credentials are all fields whose names resemble those of credentials, such as `Authorization`
///   and `X-Api-Key`, all fields set by an `Authentication`, and all cookies. This includes cookies
///   that the service's cookie jar adds after the cache.
/// - Other fields are all fields except `Accept`, `Accept-Charset`, `Accept-Encoding`,
///   `Accept-Language`, `Cache-Control`, `Date`, `DNT`, `If-Modified-Since`, `If-None-Match`,
///   `Origin`, `Pragma`, `Priority`, `Referer`, `Request-Id`, `Save-Data`, `Sec-GPC`, `User-Agent`,
///   `X-Correlation-Id`, `X-Request-Id`, `traceparent` and `tracestate`. If the response has
///   `Cache-Control: public`, the other fields are compared only if `Vary` names them.
/// - A response is not stored if such a field is added or changed after the cache has received the
///   request. Nothing is stored or returned if an `Authentication` follows the cache in the
///   interceptors of the service or of the request, or if the session adds credentials, such as a
///   client certificate (`Session.addsCredentials(to:)`).
///
/// Provide an account in these cases, and also if a field such as a signature changes with every
/// request. The cache then distinguishes requests only by the account and by the fields in `Vary`.
/// A constant account is suitable for an API without users.
///
/// The cache stores the status, the body, and the header fields except `Set-Cookie`, those of the
/// connection and those that `no-cache` names, under a key that contains the URL and the account.
/// Nothing is encrypted. The storage limits the amount of data. To prevent a response from being
/// stored, use the `no-store` directive.
///
/// A storage failure never fails a request. A storage that does not respond delays a request by at
/// most 10 seconds. The request then proceeds as if nothing were stored, and `storageErrorObserver`
/// is called. A response is delivered before it is stored, but every later request to the same
/// cache finds it. All members may be used from any thread. Every decision is recorded in the
/// task's `Timeline`, including the reason why a response is not stored.
///
/// If there is no ``BodyFolder``, streams and downloads bypass the cache. Otherwise, the body of a
/// stream is copied to a file while it is read, and the response is stored when the stream ends.
/// Event streams and handshakes of other protocols always bypass the cache. If the file of a stored
/// body can no longer be read, the stream fails with `WebServiceError.Code.storage`.
public final class ResponseCache: Interceptor {
    /// Whether heuristic freshness is used.
    ///
    /// If it is, responses without explicit freshness are fresh for a tenth of the time since they
    /// were last modified, for at most a week.
    public let usesHeuristics: Bool

    /// The classification of the keys.
    static let classification = DataClassification("http-cache")

    let storage: any ResponseStorage
    /// The folder for the bodies of streamed responses; `nil` if these bodies are not stored.
    let bodies: BodyFolder?
    let account: @Sendable () -> String?
    let order = StorageOrder()
    /// The clock for ages; `nil` for the clock of the service that sends the request. It also
    /// measures the storage timeout of calls without a request.
    let clock: TaskClock?
    let observer: (@Sendable (StorageEntry.Failure) -> Void)?
    private let urlKey: (@Sendable (URL) -> String)?
    let state = Mutex(State())

    struct State {
        /// The keys whose responses are being validated in the background.
        var validations: Set<StorageKey> = []
        /// The number of requests in flight per key, and the number of the last removal since they
        /// started.
        var flights: [StorageKey: (count: Int, removal: UInt64)] = [:]
        /// The number of removals so far.
        var removals: UInt64 = 0
        /// The clock of the last request.
        var clock: TaskClock?
        /// The storages of values that have groups, in addition to that of the cache.
        var groupedStorages: [any ResponseStorage] = []
        var statistics = Statistics()
    }

    /// Creates a cache.
    ///
    /// - Parameters:
    ///   - storage: The storage for responses. Do not use it for anything else, because
    ///     ``removeAll()`` empties it.
    ///   - bodies: The folder for the bodies of streams and downloads. Files in it that no entry of
    ///     the storage refers to are removed in the background. Defaults to `nil`, which means that
    ///     streams and downloads bypass the cache.
    ///   - account: Returns the account of a request, or `nil` if there is no account. Called on
    ///     any thread, first when the cache receives the request. A response that is received after
    ///     the account has changed is not stored. A request that is sent again after the change,
    ///     for example by a retry, bypasses the cache. Defaults to a closure that returns `nil`.
    ///   - usesHeuristics: Whether responses without explicit freshness are fresh for a tenth of
    ///     the time since they were last modified, for at most a week. Defaults to `false`.
    ///   - urlKey: Returns the key of the responses for a URL. URLs with equal keys share their
    ///     stored responses and entity tags, so a key may omit only those parts of a URL that do
    ///     not affect the response, such as tracking parameters. Called in the background, possibly
    ///     several times per request. Defaults to `nil`, which means that the key is the URL with
    ///     the scheme and host in lower case and without the default port.
    ///   - storageErrorObserver: Called with every storage failure, on any thread. Defaults to
    ///     `nil`.
    public convenience init(
        storage: any ResponseStorage, bodies: BodyFolder? = nil,
        account: @escaping @Sendable () -> String? = { nil },
        usesHeuristics: Bool = false, urlKey: (@Sendable (_ url: URL) -> String)? = nil,
        storageErrorObserver: (@Sendable (_ failure: StorageEntry.Failure) -> Void)? = nil
    ) {
        self.init(
            storage: storage, bodies: bodies, account: account, usesHeuristics: usesHeuristics, urlKey: urlKey,
            storageErrorObserver: storageErrorObserver, timekeeper: nil)
    }

    /// - Parameter timekeeper: The clock for ages; `nil` for the clock of the service that sends a
    ///   request. It also measures the storage timeout of calls without a request. If the clock is
    ///   set back, responses with a date in the future are stale.
    package init(
        storage: any ResponseStorage, bodies: BodyFolder? = nil, account: @escaping @Sendable () -> String?,
        usesHeuristics: Bool,
        urlKey: (@Sendable (URL) -> String)? = nil,
        storageErrorObserver: (@Sendable (_ failure: StorageEntry.Failure) -> Void)?, timekeeper: (any Timekeeper)?
    ) {
        self.urlKey = urlKey
        clock = timekeeper.map { TaskClock($0) }
        self.storage = storage
        self.bodies = bodies
        self.account = account
        self.usesHeuristics = usesHeuristics
        observer = storageErrorObserver
        if bodies != nil {
            Task(executorPreference: clock?.executor ?? HandlerPool.shared) { [weak self] in
                await self?.removeOrphans()
            }
        }
    }

    /// Returns a stored response, or sends the request and stores the response.
    ///
    /// - Throws: `URLError.resourceUnavailable` if the policy is `returnCacheDataDontLoad` and no
    ///   response is stored; `WebServiceError.Code.responseTooLarge` if a stored body exceeds the
    ///   limit of the request; `URLError.badServerResponse` for a 304 response to a request without
    ///   a condition; `CancellationError`; or any error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        guard let exchange = CacheExchange(request, next, self) else { return try await next(request) }
        return try await exchange.response()
    }

    /// Returns the storage key for a URL, or `nil` if no request can be sent to the URL.
    func key(for url: URL, _ account: String?) -> StorageKey? {
        CacheExchange.url(of: Request(url: url)).map { key($0, account) }
    }

    /// - Parameter url: A URL in the form of ``CacheExchange/url``.
    func key(_ url: String, _ account: String?) -> StorageKey {
        let key = urlKey.flatMap { urlKey in URL(string: url).map(urlKey) } ?? url
        return StorageKey(identifier: "GET \(key)", classification: Self.classification, account: account)
    }

    /// Removes the stored responses for a URL and the current account.
    ///
    /// Responses to requests in flight are not stored.
    ///
    /// - Throws: The error of the storage, or `WebServiceError.Code.storage` if the removal takes
    ///   longer than 10 seconds or if 64 changes are already pending. In the last two cases, the
    ///   responses are removed when the storage responds again.
    public func remove(_ url: URL) async throws {
        guard let key = key(for: url, account()) else { return }
        try await removal(of: key)
    }

    /// Empties the storage, including any other data in it, and the folder for bodies.
    ///
    /// Responses to requests in flight are not stored.
    ///
    /// - Throws: The same errors as ``remove(_:)``, or `WebServiceError.Code.storage` if the file
    ///   of a body cannot be removed.
    public func removeAll() async throws {
        try await removal(of: nil)
    }

    /// Waits until the responses received so far are stored, and until the ``BodyFolder``, if there
    /// is one, has completed its changes. Waits for at most 10 seconds in total, also if the Swift
    /// task is cancelled.
    ///
    /// Call this method before a program exits, because a response is delivered before it is
    /// stored.
    ///
    /// - Returns: Whether the storage and the folder finished in time.
    @discardableResult
    public func finishStoring() async -> Bool {
        let clock = clock ?? .system
        return await Task(executorPreference: clock.executor) { [order, bodies] in
            let settled: Void? = try? await clock.storageValue {  // nil on timeout
                await order.settled(nil)
                await bodies?.settled()
            }
            return settled != nil
        }.value
    }
}
