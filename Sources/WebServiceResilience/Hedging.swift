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
/// because of garbage collection, a lost packet or a busy disk. A second request is rarely delayed
/// for the same reason.
/// - The second request is sent after ``delay``. By default, this is the time within which 96 % of
///   the last 1,000 responses to requests with the same key have arrived. The key defaults to the
///   origin of the URL. No second request is sent before 100 responses have been measured.
/// - The response that arrives first is returned, and the other requests are cancelled. A failure
///   is not returned while another request is in flight. If all requests fail, the result is that
///   of the first one. Unless `isFailure` specifies otherwise, failures are all errors and the
///   statuses of `RetryPolicy.defaultStatuses`.
/// - If ``maximumHedges`` is greater than 1, further requests follow, each of them ``delay`` after
///   the one before it. With ``hedgesFailures``, the next request is sent as soon as a request in
///   flight fails with a response or with a transport error of `RetryPolicy.defaultErrorCodes`.
///   This does not apply to a response with `Retry-After`, because the server requests a pause.
///   Without this option, a request that fails before a second one was sent is left to a retry
///   policy.
/// - Each further request takes a token from ``budget``. If no token is left, the request is not
///   sent. By default, at most 5 % of the requests are sent a second time in the long term.
/// - Only requests with an idempotent method (RFC 9110, section 9.2.2) and a body that can be read
///   twice are sent a second time, because a server may process both requests. The handshake of a
///   WebSocket is never sent twice.
/// - A streamed response counts as arrived when its head has arrived.
///
/// The second request passes through the interceptors that follow. Observers receive the events of
/// the second request as those of a separate exchange, whose parent is the exchange of the first
/// request. The task's timeline contains both requests and each decision.
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
    /// The maximum number of requests that are sent in addition to the first one.
    public let maximumHedges: Int
    /// Whether the next request is sent immediately after a failure.
    public let hedgesFailures: Bool
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
    ///   - maximumHedges: The maximum number of requests in addition to the first one, from 1 to
    ///     100. Defaults to 1.
    ///   - hedgesFailures: Whether the next request is sent immediately after a failure, instead of
    ///     after the delay. Defaults to `false`.
    ///   - budget: The limit for second requests. Defaults to `nil`: 5 % of the requests, and at
    ///     most 10 requests in succession.
    ///   - isFailure: A closure that returns whether another request may still provide a better
    ///     result. It is called at most once for each request that is sent, in the background.
    ///     Defaults to the failures that ``Hedging`` lists.
    ///   - key: A closure that returns the key of a request. It is called at most once per attempt,
    ///     in the background. Defaults to the origin of the URL.
    public init(
        after delay: Delay = .percentile(0.96), maximumHedges: Int = 1, hedgesFailures: Bool = false,
        budget: RetryPolicy.Budget? = nil,
        isFailure: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) {
        self.delay = delay
        self.maximumHedges = min(max(maximumHedges, 1), 100)
        self.hedgesFailures = hedgesFailures
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

    /// Sends the request, and sends it again after each delay or failure.
    private func race(_ request: Request, after delay: Duration, _ next: Next) async -> Result<Response, any Error> {
        budget.recordRequest()
        let (race, clock) = (Race(), next.clock)
        race.run(by: clock) { [self] in end(race, nil, await next.result(of: request)) }
        // This is not a callback of the clock, because the requests need the task-local values.
        race.run(by: clock) { [self] in await hedge(race, request, after: delay, next) }
        let (winner, result) = await withTaskCancellationHandler {
            await race.winner.value
        } onCancel: {
            race.cancel()
        }
        race.end()
        if let winner {
            winner.request.replaceParent()
            next.record(.hedging, "the response to \(winner.name) arrived first")
        }
        return result
    }

    /// Sends the further requests.
    private func hedge(_ race: Race, _ request: Request, after delay: Duration, _ next: Next) async {
        var turn = race.firstTurn
        for number in 2...(maximumHedges + 1) {
            let cause = await next.clock.value(of: turn, orAfter: delay, .delay, orIfCancelled: .end)
            let following = number <= maximumHedges ? Once<Race.Cause>() : nil
            guard cause != .end, race.begin(following) else { return }
            let hedge = Race.Hedge(request: ConcurrentRequest(next), number: number)
            guard budget.takeRetry() else {
                next.record(.hedging, "no \(hedge.noun): the budget is exhausted")
                return race.withdraw()
            }
            next.record(.hedging, "\(hedge.noun), because \(cause.text(after: delay, number))")
            race.run(by: next.clock) { [self] in end(race, hedge, await hedge.request.result(of: request)) }
            guard let following else { return }
            turn = following
        }
    }

    private func end(_ race: Race, _ hedge: Race.Hedge?, _ result: Result<Response, any Error>) {
        race.end(
            hedge, result, isFailure: isFailure(result), beginsNext: hedgesFailures && Self.permitsRepetition(result))
    }

    /// Returns whether the request may be sent again immediately after a failure.
    private static func permitsRepetition(_ result: Result<Response, any Error>) -> Bool {
        switch result {
        case .success(let response): response.header(.retryAfter) == nil
        case .failure(let error): (error as? URLError).map { RetryPolicy.defaultErrorCodes.contains($0.code) } ?? false
        }
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

/// The state of concurrent requests. The result is that of the first request to succeed.
private final class Race: Sendable {
    /// A request that was sent in addition to the first one, which has number 1.
    struct Hedge: Sendable {
        let request: ConcurrentRequest
        let number: Int

        var noun: String { number == 2 ? "second request" : "request \(number)" }
        var name: String { number == 2 ? "the second request" : noun }
    }

    /// The reason for the next request.
    enum Cause {
        case delay, failure
        /// No further request is needed.
        case end

        func text(after delay: Duration, _ number: Int) -> String {
            switch (self, number) {
            case (.failure, 2): "the first one failed"
            case (.failure, _): "an earlier one failed"
            case (_, 2): "the first one took longer than \(delay)"
            default: "no response arrived within \(delay) of the one before"
            }
        }
    }

    private struct State {
        /// The number of requests in flight, including one that is about to be sent after a
        /// failure.
        var inFlight = 1
        var firstFailure: Result<Response, any Error>?
        /// The turn of the next request; `nil` if none follows, or if it is about to be sent.
        var turn: Once<Cause>?
        /// Whether the next request is already in flight.
        var isNextCounted = false
        var isDecided = false
        var work: [Task<Void, Never>] = []

        /// Counts the end of a request.
        ///
        /// - Returns: The result, if no request is in flight.
        mutating func endRequest() -> Result<Response, any Error>? {
            inFlight -= 1
            guard inFlight == 0, !isDecided else { return nil }
            isDecided = true
            return firstFailure
        }
    }

    /// The request whose result counts, `nil` for the first one, and the result.
    let winner = Once<(Hedge?, Result<Response, any Error>)>()
    let firstTurn = Once<Cause>()
    private let state: Mutex<State>

    init() { state = Mutex(State(turn: firstTurn)) }

    /// Runs work in a Swift task, which ``end()`` cancels.
    func run(by clock: TaskClock, _ body: @escaping @Sendable () async -> Void) {
        let work = Task(executorPreference: clock.executor, operation: body)
        let isOver = state.withLock { state in
            if !state.isDecided { state.work.append(work) }
            return state.isDecided
        }
        if isOver { work.cancel() }
    }

    /// Begins the next request.
    ///
    /// - Parameter following: The turn of the request after it; `nil` if none follows.
    /// - Returns: Whether the request must be sent.
    func begin(_ following: Once<Cause>?) -> Bool {
        state.withLock { state in
            guard !state.isDecided else { return false }
            if !state.isNextCounted { state.inFlight += 1 }
            (state.turn, state.isNextCounted) = (following, false)
            return true
        }
    }

    /// Stops sending further requests, including the one that has begun.
    func withdraw() {
        let failure = state.withLock { state in
            state.turn = nil
            return state.endRequest()
        }
        if let failure { winner.set((nil, failure)) }
    }

    /// Processes the result of a request.
    ///
    /// - Parameter beginsNext: Whether the next request is sent immediately after a failure.
    func end(_ hedge: Hedge?, _ result: Result<Response, any Error>, isFailure: Bool, beginsNext: Bool) {
        let (decision, turn) = state.withLock { state -> ((Hedge?, Result<Response, any Error>)?, Once<Cause>?) in
            guard !state.isDecided else { return (nil, nil) }
            guard isFailure else {
                state.isDecided = true
                return ((hedge, result), nil)
            }
            if hedge == nil { state.firstFailure = result }
            let turn = beginsNext ? state.turn.take() : nil
            if turn != nil {
                state.isNextCounted = true
                state.inFlight += 1
            }
            return (state.endRequest().map { (nil, $0) }, turn)
        }
        turn?.set(.failure)
        if let decision { winner.set(decision) }
    }

    /// Ends the requests in flight with a cancellation.
    func cancel() {
        end()
        winner.set((nil, .failure(CancellationError())))
    }

    /// Cancels the requests in flight, and sends no further ones.
    func end() {
        let work = state.withLock { state in
            defer { state.work = [] }
            state.isDecided = true
            return state.work
        }
        for task in work { task.cancel() }
    }
}

extension Interceptor where Self == Hedging {
    /// Returns an interceptor that sends a second request if a response is late; see ``Hedging``.
    ///
    /// - Parameters:
    ///   - delay: The duration after which the second request is sent. Defaults to the 96th
    ///     percentile of the response times.
    ///   - maximumHedges: The maximum number of requests in addition to the first one. Defaults to
    ///     1.
    ///   - hedgesFailures: Whether the next request is sent immediately after a failure. Defaults
    ///     to `false`.
    ///   - budget: The limit for second requests. Defaults to `nil`: 5 % of the requests, and at
    ///     most 10 requests in succession.
    ///   - isFailure: A closure that returns whether another request may still provide a better
    ///     result. Defaults to the failures that ``Hedging`` lists.
    ///   - key: A closure that returns the key of a request. Defaults to the origin of the URL.
    public static func hedging(
        after delay: Hedging.Delay = .percentile(0.96), maximumHedges: Int = 1, hedgesFailures: Bool = false,
        budget: RetryPolicy.Budget? = nil,
        isFailure: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) -> Hedging {
        Hedging(
            after: delay, maximumHedges: maximumHedges, hedgesFailures: hedgesFailures, budget: budget,
            isFailure: isFailure, by: key)
    }
}

extension Timeline.Kind {
    /// A decision of a ``Hedging``: a second request is sent, it is not sent because the budget is
    /// exhausted, or its response is used.
    public static let hedging = Timeline.Kind("hedging")
}
