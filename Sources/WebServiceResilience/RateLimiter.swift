import Foundation
public import WebServiceCore

/// An interceptor that limits the rate at which requests are sent.
///
/// ```swift
/// service.interceptors = [.retry(), .rateLimit(10, per: .seconds(1))]
/// ```
/// Each key has a token bucket. The key defaults to the origin of the URL.
/// - A full bucket has ``burst`` tokens, and a token is added every ``period`` / ``requests``. A
///   request takes one token, or waits for one. Waiting requests of a key are sent in the order of
///   their arrival.
/// - A cancelled request stops waiting immediately, without a token. Waiting counts toward the
///   `Request.Options.deadline` of a request, and is recorded in the task's `Timeline`.
/// - If ``maximumWaiting`` requests of a key are already waiting, the next one fails immediately
///   with `WebServiceError.Code.rateLimitExceeded`. A request that would have to wait until its
///   deadline also fails. If the request is a retry, the result is that of the last attempt.
/// - A `Retry-After` (RFC 9110, section 10.2.3) in a response with status 429 or 503 delays all
///   requests with the same key by that duration, for at most six hours.
///
/// With ``followsServer``, requests also wait while the server's quota is exhausted, so that the
/// server need not refuse them (draft-ietf-httpapi-ratelimit-headers-10):
/// ```swift
/// service.interceptors = [.retry(), .serverRateLimit()]
/// ```
/// - A response with `RateLimit: "default";r=50;t=30` permits 50 requests in the next 30 seconds.
///   Requests in flight count toward the limit, because the server may not have counted them yet.
///   If there are several policies, the strictest one applies.
/// - After these 30 seconds, one request per second is sent until a response states a new limit or
///   does not contain the field. If the server refuses the first of these requests because it
///   rounds the seconds down, one second is added to all later durations.
/// - Malformed fields, members without `r` or `t`, policies whose `qu` is not `requests`, and
///   fields of stored responses are ignored. A `Retry-After` takes precedence over `t`. At most 16
///   policies are stored for each key. Each partition key (`pk`) of a policy counts as a separate
///   policy, and all of them apply to each request. If the server has a separate quota for each
///   user or resource, return a separate key for each in `by:`.
/// - After ``maximumPause``, the next request is sent, regardless of `t`.
///
/// If a limiter follows a retry policy in the list of interceptors, each attempt takes a token; if
/// it precedes the retry policy, each exchange does. Redirects take no token. Services that share
/// an instance share its buckets. All members may be used from any thread.
public final class RateLimiter: Interceptor {
    /// The number of tokens that are added per ``period``.
    public let requests: Int
    /// The duration in which ``requests`` tokens are added.
    public let period: Duration
    /// The number of tokens in a full bucket.
    public let burst: Int
    /// The maximum number of waiting requests per key.
    public let maximumWaiting: Int
    /// Whether the field `RateLimit` of responses applies.
    public let followsServer: Bool
    /// The maximum duration by which one response with `RateLimit` delays requests.
    public let maximumPause: Duration

    private let key: @Sendable (Request) -> String
    private let state = Mutex(KeyedStates<Lane>())
    private let interval: UInt64

    /// Creates a limiter with full buckets.
    ///
    /// - Parameters:
    ///   - requests: The number of requests per period. Values below 1 count as 1.
    ///   - period: The period. A duration of zero or less means no limit. Defaults to one second.
    ///   - burst: The maximum number of requests that are sent without a pause. Values below 1
    ///     count as 1. Defaults to `requests`.
    ///   - maximumWaiting: The maximum number of waiting requests per key. Defaults to 1,000.
    ///   - followsServer: Whether the field `RateLimit` of responses applies. Defaults to `false`.
    ///   - maximumPause: The maximum duration by which one response with `RateLimit` delays
    ///     requests. Defaults to 10 minutes.
    ///   - key: A closure that returns the key of a request. It is called at most once per attempt,
    ///     in the background. Defaults to the origin of the URL.
    public init(
        _ requests: Int, per period: Duration = .seconds(1), burst: Int? = nil, maximumWaiting: Int = 1_000,
        followsServer: Bool = false, maximumPause: Duration = .seconds(600),
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) {
        self.requests = max(requests, 1)
        self.period = max(period, .zero)
        self.burst = max(burst ?? self.requests, 1)
        self.maximumWaiting = max(maximumWaiting, 0)
        self.followsServer = followsServer
        self.maximumPause = max(maximumPause, .zero)
        self.key = key ?? { $0.originKey }
        let period = UInt64(0).addingSaturated(self.period)
        let (whole, rest) = period.quotientAndRemainder(dividingBy: UInt64(self.requests))
        interval = rest == 0 ? whole : whole + 1
    }

