public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Sends the credentials of one account along, and gets new ones when they are refused: one refresh at a time, however many requests are refused.
///
/// ```swift
/// let authentication = Authentication(
///     TokenSource({ tokens.current }) { rejected in try await tokens.renew() }
/// )
/// service.interceptors = [.retry(), authentication]
/// ```
/// Install it on a service, or on single requests (``Request/interceptors``, ``SessionTask/intercepted(by:)``).
/// - Credentials go only to the origin of the service's base URL and to ``origins``, and not along a redirect to another one.
/// - A request that has the header field already is left alone.
/// - When a request is refused with 401 for a credential that is still the current one, a refresh begins, unless one runs already; the request is parked and
///   then sent again, once. When the credential has changed meanwhile, it is only sent again. A second refusal is the answer.
/// - A credential that expires within ``leeway`` is refreshed before it is sent; where that fails, it is sent as long as it has not expired.
/// - A refresh that fails, or takes longer than ``refreshLimit``, fails everybody who waits with ``WebServiceError/Code/authenticationFailed``; the next
///   refused request tries again, at most ``maximumRefreshes`` times in ``refreshWindow``, and with ``WebServiceError/Code/excessiveRefresh``
///   beyond. After the second failure in succession, refused requests fail with the same error for one second before the next refresh, and twice as
///   long after each further failure, up to ``refreshWindow``.
/// - ``clear()`` is log-out, ``update(_:)`` a credential from elsewhere.
///
/// All members may be used from any thread. Each wait is in the task's ``Timeline``.
public final class Authentication: Interceptor {
    /// Origins beside that of the base URL that credentials may go to.
    public let origins: Set<Origin>
    /// How long before its expiry a credential is refreshed.
    public let leeway: TimeInterval
    /// How long a refresh may take.
    public let refreshLimit: Duration
    /// How many refreshes may begin within ``refreshWindow``.
    public let maximumRefreshes: Int
    /// The window for ``maximumRefreshes``.
    public let refreshWindow: Duration

    private let provider: any TokenProvider
    private let now: @Sendable () -> Date
    private let flight = RefreshFlight()

    /// The authentications whose refresh the current Swift task runs for.
    @TaskLocal static var refreshing: Set<ObjectIdentifier> = []

    /// Makes an authentication for one account.
    ///
    /// - Parameters:
    ///   - provider: Reads the credential and gets a new one.
    ///   - origins: Origins beside that of the base URL that credentials may go to.
    ///   - leeway: How long before its expiry a credential is refreshed, in seconds.
    ///   - refreshLimit: How long a refresh may take.
    ///   - maximumRefreshes: How many refreshes may begin within `refreshWindow`.
    ///   - refreshWindow: The window for `maximumRefreshes`.
    ///   - now: The wall clock that expiry dates are compared with.
    public init(
        _ provider: any TokenProvider,
        origins: Set<Origin> = [],
        leeway: TimeInterval = 30,
        refreshLimit: Duration = .seconds(30),
        maximumRefreshes: Int = 5,
        refreshWindow: Duration = .seconds(30),
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.provider = provider
        self.origins = origins
        self.leeway = leeway
        self.refreshLimit = refreshLimit
        self.maximumRefreshes = maximumRefreshes
        self.refreshWindow = refreshWindow
        self.now = now
    }

    /// Log-out: forgets the credential that a refresh gave. Requests that are parked fail with ``WebServiceError/Code/authenticationFailed``, a running refresh is
    /// cancelled and its result ignored, and no request that was begun before is sent again with credentials, by retries neither.
    public func clear() {
        flight.clear()
    }

    /// Takes a credential from elsewhere, such as a new log-in of the same account; parked requests are sent again with it at once.
    public func update(_ credential: Credential) {
        flight.update(credential)
    }

    /// Sends the request with the credential.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let id = ObjectIdentifier(self)
        guard !Self.refreshing.contains(id), let origin = request.url.flatMap(Origin.init),
            origin == next.context.service.baseOrigin || origins.contains(origin)
        else { return try await next(request) }

