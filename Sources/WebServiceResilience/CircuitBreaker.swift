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
///   `response` of the error, without the body, or its `underlying` error. The message of the error
///   contains no values, so that logs can be grouped by it.
/// - After ``openDuration``, the circuit is half-open, and the next request is sent as a trial. If
///   ``maximumTrials`` is greater than 1, further trials may be sent at the same time. Other
///   requests fail as before, with a remaining duration of zero. When ``maximumTrials`` trials have
///   succeeded, the circuit closes. If a trial fails, the circuit opens again. A trial that is
///   cancelled or exceeds its deadline is followed by another one.
///
/// `state(of:)` returns the state of a circuit, and ``changes`` delivers each change. `open(_:)`
/// and `close(_:)` change the state manually, for example for a server that is under maintenance.
///
/// Unless `isFailure` specifies otherwise, failures are statuses 500, 502, 503 and 504, and the
/// transport errors of `RetryPolicy.defaultErrorCodes` except `notConnectedToInternet`. Every other
/// response is a success. Other errors, such as a cancellation, are neither failures nor successes.
/// A request that was sent before the circuit opened does not affect it.
///
/// If a circuit breaker follows a retry policy in the list of interceptors, it counts each attempt.
/// If it precedes the retry policy, it counts each exchange. A request that an open circuit refuses
/// is not retried. If a request opens or closes its circuit, or is refused, this is recorded in the
/// task's `Timeline`. A circuit that has not changed for an hour, or for ``openDuration`` if that
/// is longer, may be closed to release its memory, unless it was opened manually. Services that
/// share an instance share its circuits. All members may be used from any thread.
public final class CircuitBreaker: Interceptor {
    /// The failures after which a circuit opens.
    public enum Threshold: Sendable, Hashable {
        /// A number of consecutive failures. Values below 1 count as 1.
        case consecutiveFailures(Int)
        /// A ratio of failures to requests, from 0 to 1. The circuit opens when the results of the
        /// last `window` reach or exceed the ratio, provided that there are at least
        /// `minimumRequests` results.
        ///
        /// This threshold suits many requests of which some succeed, because consecutive failures
        /// are then rare. The window advances in steps of one tenth.
        case failureRatio(Double, minimumRequests: Int = 100, window: Duration = .seconds(30))
    }

    /// The failures after which a circuit opens.
    public let threshold: Threshold
    /// The duration from the opening of a circuit to the next trial.
    public let openDuration: Duration

    /// The number of requests that are sent while a circuit is half-open, and that must succeed
    /// before it closes.
    public let maximumTrials: Int

    private let isFailure: @Sendable (Result<Response, any Error>) -> Bool
    private let key: @Sendable (Request) -> String
    private let circuits = Mutex(Circuits())

    private struct Circuits {
        var keyed = KeyedStates<KeyedCircuit>()
        var observers = ChangeObservers<Change>()
        var delivery = SerialDelivery<(change: Change, observers: [ChangeObservers<Change>.Observer])>()
    }

    /// Creates a circuit breaker with closed circuits.
    ///
    /// - Parameters:
    ///   - threshold: The failures after which a circuit opens. Defaults to 5 consecutive failures.
    ///   - openDuration: The duration from the opening of a circuit to the next trial. Defaults to
    ///     30 seconds.
    ///   - maximumTrials: The number of trials that must succeed before a circuit closes. Values
    ///     below 1 count as 1. Defaults to 1.
    ///   - isFailure: A closure that returns whether a result is a failure of the server. It is
    ///     called at most once per attempt, in the background. Defaults to the failures that
    ///     ``CircuitBreaker`` lists.
    ///   - key: A closure that returns the key of a request. It is called at most once per attempt,
    ///     in the background. Defaults to the origin of the URL.
    public init(
        opensAfter threshold: Threshold = .consecutiveFailures(5), openDuration: Duration = .seconds(30),
        maximumTrials: Int = 1, isFailure: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) {
        self.threshold = threshold
        self.openDuration = max(openDuration, .zero)
        self.maximumTrials = max(maximumTrials, 1)
        self.isFailure = isFailure ?? Self.isServerFailure
        self.key = key ?? { $0.originKey }
    }

    deinit {
        for observer in circuits.withLock({ $0.observers.all }) { observer.finish() }
    }

