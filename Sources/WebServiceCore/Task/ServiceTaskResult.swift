/// The result of a response handler, `transform` or `recover`.
///
/// The result is passed to the next handler in the chain.
public enum ServiceTaskResult {
    /// Success without a value. The next handler receives `nil`.
    case empty
    /// Success with a value.
    case value(Any)
    /// Failure. The error handlers run in place of the success handlers that follow.
    case failure(any Error)
}
