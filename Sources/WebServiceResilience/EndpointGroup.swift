import Foundation
public import WebServiceCore

/// An interceptor that distributes requests among several servers with the same content.
///
/// ```swift
/// let servers = ["https://eu.example.com", "https://us.example.com"].compactMap(Origin.init)
/// service.interceptors = [.retry(), .endpoints(servers)]
/// ```
/// An endpoint is an origin that replaces the origin of the service's base URL; the path and the
/// query are not changed. Requests to other origins are not changed either.
/// - Without weights, requests are sent to the first endpoint that is available. With weights, each
///   request is sent to a random endpoint. An endpoint with weight 3 receives three times as many
///   requests as one with weight 1. An endpoint with weight 0 receives a request only if the
///   request has already been sent to every other available endpoint.
/// - A retry of a request, and the second request of a ``Hedging``, is sent to an endpoint that the
///   request has not used, if one is available. A retry policy also retries a POST if nothing of it
///   was sent, for example because an endpoint refused the connection.
/// - After ``maximumFailures`` consecutive failures, an endpoint is skipped for ``skipDuration``.
///   The next request is then a trial. If the trial succeeds, the endpoint is available again. If
///   no endpoint is available, requests are sent as if all endpoints were available. Failures are
///   those of a ``CircuitBreaker``, unless `isFailure` specifies otherwise.
///
/// Each request to an endpoint other than the first one in the list, and each change of an
/// endpoint's availability, is recorded in the task's `Timeline`.
///
/// In the list of interceptors, place a group after retry policies and hedging, and before limiters
/// and circuit breakers, whose default keys are then the endpoints. In any other order, requests
/// fail with `WebServiceError.Code.interceptorOrder`. A cache should precede the group, so that a
/// stored response is used for all endpoints. An `Authentication` sends its credentials only to the
/// endpoints among its `origins`. Services that share an instance share the availability of its
/// endpoints. All members may be used from any thread.
public final class EndpointGroup: Interceptor {
    /// The origins of the endpoints.
    public let origins: [Origin]
    /// The number of consecutive failures after which an endpoint is skipped.
    public let maximumFailures: Int
    /// The duration for which an endpoint is skipped.
    public let skipDuration: Duration

    /// The weights of the endpoints; `nil` if the first available one is used.
    private let weights: [Double]?
    private let isFailure: @Sendable (Result<Response, any Error>) -> Bool
    private let circuits: Mutex<[Circuit]>

    /// Creates a group whose endpoints are all available.
    ///
    /// - Parameters:
    ///   - origins: The origins of the endpoints. If the array is empty, requests are not changed.
    ///   - weights: The weights of the endpoints, in the same order. A missing weight counts as 1,
    ///     and a negative weight as 0. Defaults to `nil`: the first available endpoint is used.
    ///   - maximumFailures: The number of consecutive failures after which an endpoint is skipped.
    ///     Values below 1 count as 1. Defaults to 3, because a single failure may be caused by the
    ///     request.
    ///   - skipDuration: The duration for which an endpoint is skipped. Defaults to 10 seconds.
    ///   - isFailure: A closure that returns whether a result is a failure of the endpoint. It is
    ///     called at most once per attempt, in the background. Defaults to the failures that
    ///     ``CircuitBreaker`` lists.
    public init(
        _ origins: [Origin], weights: [Double]? = nil, maximumFailures: Int = 3,
        skipDuration: Duration = .seconds(10),
        isFailure: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil
    ) {
        self.origins = origins
        self.maximumFailures = max(maximumFailures, 1)
        self.skipDuration = max(skipDuration, .zero)
        self.weights = weights.map { weights in
            origins.indices.map { index in
                guard index < weights.count else { return 1 }
                return weights[index] > 0 ? min(weights[index], 1e9) : 0  // NaN counts as 0
            }
        }
        self.isFailure = isFailure ?? CircuitBreaker.isServerFailure
        circuits = Mutex(origins.map { _ in Circuit() })
    }