    /// Sends the request unless its circuit is open.
    ///
    /// - Throws: `WebServiceError.Code.circuitOpen`, or an error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let (key, clock) = (key(request), next.clock)
        let version: Int
        switch update(key, clock, { ($0.circuit.admit(at: $1, maximumTrials: maximumTrials), $0.failure) }) {
        case (.sent(let admitted), _): version = admitted
        case (.refused(let delay), let failure):
            next.record(.circuit, Self.refusal(failure, timeUntilTrial: delay))
            throw WebServiceError(failure, timeUntilTrial: delay)
        }
        let result = await next.result(of: request) { _ = end(key, version, .neither, by: clock) }
        let outcome = Circuit.Outcome(result, isFailure)
        let change = end(
            key, version, outcome, by: clock, failure: outcome == .failure ? ServerFailure(result) : nil)
        if let change { next.record(.circuit, change.rawValue) }
        return try result.get()
    }

    /// Returns the description of a refusal in the timeline.
    private static func refusal(_ failure: ServerFailure?, timeUntilTrial: Duration?) -> String {
        guard let timeUntilTrial else { return "not sent, because the circuit was opened manually" }
        let trial = timeUntilTrial > .zero ? "the next trial is in \(timeUntilTrial)" : "a trial is in flight"
        return "not sent after \(failure?.text ?? "failures"); \(trial)"
    }

    /// Applies the result of a request.
    private func end(
        _ key: String, _ version: Int, _ outcome: Circuit.Outcome, by clock: TaskClock, failure: ServerFailure? = nil
    ) -> Circuit.Change? {
        update(key, clock) { keyed, now in
            let change = keyed.circuit.end(
                version, outcome, threshold, openDuration: openDuration, maximumTrials: maximumTrials, at: now)
            if let failure { keyed.failure = failure } else if change == .closed { keyed.failure = nil }
            return change
        }
    }

    /// Changes a circuit, and notifies the observers if its state has changed.
    ///
    /// - Parameter clock: The clock of the service; `nil` for a manual change.
    private func update<Value: Sendable>(
        _ key: String, _ clock: TaskClock?, _ body: (inout KeyedCircuit, _ now: UInt64) -> Value
    ) -> Value {
        let limit = max(openDuration, .seconds(3_600))
        let now = clock?.now
        let (value, delivers) = circuits.withLock { circuits -> (Value, Bool) in
            let (value, state) = circuits.keyed.update(
                key, KeyedCircuit(), isIdle: { keyed in now.map { keyed.circuit.isIdle(for: limit, at: $0) } ?? false }
            ) { keyed -> (Value, State?) in
                let changes = keyed.circuit.changes
                let value = body(&keyed, now ?? 0)
                guard keyed.circuit.changes != changes else { return (value, nil) }
                if let clock { keyed.clock = clock }
                return (value, keyed.circuit.state(at: now ?? 0))
            }
            let observers = circuits.observers.all
            guard let state, !observers.isEmpty else { return (value, false) }
            circuits.delivery.append((Change(key: key, state: state), observers))
            return (value, circuits.delivery.begin())
        }
        guard delivers else { return value }
        while let (change, observers) = circuits.withLock({ $0.delivery.next() }) {
            for observer in observers { observer.yield(change) }
        }
        return value
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

// MARK: - State

extension CircuitBreaker {
    /// The state of a circuit.
    public enum State: Sendable, Hashable {
        /// The circuit is closed, so requests are sent.
        case closed
        /// The circuit is open, so requests fail without being sent.
        ///
        /// `remaining` is the duration until the next trial: zero if the next request is a trial,
        /// and `nil` if the circuit was opened manually.
        case open(remaining: Duration?)
        /// The circuit is half-open, so trials are sent, and other requests fail.
        case halfOpen
    }

    /// A change of a circuit's state.
    public struct Change: Sendable, Hashable {
        /// The key of the circuit. Defaults to the origin of the requests, such as
        /// `https://api.example.com`.
        public let key: String
        /// The state after the change.
        public let state: State
    }

    /// Returns the state of the circuit with a key; `closed` if there is none.
    ///
    /// The remaining duration is measured by the clock of the service whose request opened the
    /// circuit.
    public func state(of key: String) -> State {
        guard let keyed = circuits.withLock({ $0.keyed.values[key] }) else { return .closed }
        return keyed.circuit.state(at: keyed.clock.now)
    }

    /// Returns the state of an origin's circuit; `closed` if there is none.
    ///
    /// This method is for a circuit breaker without a custom key.
    public func state(of origin: Origin) -> State { state(of: origin.description) }

    /// Opens the circuit with a key until it is closed manually. There are no trials.
    ///
    /// Requests in flight continue, and their results do not affect the circuit. Further requests
    /// fail with `WebServiceError.Code.circuitOpen`, whose `WebServiceError.timeUntilTrial` is
    /// `nil`.
    public func open(_ key: String) { update(key, nil) { keyed, _ in keyed.circuit.open() } }

    /// Opens the circuit of an origin until it is closed manually.
    ///
    /// This method is for a circuit breaker without a custom key.
    public func open(_ origin: Origin) { open(origin.description) }

    /// Closes the circuit with a key, and forgets its failures.
    ///
    /// If the circuit was not closed before, the results of requests in flight, such as trials, do
    /// not affect it.
    public func close(_ key: String) {
        let failure = update(key, nil) { keyed, _ in
            keyed.circuit.close()
            return keyed.failure.take()
        }
        withExtendedLifetime(failure) {}  // an error is released outside the lock
    }

    /// Closes the circuit of an origin, and forgets its failures.
    ///
    /// This method is for a circuit breaker without a custom key.
    public func close(_ origin: Origin) { close(origin.description) }

    /// The changes of all circuits from now on, in the order in which they took place.
    ///
    /// Each sequence delivers all changes. If more than 1,000 changes are unread, the oldest ones
    /// are lost. A circuit whose memory is released does not change. The sequence ends when the
    /// circuit breaker is deallocated.
    public var changes: AsyncStream<Change> {
        ChangeObservers.changes(buffering: 1_000) { [weak self] body in
            self?.circuits.withLock { body(&$0.observers, nil) }
        }
    }
}

/// A circuit, and the last failure of a request with its key.
private struct KeyedCircuit: Sendable {
    var circuit = Circuit()
    var failure: ServerFailure?
    /// The clock of the service whose request last changed the circuit.
    var clock = TaskClock.system
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
    /// Zero while a trial is in flight; `nil` if the circuit was opened manually, and for errors
    /// with a code other than `Code.circuitOpen`.
    public var timeUntilTrial: Duration? { code == .circuitOpen ? trialDelay : nil }

    /// The message contains no values, so that logs can be grouped by it.
    fileprivate init(_ failure: ServerFailure?, timeUntilTrial: Duration?) {
        self.init(
            .circuitOpen,
            timeUntilTrial == nil
                ? "the circuit was opened manually, so no request is sent; close it to send requests again"
                : "recent requests failed, so no request is sent; try again after timeUntilTrial")
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
    ///   - threshold: The failures after which a circuit opens. Defaults to 5 consecutive failures.
    ///   - openDuration: The duration from the opening of a circuit to the next trial. Defaults to
    ///     30 seconds.
    ///   - maximumTrials: The number of trials that must succeed before a circuit closes. Defaults
    ///     to 1.
    ///   - isFailure: A closure that returns whether a result is a failure of the server. Defaults
    ///     to the failures that ``CircuitBreaker`` lists.
    ///   - key: A closure that returns the key of a request. Defaults to the origin of the URL.
    public static func circuitBreaker(
        opensAfter threshold: CircuitBreaker.Threshold = .consecutiveFailures(5), openDuration: Duration = .seconds(30),
        maximumTrials: Int = 1, isFailure: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil,
        by key: (@Sendable (_ request: Request) -> String)? = nil
    ) -> CircuitBreaker {
        CircuitBreaker(
            opensAfter: threshold, openDuration: openDuration, maximumTrials: maximumTrials, isFailure: isFailure,
            by: key)
    }
}

extension Timeline.Kind {
    /// A circuit of a ``CircuitBreaker`` that opened or closed, or that refused the request.
    public static let circuit = Timeline.Kind("circuit")
}

extension WebServiceError.Code {
    /// A request that was not sent because its circuit in a ``CircuitBreaker`` is open, or is
    /// half-open with trials in flight.
    ///
    /// `WebServiceError.timeUntilTrial` is the duration until the next trial. The last failure of
    /// the server is the `response` or the `underlying` error.
    public static let circuitOpen = WebServiceError.Code("circuitOpen")
}
