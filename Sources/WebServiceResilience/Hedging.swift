import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An interceptor that sends a second request if the response to the first one is late, and returns
/// the response that arrives first.
///
/// ```swift
/// service.interceptors = [.retry(), .hedging()]
/// ```
/// Most servers respond slowly to a few requests even if they are not overloaded, for example
/// because of a garbage collection, a lost packet or a busy disk. A second request is rarely
/// delayed for the same reason.
/// - The second request is sent after ``delay``. By default, this is the time within which 96 % of
///   the last 1,000 responses to requests with the same key have arrived. The key defaults to the
///   origin of the URL. No second request is sent before 100 responses have been measured.
/// - The response that arrives first is returned, and the other request is cancelled. A failure is
///   not returned as long as the other request is in flight. If both fail, the result is that of
///   the first one. Unless `isFailure` specifies otherwise, failures are all errors and the
///   statuses of `RetryPolicy.defaultStatuses`.
/// - A second request takes a token of ``budget``. If no token is left, it is not sent. By default,
///   at most 5 % of the requests are sent a second time in the long term.
/// - Only requests with an idempotent method (RFC 9110, section 9.2.2) and a body that can be read
///   twice are sent a second time, because a server may process both requests. The handshake of a
///   WebSocket is never sent twice.
/// - A streamed response has arrived when its head has arrived.
///
/// The second request passes through the interceptors that follow. Observers receive its events as
/// those of a separate exchange, whose parent is the exchange of the first request. The task's
/// timeline contains both requests and each decision.
///
/// In the list of interceptors, place a hedging interceptor after a retry policy and a
/// ``ConnectivityWait``, so that a pause does not count as a late response. Place it before
/// limiters, so that they count both requests, and before an ``EndpointGroup``, so that the second
/// request is sent to another endpoint. In any other order, requests fail with
/// `WebServiceError.Code.interceptorOrder`. After an hour without responses, the response times of
/// a key may be removed. Services that share an instance share its response times and its budget.
/// All members may be used from any thread.
public final class Hedging: Interceptor {
    /// The duration after which the second request is sent.
    public enum Delay: Sendable, Hashable {
        /// A fixed duration.
        case fixed(Duration)
        /// The time within which a fraction of the last 1,000 responses has arrived. Values below
        /// 0.5 count as 0.5, and values above 0.999 as 0.999.
        case percentile(Double)
    }

    /// The duration after which the second request is sent.
    public let delay: Delay
    /// The limit for second requests.
    public let budget: RetryPolicy.Budget

    private let isFailure: @Sendable (Result<Response, any Error>) -> Bool
    private let key: @Sendable (Request) -> String
    private let state = Mutex(KeyedStates<RecentTimes>())

    /// Creates an interceptor that has not measured response times yet.
    ///
    /// - Parameters:
    ///   - delay: The duration after which the second request is sent. Defaults to the 96th
    ///     percentile: 4 % of the requests are then sent a second time. This is less than the
    ///     budget, so that tokens are left when more responses are late for a while.
    ///   - budget: The limit for second requests. Defaults to `nil`: 5 % of the requests, and at
    ///     most 10 requests in succession.
    ///   - isFailure: Returns whether the other request may still provide a better result. Called
    ///     at most twice per request, in the background. Defaults to the failures that ``Hedging``
    ///     lists.
    ///   - key: Returns the key of a request. Called once per attempt, in the background. Defaults
    ///     to the origin of the URL.
    public init(
        after delay: Delay = .percentile(0.96), budget: RetryPolicy.Budget? = nil,
        isFailure: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) {
        self.delay = delay
        self.budget = budget ?? RetryPolicy.Budget(capacity: 10, ratio: 0.05)
        self.isFailure = isFailure ?? Self.isTransient
        self.key = key ?? { $0.originKey }
    }

