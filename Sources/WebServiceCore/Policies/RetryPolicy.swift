public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An interceptor that retries requests with exponential backoff, within a time budget.
///
/// A request is sent again after a transport error in ``errorCodes``, a status in ``statuses``, or
/// a response or error that ``retriesResponse`` or ``retriesError`` accepts. The method must be
/// idempotent (RFC 9110, section 9.2.2), with three exceptions: the request has an
/// `Idempotency-Key`, ``retriesAnyMethod`` is `true`, or nothing of the attempt was sent, for
/// example because the connection was refused (`URLError.requestWasNotSent`). A body that is an
/// `httpBodyStream` is never sent again. A request whose body can be read only once, and was read
/// in part, fails with ``WebServiceError/Code/bodyNotReplayable``.
///
/// The pause before retry *n* is random between half and all of ``baseDelay`` × 2ⁿ⁻¹, at most
/// ``maximumDelay``. A `Retry-After` from the server (seconds or a date, RFC 9110, section 10.2.3)
/// takes precedence. Every decision is recorded in the task's ``Timeline``.
///
/// The last response or error is the result if ``maximumAttempts`` is reached, if a pause does not
/// fit into ``budget`` or would last until the deadline, if ``retryBudget`` is exhausted, if a rate
/// limiter refuses the retry, or if the session was closed during the pause.
/// ``SessionTask/maximumAttempts`` limits all attempts of one exchange, including redirects and
/// repetitions with a newer credential.
///
/// An `Authentication` before the policy does not add to the number of attempts: if it sends the
/// request again after a 401, the policy continues to count. If a list contains two policies,
/// requests fail with ``WebServiceError/Code/interceptorOrder``, because the attempts of the
/// policies would multiply. The policy of a request replaces that of the service.
///
/// These values limit the duration of a call:
///
/// | value | bounds | error |
/// | --- | --- | --- |
/// | ``Request/Options/timeout`` | each wait for bytes in an attempt | `URLError.timedOut` |
/// | ``Request/Options/attemptTimeout`` | one attempt | `URLError.timedOut` |
/// | ``budget`` | the start of the last attempt | that of the last attempt |
/// | ``Request/Options/deadline`` | the call | ``WebServiceError/Code/deadline`` |
///
/// If the request or its service sets ``Request/Options/timeout`` but no
/// ``Request/Options/attemptTimeout``, a timeout is followed by a retry only if a pause and another
/// timeout fit into ``budget`` and into the timeout multiplied by ``maximumAttempts``. A server
/// that does not respond therefore delays a request with a timeout of 0.5 seconds and 3 attempts by
/// at most 1.5 seconds, including the pauses. No such limit applies to
/// ``Request/Options/connectTimeout``, because the error of that timeout is
/// `URLError.cannotConnectToHost`, like that of a refused connection.
public struct RetryPolicy: Interceptor {
    /// The maximum number of attempts, including the first. Values below 1 count as 1.
    public var maximumAttempts: Int
    /// The pause before the first retry, before jitter.
    public var baseDelay: Duration
    /// The maximum pause; a `Retry-After` of the server may be longer.
    public var maximumDelay: Duration
    /// The maximum duration from the start of the first attempt to the start of the last one.
    public var budget: Duration
    /// The status codes after which a request is sent again.
    public var statuses: Set<Int>
    /// A predicate for additional responses after which a request is sent again; `nil` if there is
    /// none.
    public var retriesResponse: (@Sendable (Response) -> Bool)?
    /// The transport errors after which a request is sent again.
    public var errorCodes: Set<URLError.Code>
    /// A predicate for additional errors after which a request is sent again; `nil` if there is
    /// none.
    public var retriesError: (@Sendable (any Error) -> Bool)?
    /// Whether non-idempotent requests are sent again.
    public var retriesAnyMethod: Bool
    /// The limit for the retries of all requests that share it; `nil` if there is none.
    public var retryBudget: Budget?

