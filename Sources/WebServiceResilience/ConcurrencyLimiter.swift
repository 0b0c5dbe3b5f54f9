import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An interceptor that limits the number of concurrent requests.
///
/// ```swift
/// service.interceptors = [.retry(), .concurrencyLimit(.fixed(20))]
/// ```
/// Each key has a limit. The key defaults to the origin of the URL.
/// - A request is sent if fewer requests than the limit are in flight. Otherwise, it waits. Waiting
///   requests with a higher `Request.Options.priority` are sent first, and those with the same
///   priority are sent in the order of their arrival.
/// - A request is in flight until the following interceptors return its response or throw an error.
///   A request with a streamed response is in flight until the head has arrived.
/// - A cancelled request stops waiting immediately. Waiting counts toward the
///   `Request.Options.deadline` of a request.
/// - If ``maximumWaiting`` requests of a key are already waiting, the next one fails immediately
///   with `WebServiceError.Code.concurrencyLimitExceeded`. A request that cannot be sent
///   immediately also fails if its response is expected after its deadline, because an overloaded
///   server would otherwise receive requests that fail anyway. The expected duration is the
///   request's position in the queue multiplied by the average interval at which requests end, plus
///   a duration that few requests exceed. While an adaptive limit initially doubles, requests are
///   expected to end at a rate that doubles as well.
/// - Waiting requests are re-evaluated as others end, based on the average duration of a request.
///   Those that can no longer meet their deadlines fail with the same error as soon as that is
///   known.
/// - An adaptive limit (``ConcurrencyLimit``) depends on the durations of the requests and on
///   overloads. Unless `isOverload` specifies otherwise, overloads are status 429, statuses of 500
///   and above with `Retry-After`, and, for `.aimd()`, `URLError.timedOut`. Other responses
///   with a status of 500 and above, and most other errors, such as a cancellation, do not affect a
///   limit; for servers that fail, use a ``CircuitBreaker``. Every other response is a success.
///
/// Waits and changes of a limit are recorded in the task's `Timeline`. If a limiter follows a retry
/// policy in the list of interceptors, it counts each attempt; if it precedes the retry policy, it
/// counts each exchange, including the pauses between attempts. A cache should precede a limiter,
/// so that stored responses are not limited. After an hour without requests, the state of a key may
/// be removed; the key then begins with the initial limit. Services that share an instance share
/// its limits. All members may be used from any thread.
public final class ConcurrencyLimiter: Interceptor {
    /// The maximum number of waiting requests per key.
    public let maximumWaiting: Int

    private let limit: ConcurrencyLimit
    private let isOverload: (@Sendable (Result<Response, any Error>) -> Bool)?
    private let key: @Sendable (Request) -> String
    private let state = Mutex(KeyedStates<ConcurrencyLane>())

    /// Creates a limiter of concurrent requests.
    ///
    /// - Parameters:
    ///   - limit: The number of concurrent requests per key.
    ///   - maximumWaiting: The maximum number of waiting requests per key. With 0, no request
    ///     waits. Defaults to 1,000.
    ///   - isOverload: A closure that returns whether a result indicates that the server is
    ///     overloaded. It is called at most once per attempt, in the background. Defaults to the
    ///     results that ``ConcurrencyLimiter`` lists.
    ///   - key: A closure that returns the key of a request. It is called at most once per attempt,
    ///     in the background. Defaults to the origin of the URL.
    public init(
        _ limit: ConcurrencyLimit, maximumWaiting: Int = 1_000,
        isOverload: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) {
        self.limit = limit
        self.maximumWaiting = max(maximumWaiting, 0)
        self.isOverload = isOverload
        self.key = key ?? { $0.originKey }
    }

