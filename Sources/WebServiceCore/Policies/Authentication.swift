import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An interceptor that adds the credential of one account, and refreshes it after a 401.
///
/// ```swift
/// let authentication = Authentication(
///     TokenSource({ tokens.current }) { rejected in try await tokens.renew() }
/// )
/// service.interceptors = [.retry(), authentication]
/// ```
/// Install an authentication on a service, or on single requests (``Request/Options/interceptors``,
/// ``SessionTask/intercepted(by:)``).
/// - Credentials are sent only to the origin of the service's base URL and to ``origins``. They are
///   removed if a redirect, a later interceptor or the delegate changes the URL to another origin.
/// - A request that already has the header field is sent unchanged. If several interceptors would
///   set the same field, only the first one in the list has an effect.
/// - If `isUnauthorized` returns `true` for the response to the current credential, by default
///   after a 401, a refresh starts unless one is in progress. The request waits for the refresh and
///   is then sent again, once. If the credential has changed in the meantime, the request is sent
///   again without a refresh. A second 401 is returned as the response.
/// - A credential that expires within ``leeway`` is refreshed before it is sent. If that refresh
///   fails, the credential is sent until it expires.
/// - If any other refresh fails or takes longer than ``refreshLimit``, the waiting requests fail
///   with ``WebServiceError/Code/authenticationFailed``, and the next request with a 401 starts
///   another refresh. If ``maximumRefreshes`` refreshes have started within ``refreshWindow``, a
///   request that needs another refresh fails with ``WebServiceError/Code/excessiveRefresh``. After
///   the second consecutive failure, requests that need a refresh fail for one second with the
///   error of the last refresh; this duration doubles with each further failure, up to
///   ``refreshWindow``.
/// - ``withCredential(refreshingAfter:_:)`` applies the same rules to work that is not an HTTP
///   request.
/// - Call ``clear()`` at log-out, and ``update(_:)`` with a credential from another source.
///
/// All members may be used from any thread. Each wait is recorded in the task's ``Timeline``.
public final class Authentication: Interceptor {
    /// The origins to which credentials are sent, in addition to the origin of the base URL.
    public let origins: Set<Origin>
    /// The duration before expiry at which a credential is refreshed.
    public let leeway: Duration
    /// The maximum duration of a refresh.
    public let refreshLimit: Duration
    /// The maximum number of refreshes that may start within ``refreshWindow``.
    public let maximumRefreshes: Int
    /// The duration to which ``maximumRefreshes`` applies.
    public let refreshWindow: Duration

    private let provider: any TokenProvider
    private let isUnauthorized: @Sendable (Response) -> Bool
    private let flight = RefreshFlight()
    private let clock: TaskClock

    /// Creates an authentication for one account.
    ///
    /// - Parameters:
    ///   - provider: The provider that returns the credential and refreshes it.
    ///   - origins: The origins to which credentials are sent, in addition to the origin of the
    ///     base URL. Defaults to none.
    ///   - leeway: The duration before expiry at which a credential is refreshed. Defaults to 30
    ///     seconds.
    ///   - refreshLimit: The maximum duration of a refresh. Defaults to 30 seconds.
    ///   - maximumRefreshes: The maximum number of refreshes that may start within `refreshWindow`.
    ///     Defaults to 5.
    ///   - refreshWindow: The duration over which `maximumRefreshes` is counted. Defaults to 30
    ///     seconds.
    ///   - isUnauthorized: A closure that returns whether a response to a request with the
    ///     credential means that the server rejected the credential. The closure is called in the
    ///     background. Defaults to a closure that accepts status 401.
    public convenience init(
        _ provider: any TokenProvider,
        origins: Set<Origin> = [],
        leeway: Duration = .seconds(30),
        refreshLimit: Duration = .seconds(30),
        maximumRefreshes: Int = 5,
        refreshWindow: Duration = .seconds(30),
        isUnauthorized: @escaping @Sendable (_ response: Response) -> Bool = { $0.status == 401 }
    ) {
        self.init(
            provider, origins: origins, leeway: leeway, refreshLimit: refreshLimit, maximumRefreshes: maximumRefreshes,
            refreshWindow: refreshWindow, timekeeper: nil, isUnauthorized: isUnauthorized)
    }

    /// - Parameter timekeeper: The clock of ``withCredential(refreshingAfter:_:)``, which belongs
    ///   to no service; `nil` for the system clock.
    package init(
        _ provider: any TokenProvider, origins: Set<Origin> = [], leeway: Duration = .seconds(30),
        refreshLimit: Duration = .seconds(30), maximumRefreshes: Int = 5, refreshWindow: Duration = .seconds(30),
        timekeeper: (any Timekeeper)?,
        isUnauthorized: @escaping @Sendable (_ response: Response) -> Bool = { $0.status == 401 }
    ) {
        clock = TaskClock(timekeeper)
        self.provider = provider
        self.isUnauthorized = isUnauthorized
        self.origins = origins
        self.leeway = leeway
        self.refreshLimit = refreshLimit
        self.maximumRefreshes = maximumRefreshes
        self.refreshWindow = refreshWindow
    }

