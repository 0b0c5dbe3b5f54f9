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
    /// adds ``ratio`` of one. With less than one token, the request is not sent again and no pause
    /// starts: the last response or error is the result.
    ///
    /// All members may be used from any thread.
    public final class Budget: Sendable {
        /// The maximum number of tokens.
        public let capacity: Int
        /// The fraction of a token that each first attempt adds.
        public let ratio: Double

        private let tokens: Mutex<Double>

        /// Creates a full budget.
        ///
        /// - Parameters:
        ///   - capacity: The maximum number of tokens, and so of retries in a burst; from 0 to
        ///     1,000,000. Defaults to 100.
        ///   - ratio: The long-term number of retries per request; from 0 to 1, and 0 for NaN.
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
