public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Sends a request again when that may help: after a transport error or a status that passes, with growing pauses, within a budget of time.
///
/// Only idempotent methods are sent again (RFC 9110, section 9.2.2), and others when they carry an `Idempotency-Key` or ``retriesAnyMethod`` says so.
/// The pause before retry *n* is random between half and all of ``baseDelay`` × 2ⁿ⁻¹, at most ``maximumDelay``; a `Retry-After` of the server (seconds or a
/// date, RFC 9110, section 10.2.3) is obeyed instead. A pause that does not fit into ``budget`` is not begun: the answer or error at hand is the
/// outcome. Every decision is in the task's ``Timeline``.
public struct RetryPolicy: Interceptor {
    /// How often a request is sent at most, the first time included; at least 1.
    public var maximumAttempts: Int
    /// The pause before the first retry, before jitter.
    public var baseDelay: Duration
    /// The longest pause of our own; a server may ask for longer ones.
    public var maximumDelay: Duration
    /// How long all attempts and pauses may take together. A retry that would begin later is not made.
    public var budget: Duration
    /// The statuses after which a request is sent again.
    public var statuses: Set<Int>
    /// The transport errors after which a request is sent again.
    public var errorCodes: Set<URLError.Code>
    /// Whether requests are sent again whatever their method.
    public var retriesAnyMethod: Bool
    /// Limits the retries of all requests that share it; `nil` for no such limit.
    public var retryBudget: RetryBudget?

    private let now: @Sendable () -> Date
    private let random: @Sendable () -> Double
    private let sleep: (@Sendable (Duration) async throws -> Void)?

    /// 408, 425, 429, 500, 502, 503 and 504: what passes by itself.
    public static let defaultStatuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]

    /// Lost and refused connections, time-outs, and names that do not resolve.
    public static let defaultErrorCodes: Set<URLError.Code> = [
        .timedOut, .cannotFindHost, .cannotConnectToHost, .networkConnectionLost, .dnsLookupFailed, .notConnectedToInternet,
        .badServerResponse,
    ]

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - maximumAttempts: How often a request is sent at most, the first time included.
    ///   - baseDelay: The pause before the first retry, before jitter; it doubles with each.
    ///   - maximumDelay: The longest pause of our own.
    ///   - budget: How long all attempts and pauses may take together.
    ///   - statuses: The statuses that may pass.
    ///   - errorCodes: The transport errors that may pass.
    ///   - retriesAnyMethod: Whether methods that are not idempotent are sent again as well.
    ///   - retryBudget: Limits the retries of all requests that share it. Defaults to `nil`, no such limit.
    ///   - now: The wall clock that a `Retry-After` date is compared with.
    ///   - random: Gives numbers from 0 to 1 for the jitter.
    ///   - sleep: Waits; throws when the Swift task is cancelled. `nil` for the service's own clock.
    public init(
        maximumAttempts: Int = 3,
        baseDelay: Duration = .milliseconds(500),
        maximumDelay: Duration = .seconds(20),
        budget: Duration = .seconds(60),
        statuses: Set<Int> = RetryPolicy.defaultStatuses,
        errorCodes: Set<URLError.Code> = RetryPolicy.defaultErrorCodes,
        retriesAnyMethod: Bool = false,
        retryBudget: RetryBudget? = nil,
        now: @escaping @Sendable () -> Date = { Date() },
        random: @escaping @Sendable () -> Double = { Double.random(in: 0...1) },
        sleep: (@Sendable (Duration) async throws -> Void)? = nil
    ) {
        self.maximumAttempts = maximumAttempts
        self.baseDelay = baseDelay
        self.maximumDelay = maximumDelay
        self.budget = budget
        self.statuses = statuses
        self.errorCodes = errorCodes
        self.retriesAnyMethod = retriesAnyMethod
        self.retryBudget = retryBudget
        self.now = now
        self.random = random
        self.sleep = sleep
    }

    /// Sends the request until it succeeds, or until the policy says that it is enough.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let start = next.context.service.clock.now
        retryBudget?.recordRequest()
        var attempt = 1
        while true {
            let result: Result<Response, any Error>
            do { result = .success(try await next(request)) } catch { result = .failure(error) }
            guard let reason = reason(toRetry: result) else { return try result.get() }
            let spent = Duration.nanoseconds(Int64(clamping: next.context.service.clock.now - start))
            switch decide(request, attempt: attempt, spent: spent, response: try? result.get()) {  // only the header fields of an answer matter
            case .stop(let why):
                next.record(.noRetry, "\(reason), \(why)")
                return try result.get()
            case .wait(let pause, let why):
                next.record(.retry, "\(reason), \(why)")
                try await wait(pause, next)
            }
            attempt += 1
        }
    }

    private func wait(_ pause: Duration, _ next: Next) async throws {
        let start = next.context.service.clock.now
        if let sleep { try await sleep(pause) } else { try await next.context.service.clock.sleep(for: pause) }
        try Task.checkCancellation()
        next.context.log.record(.wait, "", from: start)
    }

    private func reason(toRetry result: Result<Response, any Error>) -> String? {
        switch result {
        case .success(let response): return statuses.contains(response.status) ? "status \(response.status)" : nil
        case .failure(let error):
            guard let error = error as? URLError, errorCodes.contains(error.code) else { return nil }
            return "URLError \(error.code.rawValue)"
        }
    }

    private enum Decision {
        case stop(String)
        case wait(Duration, String)
    }

    private func decide(_ request: Request, attempt: Int, spent: Duration, response: Response?) -> Decision {
        if attempt >= maximumAttempts { return .stop("attempt \(attempt) was the last") }
        if !request.method.isIdempotent, !retriesAnyMethod, request.headers["Idempotency-Key"] == nil {
            return .stop("\(request.method) is not idempotent")
        }
        if request.template?.httpBodyStream != nil { return .stop("the body is a stream, which can be sent only once") }
        let asked = response?.header(.retryAfter).flatMap { RetryAfter($0, now: now()) }
        let pause = asked?.delay ?? jittered(attempt)
        if spent + pause >= budget { return .stop("a pause of \(pause) does not fit into what is left of \(budget)") }
        if let retryBudget, !retryBudget.takeRetry() { return .stop("the shared retry budget is used up") }
        return .wait(pause, asked.map { "Retry-After asks for \($0.delay)" } ?? "pause of \(pause)")
    }

    /// From half to all of the pause that doubles with each attempt; the arithmetic cannot overflow.
    private func jittered(_ attempt: Int) -> Duration {
        let doubled = Double(min(attempt - 1, 30))
        let seconds = min(baseDelay.inSeconds * pow(2, doubled), maximumDelay.inSeconds)
        let random = random()
        let share = random > 0 ? 0.5 + 0.5 * min(random, 1) : 0.5  // NaN is no more than 0
        return .seconds(max(0, seconds) * share)
    }
}

