import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An interceptor that stops sending requests to a server that keeps failing.
///
/// ```swift
/// service.interceptors = [.retry(), .circuitBreaker()]
/// ```
/// Each key has a circuit. The key defaults to the origin of the URL.
/// - A circuit is closed at first, and requests are sent. It opens when ``threshold`` is reached:
///   after a number of consecutive failures, or at a ratio of failures.
/// - While a circuit is open, requests fail immediately with `WebServiceError.Code.circuitOpen`.
///   `WebServiceError.timeUntilTrial` is the remaining duration. The server's last failure is the
///   `response` of the error, without the body, or its `underlying` error.
/// - After ``openDuration``, the next request is sent as a trial. Until the trial ends, other
///   requests fail as before, with a remaining duration of zero. If the trial succeeds, the circuit
///   closes; if it fails, the circuit opens again. If the trial is cancelled or exceeds its
///   deadline, the next request is the trial.
///
/// Unless `isFailure` specifies otherwise, failures are the statuses 500, 502, 503 and 504, and the
/// transport errors of `RetryPolicy.defaultErrorCodes` except `notConnectedToInternet`. Every other
/// response is a success. Other errors, such as a cancellation, are neither. A request that was
/// sent before the circuit opened does not affect it.
///
/// After a retry policy in the list of interceptors, a circuit breaker counts each attempt; before
/// it, each exchange. A request that an open circuit refuses is not retried. Each change of a
/// circuit, and each refusal, is recorded in the task's `Timeline`. A circuit without a change for
/// an hour and for ``openDuration`` may be closed to release its memory. Services that share an
/// instance share its circuits. All members may be used from any thread.
public final class CircuitBreaker: Interceptor {
    /// The failures after which a circuit opens.
    public enum Threshold: Sendable, Hashable {
        /// A number of consecutive failures. Values below 1 count as 1.
        case consecutiveFailures(Int)
        /// A ratio of failures to requests, from 0 to 1, that is reached or exceeded among the
        /// results of the last `window`, if these are at least `minimumRequests`.
        ///
        /// Suitable for many requests of which a part succeeds, so that consecutive failures are
        /// rare. The window is measured in steps of a tenth of its duration.
        case failureRatio(Double, minimumRequests: Int = 100, window: Duration = .seconds(30))
    }

    /// The failures after which a circuit opens.
    public let threshold: Threshold
    /// The duration from the opening of a circuit to the next trial.
    public let openDuration: Duration

    private let isFailure: @Sendable (Result<Response, any Error>) -> Bool
    private let key: @Sendable (Request) -> String
    private let state = Mutex(KeyedStates<KeyedCircuit>())

    /// Creates a circuit breaker with closed circuits.
    ///
    /// - Parameters:
    ///   - threshold: The failures after which a circuit opens. Defaults to 5 consecutive ones.
    ///   - openDuration: The duration from the opening of a circuit to the next trial. Defaults to
    ///     30 seconds.
    ///   - isFailure: Returns whether a result is a failure of the server. Called once per attempt,
    ///     in the background. Defaults to the failures that ``CircuitBreaker`` lists.
    ///   - key: Returns the key of a request. Called once per attempt, in the background. Defaults
    ///     to the origin of the URL.
    public init(
        opensAfter threshold: Threshold = .consecutiveFailures(5), openDuration: Duration = .seconds(30),
        isFailure: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) {
        self.threshold = threshold
        self.openDuration = max(openDuration, .zero)
        self.isFailure = isFailure ?? Self.isServerFailure
        self.key = key ?? { $0.originKey }
    }

