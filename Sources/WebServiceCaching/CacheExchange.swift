import Foundation
import WebServiceCore
import WebServiceStorage

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A request that passes through a ``ResponseCache``.
struct CacheExchange: Sendable {
    let request: Request
    /// The request that is compared with stored responses. It includes the cookies that the cookie
    /// jar adds after the cache.
    let selecting: Request
    /// The request URL with its query, in a normalized form.
    let url: String
    let account: String?
    let key: StorageKey
    let demands: CacheDemands
    let next: Next
    let cache: ResponseCache

    /// The clock of the cache. Defaults to the clock of the service that sends the request.
    var clock: TaskClock { cache.clock ?? next.clock }

    /// - Returns: `nil` if the request cannot be encoded. The error is reported when the request is
    ///   sent.
    init?(_ request: Request, _ next: Next, _ cache: ResponseCache) {
        let account = cache.account()
        guard let url = Self.url(of: request) else { return nil }
        self.request = request
        selecting = Self.selecting(request, at: url, next)
        self.url = url
        self.account = account
        key = cache.key(url, account)
        demands = CacheDemands(request)
        self.next = next
        self.cache = cache
    }

    private static func selecting(_ request: Request, at url: String, _ next: Next) -> Request {
        var selecting = request
        if request.options.shouldHandleCookies,
            let cookies = URL(string: url).flatMap(next.cookies)
        {
            selecting.headers.add(cookies, for: "Cookie")
        }
        if request.method == .QUERY { selecting.options[QueryContent.self] = QueryContent.hash(of: request) }
        return selecting
    }

    /// Returns the URL that a request is sent to, with the scheme and host in lower case, without
    /// the scheme's default port, and without a fragment.
    static func url(of request: Request) -> String? {
        var bare = request
        if !request.encodesParametersInURL { bare.parameters = nil }
        bare.content = .none
        bare.template = nil
        bare.headers = [:]
        // An encoding error is reported when the request is sent.
        guard let text = try? bare.encode().url, let origin = Origin(text), let scheme = text.range(of: "://") else {
            return nil
        }
        let target = text[scheme.upperBound...].drop { $0 != "/" && $0 != "?" }
        return "\(origin)\(target.first == "/" ? "" : "/")\(target)"
    }

    func response() async throws -> Response {
        switch request.method.rawValue {
        case "GET" where isPassingStream, "HEAD" where isPassingStream, "QUERY" where isPassingStream:
            try await next(request)
        case "QUERY" where selecting.options[QueryContent.self] == nil:
            try await next(request)  // its body is not in memory
        case "GET", "QUERY": try await respond { try await load($0) }
        case "HEAD": try await respond { try await loadHead($0) }
        case "OPTIONS", "TRACE": try await next(request)
        default: try await unsafe()
        }
    }

    // MARK: - GET, QUERY and HEAD

    /// Whether a streamed request bypasses the cache. It does so if there is no folder for bodies,
    /// or if the request is for an event stream or another protocol.
    private var isPassingStream: Bool {
        guard next.isStreamed else { return false }
        return cache.bodies == nil || request.options[UpgradeTag.self]
            || request.headers.values(for: .accept).contains(where: \.isOfEventStream)
    }

    private static let passing: [Headers.Name] = ["Range", "If-Range", "If-Match", "If-Unmodified-Since"]

    /// Returns whether the account is still the one for which the exchange was started. If a
    /// request is sent again after the account has changed, it may have credentials of the previous
    /// account.
    ///
    /// - Throws: `URLError.cancelled` if the account has changed and the exchange is a background
    ///   validation.
    private func isSameAccount() throws -> Bool {
        if try next.isOf(account: account, by: cache) { return true }
        next.record(.cache, "the account has changed since the exchange started")
        return false
    }

    /// Returns whether this request can be distinguished from requests with other credentials. It
    /// can if an account is named, or if neither an `Authentication` nor the session adds
    /// credentials later.
    private func hasKnownCredentials() -> Bool {
        guard account == nil else { return true }
        if next.isFollowed(by: Authentication.self) {
            next.record(.cache, "an Authentication follows the cache, and no account is named")
            return false
        }
        guard sessionAddsCredentials else { return true }
        next.record(.cache, "the session adds credentials, and no account is named")
        return false
    }

    /// Whether the session may add credentials to the request.
    var sessionAddsCredentials: Bool {
        URL(string: url).map(next.sessionAddsCredentials) ?? true
    }

    /// Returns whether the request is for a part of a representation or has a condition that only
    /// the server can evaluate.
    private func isOfCondition() -> Bool {
        guard let name = Self.passing.first(where: { request.headers[$0] != nil }) else { return false }
        if request.method != .HEAD { next.record(.cache, "not stored: the request has \(name.rawValue)") }
        return true
    }

    private func stored() async throws -> CachedResponse? {
        let found = try await cache.response(for: key, matching: selecting, next.clock)
        guard let (found, isInvalidated) = found, !found.isRedirect(for: request) else { return nil }
        guard !isInvalidated else {
            next.record(.cache, "a group of the stored response was invalidated")
            return nil
        }
        var stored = found
        let body = await cache.opened(found.body, for: request, isStreamed: next.isStreamed, next.clock)
        guard let body else {
            next.record(.cache, "the file of the stored body is missing or damaged")
            return nil
        }
        stored.body = body
        return stored
    }