    /// Discards the current credential, for a log-out.
    ///
    /// - A refresh in progress is cancelled, and its result is ignored. Requests that wait for the
    ///   refresh fail with ``WebServiceError/Code/authenticationFailed``.
    /// - If the retry policy precedes the authentication, a request that was started before this
    ///   call is not sent again with credentials: a retry fails with
    ///   ``WebServiceError/Code/authenticationFailed``.
    /// - Later requests obtain the credential from the provider. Remove the old credential from the
    ///   provider's source before this call; otherwise, later requests are sent with it.
    /// - Other work in progress is not cancelled. A request in flight receives its response, and a
    ///   streamed body continues. An interrupted download and a reconnecting event stream send a
    ///   new request with the credential that the provider returns then, or without one if the
    ///   provider returns none. Cancel the tasks of the old account.
    /// - Cookies, cached responses and stored responses remain.
    public func clear() {
        flight.clear()
    }

    /// Replaces the credential, for example after a new log-in of the same account.
    ///
    /// Requests that wait for a refresh are sent immediately, with the new credential.
    public func update(_ credential: Credential) {
        flight.update(credential)
    }

    /// Sends the request with the credential.
    ///
    /// - Throws: ``WebServiceError/Code/authenticationFailed``,
    ///   ``WebServiceError/Code/excessiveRefresh`` or ``WebServiceError/Code/bodyNotReplayable``;
    ///   an error of the provider or of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let id = ObjectIdentifier(self)
        let origins = origins.union([next.task.service.baseOrigin].compactMap(\.self))
        guard !Refresh.current.contains(id), let origin = request.url.flatMap(Origin.init), origins.contains(origin)
        else { return try await next(request) }

        var ticket = flight.ticket
        let account = ExchangeLog.Account.afterLogOuts(ticket.account)
        guard next.task.account(id, account) == account else { throw Self.cleared }
        var credential = try await current(ticket)
        if let given = credential, request.headers[given.header] != nil {
            return try await next(request.marking(given.header))
        }
        let clock = next.task.service.clock
        credential = try await fresh(credential, &ticket, clock, recordingIn: next.task)
        guard let credential else { return try await next(request) }
        let response = try await next(request.with(credential, for: origins))
        guard isUnauthorized(response), request.template?.httpBodyStream == nil else { return response }
        let isFromHere = (response.redirects + [response.url].compactMap { $0 }).allSatisfy { Origin($0) == origin }
        guard isFromHere else { return response }