    /// Sends the request when the limit allows it.
    ///
    /// - Throws: `WebServiceError.Code.concurrencyLimitExceeded`, `CancellationError` during a
    ///   wait, or an error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let (key, clock) = (key(request), next.clock)
        let arrival = clock.now
        let waiting = WaitingRequest(
            request.options.priority, deadline: arrival.addingSaturated(next.timeToDeadline(of: request)))
        if try await awaitPermit(key, waiting, clock) {
            next.record(.wait, "for the concurrency limit", from: arrival)
        }
        let permit = Permit(key: key, start: clock.now, deadline: waiting.deadline)
        let result = await next.result(of: request) {
            _ = end(permit, clock.now < permit.deadline ? .neither : .late, clock)
        }
        if let (before, after) = end(permit, outcome(of: result), clock), before != after {
            next.record(.concurrencyLimit, "\(before < after ? "raised" : "lowered") from \(before) to \(after)")
        }
        return try result.get()
    }

    /// Releases a permit, unless it was already released, and sends the requests that the limit now
    /// allows.
    ///
    /// - Returns: The limits before and after; `nil` if the permit was already released.
    private func end(_ permit: Permit, _ outcome: RequestOutcome, _ clock: TaskClock) -> (before: Int, after: Int)? {
        guard permit.end.set() else { return nil }
        let now = clock.now
        let roundTrip = now - min(permit.start, now)
        let (doubled, overflows) = permit.start.addingReportingOverflow(roundTrip.multipliedSaturated(by: 2))
        let change = update(permit.key, now) {
            $0.end(roundTrip: roundTrip, outcome, isTight: overflows || doubled > permit.deadline, at: now)
        }
        for (request, expected) in change.refused {
            request.turn.set(.failure(Self.lateError(expected, request.deadline, now)))
        }
        for request in change.admitted { request.admit() }
        return change.limits
    }

    private static func lateError(_ expected: UInt64, _ deadline: UInt64, _ now: UInt64) -> WebServiceError {
        let (expected, left) = (Int64(clamping: expected), Int64(clamping: deadline - min(now, deadline)))
        return WebServiceError(
            .concurrencyLimitExceeded,
            "the response is expected in about \(Duration.nanoseconds(expected)), but only "
                + "\(Duration.nanoseconds(left)) are left until the deadline; send fewer requests or set a longer "
                + "deadline")
    }

    /// The number of keys whose limits are retained.
    var keyCount: Int { state.withLock { $0.values.count } }

    /// The number of waiting requests.
    var waitingRequests: Int { state.withLock { $0.values.values.reduce(0) { $0 + $1.waitingCount } } }

    /// The number of requests in flight.
    var requestsInFlight: Int { state.withLock { $0.values.values.reduce(0) { $0 + $1.inFlight } } }

    /// Waits until the request may be sent.
    ///
    /// - Returns: `false` if it may be sent immediately.
    private func awaitPermit(_ key: String, _ waiting: WaitingRequest, _ clock: TaskClock) async throws -> Bool {
        let now = clock.now
        switch update(key, now, { $0.enter(waiting, maximumWaiting: maximumWaiting, at: now) }) {
        case .sent: return false
        case .full:
            throw WebServiceError(
                .concurrencyLimitExceeded,
                "the queue of the concurrency limit is full (maximumWaiting: \(maximumWaiting)); "
                    + "send fewer requests or increase maximumWaiting")
        case .late(let expected): throw Self.lateError(expected, waiting.deadline, now)
        case .waits(let token):
            try await withTaskCancellationHandler {
                try await waiting.turn.value.get()
            } onCancel: {
                // A request that was already admitted is in flight, and ends like any other.
                guard update(key, clock.now, { $0.remove(token, waiting.priority) }) else { return }
                waiting.turn.set(.failure(CancellationError()))
            }
            return true
        }
    }

    private func outcome(of result: Result<Response, any Error>) -> RequestOutcome {
        if let isOverload, isOverload(result) { return .overload }
        switch result {
        case .success(let response):
            if isOverload == nil, response.indicatesOverload { return .overload }
            return response.status < 500 ? .success : .neither
        case .failure(let error):
            return (error as? URLError)?.code == .timedOut && isOverload == nil ? .timeout : .neither
        }
    }

    private func update<Value>(_ key: String, _ now: UInt64, _ body: (inout ConcurrencyLane) -> Value) -> Value {
        let isAdaptive = limit.isAdaptive
        return state.withLock {
            $0.update(
                key, ConcurrencyLane(limit.algorithm),
                isIdle: { $0.inFlight == 0 && (!isAdaptive || $0.lastEnd.addingSaturated(.seconds(3_600)) <= now) },
                body)
        }
    }
}

/// The permit of a request in flight.
private struct Permit: Sendable {
    let key: String
    let start: UInt64
    /// The instant of the request's deadline.
    let deadline: UInt64
    /// Set when the permit is released.
    let end = OnceFlag()
}

extension Response {
    /// Whether the server states that it is overloaded.
    fileprivate var indicatesOverload: Bool { status == 429 || status >= 500 && header(.retryAfter) != nil }
}

extension Interceptor where Self == ConcurrencyLimiter {
    /// Returns a limiter for the concurrent requests to each origin; see ``ConcurrencyLimiter``.
    ///
    /// - Parameters:
    ///   - limit: The number of concurrent requests per key.
    ///   - maximumWaiting: The maximum number of waiting requests per key. Defaults to 1,000.
    ///   - isOverload: A closure that returns whether a result indicates that the server is
    ///     overloaded. Defaults to the results that ``ConcurrencyLimiter`` lists.
    ///   - key: A closure that returns the key of a request. Defaults to the origin of the URL.
    public static func concurrencyLimit(
        _ limit: ConcurrencyLimit, maximumWaiting: Int = 1_000,
        isOverload: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) -> ConcurrencyLimiter {
        ConcurrencyLimiter(limit, maximumWaiting: maximumWaiting, isOverload: isOverload, by: key)
    }
}

extension Timeline.Kind {
    /// A change of a limit, after the end of a request.
    public static let concurrencyLimit = Timeline.Kind("limit")
}

extension WebServiceError.Code {
    /// A request that was not sent because of the limit of a ``ConcurrencyLimiter``: either
    /// ``ConcurrencyLimiter/maximumWaiting`` requests are already waiting, or the response is
    /// expected after the deadline.
    public static let concurrencyLimitExceeded = WebServiceError.Code("concurrencyLimitExceeded")
}