    /// A closure that returns the numbers for the jitter; `nil` to use the service's clock.
    private let random: (@Sendable () -> Double)?
    /// The clock for pauses and the dates of `Retry-After`; `nil` to use the service's clock.
    package var timekeeper: (any Timekeeper)?

    /// The status codes of transient failures: 408, 425, 429, 500, 502, 503 and 504.
    public static let defaultStatuses = TransientFailure.statuses

    /// Failed and lost connections, a missing network, timeouts, failed DNS lookups and invalid
    /// responses.
    public static let defaultErrorCodes = TransientFailure.errorCodes

    /// Creates a policy with the given limits and predicates.
    ///
    /// - Parameters:
    ///   - maximumAttempts: The maximum number of attempts, including the first. Defaults to 3.
    ///   - baseDelay: The pause before the first retry, before jitter. The pause doubles with each
    ///     retry. Defaults to 0.5 seconds.
    ///   - maximumDelay: The maximum pause; a `Retry-After` of the server may be longer. Defaults
    ///     to 20 seconds.
    ///   - budget: The maximum duration from the start of the first attempt to the start of the
    ///     last one. A pause that would exceed this duration or the deadline of the request
    ///     prevents a retry. Defaults to 60 seconds.
    ///   - statuses: The status codes after which a request is sent again. Defaults to
    ///     ``defaultStatuses``.
    ///   - retriesResponse: A predicate for additional responses after which a request is sent
    ///     again. It is called in the background. Defaults to `nil`: no such predicate.
    ///   - errorCodes: The transport errors after which a request is sent again. Defaults to
    ///     ``defaultErrorCodes``.
    ///   - retriesError: A predicate for additional errors after which a request is sent again. It
    ///     is called in the background. Defaults to `nil`: no such predicate.
    ///   - retriesAnyMethod: Whether requests with a method that is not idempotent are sent again.
    ///     Defaults to `false`.
    ///   - retryBudget: The limit for the retries of all requests that share it. Defaults to `nil`:
    ///     no such limit.
    ///   - random: A closure that returns a number from 0 to 1 for the jitter. Defaults to `nil`:
    ///     the generator of the system, or of the service's test clock, is used.
    public init(
        maximumAttempts: Int = 3,
        baseDelay: Duration = .milliseconds(500),
        maximumDelay: Duration = .seconds(20),
        budget: Duration = .seconds(60),
        statuses: Set<Int> = RetryPolicy.defaultStatuses,
        retriesResponse: (@Sendable (Response) -> Bool)? = nil,
        errorCodes: Set<URLError.Code> = RetryPolicy.defaultErrorCodes,
        retriesError: (@Sendable (any Error) -> Bool)? = nil,
        retriesAnyMethod: Bool = false,
        retryBudget: Budget? = nil,
        random: (@Sendable () -> Double)? = nil
    ) {
        self.maximumAttempts = maximumAttempts
        self.baseDelay = baseDelay
        self.maximumDelay = maximumDelay
        self.budget = budget
        self.statuses = statuses
        self.retriesResponse = retriesResponse
        self.errorCodes = errorCodes
        self.retriesError = retriesError
        self.retriesAnyMethod = retriesAnyMethod
        self.retryBudget = retryBudget
        self.random = random
    }

