import Foundation

extension TypedTask {
    /// Transforms the value in the background.
    ///
    /// An error thrown by the closure becomes the error of the task.
    public func map<Next: Sendable>(_ transform: @escaping @Sendable (Value) throws -> Next) -> TypedTask<Next> {
        then { result in result.flatMap { value in Result { try transform(value) } } }
    }

    /// Transforms the value with an asynchronous closure.
    ///
    /// The closure runs in a separate Swift task, which `cancel()` cancels. Later handlers wait
    /// until the closure returns.
    public func mapAsync<Next: Sendable>(
        _ transform: @escaping @Sendable (Value) async throws -> Next
    ) -> TypedTask<Next> {
        thenAsync { result in
            do { return .success(try await transform(try result.get())) } catch { return .failure(error) }
        }
    }

    /// Continues with another exchange, created from the value.
    ///
    /// The other exchange is resumed automatically, and `cancel()` cancels it as well.
    public func flatMap<Next: Sendable>(
        _ transform: @escaping @Sendable (Value) throws -> TypedTask<Next>
    ) -> TypedTask<Next> {
        mapAsync { value in try await transform(value).value }
    }

    /// Replaces an error with the value that the closure returns, or with the error that it throws.
    ///
    /// The closure is not called on success.
    public func recover(_ transform: @escaping @Sendable (any Error) throws -> Value) -> TypedTask<Value> {
        then { result in result.flatMapError { error in Result { try transform(error) } } }
    }

    /// Accepts these statuses in place of 200 to 299.
    ///
    /// The last call determines the accepted statuses, regardless of its position. A call after the
    /// response has arrived may have no effect.
    public func validate(statuses: some Sequence<Int>) -> Self {
        changeRules { $0.statuses = .these(Set(statuses)) }
        return self
    }

    /// Accepts these statuses in place of 200 to 299.
    ///
    /// The last call determines the accepted statuses, regardless of its position. A call after the
    /// response has arrived may have no effect.
    public func validate(statuses: ClosedRange<Int>) -> Self {
        changeRules { $0.statuses = .these(Set(statuses.clamped(to: 0...999))) }
        return self
    }

    /// Accepts a response with any status.
    public func validateNothing() -> Self {
        changeRules { $0.statuses = .any }
        return self
    }

    /// Requires one of these media types for a response with a body.
    ///
    /// Examples are `application/json`, which also accepts types that end in `+json`, and `text/*`.
    /// Parameters such as `charset` are ignored. Any other type fails with
    /// ``WebServiceError/Code/unexpectedContentType``.
    public func validate(contentTypes: [String]) -> Self {
        changeRules { $0.contentTypes = contentTypes }
        return self
    }

    /// Adds a check of the response that runs after the checks of the status and the media type.
    ///
    /// An error thrown by the closure becomes the error of the task. A call after the response has
    /// arrived may have no effect.
    public func validate(_ check: @escaping @Sendable (Response) throws -> Void) -> Self {
        changeRules { $0.checks.append(check) }
        return self
    }
}

// MARK: - Observers

extension TypedTask {
    /// Calls the closure with the value, in the background, unless the task fails.
    @discardableResult
    public func onSuccess(_ observer: @escaping @Sendable (Value) -> Void) -> Self {
        observe { if case .success(let value) = $0 { observer(value) } }
    }

    /// Calls the closure with the transfer progress; see ``SessionTask/onProgress(_:)``.
    @discardableResult
    public func onProgress(_ handler: @escaping @Sendable (_ progress: TransferProgress) -> Void) -> Self {
        task.onProgress(handler)
        return self
    }

    /// The transfer progress as a sequence, which ends with the task.
    ///
    /// Each element is the latest progress; a slow reader skips earlier ones. Iterating does not
    /// resume the task, and leaving the loop does not cancel it. Access this property before the
    /// task completes. For a streamed body, whose task completes with the head, use
    /// ``onProgress(_:)`` instead.
    public var progress: AsyncStream<TransferProgress> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: TransferProgress.self, bufferingPolicy: .bufferingNewest(1))
        task.onProgress { continuation.yield($0) }
        _ = observe { _ in continuation.finish() }
        return stream
    }

    /// Calls the closure with the error, in the background, if the task fails.
    @discardableResult
    public func onError(_ observer: @escaping @Sendable (any Error) -> Void) -> Self {
        observe { if case .failure(let error) = $0 { observer(error) } }
    }

    /// Calls the closure with the result, in the background.
    @discardableResult
    public func onCompletion(_ observer: @escaping @Sendable (Result<Value, any Error>) -> Void) -> Self {
        observe(observer)
    }

    /// Calls the closure with the result, on an executor.
    ///
    /// Later handlers wait until the closure returns. To observe the result on the main actor, use
    /// ``updateUI(_:)`` and ``updateErrorUI(_:)``. To observe it in the background, use
    /// ``onCompletion(_:)``.
    @discardableResult
    public func onCompletion(
        on executor: any TaskExecutor, _ observer: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) -> Self {
        observe(on: executor, observer)
    }

    /// Calls the closure with the value, on the main actor.
    ///
    /// The closure is not called after an error. Later handlers wait until the closure returns.
    @discardableResult
    public func updateUI(_ observer: @escaping @MainActor @Sendable (Value) -> Void) -> Self {
        observeOnMain({ try? $0.get() }, observer)  // a failure has no value to observe
    }

    /// Calls the closure with the error, on the main actor.
    ///
    /// The closure is not called on success. Later handlers wait until the closure returns.
    @discardableResult
    public func updateErrorUI(_ observer: @escaping @MainActor @Sendable (any Error) -> Void) -> Self {
        observeOnMain({ if case .failure(let error) = $0 { error } else { nil } }, observer)
    }
}