    /// Sends the request when the limit allows it.
    ///
    /// - Throws: `WebServiceError.Code.rateLimitExceeded`, `CancellationError` during a wait, or an
    ///   error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let (key, clock) = (key(request), next.clock)
        let start = clock.now
        switch try await awaitToken(key, request, next) {
        case .none: break
        case .limiter: next.record(.wait, "for the rate limit", from: start)
        case .server: next.record(.wait, "for the rate limit of the server", from: start)
        }
        let sent = clock.now
        let response: Response
        do { response = try await next(request) } catch {
            receive([], key, sent: sent, status: nil, clock)
            throw error
        }
        var pause: Duration?
        if [429, 503].contains(response.status),
            let retry = response.header(.retryAfter).flatMap({ RetryAfter($0, now: clock.date) })
        {
            let now = clock.now
            update(key, now) { $0.heldUntil = max($0.heldUntil, now.addingSaturated(retry.delay)) }
            pause = retry.delay
        }
        guard followsServer else { return response }
        guard ![.cache, .revalidated].contains(response.source), response.header("Age") ?? "0" == "0" else {
            receive(response.source == .cache ? nil : [], key, sent: sent, status: nil, clock)
            return response
        }
        let limits = ServiceLimit.limits(in: response.headers)
        receive(limits, key, sent: sent, status: response.status, pause: pause, clock)
        if let limit = limits.min(by: { ($0.remaining, $1.reset) < ($1.remaining, $0.reset) }) {
            next.record(.quota, limit.text(atMost: maximumPause))
        }
        return response
    }

    /// Applies the limits of a response, and wakes the first waiting request.
    private func receive(
        _ limits: [ServiceLimit]?, _ key: String, sent: UInt64, status: Int?, pause: Duration? = nil,
        _ clock: TaskClock
    ) {
        guard followsServer else { return }
        let now = clock.now
        update(key, now) { lane in
            lane.server?.receive(limits, sent: sent, status: status, pause: pause, at: now)
        }?.set(())
    }

    /// The number of keys whose buckets are retained.
    var keyCount: Int { state.withLock { $0.values.count } }

    /// The number of waiting requests.
    var waitingRequests: Int { state.withLock { $0.values.values.reduce(0) { $0 + $1.waiting.count } } }

    /// Waits for a token.
    ///
    /// - Returns: What the request waited for.
    private func awaitToken(_ key: String, _ request: Request, _ next: Next) async throws -> Reason {
        let clock = next.clock
        let timeLeft = next.timeToDeadline(of: request)
        let turn: Turns.Turn
        switch update(key, clock.now, { $0.enter(maximumWaiting, timeLeft: timeLeft, clock.now) }) {
        case .sent: return .none
        case .full:
            throw WebServiceError(
                .rateLimitExceeded,
                "the queue of the rate limit is full (maximumWaiting: \(maximumWaiting)); send fewer requests or "
                    + "increase maximumWaiting", underlying: RateLimitRefusal())
        case .late(let delay): throw Self.late(by: delay, timeLeft)
        case .waits(let entered): turn = entered
        }
        defer { leave(turn, key, clock) }
        try await withTaskCancellationHandler {
            try await turn.value.get()
        } onCancel: {
            turn.set(.failure(CancellationError()))
            leave(turn, key, clock)
        }
        try Task.checkCancellation()  // a cancelled request no longer has its turn
        var reason = Reason.limiter
        while let wait = update(key, clock.now, { $0.takeToken(at: clock.now) }) {
            if wait.isForServer { reason = .server }
            let timeLeft = next.timeToDeadline(of: request)
            guard wait.delay < timeLeft || wait.mayShorten else { throw Self.late(by: wait.delay, timeLeft) }
            guard let change = wait.change else {
                try await clock.sleep(for: wait.delay)
                continue
            }
            try Task.checkCancellation()
            await clock.value(of: change, orAfter: wait.delay, (), orIfCancelled: ())
            try Task.checkCancellation()
        }
        return reason
    }

    private static func late(by delay: Duration, _ timeLeft: Duration) -> WebServiceError {
        WebServiceError(
            .rateLimitExceeded,
            "the request would wait \(delay) for the rate limit, but only \(timeLeft) are left until its deadline; "
                + "send fewer requests or set a longer deadline", underlying: RateLimitRefusal())
    }

    private func leave(_ turn: Turns.Turn, _ key: String, _ clock: TaskClock) {
        update(key, clock.now) { $0.waiting.leave(turn) }?.set(.success(()))
    }

    private var server: ServerLimits? { followsServer ? ServerLimits(maximumPause: maximumPause) : nil }

    private func update<Result>(_ key: String, _ now: UInt64, _ body: (inout Lane) -> Result) -> Result {
        state.withLock { $0.update(key, Lane(interval, burst, server), isIdle: { $0.isIdle(at: now) }, body) }
    }
}