        var ticket = flight.ticket
        guard next.context.log.account(id, ticket.account) == ticket.account else { throw Self.cleared }
        var credential = try await current(ticket)
        if let given = credential, request.headers[given.header] != nil { return try await next(request.marking(given.header)) }
        if let expiring = credential, let expires = expiring.expires, expires.timeIntervalSince(now()) <= leeway {
            do {
                ticket = try await refreshed(expiring, ticket, next, reason: "the credential expires")
                credential = try await current(ticket)
            } catch {
                // What is still accepted is still sent, unless its account is gone or nobody waits any more.
                guard flight.ticket.account == ticket.account, !Task.isCancelled, expires > now() else { throw error }
            }
        }
        guard let credential else { return try await next(request) }
        let response = try await next(request.with(credential))
        let isFromHere = (response.redirects + [response.url].compactMap { $0 }).allSatisfy { Origin($0) == origin }
        guard response.status == 401, isFromHere, request.template?.httpBodyStream == nil else { return response }

        let newer = flight.ticket
        guard newer.account == ticket.account else { throw Self.cleared }
        if newer.generation == ticket.generation {
            ticket = try await refreshed(credential, ticket, next, reason: "status 401")
        } else {
            ticket = newer
        }
        guard let replacement = try await current(ticket), replacement != credential else { return response }
        guard flight.ticket.account == ticket.account else { throw Self.cleared }
        next.record(.retry, "with a newer credential")
        return try await next(request.with(replacement))
    }

    /// Calls a closure whose requests pass this authentication without credentials and without a refresh.
    ///
    /// A refresh needs it only where it sends its request from a Dispatch queue or another thread: there the framework cannot tell that request
    /// from others, and it would wait for the refresh that it belongs to, until ``refreshLimit``. The request has to be resumed inside the closure.
    /// ```swift
    /// queue.async { authentication.bypassing { service.POST("/token").response { … }.resume() } }
    /// ```
    @discardableResult
    public func bypassing<Value>(_ body: () throws -> Value) rethrows -> Value {
        try Self.$refreshing.withValue(Self.refreshing.union([ObjectIdentifier(self)]), operation: body)
    }

    /// How many requests wait for a refresh.
    public var parkedRequests: Int { flight.waiting }

    private func current(_ ticket: RefreshFlight.Ticket) async throws -> Credential? {
        if let credential = ticket.credential { return credential }
        return try await provider.credential()
    }

    /// Waits until there is a credential newer than the ticket's.
    private func refreshed(
        _ rejected: Credential?, _ ticket: RefreshFlight.Ticket, _ next: Next, reason: String
    ) async throws -> RefreshFlight.Ticket {
        let clock = next.context.service.clock
        let start = clock.now
        defer { next.context.log.record(.refresh, reason, from: start) }
        let limits = RefreshFlight.Limits(duration: refreshLimit, count: maximumRefreshes, window: refreshWindow)
        return try await flight.wait(ticket, limits, clock) { [self] in
            try await Self.$refreshing.withValue(Self.refreshing.union([ObjectIdentifier(self)])) { try await provider.refresh(rejected) }
        }
    }

    static let cleared = WebServiceError(.authenticationFailed, "the account was logged out")
}

extension Request {
    fileprivate func with(_ credential: Credential) -> Request {
        var request = self
        request.headers[credential.header] = credential.value
        return request.marking(credential.header)
    }

    /// Marks a field as one that holds a credential.
    fileprivate func marking(_ field: Headers.Name) -> Request {
        var request = self
        request.credentialFields.insert(field)
        return request
    }
}

extension WebServiceError.Code {
    /// Credentials could not be refreshed in time, or were cleared while a request waited for them.
    public static let authenticationFailed = WebServiceError.Code("authenticationFailed")
    /// More refreshes than ``Authentication/maximumRefreshes`` within its window.
    public static let excessiveRefresh = WebServiceError.Code("excessiveRefresh")
}