    /// Sends the request until it succeeds or the policy allows no further attempt.
    ///
    /// - Throws: The last error of `next`; ``WebServiceError/Code/bodyNotReplayable``;
    ///   `CancellationError` during a pause.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let clock = next.task.service.clock
        let pauseClock = timekeeper.map(TaskClock.init) ?? clock
        let earlier: Attempts? = next.task.value(of: Attempts.owner)
        var attempts = Attempts(start: clock.now)
        if let earlier, earlier.isContinued {
            attempts = next.count(earlier.following)
        } else {
            retryBudget?.recordRequest()
        }
        var sent = next.sentAttempts(of: request)
        var result = await next.result(of: request)
        while let reason = reason(toRetry: result) {
            let spent = Duration.nanoseconds(Int64(clamping: clock.now - attempts.start))
            let retryAfter = (try? result.get())?.header(.retryAfter)  // an error has no header fields
            let requested = retryAfter.flatMap { RetryAfter($0, now: pauseClock.date) }
            let limit = Limit(budget, request, result, attempts: maximumAttempts)
                .ending(in: next.timeToDeadline(of: request), request.options.requestDeadline, after: spent)
            let attempt = attempts.number
            let isUnsent = next.hasSentNothing(of: request, after: sent)
            switch decide(
                request, isUnsent: isUnsent, attempt: attempt, spent: spent, limit: limit, requested: requested, clock)
            {
            case .stop(let why):
                next.record(.noRetry, "\(reason), \(why)")
                return try result.get()
            case .fail(let why):
                next.record(.noRetry, "\(reason), \(why)")
                throw WebServiceError.bodyNotReplayable(request, after: result)
            case .wait(let pause, let why):
                next.record(.retry, "\(reason), \(why)")
                try await next.task.pause(for: pause, by: pauseClock)
            }
            attempts = next.count(attempts.following)
            sent = next.sentAttempts(of: request)
            guard let repeated = await next.again(request) else { break }
            result = repeated
        }
        return try result.get()
    }

    /// The attempts of an exchange after its first retry.
    fileprivate struct Attempts: Sendable {
        static let owner = ObjectIdentifier(RetryPolicy.self)

        /// The number of the last attempt.
        private(set) var number = 1
        /// The instant at which the first attempt began.
        let start: UInt64
        /// Whether the next request is a further attempt, although an interceptor before the policy
        /// sends it.
        var isContinued = false

        init(start: UInt64) { self.start = start }

        var following: Attempts {
            var attempts = self
            (attempts.number, attempts.isContinued) = (number + 1, false)
            return attempts
        }
    }

    /// The duration from the start of the first attempt within which a retry must start.
    private struct Limit {
        var duration: Duration
        /// The deadline of the request, if it is the limit.
        private var deadline: Duration?
        /// The duration that a retry needs if it also times out.
        var reserve = Duration.zero

        init(_ duration: Duration, _ request: Request, _ result: Result<Response, any Error>, attempts: Int) {
            self.duration = duration
            // If there is an attempt timeout, each attempt may take its full time.
            guard case .failure(let error as URLError) = result, error.code == .timedOut,
                request.options.attemptTimeout == nil, let timeout = request.options.timeout
            else { return }
            // A caller who sets a timeout does not expect to wait much longer.
            self.duration = min(duration, .clamping(seconds: timeout.inSeconds * Double(max(attempts, 1))))
            reserve = timeout
        }

        /// Returns the limit, or the deadline if it is earlier. A pause that lasts until the
        /// deadline would replace the result with the error of the deadline.
        func ending(in rest: Duration, _ deadline: Duration, after spent: Duration) -> Limit {
            guard spent + rest < duration else { return self }
            var limit = self
            (limit.duration, limit.deadline) = (spent + rest, deadline)
            return limit
        }

        var name: String { deadline.map { "deadline of \($0)" } ?? "limit of \(duration)" }
    }

    private func reason(toRetry result: Result<Response, any Error>) -> String? {
        switch result {
        case .success(let response):
            let isTransient = statuses.contains(response.status) || retriesResponse?(response) == true
            return isTransient ? "status \(response.status)" : nil
        case .failure(let error):
            if let error = error as? URLError, errorCodes.contains(error.code) {
                return "URLError \(error.code.rawValue)"
            }
            return retriesError?(error) == true ? "error of type \(type(of: error))" : nil
        }
    }

    private enum Decision {
        case stop(String)
        /// A retry is due, but the body cannot be sent again.
        case fail(String)
        case wait(Duration, String)
    }

    /// - Parameter isUnsent: Whether the request is not idempotent, and nothing of it was sent.
    private func decide(
        _ request: Request, isUnsent: Bool = false, attempt: Int, spent: Duration, limit: Limit, requested: RetryAfter?,
        _ clock: TaskClock
    ) -> Decision {
        if request.uploadsPart { return .stop("the upload continues from the server's offset") }
        if attempt >= maximumAttempts { return .stop("attempt \(attempt) was the last") }
        if !request.method.isIdempotent, !retriesAnyMethod, !isUnsent, request.headers["Idempotency-Key"] == nil {
            return .stop("\(request.method) is not idempotent")
        }
        if request.template?.httpBodyStream != nil { return .stop("the body is a stream, which can be sent only once") }
        if !request.canSendBody { return .fail("the body can be read only once") }
        let pause = requested?.delay ?? jittered(attempt, clock)
        if spent + pause >= limit.duration {
            return .stop("the \(limit.name) leaves no time for a pause of \(pause)")
        }
        if spent + pause + limit.reserve > limit.duration {
            return .stop(
                "the \(limit.name) leaves no time for a pause of \(pause) and a timeout of \(limit.reserve)")
        }
        if let retryBudget, !retryBudget.takeRetry() { return .stop("the shared retry budget is exhausted") }
        let why = requested.map { "Retry-After of \($0.delay)" } ?? "pause of \(pause)"
        return .wait(pause, isUnsent ? "nothing was sent, \(why)" : why)
    }

    /// Returns between half and all of the pause, which doubles with each attempt.
    private func jittered(_ attempt: Int, _ clock: TaskClock) -> Duration {
        let seconds = baseDelay.doubled(attempt - 1, upTo: maximumDelay).inSeconds
        let random = random?() ?? clock.random()
        let share = random > 0 ? 0.5 + 0.5 * min(random, 1) : 0.5  // NaN counts as 0
        // Whole microseconds, because the pause is printed in the timeline.
        return .microseconds((max(0, seconds) * share * 1e6).rounded())
    }
}