extension Interceptor where Self == RetryPolicy {
    /// Sends again what may succeed the next time; see ``RetryPolicy``.
    public static func retry(maximumAttempts: Int = 3, baseDelay: Duration = .milliseconds(500), budget: Duration = .seconds(60)) -> RetryPolicy {
        RetryPolicy(maximumAttempts: maximumAttempts, baseDelay: baseDelay, budget: budget)
    }
}

/// The value of a `Retry-After` field: how long to wait (RFC 9110, section 10.2.3).
struct RetryAfter {
    /// Longer waits are taken for this one: six hours.
    static let maximum = Duration.seconds(6 * 3600)

    let delay: Duration

    /// - Returns: `nil` for what is neither a number of seconds nor a date. A date that has passed means no delay.
    init?(_ value: String, now: Date) {
        let text = value.trimmingCharacters(in: .whitespaces)
        guard !text.isEmpty else { return nil }
        if text.utf8.allSatisfy(ASCII.isDigit) {
            delay = min(.seconds(text.utf8.count > 9 ? 999_999_999 : Int(text) ?? 0), Self.maximum)
        } else if let date = HTTPDate.parse(text, now: now) {
            let seconds = date.timeIntervalSince(now)
            delay = seconds > 0 ? .seconds(min(seconds, Self.maximum.inSeconds)) : .zero  // NaN is no more than 0
        } else {
            return nil
        }
    }
}

extension Duration {
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}

extension Request.Method {
    /// Whether sending twice means the same as sending once (RFC 9110, section 9.2.2).
    package var isIdempotent: Bool {
        switch rawValue {
        case "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE": true
        default: false
        }
    }
}
