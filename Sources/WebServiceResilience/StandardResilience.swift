public import WebServiceCore

extension Array where Element == any Interceptor {
    /// Returns the interceptors that most services need, in a suitable order.
    ///
    /// ```swift
    /// service.interceptors = .standardResilience()
    /// ```
    /// The array contains these interceptors, in this order:
    /// 1. An interceptor that sets the `attemptTimeout` of requests without one to 10 seconds,
    ///    because users rarely wait longer, and another attempt may succeed. Three attempts with
    ///    their pauses usually end within 32 seconds.
    /// 2. A `RetryPolicy` with 3 attempts and pauses of 0.25 to 0.5 seconds and of 0.5 to 1 second,
    ///    because most temporary failures end within a second. Its budget is one retry per 10
    ///    requests, and 10 retries in succession. In the long term, retries therefore add at most a
    ///    tenth to the load of a failing server.
    /// 3. The ``Hedging`` that you pass. By default there is none, because a second request is
    ///    useful only if few responses are late.
    /// 4. The ``EndpointGroup`` that you pass. By default there is none.
    /// 5. A ``CircuitBreaker`` that opens for 5 seconds if 50 % of at least 20 requests in 30
    ///    seconds have failed. With fewer failures, retries usually succeed. If a server fails one
    ///    of ten requests on average, the probability that it fails 10 of 20 is below 0.001 %.
    /// 6. A ``ConcurrencyLimiter`` with `.gradient(tolerance: 1.15)`, so that a server that becomes
    ///    slower receives fewer requests. The limit is 15 % above the number of requests that the
    ///    server handles at once, because the limiter lowers the limit from time to time to measure
    ///    the round-trip time. By default, at most 1,000 requests wait for each origin, which
    ///    bounds the memory of your program. Whether a request can wait depends on its deadline.
    ///
    /// A request that has to wait and whose response is expected after its deadline fails with
    /// `WebServiceError.Code.concurrencyLimitExceeded` as soon as that is known. This error is not
    /// retried.
    ///
    /// Other interceptors can precede or follow these. With `.standardResilience() +
    /// [authentication]`, for example, each attempt has the current credential. Each call creates
    /// new instances. If several services send requests to the same server, use the same array for
    /// all of them.
    ///
    /// - Parameters:
    ///   - hedging: The interceptor that sends late requests a second time. Defaults to `nil`:
    ///     none.
    ///   - endpoints: The group of endpoints. Defaults to `nil`: requests are sent to the base URL.
    ///   - maximumWaiting: The maximum number of requests that wait for the concurrency limit of an
    ///     origin. Further ones fail immediately. Defaults to 1,000.
    public static func standardResilience(
        hedging: Hedging? = nil, endpoints: EndpointGroup? = nil, maximumWaiting: Int = 1_000
    ) -> [any Interceptor] {
        let retry = RetryPolicy(retryBudget: RetryPolicy.Budget(capacity: 10, ratio: 0.1))
        let optional: [(any Interceptor)?] = [hedging, endpoints]
        return [AttemptTimeout(), retry] + optional.compactMap(\.self) + [
            CircuitBreaker(
                opensAfter: .failureRatio(0.5, minimumRequests: 20, window: .seconds(30)),
                openDuration: .seconds(5)),
            ConcurrencyLimiter(.gradient(tolerance: 1.15), maximumWaiting: maximumWaiting),
        ]
    }
}

extension Interceptor where Self == ConcurrencyLimiter {
    /// Unavailable, because the result is an array of interceptors.
    @available(*, unavailable, message: "it is an array: interceptors = .standardResilience(), without brackets")
    public static func standardResilience(
        hedging: Hedging? = nil, endpoints: EndpointGroup? = nil, maximumWaiting: Int = 1_000
    ) -> ConcurrencyLimiter { ConcurrencyLimiter(.gradient(tolerance: 1.15)) }
}

/// The interceptor that limits the attempts of requests without an `attemptTimeout`.
struct AttemptTimeout: Interceptor {
    func intercept(_ request: Request, next: Next) async throws -> Response {
        var request = request
        request.options.attemptTimeout = request.options.attemptTimeout ?? .seconds(10)
        return try await next(request)
    }
}