    /// Sends the request, and sends it again if the response is late.
    ///
    /// - Throws: `CancellationError`, or an error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let (key, clock) = (key(request), next.clock)
        let start = clock.now
        let result: Result<Response, any Error>
        if request.mayBeHedged, let delay = currentDelay(key, at: start) {
            result = await race(request, after: delay, next)
        } else {
            result = await next.result(of: request)
        }
        if case .success = result {
            let now = clock.now
            update(key, at: now) { $0.add(now - min(start, now), at: now) }
        }
        return try result.get()
    }

    /// The number of keys whose response times are retained.
    var keyCount: Int { state.withLock { $0.values.count } }

    /// Sends the request, and sends it a second time after a delay.
    private func race(_ request: Request, after delay: Duration, _ next: Next) async -> Result<Response, any Error> {
        budget.recordRequest()
        let (race, clock, other) = (Race(), next.clock, ConcurrentRequest(next))
        let first = Task(executorPreference: clock.executor) { [isFailure] in
            let result = await next.result(of: request)
            race.end(.first, result, isFailure: isFailure(result))
        }
        // Not a callback of the clock, because the request needs the task-local values.
        let second = Task(executorPreference: clock.executor) { [isFailure, budget] in
            do { try await clock.sleep(for: delay) } catch { return }
            guard race.beginSecond() else { return }
            guard budget.takeRetry() else {
                next.record(.hedging, "no second request: the budget is exhausted")
                return race.end(.second, .failure(CancellationError()), isFailure: true)
            }
            next.record(.hedging, "second request, because the first one took longer than \(delay)")
            let result = await other.result(of: request)
            race.end(.second, result, isFailure: isFailure(result))
        }
        let (winner, result) = await withTaskCancellationHandler {
            await race.winner.value
        } onCancel: {
            for task in [first, second] { task.cancel() }
            race.winner.set((.first, .failure(CancellationError())))
        }
        for task in [first, second] { task.cancel() }
        if winner == .second {
            other.replaceParent()
            next.record(.hedging, "the response to the second request arrived first")
        }
        return result
    }

    private func currentDelay(_ key: String, at now: UInt64) -> Duration? {
        switch delay {
        case .fixed(let duration): max(duration, .zero)
        case .percentile: update(key, at: now) { $0.value }.map { .nanoseconds(Int64(clamping: $0)) }
        }
    }

    private func update<Value>(_ key: String, at now: UInt64, _ body: (inout RecentTimes) -> Value) -> Value {
        var quantile = 0.5  // also for NaN
        if case .percentile(let value) = delay, value > 0.5 { quantile = min(value, 0.999) }
        return state.withLock {
            $0.update(
                key, RecentTimes(quantile: quantile),
                isIdle: { $0.latest.addingSaturated(.seconds(3_600)) <= now }, body)
        }
    }

    private static func isTransient(_ result: Result<Response, any Error>) -> Bool {
        guard case .success(let response) = result else { return true }
        return RetryPolicy.defaultStatuses.contains(response.status)
    }
}

extension Request {
    fileprivate var mayBeHedged: Bool {
        method.isIdempotent && content.isReplayable && template?.httpBodyStream == nil && !options[UpgradeTag.self]
            && !uploadsPart
    }
}

/// The state of two concurrent requests. The result is that of the first one to succeed.
private final class Race: Sendable {
    enum Entrant { case first, second }

    private struct State {
        /// The first request failed.
        var firstFailure: Result<Response, any Error>?
        /// The second request is in flight.
        var hasSecond = false
        var isDecided = false
    }

    /// The request whose result counts, and the result.
    let winner = Once<(Entrant, Result<Response, any Error>)>()
    private let state = Mutex(State())

    /// - Returns: Whether the second request must be sent.
    func beginSecond() -> Bool {
        state.withLock { state in
            state.hasSecond = !state.isDecided
            return state.hasSecond
        }
    }

    func end(_ entrant: Entrant, _ result: Result<Response, any Error>, isFailure: Bool) {
        let decision = state.withLock { state -> (Entrant, Result<Response, any Error>)? in
            guard !state.isDecided else { return nil }
            switch (entrant, isFailure) {
            case (.first, true) where state.hasSecond:
                state.firstFailure = result
                return nil
            case (.second, true):
                state.hasSecond = false
                guard let failure = state.firstFailure else { return nil }
                state.isDecided = true
                return (.first, failure)
            default:
                state.isDecided = true
                return (entrant, result)
            }
        }
        if let decision { winner.set(decision) }
    }
}

extension Interceptor where Self == Hedging {
    /// Returns an interceptor that sends a second request if a response is late; see ``Hedging``.
    ///
    /// - Parameters:
    ///   - delay: The duration after which the second request is sent. Defaults to the 96th
    ///     percentile of the response times.
    ///   - budget: The limit for second requests. Defaults to `nil`: 5 % of the requests, and at
    ///     most 10 requests in succession.
    ///   - isFailure: Returns whether the other request may still provide a better result. Defaults
    ///     to the failures that ``Hedging`` lists.
    ///   - key: Returns the key of a request. Defaults to the origin of the URL.
    public static func hedging(
        after delay: Hedging.Delay = .percentile(0.96), budget: RetryPolicy.Budget? = nil,
        isFailure: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) -> Hedging {
        Hedging(after: delay, budget: budget, isFailure: isFailure, by: key)
    }
}

extension Timeline.Kind {
    /// A decision of a ``Hedging``: a second request is sent, it is not sent because the budget is
    /// exhausted, or its response is used.
    public static let hedging = Timeline.Kind("hedging")
}