    /// - Parameter load: Sends the request to the server. Its argument is the stored response, if
    ///   there is one.
    private func respond(_ load: (CachedResponse?) async throws -> Response) async throws -> Response {
        let isPassing = try !isSameAccount() || !hasKnownCredentials() || isOfCondition()
        let stored = isPassing || demands.mode == .reload && request.method != .HEAD ? nil : try await stored()
        let now = clock.date
        if let stored {
            let use = demands.use(of: stored, at: now, usesHeuristics: cache.usesHeuristics)
            if use != .validate, let response = try response(from: stored, at: now) {
                next.record(
                    .cache,
                    use == .use
                        ? "stored, \(stored.ageText(at: now))"
                        : "stale, \(stored.ageText(at: now)), validated in the background")
                if use == .useAndValidate { validateBehind() }
                cache.count(.cache)
                return adding(stored.body, to: response)
            }
        }
        if demands.isOffline {
            cache.count(.network)
            throw URLError(.resourceUnavailable)
        }
        if demands.isOnlyIfCached, let response = CachedResponse.response(status: 504, url: url, source: .cache) {
            next.record(.cache, "the request has only-if-cached, and no stored response can be used")
            cache.count(.network)
            return response
        }
        if isPassing { return try await next(request) }
        do {
            let response = try await load(stored)
            cache.count(response.status == 304 ? .revalidated : response.source)
            return response
        } catch {
            cache.count(.network)
            throw error
        }
    }

    /// Returns the stored response, or a 304 response if the request's own condition requires it. A
    /// body that is in a file is not included.
    private func response(from stored: CachedResponse, at now: Date) throws -> Response? {
        if isKnown(stored, at: now) { return stored.notModified(url: url, at: now) }
        try checkSize(stored)
        return stored.response(url: url, hasBody: request.method != .HEAD, at: now)
    }

    /// Returns the response with its stored body as a stream if the body is in a file. Otherwise,
    /// returns the response unchanged.
    func adding(_ body: CachedBody, to response: Response) -> Response {
        guard case .file(_, let file?) = body, request.method != .HEAD, response.status != 304 else { return response }
        return next.streaming(response, from: file, for: request)
    }

    /// Returns whether the request's own condition results in a 304 response (RFC 9111, section
    /// 4.3.2).
    private func isKnown(_ stored: CachedResponse, at now: Date) -> Bool {
        guard stored.isSuccess else { return false }
        if let list = request.headers[.ifNoneMatch] { return EntityTag.isListed(stored.eTag, in: list) }
        guard let since = request.headers["If-Modified-Since"].flatMap({ HTTPDate.parse($0, now: now) }),
            let modified = (stored.lastModified ?? stored.headers["Date"]).flatMap({ HTTPDate.parse($0, now: now) })
        else { return false }
        return modified <= since
    }

    /// Applies the size limit for received responses to a stored response.
    func checkSize(_ stored: CachedResponse) throws {
        let maximum = request.options.bodyMaximum
        guard request.method != .HEAD, stored.body.count > maximum else { return }
        throw WebServiceError.tooLarge(maximum, request, nil)
    }

    /// Validates a stored response in the background.
    private func validateBehind() {
        guard cache.beginValidation(key) else { return }
        next.sendAgain(account: account, of: cache) { request in
            request.options.cachePolicy = .reloadRevalidatingCacheData
            request.headers[.ifNoneMatch] = nil
            request.headers["If-Modified-Since"] = nil
        } completion: { [cache, key] in
            cache.endValidation(key)
        }
    }

    // MARK: - Other methods

    /// Sends an unsafe request and removes the stored responses that it invalidates (RFC 9111,
    /// section 4.4).
    private func unsafe() async throws -> Response {
        let result = await next.result(of: request)
        // The received heads include those of followed redirects.
        let count = cache.invalidateGroups(in: next.receivedHeads, account, clock)
        if count > 0 { next.record(.cache, "invalidated groups: \(count)") }
        let response = try result.get()
        guard (200..<400).contains(response.status) || !response.redirects.isEmpty else { return response }
        cache.invalidate(key)
        let origin = Origin(url)
        var others = response.redirects + [response.url].compactMap(\.self)
        for name in [Headers.Name.location, "Content-Location"] {
            guard let value = response.header(name), let base = response.url ?? URL(string: url),
                let other = URL(string: value, relativeTo: base)?.absoluteURL, Origin(other) == origin
            else { continue }
            others.append(other)
        }
        for other in Set(others.compactMap { cache.key(for: $0, account) }) where other != key {
            cache.invalidate(other)
        }
        return response
    }
}

extension CachedResponse {
    fileprivate func ageText(at now: Date) -> String {
        age(at: now).map { "\(Int64(min($0, CacheControl.maximum))) s old" } ?? "of unknown age"
    }
}
