/// A token bucket that limits retries under overload; one instance is shared by all requests to a service.
///
/// ```swift
/// let budget = RetryBudget()
/// service.interceptors = [RetryPolicy(retryBudget: budget)]
/// ```
/// The bucket begins with ``capacity`` tokens. A retry takes one token, and a first attempt puts back ``ratio`` of one. With less than
/// one token nothing is sent again and no pause begins: the response or error at hand is the outcome.
///
/// All members may be used from any thread.
public final class RetryBudget: Sendable {
    /// The largest number of tokens.
    public let capacity: Int
    /// The part of a token that each first attempt puts back.
    public let ratio: Double

    private let tokens: Mutex<Double>

    /// Creates a full budget.
    ///
    /// - Parameters:
    ///   - capacity: The largest number of tokens, so of retries in a burst; from 0 to 1,000,000. Defaults to 100.
    ///   - ratio: The number of retries for each request, in the long run; from 0 to 1, and 0 for NaN. Defaults to 0.2.
    public init(capacity: Int = 100, ratio: Double = 0.2) {
        self.capacity = min(max(capacity, 0), 1_000_000)
        self.ratio = ratio > 0 ? min(ratio, 1) : 0
        tokens = Mutex(Double(self.capacity))
    }

    /// The number of retries that can be made at once.
    public var availableRetries: Int { tokens.withLock { Int($0) } }

    func recordRequest() {
        tokens.withLock { $0 = min($0 + ratio, Double(capacity)) }
    }

    /// - Returns: Whether a retry may be made.
    func takeRetry() -> Bool {
        tokens.withLock { tokens in
            guard tokens >= 1 else { return false }
            tokens -= 1
            return true
        }
    }
}