extension Next {
    /// Returns the number of attempts of the exchange so far; 0 for an idempotent request.
    fileprivate func sentAttempts(of request: Request) -> Int {
        request.method.isIdempotent ? 0 : task.log.attempts
    }

    /// Returns whether a request is not idempotent, and each of its attempts failed before any byte
    /// of it was sent.
    ///
    /// - Parameter count: The number of earlier attempts of the exchange.
    fileprivate func hasSentNothing(of request: Request, after count: Int) -> Bool {
        guard !request.method.isIdempotent else { return false }
        let log = task.log
        return log.attempts > count && log.allAttempts(after: count, failed: \.requestWasNotSent)
    }

    fileprivate func count(_ attempts: RetryPolicy.Attempts) -> RetryPolicy.Attempts {
        task.withValue(of: RetryPolicy.Attempts.owner, attempts) { $0 = attempts }
        return attempts
    }

    /// Sends a request again with other credentials. A retry policy that follows in the list
    /// continues to count its attempts.
    ///
    /// If a limiter refuses the request, that refusal is the result, because the earlier status 401
    /// would hide the refusal.
    ///
    /// - Returns: The result; `nil` if the session was closed before the request was sent.
    func again(withCredentials request: Request) async -> Result<Response, any Error>? {
        task.withValue(of: RetryPolicy.Attempts.owner, RetryPolicy.Attempts?.none) { $0?.isContinued = true }
        return await again(request) { $0 is SessionClosure }
    }
}

extension RetryPolicy: PlacedInterceptor {
    package static var place: InterceptorPlace { .retry }
}

extension RetryPolicy: ContinuationPolicy {
    func pauseToContinue(
        _ request: Request, after error: any Error, attempt: Int, spent: Duration, in task: SessionTask
    ) -> Duration? {
        let status = (error as? WebServiceError)?.transientStatus.flatMap { statuses.contains($0) ? $0 : nil }
        guard let reason = status.map({ "status \($0)" }) ?? reason(toRetry: .failure(error)) else { return nil }
        var limit = Limit(budget, request, .failure(error), attempts: maximumAttempts)
        if let deadline = request.options.bodyDeadline {
            limit = limit.ending(in: task.timeLeft(of: deadline), deadline, after: spent)
        }
        switch decide(request, attempt: attempt, spent: spent, limit: limit, requested: nil, task.clock) {
        case .stop(let why), .fail(let why):
            task.record(.noRetry, "\(reason), \(why)")
            return nil
        case .wait(let pause, let why):
            task.record(.retry, "\(reason), \(why)")
            return pause
        }
    }
}

