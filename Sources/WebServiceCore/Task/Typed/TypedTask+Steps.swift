import Foundation

extension TypedTask {
    /// Turns the value into another, in the background; what it throws is the error.
    public func map<Next: Sendable>(_ transform: @escaping @Sendable (Value) throws -> Next) -> TypedTask<Next> {
        then { result in result.flatMap { value in Result { try transform(value) } } }
    }

    /// Turns the value into another by work that may wait. It runs in a Swift task of its own, which `cancel()` cancels; everything behind it
    /// waits for it.
    public func mapAsync<Next: Sendable>(_ transform: @escaping @Sendable (Value) async throws -> Next) -> TypedTask<Next> {
        thenAsync { result in
            do { return .success(try await transform(try result.get())) } catch { return .failure(error) }
        }
    }

    /// Goes on with another exchange, made from the value. It is resumed when the value is there; `cancel()` cancels it as well.
    public func flatMap<Next: Sendable>(_ transform: @escaping @Sendable (Value) throws -> TypedTask<Next>) -> TypedTask<Next> {
        mapAsync { value in try await transform(value).value }
    }

    /// Turns an error into a value, or into another error by throwing it; not called on success.
    public func recover(_ transform: @escaping @Sendable (any Error) throws -> Value) -> TypedTask<Value> {
        then { result in result.flatMapError { error in Result { try transform(error) } } }
    }

    /// Accepts these statuses in place of 200 to 299. The last call counts, wherever it stands; no effect once the answer is there.
    public func validate(statuses: some Sequence<Int>) -> Self {
        rules.set { $0.statuses = .these(Set(statuses)) }
        return self
    }

    /// Accepts these statuses in place of 200 to 299. The last call counts, wherever it stands; no effect once the answer is there.
    public func validate(statuses: ClosedRange<Int>) -> Self {
        rules.set { $0.statuses = .these(Set(statuses.clamped(to: 0...999))) }
        return self
    }

    /// Accepts every status.
    public func validateNothing() -> Self {
        rules.set { $0.statuses = .any }
        return self
    }

    /// Requires one of these media types when there is a body, such as `application/json` or `text/*`. Parameters such as `charset` do not matter, and
    /// `application/json` also accepts types that end in `+json`. Else the error is ``WebServiceError/Code/unexpectedContentType``.
    public func validate(contentTypes: [String]) -> Self {
        rules.set { $0.contentTypes = contentTypes }
        return self
    }

    /// Adds a check of the answer behind those of status and media type; what it throws is the error. No effect once the answer is there.
    public func validate(_ check: @escaping @Sendable (Response) throws -> Void) -> Self {
        rules.set { $0.checks.append(check) }
        return self
    }
}

// MARK: - Observers

extension TypedTask {
    /// Calls the closure with the value, in the background; not after an error.
    @discardableResult
    public func onSuccess(_ observer: @escaping @Sendable (Value) -> Void) -> Self {
        observe { if case .success(let value) = $0 { observer(value) } }
    }

    /// Calls the closure with how far the exchange has come; see ``SessionTask/onProgress(_:)``.
    @discardableResult
    public func onProgress(_ handler: @escaping @Sendable (_ progress: TransferProgress) -> Void) -> Self {
        task.onProgress(handler)
        return self
    }

    /// Calls the closure with the error, in the background; not after a success.
    @discardableResult
    public func onError(_ observer: @escaping @Sendable (any Error) -> Void) -> Self {
        observe { if case .failure(let error) = $0 { observer(error) } }
    }

    /// Calls the closure with the result, in the background.
    @discardableResult
    public func onCompletion(_ observer: @escaping @Sendable (Result<Value, any Error>) -> Void) -> Self {
        observe(observer)
    }

    /// Calls the closure with the value, on the main actor; not after an error. What was added later waits for it.
    @discardableResult
    public func updateUI(_ observer: @escaping @MainActor @Sendable (Value) -> Void) -> Self {
        observeOnMain({ try? $0.get() }, observer)  // a failure has no value to observe
    }

    /// Calls the closure with the error, on the main actor; not after a success. What was added later waits for it.
    @discardableResult
    public func updateErrorUI(_ observer: @escaping @MainActor @Sendable (any Error) -> Void) -> Self {
        observeOnMain({ if case .failure(let error) = $0 { error } else { nil } }, observer)
    }
}
