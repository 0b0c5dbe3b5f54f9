public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// An observer of requests and responses that can change requests and reject responses.
///
/// Typical uses are logging, metrics and signing. Every method has a default implementation that
/// has no effect. Methods are called on any thread (those for UI handlers on the main actor),
/// concurrently for several tasks. A slow method delays only its own task. A service holds its
/// delegate weakly.
public protocol ServicePassthroughDelegate: AnyObject, Sendable {
    /// Called before a request is sent, once for each attempt, with the request as it is sent.
    func requestSent(request: URLRequest)

    /// Called with the response to a request or its error, once for each ``requestSent(request:)``.
    func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?)

    /// Returns the request to send instead, or `nil` to send it unchanged, which is the default.
    ///
    /// The returned request is validated like any other. Also called for requests that follow
    /// redirects, including those to other origins: check the URL before adding credentials.
    /// ``Authentication`` does this automatically.
    func modifiedRequest(request: URLRequest) -> URLRequest?

    /// Rejects a response by throwing, before any handler receives it.
    ///
    /// Not called after a transport error.
    func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws

    /// Called when a handler, a step of a typed task or the validation of a response fails.
    ///
    /// Called once for the first cause of each failure, never for transport errors. For the
    /// validation, see ``validateResponse(response:data:error:)``.
    func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?)

    /// Called before a main-queue handler runs.
    @MainActor func updateUIBegin(response: URLResponse?)

    /// Called after a main-queue handler has returned.
    @MainActor func updateUIEnd(response: URLResponse?)

    /// Called after all handlers that were added before the result have run, once for each task.
    func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest?, response: URLResponse?, error: (any Error)?)
}

extension ServicePassthroughDelegate {
    /// Has no effect.
    public func requestSent(request: URLRequest) {}
    /// Has no effect.
    public func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {}
    /// Returns `nil`.
    public func modifiedRequest(request: URLRequest) -> URLRequest? { nil }
    /// Accepts every response.
    public func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws {}
    /// Has no effect.
    public func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?) {}
    /// Has no effect.
    @MainActor public func updateUIBegin(response: URLResponse?) {}
    /// Has no effect.
    @MainActor public func updateUIEnd(response: URLResponse?) {}
    /// Has no effect.
    public func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest?, response: URLResponse?, error: (any Error)?
    ) {}
}

/// Provides the delegate of all services. Conform ``WebService`` to this protocol in an extension.
///
/// ```swift
/// let logger = RequestLogger()
/// extension WebService: @retroactive ServicePassthroughDataSource {
///     public var servicePassthroughDelegate: any ServicePassthroughDelegate { logger }
/// }
/// ```
/// The delegate of an individual service takes precedence.
public protocol ServicePassthroughDataSource {
    /// The delegate. Read each time a task is resumed.
    var servicePassthroughDelegate: any ServicePassthroughDelegate { get }
}