/// The cause of a request that was not sent.
private struct RateLimitRefusal: Refusal {}

/// What a request waited for.
private enum Reason { case none, limiter, server }

/// The token bucket of a key, and its waiting requests. The first waiting request waits for the
/// next token.
private struct Lane: Sendable {
    enum Entrance {
        case sent
        /// The request waits for its turn, and then for the next token.
        case waits(Turns.Turn)
        /// The maximum number of requests is waiting.
        case full
        /// The request would wait until its deadline.
        case late(Duration)
    }

    /// A wait for the next token.
    struct Wait {
        var delay: Duration
        var isForServer: Bool
        /// Set when the wait may have become shorter. `nil` if the wait cannot become shorter.
        var change: Once<Void>?
        /// Whether a request in flight may end the wait.
        var mayShorten: Bool
    }

    private let interval: UInt64
    /// The duration in which an empty bucket receives all tokens but one.
    private let tolerance: UInt64
    /// The instant at which the bucket is full.
    private var fullAt: UInt64 = 0
    /// The instant until which no request is sent.
    var heldUntil: UInt64 = 0
    /// The limits of the server; `nil` if they do not apply.
    var server: ServerLimits?
    var waiting = Turns()

    init(_ interval: UInt64, _ burst: Int, _ server: ServerLimits?) {
        self.server = server
        self.interval = interval
        let (product, overflows) = interval.multipliedReportingOverflow(by: UInt64(burst - 1))
        tolerance = overflows ? .max : product
    }

    func isIdle(at now: UInt64) -> Bool {
        waiting.count == 0 && fullAt <= now && heldUntil <= now && server?.isIdle(at: now) ?? true
    }

    mutating func enter(_ maximum: Int, timeLeft: Duration, _ now: UInt64) -> Entrance {
        if waiting.count == 0, takeToken(at: now) == nil { return .sent }
        guard waiting.count < maximum else { return .full }
        if let delay = limiterDelay(at: now, after: waiting.count), delay >= timeLeft { return .late(delay) }
        return .waits(waiting.enter())
    }

    /// Takes a token if one is available.
    ///
    /// - Returns: The wait for a token, or `nil` if one was taken.
    mutating func takeToken(at now: UInt64) -> Wait? {
        let delay = limiterDelay(at: now)
        let serverDelay = server?.delay(at: now)
        if let longest = [delay, serverDelay].compactMap(\.self).max() {
            return Wait(
                delay: longest, isForServer: longest == serverDelay,
                change: longest == serverDelay ? server?.nextChange() : nil,
                mayShorten: longest == serverDelay && server?.hasRequestsInFlight == true)
        }
        server?.send(at: now)
        let (sum, overflows) = max(fullAt, now).addingReportingOverflow(interval)
        fullAt = overflows ? .max : sum
        return nil
    }