    /// Sends the request unless its circuit is open.
    ///
    /// - Throws: `WebServiceError.Code.circuitOpen`, or an error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let (key, clock) = (key(request), next.clock)
        let version: Int
        switch update(key, clock.now, { ($0.circuit.admit(at: clock.now), $0.failure) }) {
        case (.sent(let admitted), _): version = admitted
        case (.refused(let delay), let failure):
            let trial = delay > .zero ? "the next trial is in \(delay)" : "a trial is in flight"
            next.record(.circuit, "not sent after \(failure?.text ?? "failures"); \(trial)")
            throw WebServiceError(failure, timeUntilTrial: delay)
        }
        let result = await next.result(of: request) { _ = end(key, version, .neither, by: clock) }
        let outcome = Circuit.Outcome(result, isFailure)
        let change = end(
            key, version, outcome, by: clock, failure: outcome == .failure ? ServerFailure(result) : nil)
        if let change { next.record(.circuit, change.rawValue) }
        return try result.get()
    }

    /// Applies the result of a request.
    private func end(
        _ key: String, _ version: Int, _ outcome: Circuit.Outcome, by clock: TaskClock, failure: ServerFailure? = nil
    ) -> Circuit.Change? {
        let now = clock.now
        return update(key, now) { keyed in
            let change = keyed.circuit.end(version, outcome, threshold, openDuration: openDuration, at: now)
            if let failure { keyed.failure = failure } else if change == .closed { keyed.failure = nil }
            return change
        }
    }

    private func update<Value>(_ key: String, _ now: UInt64, _ body: (inout KeyedCircuit) -> Value) -> Value {
        let limit = max(openDuration, .seconds(3_600))
        return state.withLock {
            $0.update(key, KeyedCircuit(), isIdle: { $0.circuit.isIdle(for: limit, at: now) }, body)
        }
    }

    static func isServerFailure(_ result: Result<Response, any Error>) -> Bool {
        switch result {
        case .success(let response): [500, 502, 503, 504].contains(response.status)
        case .failure(let error as URLError):
            error.code != .notConnectedToInternet && RetryPolicy.defaultErrorCodes.contains(error.code)
        case .failure: false
        }
    }
}

/// A circuit, and the last failure that it counted.
private struct KeyedCircuit: Sendable {
    var circuit = Circuit()
    var failure: ServerFailure?
}

/// A failed result of a request, without the body of the response.
private enum ServerFailure: Sendable {
    case response(Response)
    case error(any Error)

    init(_ result: Result<Response, any Error>) {
        switch result {
        case .success(let response): self = .response(response.withoutBody)
        case .failure(let error): self = .error(error)
        }
    }

    var text: String {
        switch self {
        case .response(let response): "status \(response.status)"
        case .error(let error as URLError): "URLError \(error.code.rawValue)"
        case .error(let error): "an error of type \(type(of: error))"
        }
    }
}

extension WebServiceError {
    /// The duration until the next trial of the ``CircuitBreaker`` that refused the request.
    ///
    /// Zero while a trial is in flight; `nil` for errors with a code other than
    /// `Code.circuitOpen`.
    public var timeUntilTrial: Duration? { code == .circuitOpen ? trialDelay : nil }

    fileprivate init(_ failure: ServerFailure?, timeUntilTrial: Duration) {
        let cause = failure.map { ", the last one with \($0.text)" } ?? ""
        self.init(
            .circuitOpen, "recent requests failed\(cause), so no request is sent; try again after timeUntilTrial")
        switch failure {
        case .response(let response): self.response = response
        case .error(let error): underlying = error
        case nil: break
        }
        trialDelay = timeUntilTrial
    }
}

extension Interceptor where Self == CircuitBreaker {
    /// Returns a circuit breaker with a circuit for each origin; see ``CircuitBreaker``.
    ///
    /// - Parameters:
    ///   - threshold: The failures after which a circuit opens. Defaults to 5 consecutive ones.
    ///   - openDuration: The duration from the opening of a circuit to the next trial. Defaults to
    ///     30 seconds.
    ///   - isFailure: Returns whether a result is a failure of the server. Defaults to the failures
    ///     that ``CircuitBreaker`` lists.
    ///   - key: Returns the key of a request. Defaults to the origin of the URL.
    public static func circuitBreaker(
        opensAfter threshold: CircuitBreaker.Threshold = .consecutiveFailures(5), openDuration: Duration = .seconds(30),
        isFailure: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) -> CircuitBreaker {
        CircuitBreaker(opensAfter: threshold, openDuration: openDuration, isFailure: isFailure, by: key)
    }
}

extension Timeline.Kind {
    /// A circuit of a ``CircuitBreaker`` that opened or closed, or that refused the request.
    public static let circuit = Timeline.Kind("circuit")
}

extension WebServiceError.Code {
    /// A request that was not sent, because a ``CircuitBreaker`` is open.
    ///
    /// `WebServiceError.timeUntilTrial` is the duration until the next trial. The last failure of
    /// the server is the `response` or the `underlying` error.
    public static let circuitOpen = WebServiceError.Code("circuitOpen")
}
