public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A delegate of the requests and responses of a service, which can change requests and reject
/// responses.
///
/// Every method except ``modifiedRequest(request:)`` and
/// ``validateResponse(response:data:error:)`` is required, so that a method with a wrong signature
/// is a compile error. An ``Observer`` receives more events and is retained by the service; use a
/// delegate to sign requests or to validate responses.
///
/// Methods are called on any thread (those for UI handlers on the main actor), concurrently for
/// several tasks; `Documentation/Concurrency.md` lists the threads. A slow method delays only its
/// own task. A service holds its delegate weakly. In each method, ``currentRequest`` is the request
/// of the exchange.
public protocol ServicePassthroughDelegate: AnyObject, Sendable {
    /// Called before each attempt, with the request as it is sent.
    func requestSent(request: URLRequest)

    /// Called after each attempt with its response or its error, once for each
    /// ``requestSent(request:)``.
    func responseReceived(response: URLResponse?, data: Data?, request: URLRequest?, error: (any Error)?)

    /// Returns the request to send instead of an attempt's request, or `nil` to send it unchanged,
    /// which is the default.
    ///
    /// The returned request is validated like any other. Observers, limits and redirects apply to
    /// it, and a redirect to the same origin retains its header fields. If its URL differs, it has
    /// the cookies of that URL. If its origin differs, it has neither the fields of
    /// ``WebService/headers`` nor the credential of an ``Authentication``, unless they name that
    /// origin.
    ///
    /// Also called for requests that follow redirects, including those to other origins: check the
    /// URL before adding credentials. ``Authentication`` does this automatically.
    func modifiedRequest(request: URLRequest) -> URLRequest?

    /// Validates the result of the exchange before any handler receives it, and throws an error to
    /// reject it. By default, every result is accepted.
    ///
    /// Called once for each task that has started, with the response or with the error: a transport
    /// error, a cancellation, or another error of the exchange. The thrown error replaces that
    /// result.
    func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws

    /// Called when a handler, a step of a typed task or the validation of a response fails.
    ///
    /// Called once for the first cause of each failure, and never for an error of the exchange that
    /// the validation accepts.
    func serviceResultFailure(response: URLResponse?, data: Data?, request: URLRequest?, error: any Error)

    /// Called before a main-queue handler runs.
    @MainActor func updateUIBegin(response: URLResponse?)

    /// Called after a main-queue handler has returned.
    @MainActor func updateUIEnd(response: URLResponse?)

    /// Called after all handlers that were added before the result have run, once for each task.
    ///
    /// - Parameters:
    ///   - metrics: The metrics of the task.
    ///   - request: The request that was sent last, or that of the task if none was sent.
    ///   - response: The response; `nil` if none was received.
    ///   - data: The body; `nil` after an error.
    ///   - error: The error of the exchange; `nil` if it has a response.
    func didFinishCollectingTaskMetrics(
        metrics: ServiceTaskMetrics, request: URLRequest, response: URLResponse?, data: Data?, error: (any Error)?)
}

extension ServicePassthroughDelegate {
    /// Returns `nil`.
    public func modifiedRequest(request: URLRequest) -> URLRequest? { nil }
    /// Accepts every result.
    public func validateResponse(response: URLResponse?, data: Data?, error: (any Error)?) throws {}

    /// The request of the exchange for which a method of the delegate is called, with its options
    /// and tags.
    ///
    /// `nil` in any other code, and for a `URLRequest` that is sent through a service used as a
    /// session.
    public var currentRequest: Request? { DelegateCall.request }
}

/// The request of the exchange for which a method of the delegate is called.
enum DelegateCall {
    @TaskLocal static var request: Request?
}

/// A type that provides the delegate of all services.
///
/// Conform ``WebService`` to this protocol in an extension.
///
/// ```swift
/// let counter = RequestCounter()
/// extension WebService: @retroactive ServicePassthroughDataSource {
///     public var servicePassthroughDelegate: any ServicePassthroughDelegate { counter }
/// }
/// ```
/// The delegate of an individual service takes precedence.
public protocol ServicePassthroughDataSource {
    /// The delegate. Read each time a task is resumed.
    var servicePassthroughDelegate: any ServicePassthroughDelegate { get }
}