    /// Returns the minimum duration until the bucket has a token for the request that follows a
    /// number of waiting requests, regardless of the server's limits; `nil` if the bucket has such
    /// a token now.
    private func limiterDelay(at now: UInt64, after count: Int = 0) -> Duration? {
        let (wait, overflows) = interval.multipliedReportingOverflow(by: UInt64(count))
        let (sum, isTooLate) = max(fullAt, now).addingReportingOverflow(wait)
        let full = overflows || isTooLate ? UInt64.max : sum
        let instant = max(full > tolerance ? full - tolerance : 0, heldUntil)
        return instant > now ? .nanoseconds(Int64(clamping: instant - now)) : nil
    }
}

extension Request {
    /// The origin of the URL; an empty string if there is none.
    var originKey: String { url.flatMap(Origin.init)?.description ?? "" }
}

extension Interceptor where Self == RateLimiter {
    /// Returns a limiter for the requests to each origin; see ``RateLimiter``.
    ///
    /// - Parameters:
    ///   - requests: The number of requests per period.
    ///   - period: The period. Defaults to one second.
    ///   - burst: The maximum number of requests that are sent without a pause. Defaults to
    ///     `requests`.
    ///   - maximumWaiting: The maximum number of waiting requests per key. Defaults to 1,000.
    ///   - followsServer: Whether the field `RateLimit` of responses applies. Defaults to `false`.
    ///   - maximumPause: The maximum duration by which one response with `RateLimit` delays
    ///     requests. Defaults to 10 minutes.
    ///   - key: A closure that returns the key of a request. Defaults to the origin of the URL.
    public static func rateLimit(
        _ requests: Int, per period: Duration = .seconds(1), burst: Int? = nil, maximumWaiting: Int = 1_000,
        followsServer: Bool = false, maximumPause: Duration = .seconds(600),
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) -> RateLimiter {
        RateLimiter(
            requests, per: period, burst: burst, maximumWaiting: maximumWaiting, followsServer: followsServer,
            maximumPause: maximumPause, by: key)
    }
}

extension Interceptor where Self == RateLimiter {
    /// Returns a limiter that sends as many requests to each origin as the server permits with the
    /// field `RateLimit`; see ``RateLimiter``. Requests to servers that do not send the field are
    /// delayed only by `Retry-After`.
    ///
    /// - Parameters:
    ///   - maximumPause: The maximum duration by which one response delays requests. Defaults to 10
    ///     minutes.
    ///   - maximumWaiting: The maximum number of waiting requests per key. Defaults to 1,000.
    ///   - key: A closure that returns the key of a request. Defaults to the origin of the URL.
    public static func serverRateLimit(
        maximumPause: Duration = .seconds(600), maximumWaiting: Int = 1_000,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) -> RateLimiter {
        RateLimiter(
            1, per: .zero, maximumWaiting: maximumWaiting, followsServer: true, maximumPause: maximumPause, by: key)
    }
}

extension Timeline.Kind {
    /// The limit that a response states in the field `RateLimit` (``RateLimiter/followsServer``).
    public static let quota = Timeline.Kind("quota")
}

extension ServiceLimit {
    /// Returns a description of the limit for the timeline.
    fileprivate func text(atMost maximumPause: Duration) -> String {
        let pause = min(reset, maximumPause)
        let bound = reset > maximumPause ? " at most" : ""
        return "the server permits \(remaining) more requests within\(bound) \(Int64(pause.inSeconds)) s"
    }
}

extension WebServiceError.Code {
    /// A request that was not sent because too many requests are already waiting for a
    /// ``RateLimiter``, or because it would have to wait until its deadline.
    public static let rateLimitExceeded = WebServiceError.Code("rateLimitExceeded")
}
