public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// What moves bytes: it sends one request and hands back one answer. The extension point for transports.
///
/// ``FoundationSession`` is the default, `URLSession` conforms, `MockSession` answers in tests, and a type of your own needs one method.
/// Rules above the wire are not its business: retries, redirects, credentials and time budgets work the same over every session.
///
/// A session that adds a header to everything and leaves the sending to another one:
/// ```swift
/// struct TaggingSession: Session {
///     let inner: any Session
///     func dataTask(
///         request: any URLRequestEncodable,
///         completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
///     ) -> any DataTask {
///         var request = request.urlRequestValue
///         request.setValue("beta", forHTTPHeaderField: "X-Channel")
///         return inner.dataTask(request: request, completion: completion)
///     }
/// }
/// ```
public protocol Session: Sendable {
    /// Makes a task that sends `request` once it is resumed; until then nothing happens.
    ///
    /// - Parameters:
    ///   - request: What to send. Use `urlRequest()` where you can report the error it throws.
    ///   - completion: To be called exactly once after the task was resumed, on any thread, also from inside `resume()`: with the body and the
    ///     response, or with an error; after `cancel()` with `URLError.cancelled`. Calls after the first are ignored by ``SessionTask``.
    func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) -> Void
    ) -> any DataTask

    /// Where its answers come from, as ``Response/source`` tells it; those of a ``ResponseSession`` say it themselves. Left out, it is
    /// ``Response/Source/network``.
    var responseSource: Response.Source { get }
}

extension Session {
    /// The network.
    public var responseSource: Response.Source { .network }
}

/// One exchange that a ``Session`` runs. All members may be called from any thread, in any order, any number of times.
public protocol DataTask: AnyObject, Sendable {
    /// Where the exchange stands. Tasks begin as `.suspended`.
    var state: DataTaskState { get }

    /// Sends the request; harmless when it was sent already or cancelled.
    func resume()

    /// Holds back a request that was not sent yet. ``SessionTask`` never calls this: it suspends above the session.
    func suspend()

    /// Ends the exchange; the completion gets `URLError.cancelled` unless an outcome was on its way.
    func cancel()
}

/// Where a ``DataTask`` or a ``SessionTask`` stands.
public typealias DataTaskState = URLSessionTask.State
