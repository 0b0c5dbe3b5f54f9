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
/// - If ``maximumWaiting`` requests of a key already wait, the next one fails immediately with
///   `WebServiceError.Code.rateLimitExceeded`.
/// - A `Retry-After` (RFC 9110, section 10.2.3) in a response with the status 429 or 503 holds back
///   all requests of the key for that duration, at most six hours.
///
/// After a retry policy in the list of interceptors, a limiter takes a token for each attempt;
/// before it, for each exchange. Redirects take none. Services that share an instance share its
/// buckets. All members may be used from any thread.
public final class RateLimiter: Interceptor {
    /// The number of tokens that are added per ``period``.
    public let requests: Int
    /// The duration in which ``requests`` tokens are added.
    public let period: Duration
    /// The number of tokens in a full bucket.
    public let burst: Int
    /// The maximum number of waiting requests per key.
    public let maximumWaiting: Int

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
    ///   - key: Returns the key of a request. Called once per attempt, in the background. Defaults
    ///     to the origin of the URL.
    public init(
        _ requests: Int, per period: Duration = .seconds(1), burst: Int? = nil, maximumWaiting: Int = 1_000,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) {
        self.requests = max(requests, 1)
        self.period = max(period, .zero)
        self.burst = max(burst ?? self.requests, 1)
        self.maximumWaiting = max(maximumWaiting, 0)
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
        if try await awaitToken(key, clock) { next.record(.wait, "for the rate limit", from: start) }
        let response = try await next(request)
        if [429, 503].contains(response.status),
            let pause = response.header(.retryAfter).flatMap({ RetryAfter($0, now: clock.date) })
        {
            let now = clock.now
            update(key, now) { $0.heldUntil = max($0.heldUntil, now.addingSaturated(pause.delay)) }
        }
        return response
    }

    /// The number of keys whose buckets are retained.
    var keyCount: Int { state.withLock { $0.values.count } }

    /// The number of waiting requests.
    var waitingRequests: Int { state.withLock { $0.values.values.reduce(0) { $0 + $1.waiting.count } } }

    /// Waits for a token.
    ///
    /// - Returns: `false` if a token was available immediately.
    private func awaitToken(_ key: String, _ clock: TaskClock) async throws -> Bool {
        let request = QueuedRequest()
        switch update(key, clock.now, { $0.enter(request, maximumWaiting, clock.now) }) {
        case .sent: return false
        case .refused:
            throw WebServiceError(
                .rateLimitExceeded,
                "\(maximumWaiting) requests are already waiting for the rate limit; send fewer or increase "
                    + "maximumWaiting"
            )
        case .first: break
        case .waits: try await awaitTurn(request, key, clock)
        }
        defer { leave(request, key, clock) }
        while let delay = update(key, clock.now, { $0.takeToken(at: clock.now) }) {
            try await clock.sleep(for: delay)
        }
        return true
    }

    /// Waits until the request is the first of its key. Its Swift task then waits for the next
    /// token.
    private func awaitTurn(_ request: QueuedRequest, _ key: String, _ clock: TaskClock) async throws {
        try await withTaskCancellationHandler {
            try await request.turn.value.get()
        } onCancel: {
            guard update(key, clock.now, { $0.remove(request, unlessFirst: true) }) else { return }
            request.turn.set(.failure(CancellationError()))
        }
    }

    private func leave(_ request: QueuedRequest, _ key: String, _ clock: TaskClock) {
        let following = update(key, clock.now) { lane in
            _ = lane.remove(request, unlessFirst: false)
            return lane.waiting.first
        }
        guard let following else { return }
        following.turn.set(.success(()))
    }

    private func update<Result>(_ key: String, _ now: UInt64, _ body: (inout Lane) -> Result) -> Result {
        state.withLock { $0.update(key, Lane(interval, burst), isIdle: { $0.isIdle(at: now) }, body) }
    }
}

/// A waiting request.
private final class QueuedRequest: Sendable {
    let turn = Once<Result<Void, any Error>>()
}

/// The token bucket of a key, and its waiting requests. The first one waits for the next token.
private struct Lane: Sendable {
    enum Entrance { case sent, first, waits, refused }

    private let interval: UInt64
    /// The duration in which an empty bucket receives all tokens but one.
    private let tolerance: UInt64
    /// The instant at which the bucket is full.
    private var fullAt: UInt64 = 0
    /// The instant until which no request is sent.
    var heldUntil: UInt64 = 0
    private(set) var waiting: [QueuedRequest] = []

    init(_ interval: UInt64, _ burst: Int) {
        self.interval = interval
        let (product, overflows) = interval.multipliedReportingOverflow(by: UInt64(burst - 1))
        tolerance = overflows ? .max : product
    }

    func isIdle(at now: UInt64) -> Bool { waiting.isEmpty && fullAt <= now && heldUntil <= now }

    mutating func enter(_ request: QueuedRequest, _ maximum: Int, _ now: UInt64) -> Entrance {
        if waiting.isEmpty, takeToken(at: now) == nil { return .sent }
        guard waiting.count < maximum else { return .refused }
        waiting.append(request)
        return waiting.count == 1 ? .first : .waits
    }

    /// Takes a token.
    ///
    /// - Returns: The duration until a token is available, or `nil` if one was taken.
    mutating func takeToken(at now: UInt64) -> Duration? {
        let instant = max(fullAt > tolerance ? fullAt - tolerance : 0, heldUntil)
        guard instant <= now else { return .nanoseconds(Int64(clamping: instant - now)) }
        let (sum, overflows) = max(fullAt, now).addingReportingOverflow(interval)
        fullAt = overflows ? .max : sum
        return nil
    }

    /// - Returns: Whether the request was removed.
    mutating func remove(_ request: QueuedRequest, unlessFirst: Bool) -> Bool {
        guard let index = waiting.firstIndex(where: { $0 === request }), index > 0 || !unlessFirst else { return false }
        waiting.remove(at: index)
        return true
    }
}

extension Request {
    /// The origin of the URL; empty without one.
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
    ///   - key: Returns the key of a request. Defaults to the origin of the URL.
    public static func rateLimit(
        _ requests: Int, per period: Duration = .seconds(1), burst: Int? = nil, maximumWaiting: Int = 1_000,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) -> RateLimiter {
        RateLimiter(requests, per: period, burst: burst, maximumWaiting: maximumWaiting, by: key)
    }
}

extension WebServiceError.Code {
    /// A request that was not sent, because too many requests already wait for a ``RateLimiter``.
    public static let rateLimitExceeded = WebServiceError.Code("rateLimitExceeded")
}