        let replacement = try await replacement(
            of: credential, &ticket, clock, reason: "status \(response.status)", recordingIn: next.task)
        guard let replacement else { return response }
        guard request.canSendBody else { throw WebServiceError.bodyNotReplayable(request, after: .success(response)) }
        next.record(.retry, "with a newer credential")
        return try await next.again(withCredentials: request.with(replacement, for: origins))?.get() ?? response
    }

    /// Calls a closure whose requests bypass this authentication: they have no credentials and
    /// start no refresh.
    ///
    /// A refresh needs this method only if it sends its request from a Dispatch queue or another
    /// thread. Such a request cannot be recognized as part of the refresh, and would wait for that
    /// refresh until ``refreshLimit``. Resume the request inside the closure.
    /// ```swift
    /// queue.async { authentication.bypassing { service.POST("/token").response { … }.resume() } }
    /// ```
    @discardableResult
    public func bypassing<Value>(_ body: () throws -> Value) rethrows -> Value {
        try Refresh.$current.withValue(Refresh.current.union([ObjectIdentifier(self)]), operation: body)
    }

    /// Runs work that is not an HTTP request, such as opening a WebSocket, with the credential.
    ///
    /// A credential that expires within ``leeway`` is refreshed first. If the work throws an error
    /// for which `isUnauthorized` returns `true`, the work runs once more with a newer credential.
    /// Like a request after a 401, the work waits for the refresh in progress or starts one, with
    /// the same limits.
    ///
    /// ```swift
    /// let socket = try await authentication.withCredential(refreshingAfter: { $0 is SocketRefused }) {
    ///     try await open(url, with: $0)
    /// }
    /// ```
    /// - Parameters:
    ///   - isUnauthorized: A closure that returns whether an error of the work means that the
    ///     credential was rejected.
    ///   - work: The work. It receives the current credential, or `nil` if there is none.
    /// - Throws: The error of the work or of the provider; the errors of a refresh; or
    ///   `CancellationError`.
    public func withCredential<Value: Sendable>(
        refreshingAfter isUnauthorized: @Sendable (any Error) -> Bool,
        _ work: @Sendable (_ credential: Credential?) async throws -> Value
    ) async throws -> Value {
        guard !Refresh.current.contains(ObjectIdentifier(self)) else { return try await work(nil) }
        var ticket = flight.ticket
        let credential = try await fresh(try await current(ticket), &ticket, clock, recordingIn: nil)
        do {
            return try await work(credential)
        } catch  where isUnauthorized(error) {
            let replacement = try await replacement(of: credential, &ticket, clock, reason: "", recordingIn: nil)
            guard let replacement else { throw error }
            return try await work(replacement)
        }
    }

    /// The number of calls to ``clear()``, which separates the accounts.
    package var logOuts: Int { flight.ticket.account }

    /// The number of requests that wait for a refresh.
    var parkedRequests: Int { flight.waiting }

    private func current(_ ticket: RefreshFlight.Ticket) async throws -> Credential? {
        if let credential = ticket.credential { return credential }
        return try await provider.credential()
    }

    /// Returns the credential, or a new one if the credential is about to expire.
    private func fresh(
        _ credential: Credential?, _ ticket: inout RefreshFlight.Ticket, _ clock: TaskClock,
        recordingIn task: SessionTask?
    ) async throws -> Credential? {
        guard let expires = credential?.expires, expires.timeIntervalSince(clock.date) <= leeway.inSeconds else {
            return credential
        }
        do {
            ticket = try await refreshed(
                credential, ticket, clock, reason: "the credential expires", recordingIn: task)
            return try await current(ticket)
        } catch {
            // A credential that has not expired yet is sent, unless the account was cleared or the
            // task was cancelled.
            guard flight.ticket.account == ticket.account, !Task.isCancelled, expires > clock.date else { throw error }
            return credential
        }
    }

    /// Returns the credential to use instead of a rejected one, or `nil` if there is no other
    /// credential.
    private func replacement(
        of rejected: Credential?, _ ticket: inout RefreshFlight.Ticket, _ clock: TaskClock, reason: String,
        recordingIn task: SessionTask?
    ) async throws -> Credential? {
        let newer = flight.ticket
        guard newer.account == ticket.account else { throw Self.cleared }
        let isNewest = newer.generation == ticket.generation
        ticket =
            isNewest ? try await refreshed(rejected, ticket, clock, reason: reason, recordingIn: task) : newer
        guard let replacement = try await current(ticket), replacement != rejected else { return nil }
        guard flight.ticket.account == ticket.account else { throw Self.cleared }
        return replacement
    }

    /// Waits for a credential newer than the ticket's.
    private func refreshed(
        _ rejected: Credential?, _ ticket: RefreshFlight.Ticket, _ clock: TaskClock, reason: String,
        recordingIn task: SessionTask?
    ) async throws -> RefreshFlight.Ticket {
        let start = clock.now
        defer { task?.record(.refresh, reason, from: start) }
        let limits = RefreshFlight.Limits(duration: refreshLimit, count: maximumRefreshes, window: refreshWindow)
        return try await flight.wait(ticket, limits, clock) { [self] in
            try await Refresh.$current.withValue(Refresh.current.union([ObjectIdentifier(self)])) {
                try await provider.refresh(rejected)
            }
        }
    }

    static let cleared = WebServiceError(.authenticationFailed, "the account was logged out; log in again")
}

extension Request {
    fileprivate func with(_ credential: Credential, for origins: Set<Origin>) -> Request {
        var request = self
        request.headers[credential.header] = credential.value
        request.bind(BoundFields([credential.header.rawValue: credential.value], origins: origins))
        return request.marking(credential.header)
    }

    /// Marks a field as one that contains a credential.
    fileprivate func marking(_ field: Headers.Name) -> Request {
        var request = self
        request.credentialFields.insert(field)
        return request
    }
}

extension Interceptor where Self == Authentication {
    /// Returns an authentication with a bearer token that is never refreshed (RFC 6750).
    public static func bearer(_ token: String) -> Authentication {
        Authentication(TokenSource(.bearer(token)))
    }

    /// Returns an authentication with a user name and a password in UTF-8 (RFC 7617).
    ///
    /// - Returns: The interceptor. If the user name contains a colon, or if either string contains
    ///   control characters, the requests that the interceptor authenticates fail with
    ///   ``WebServiceError/Code/encoding``.
    public static func basic(user: String, password: String) -> Authentication {
        let credential = Result { try Credential.basic(user: user, password: password) }
        return Authentication(TokenSource { try credential.get() })
    }
}

extension WebServiceError.Code {
    /// A credential that could not be refreshed, or that was cleared after a request was started
    /// with it.
    public static let authenticationFailed = WebServiceError.Code("authenticationFailed")
    /// A request that needs a refresh after ``Authentication/maximumRefreshes`` refreshes have
    /// started within ``Authentication/refreshWindow``. If the last refresh failed, its error is the
    /// underlying error.
    public static let excessiveRefresh = WebServiceError.Code("excessiveRefresh")
}