extension SessionTask {
    /// Waits for a duration before a request, and records the wait.
    ///
    /// - Parameter timer: The clock that measures the pause; `nil` for that of the exchange.
    /// - Throws: `CancellationError`.
    func pause(for duration: Duration, by timer: TaskClock? = nil) async throws {
        let start = clock.now
        try await (timer ?? clock).sleep(for: duration)
        try Task.checkCancellation()
        record(.wait, "", from: start)
    }
}

extension Interceptor where Self == RetryPolicy {
    /// Returns a policy that retries transient failures; see ``RetryPolicy``.
    ///
    /// ```swift
    /// service.interceptors = [.retry { $0.status == 403 && $0.header(.retryAfter) != nil }]
    /// ```
    /// The parameters and their defaults are those of the initializer of ``RetryPolicy``, without
    /// `random`.
    public static func retry(
        maximumAttempts: Int = 3, baseDelay: Duration = .milliseconds(500), maximumDelay: Duration = .seconds(20),
        budget: Duration = .seconds(60), statuses: Set<Int> = RetryPolicy.defaultStatuses,
        errorCodes: Set<URLError.Code> = RetryPolicy.defaultErrorCodes, retriesAnyMethod: Bool = false,
        retryBudget: RetryPolicy.Budget? = nil, retriesResponse: (@Sendable (Response) -> Bool)? = nil,
        retriesError: (@Sendable (any Error) -> Bool)? = nil
    ) -> RetryPolicy {
        RetryPolicy(
            maximumAttempts: maximumAttempts, baseDelay: baseDelay, maximumDelay: maximumDelay, budget: budget,
            statuses: statuses, retriesResponse: retriesResponse,
            errorCodes: errorCodes, retriesError: retriesError,
            retriesAnyMethod: retriesAnyMethod, retryBudget: retryBudget)
    }
}

extension RetryPolicy {
    /// A token bucket that limits retries under overload.
    ///
    /// Share one instance among all requests to a service.
    ///
    /// ```swift
    /// let budget = RetryPolicy.Budget()
    /// service.interceptors = [RetryPolicy(retryBudget: budget)]
    /// ```
    /// The bucket starts with ``capacity`` tokens. A retry takes one token, and a first attempt
    /// adds the fraction ``ratio`` of a token. If the bucket contains less than one token, the
    /// request is not sent again, and the last response or error becomes the result immediately.
    ///
    /// All members may be used from any thread.
    public final class Budget: Sendable {
        /// The maximum number of tokens.
        public let capacity: Int
        /// The fraction of a token that each first attempt adds.
        public let ratio: Double

        private let tokens: Mutex<Double>

        /// Creates a budget whose bucket is full.
        ///
        /// - Parameters:
        ///   - capacity: The maximum number of tokens, and therefore of retries in a burst, from 0
        ///     to 1,000,000. Defaults to 100.
        ///   - ratio: The long-term number of retries per request, from 0 to 1. NaN counts as 0.
        ///     Defaults to 0.2.
        public init(capacity: Int = 100, ratio: Double = 0.2) {
            self.capacity = min(max(capacity, 0), 1_000_000)
            self.ratio = ratio > 0 ? min(ratio, 1) : 0
            tokens = Mutex(Double(self.capacity))
        }

        /// The number of retries available now.
        public var availableRetries: Int { tokens.withLock { Int($0) } }

        package func recordRequest() {
            tokens.withLock { $0 = min($0 + ratio, Double(capacity)) }
        }

        /// - Returns: Whether a retry is allowed.
        package func takeRetry() -> Bool {
            tokens.withLock { tokens in
                guard tokens >= 1 else { return false }
                tokens -= 1
                return true
            }
        }
    }
}
