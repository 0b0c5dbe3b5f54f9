public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

// Of the two overloads of each handler, the one that returns a result is disfavored, so that every
// closure resolves, with or without `return` and with one or several statements.

// MARK: - Response handlers, in the background

extension SessionTask {
    /// Adds a handler for the response. It is skipped after a failure.
    ///
    /// The handler does not change the result of the chain, except that a thrown error becomes its
    /// failure. If there is no result yet, the chain continues with an empty result.
    @discardableResult
    public func response(
        _ handler: @escaping @Sendable (_ data: Data?, _ response: URLResponse?) throws -> Void
    ) -> Self {
        add(.observeResponse(handler))
    }

    /// Adds a handler for the response. It is skipped after a failure.
    ///
    /// The returned value becomes the result of the chain; a thrown error becomes its failure.
    @discardableResult
    @_disfavoredOverload
    public func response(
        _ handler: @escaping @Sendable (_ data: Data?, _ response: URLResponse?) throws -> ServiceTaskResult
    ) -> Self {
        add(.response(handler))
    }

    /// Adds a handler for the body as JSON. It is skipped after a failure.
    ///
    /// The body is parsed once for all handlers, into `NSNumber` or `Double`, `String`, `NSNull`,
    /// `[Any]` and `[String: Any]`. 64-bit integers are exact; a number that was rounded cannot be
    /// cast to an integer.
    ///
    /// If there is no body, the chain fails with ``WebServiceError/Code/emptyResponse``. If the
    /// body is not JSON, the chain fails with ``WebServiceError/Code/decoding``. In both cases, the
    /// handler is not called.
    @discardableResult
    public func responseJSON(
        _ handler: @escaping @Sendable (_ json: Any, _ response: URLResponse?) throws -> Void
    ) -> Self {
        add(.observeJSON(handler))
    }

    /// Adds a handler for the body as JSON, as the overload without a result does.
    ///
    /// The returned value becomes the result of the chain; a thrown error becomes its failure.
    @discardableResult
    @_disfavoredOverload
    public func responseJSON(
        _ handler: @escaping @Sendable (_ json: Any, _ response: URLResponse?) throws -> ServiceTaskResult
    ) -> Self {
        add(.responseJSON(handler))
    }
}

// MARK: - Result and error handlers, in the background

extension SessionTask {
    /// Adds a handler that observes the current result. A thrown error becomes the failure of the
    /// chain.
    ///
    /// The handler is skipped after a failure and if there is no result yet.
    @discardableResult
    public func transform(_ handler: @escaping @Sendable (_ value: Any?) throws -> Void) -> Self {
        add(.observeValue(handler))
    }

    /// Adds a handler that replaces the current result.
    ///
    /// The handler is skipped after a failure and if there is no result yet.
    @discardableResult
    @_disfavoredOverload
    public func transform(_ handler: @escaping @Sendable (_ value: Any?) throws -> ServiceTaskResult) -> Self {
        add(.transform(handler))
    }

    /// Adds a handler that can recover from a failure. It is skipped on success.
    ///
    /// `.empty` and `.value` return the chain to the success track; `.failure` and a thrown error
    /// leave it on the failure track.
    @discardableResult
    public func recover(_ handler: @escaping @Sendable (_ error: any Error) throws -> ServiceTaskResult) -> Self {
        add(.recover(handler))
    }

    /// Adds a handler that observes the error. It is skipped on success.
    ///
    /// The handler does not change the failure.
    @discardableResult
    public func responseError(_ handler: @escaping @Sendable (_ error: any Error) -> Void) -> Self {
        add(.responseError(handler))
    }

    /// Adds a handler for the metrics.
    ///
    /// The handler runs in the background, after all handlers that were added before the result.
    @discardableResult
    public func metricsCollected(_ handler: @escaping @Sendable (_ metrics: ServiceTaskMetrics) -> Void) -> Self {
        add { metrics, _ in handler(metrics) }
    }

    /// Adds a handler for the metrics and the response, which is `nil` if there is none.
    ///
    /// The handler runs in the background, after all handlers that were added before the result.
    @discardableResult
    public func metricsCollected(
        _ handler: @escaping @Sendable (_ metrics: ServiceTaskMetrics, _ response: URLResponse?) -> Void
    ) -> Self {
        add(handler)
    }
}

// MARK: - Progress, in the background

extension SessionTask {
    /// Adds a handler for the transfer progress.
    ///
    /// The handler runs in the background, one call at a time, before any handler of the result.
    /// Each call receives the latest progress; updates during a call are combined into the next
    /// one. The counts restart with each attempt, such as a retry. The progress of a streamed body
    /// (``stream(bufferSize:)``) continues after the result, until the end of the body.
    ///
    /// A handler that is added after `resume()` receives the progress of the attempt in flight, if
    /// bytes were sent or received, and then each later update. The handler is never called if it
    /// is added after the result, or if the session does not report progress, as is the case for a
    /// plain `URLSession` unless the body is streamed.
    @discardableResult
    public func onProgress(_ handler: @escaping @Sendable (_ progress: TransferProgress) -> Void) -> Self {
        guard result == nil, let relay = addProgressHandler(handler) else { return self }
        if !call.withLock({ $0.attach(relay) }) { relay.end() }
        return self
    }
}

// MARK: - On the main actor

extension SessionTask {
    /// Adds a handler that runs on the main actor. It is skipped after a failure.
    ///
    /// The handler receives the current result, or `nil` if there is none. Later handlers wait
    /// until it returns, without blocking a thread.
    @discardableResult
    public func updateUI(_ handler: @escaping @MainActor @Sendable (_ value: Any?) -> Void) -> Self {
        add(.updateUI(handler))
    }

    /// Adds a handler that runs on the main actor with the error. It is skipped on success.
    ///
    /// Later handlers wait until it returns.
    @discardableResult
    public func updateErrorUI(_ handler: @escaping @MainActor @Sendable (_ error: any Error) -> Void) -> Self {
        add(.updateErrorUI(handler))
    }
}

/// An alias of ``SessionTask`` for the return types of API clients.
public typealias ServiceTask = SessionTask