    /// Sends the request to an endpoint.
    ///
    /// - Throws: An error of `next`.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        guard !origins.isEmpty, let url = request.url, let origin = Origin(url), origin == next.baseOrigin else {
            return try await next(request)
        }
        let clock = next.clock
        let (index, version) = select(next)
        if index > 0, let first = origins.first { next.record(.endpoint, "\(origins[index]) instead of \(first)") }
        var request = request
        request.url = url.replacingOrigin(by: origins[index])
        let result = await next.result(of: request) { _ = version.map { end(index, $0, .neither, by: clock) } }
        if let version {
            switch end(index, version, Circuit.Outcome(result, isFailure), by: clock) {
            case .opened: next.record(.endpoint, "\(origins[index]) is skipped for \(skipDuration)")
            case .closed: next.record(.endpoint, "\(origins[index]) is available again")
            case nil: break
            }
        }
        return try result.get()
    }

    /// Applies the result of a request to an endpoint.
    private func end(
        _ index: Int, _ version: Int, _ outcome: Circuit.Outcome, by clock: TaskClock
    ) -> Circuit.Change? {
        let now = clock.now
        return circuits.withLock {
            $0[index].end(version, outcome, .consecutiveFailures(maximumFailures), openDuration: skipDuration, at: now)
        }
    }

    /// Returns the index of an endpoint, and the version of its circuit. The version is `nil` if no
    /// endpoint is available; the result of the request then has no effect on the circuit.
    private func select(_ next: Next) -> (index: Int, version: Int?) {
        let now = next.clock.now
        let record = next.withValue(of: self, UsedEndpoints()) { $0 }
        let used = record.indices.withLock { $0 }
        let unused = origins.indices.filter { !used.contains($0) }
        let candidates = order(of: unused, next.clock) + order(of: origins.indices.filter(used.contains), next.clock)
        let choice = circuits.withLock { circuits -> (Int, Int?) in
            for index in candidates {
                if case .sent(let version) = circuits[index].admit(at: now) { return (index, version) }
            }
            return (candidates.first ?? 0, nil)
        }
        record.indices.withLock { used in
            if used.count == origins.count { used = [] }
            used.insert(choice.0)
        }
        return choice
    }

    /// Returns endpoints in the order in which they are tried. With weights, the first one is
    /// random, and the others follow in descending order of their weights.
    private func order(of indices: [Int], _ clock: TaskClock) -> [Int] {
        guard let weights, indices.count > 1 else { return indices }
        let sorted = indices.sorted { weights[$0] > weights[$1] }
        var rest = clock.random() * sorted.reduce(0) { $0 + weights[$1] }
        let first = sorted.first { index in
            rest -= weights[index]
            return rest < 0
        }
        guard let first else { return sorted }
        return [first] + sorted.filter { $0 != first }
    }
}

/// The endpoints that an exchange has used, including those of its second request.
private final class UsedEndpoints: Sendable {
    let indices = Mutex<Set<Int>>([])
}

extension URL {
    /// Returns the URL with another origin. The URL must have an origin.
    fileprivate func replacingOrigin(by origin: Origin) -> URL? {
        let text = absoluteString.utf8
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let rest = text[colon...].dropFirst(3).drop {
            ![UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains($0)
        }
        return URL(string: origin.description + String(Substring(rest)))
    }
}

extension Interceptor where Self == EndpointGroup {
    /// Returns an interceptor that distributes requests among endpoints; see ``EndpointGroup``.
    ///
    /// - Parameters:
    ///   - origins: The origins of the endpoints.
    ///   - weights: The weights of the endpoints, in the same order. Defaults to `nil`: the first
    ///     available endpoint is used.
    ///   - maximumFailures: The number of consecutive failures after which an endpoint is skipped.
    ///     Defaults to 3.
    ///   - skipDuration: The duration for which an endpoint is skipped. Defaults to 10 seconds.
    ///   - isFailure: A closure that returns whether a result is a failure of the endpoint.
    ///     Defaults to the failures that ``CircuitBreaker`` lists.
    public static func endpoints(
        _ origins: [Origin], weights: [Double]? = nil, maximumFailures: Int = 3,
        skipDuration: Duration = .seconds(10),
        isFailure: (@Sendable (_ result: Result<Response, any Error>) -> Bool)? = nil
    ) -> EndpointGroup {
        EndpointGroup(
            origins, weights: weights, maximumFailures: maximumFailures, skipDuration: skipDuration,
            isFailure: isFailure)
    }
}

extension Timeline.Kind {
    /// A decision of an ``EndpointGroup``: the use of an endpoint other than the first one, or a
    /// change of an endpoint's availability.
    public static let endpoint = Timeline.Kind("endpoint")
}
