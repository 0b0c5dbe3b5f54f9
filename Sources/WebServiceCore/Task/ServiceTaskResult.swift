/// What a response handler, `transform` or `recover` hands to the next handler in the chain.
public enum ServiceTaskResult {
    /// Success without a value: the next handler gets `nil`.
    case empty
    /// Success with a value.
    case value(Any)
    /// Failure: the error handlers run instead of what follows.
    case failure(any Error)
}
