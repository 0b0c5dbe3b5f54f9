/// A continuation for code that may call back more than once, or never.
///
/// The first call resumes it. If the last reference to it is released without a call, it fails.
final class OneTimeContinuation<Value: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Value, any Error>?>
    private let forgotten: any Error

    /// - Parameter forgotten: The error if the last reference is released without a call.
    init(_ continuation: CheckedContinuation<Value, any Error>, forgotten: any Error) {
        self.continuation = Mutex(continuation)
        self.forgotten = forgotten
    }

    deinit {
        continuation.withLock { $0.take() }?.resume(throwing: forgotten)
    }

    func resume(with result: Result<Value, any Error>) {
        continuation.withLock { $0.take() }?.resume(with: result)
    }
}
