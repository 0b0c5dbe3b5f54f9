public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

// Of the two forms of each handler, the one that returns a result is the disfavoured overload: only so do all closures resolve, with and
// without `return`, of one statement or of many.

// MARK: - The answer, in the background

extension SessionTask {
    /// Adds a handler for the answer; skipped on the failure track. It returns nothing, so the result of the chain stays as it was, or is empty
    /// when there was none.
    @discardableResult
    public func response(_ handler: @escaping @Sendable (_ data: Data?, _ response: URLResponse?) throws -> Void) -> Self {
        add(.lookAtResponse(handler))
    }

    /// Adds a handler for the answer; skipped on the failure track. What it returns is the result of the chain; what it throws is its failure.
    @discardableResult
    @_disfavoredOverload
    public func response(
        _ handler: @escaping @Sendable (_ data: Data?, _ response: URLResponse?) throws -> ServiceTaskResult
    ) -> Self {
        add(.response(handler))
    }

    /// Adds a handler for the answer's body as JSON (`JSONSerialization`, single values allowed); skipped on the failure track. The body is
    /// parsed once for all handlers.
    ///
    /// Without a body the chain fails with ``WebServiceError/Code/emptyResponse``, with anything but JSON with
    /// ``WebServiceError/Code/decoding``, and the handler is not called.
    @discardableResult
    public func responseJSON(_ handler: @escaping @Sendable (_ json: Any, _ response: URLResponse?) throws -> Void) -> Self {
        add(.lookAtJSON(handler))
    }

    /// Adds a handler for the answer's body as JSON, as the form that returns nothing does. What it returns is the result of the chain; what it
    /// throws is its failure.
    @discardableResult
    @_disfavoredOverload
    public func responseJSON(
        _ handler: @escaping @Sendable (_ json: Any, _ response: URLResponse?) throws -> ServiceTaskResult
    ) -> Self {
        add(.responseJSON(handler))
    }
}

// MARK: - Results and errors, in the background

extension SessionTask {
    /// Adds a handler that looks at the result so far; skipped on the failure track and while no handler has given a result. The result stays.
    @discardableResult
    public func transform(_ handler: @escaping @Sendable (_ value: Any?) throws -> Void) -> Self {
        add(.lookAtValue(handler))
    }

    /// Adds a handler that makes a new result from the result so far; skipped on the failure track and while no handler has given a result.
    @discardableResult
    @_disfavoredOverload
    public func transform(_ handler: @escaping @Sendable (_ value: Any?) throws -> ServiceTaskResult) -> Self {
        add(.transform(handler))
    }

    /// Adds a handler that may turn a failure into a success; skipped on the success track. `.empty` and `.value` go back to the success track,
    /// `.failure` and a thrown error stay on the failure track.
    @discardableResult
    public func recover(_ handler: @escaping @Sendable (_ error: any Error) throws -> ServiceTaskResult) -> Self {
        add(.recover(handler))
    }

    /// Adds a handler that looks at the error; skipped on the success track. The failure stays.
    @discardableResult
    public func responseError(_ handler: @escaping @Sendable (_ error: any Error) -> Void) -> Self {
        add(.responseError(handler))
    }

    /// Adds a handler for the measurements. It runs in the background, behind all handlers that were added before the outcome.
    @discardableResult
    public func metricsCollected(_ handler: @escaping @Sendable (_ metrics: ServiceTaskMetrics) -> Void) -> Self {
        add(handler)
    }
}

// MARK: - Progress, in the background

extension SessionTask {
    /// Adds a handler that hears how far the exchange has come. It runs in the background, one call after another, before any handler of the outcome, with
    /// the latest news: what happened while it ran is told in one call. With each message, such as a retry, the numbers begin again. Never called
    /// when it is added after the outcome, or over a session that does not tell, such as a plain `URLSession`.
    @discardableResult
    public func onProgress(_ handler: @escaping @Sendable (_ progress: TransferProgress) -> Void) -> Self {
        if !shared.withLock({ $0.result != nil }) { context.log.addProgressHandler(handler) }
        return self
    }
}

// MARK: - On the main actor

extension SessionTask {
    /// Adds a handler that runs on the main actor with the result so far, `nil` where there is none; skipped on the failure track. Later
    /// handlers wait until it returns; no thread is blocked meanwhile.
    @discardableResult
    public func updateUI(_ handler: @escaping @MainActor @Sendable (_ value: Any?) -> Void) -> Self {
        add(.updateUI(handler))
    }

    /// Adds a handler that runs on the main actor with the error; skipped on the success track. Later handlers wait until it returns.
    @discardableResult
    public func updateErrorUI(_ handler: @escaping @MainActor @Sendable (_ error: any Error) -> Void) -> Self {
        add(.updateErrorUI(handler))
    }
}

/// The name that API clients use for what their methods return.
public typealias ServiceTask = SessionTask
