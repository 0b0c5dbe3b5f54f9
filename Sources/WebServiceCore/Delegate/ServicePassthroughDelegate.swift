public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// Sees what passes through a ``WebService``, and may change requests and reject responses: for logging, measuring, signing.
///
/// Every hook has a default that does nothing. Hooks are called on any thread, the two around UI handlers on the main actor; several
/// tasks may call at the same time. A slow hook delays its own task only. A service holds its delegate weakly.
public protocol ServicePassthroughDelegate: AnyObject, Sendable {
    /// A message is about to go on the wire: once for each attempt, with the request as it is sent.
    func requestSent(request: URLRequest)

    /// The answer to one message, or the error in its place: once for each ``requestSent(request:)``.
    func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?)

    /// May rewrite a message before it is sent. `nil`, the default, leaves it as it is. What is returned is checked like any request.
    ///
    /// Messages that follow redirects come here too, also those to other origins: whoever adds credentials here has to look at the URL first.
    /// ``Authentication`` does that by itself.
    func modifiedRequest(request: URLRequest) -> URLRequest?

    /// May reject a response by throwing, before any handler sees it. Not called when the transport failed.
    func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws

    /// A handler, a step of a typed task or ``validateResponse(response:data:error:)`` failed: once for the first cause of each failure, never for transport errors.
    func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?)

    /// A main-queue handler is about to run.
    @MainActor func updateUIBegin(response: URLResponse?)

    /// A main-queue handler has returned.
    @MainActor func updateUIEnd(response: URLResponse?)

    /// All handlers that were added before the outcome have run: once for each task.
    func didFinishCollectingTaskMetrics(metrics: ServiceTaskMetrics, request: URLRequest?, response: URLResponse?, error: (any Error)?)
}

extension ServicePassthroughDelegate {
    /// Does nothing.
    public func requestSent(request: URLRequest) {}
    /// Does nothing.
    public func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {}
    /// Leaves the request as it is.
    public func modifiedRequest(request: URLRequest) -> URLRequest? { nil }
    /// Accepts every response.
    public func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws {}
    /// Does nothing.
    public func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {}
    /// Does nothing.
    @MainActor public func updateUIBegin(response: URLResponse?) {}
    /// Does nothing.
    @MainActor public func updateUIEnd(response: URLResponse?) {}
    /// Does nothing.
    public func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest?, response: URLResponse?, error: (any Error)?
    ) {}
}

/// Supplies the delegate of every service at once: conform ``WebService`` to it in an extension.
///
/// ```swift
/// let logger = RequestLogger()
/// extension WebService: @retroactive ServicePassthroughDataSource {
///     public var servicePassthroughDelegate: any ServicePassthroughDelegate { logger }
/// }
/// ```
/// A delegate given to a service itself comes first.
public protocol ServicePassthroughDataSource {
    /// The delegate; asked for each time a task is resumed.
    var servicePassthroughDelegate: any ServicePassthroughDelegate { get }
}
