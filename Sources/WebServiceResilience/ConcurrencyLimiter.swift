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
///   priority in the order of their arrival.
/// - A request is in flight until the following interceptors return its response or throw an error.
///   A request with a streamed response is in flight until the head has arrived.
/// - A cancelled request stops waiting immediately. Waiting counts toward the
///   `Request.Options.deadline` of a request.
/// - If ``maximumWaiting`` requests of a key are already waiting, the next one fails immediately
///   with `WebServiceError.Code.concurrencyLimitExceeded`. So does a request that would wait for
///   more than half of the time until its deadline. The expected wait is the average duration of a
///   request, times the request's position in the queue, divided by the limit. Without this rule,
///   an overloaded server would receive requests only shortly before their deadlines, and all of
///   them would fail.
/// - An adaptive limit (``ConcurrencyLimit``) depends on the durations of the requests and on
///   overloads. Unless `isOverload` specifies otherwise, overloads are the statuses 429 and 503,
///   and `URLError.timedOut`. Every other response is a success. Other errors, such as a
///   cancellation or the deadline, do not affect a limit.
///
/// Each wait and each change of a limit is recorded in the task's `Timeline`. If a limiter follows
/// a retry policy in the list of interceptors, it counts each attempt; if it precedes the retry
/// policy, it counts each exchange, including the pauses between attempts. A cache should precede a
/// limiter, so that stored responses are not limited. After an hour without requests, the state of
/// a key may be removed; the key then begins with the initial limit. Services that share an
/// instance share its limits. All members may be used from any thread.
public final class ConcurrencyLimiter: Interceptor {
    /// The maximum number of waiting requests per key.
    public let maximumWaiting: Int

    private let limit: ConcurrencyLimit
    private let isOverload: @Sendable (Result<Response, any Error>) -> Bool
    private let key: @Sendable (Request) -> String
    private let state = Mutex(KeyedStates<ConcurrencyLane>())

    /// Creates a limiter.
    ///
    /// - Parameters:
    ///   - limit: The number of concurrent requests per key.
    ///   - maximumWaiting: The maximum number of waiting requests per key. With 0, no request
    ///     waits. Defaults to 1,000.
    ///   - isOverload: Returns whether a result indicates that the server is overloaded. Called
    ///     once per attempt, in the background. Defaults to the results that
    ///     ``ConcurrencyLimiter`` lists.
    ///   - key: Returns the key of a request. Called once per attempt, in the background. Defaults
    ///     to the origin of the URL.
    public init(
        _ limit: ConcurrencyLimit, maximumWaiting: Int = 1_000,
        isOverload: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) {
        self.limit = limit
        self.maximumWaiting = max(maximumWaiting, 0)
        self.isOverload = isOverload ?? Self.indicatesOverload
        self.key = key ?? { $0.originKey }
    }

    /// Sends the request when the limit allows it.
    ///
    /// - Throws: `WebServiceError.Code.concurrencyLimitExceeded`, `CancellationError` during a
    ///   wait, or an error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let (key, clock) = (key(request), next.clock)
        let arrival = clock.now
        if try await awaitPermit(key, request, clock, timeLeft: next.timeToDeadline(of: request)) {
            next.record(.wait, "for the concurrency limit", from: arrival)
        }
        let start = clock.now
        let result: Result<Response, any Error>
        do { result = .success(try await next(request)) } catch { result = .failure(error) }
        let (now, outcome) = (clock.now, outcome(of: result))
        let change = update(key, now) { $0.end(roundTrip: now - min(start, now), outcome, at: now) }
        for waiting in change.admitted { waiting.ring() }
        let (before, after) = change.limits
        if before != after {
            next.record(.concurrencyLimit, "\(before < after ? "raised" : "lowered") from \(before) to \(after)")
        }
        return try result.get()
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
    private func awaitPermit(
        _ key: String, _ request: Request, _ clock: TaskClock, timeLeft: Duration
    ) async throws -> Bool {
        let (waiting, priority) = (WaitingRequest(), request.options.priority)
        let entrance = update(key, clock.now) {
            $0.enter(
                waiting, priority, maximumWaiting: maximumWaiting, patience: UInt64(0).addingSaturated(timeLeft / 2))
        }
        switch entrance {
        case .sent: return false
        case .full:
            throw WebServiceError(
                .concurrencyLimitExceeded,
                "\(maximumWaiting) requests are already waiting for the concurrency limit; "
                    + "send fewer or increase maximumWaiting")
        case .late(let wait):
            throw WebServiceError(
                .concurrencyLimitExceeded,
                "the request would wait about \(Duration.nanoseconds(Int64(clamping: wait))) for the concurrency "
                    + "limit, and \(timeLeft) are left until its deadline; send fewer requests or set a longer deadline"
            )
        case .waits(let token):
            try await withTaskCancellationHandler {
                try await waiting.turn.value.get()
            } onCancel: {
                // An admitted request is in flight, and ends as such.
                guard update(key, clock.now, { $0.remove(token, priority) }) != nil else { return }
                waiting.turn.set(.failure(CancellationError()))
            }
            return true
        }
    }

    private func outcome(of result: Result<Response, any Error>) -> RequestOutcome {
        if isOverload(result) { return .overload }
        if case .success = result { return .success }
        return .neither
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

    private static func indicatesOverload(_ result: Result<Response, any Error>) -> Bool {
        switch result {
        case .success(let response): [429, 503].contains(response.status)
        case .failure(let error): (error as? URLError)?.code == .timedOut
        }
    }
}

/// A request that waits for its permit.
private final class WaitingRequest: AlarmTarget {
    let turn = Once<Result<Void, any Error>>()

    func ring() { turn.set(.success(())) }
}

extension Interceptor where Self == ConcurrencyLimiter {
    /// Returns a limiter for the concurrent requests to each origin; see ``ConcurrencyLimiter``.
    ///
    /// - Parameters:
    ///   - limit: The number of concurrent requests per key.
    ///   - maximumWaiting: The maximum number of waiting requests per key. Defaults to 1,000.
    ///   - isOverload: Returns whether a result indicates that the server is overloaded. Defaults
    ///     to the results that ``ConcurrencyLimiter`` lists.
    ///   - key: Returns the key of a request. Defaults to the origin of the URL.
    public static func concurrencyLimit(
        _ limit: ConcurrencyLimit, maximumWaiting: Int = 1_000,
        isOverload: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) -> ConcurrencyLimiter {
        ConcurrencyLimiter(limit, maximumWaiting: maximumWaiting, isOverload: isOverload, by: key)
    }
}

extension Timeline.Kind {
    /// A change of the limit of a ``ConcurrencyLimiter``, after the end of a request.
    public static let concurrencyLimit = Timeline.Kind("limit")
}

extension WebServiceError.Code {
    /// A request that was not sent because too many requests are already waiting for a
    /// ``ConcurrencyLimiter``: either ``ConcurrencyLimiter/maximumWaiting``, or so many that the
    /// request would wait for more than half of the time until its deadline.
    public static let concurrencyLimitExceeded = WebServiceError.Code("concurrencyLimitExceeded")
}
