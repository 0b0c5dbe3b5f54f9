public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A transport that sends one request and returns one response.
///
/// This protocol is the extension point for custom transports. ``FoundationSession`` is the
/// default, `URLSession` conforms, `MockSession` responds in tests, and a custom session implements
/// one method. A session does not implement rules above the transport: retries, redirects,
/// credentials and deadlines work identically over every session.
///
/// The following session adds a header field to every request and passes the request to another
/// session:
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
    /// Creates a task that sends `request` when it is resumed; nothing happens until then.
    ///
    /// - Parameters:
    ///   - request: The request to send. Use `urlRequest()` if the session can report the error
    ///     that it throws.
    ///   - completion: A closure that the session calls exactly once after the task is resumed, on
    ///     any thread, possibly within `resume()`. It receives the body and the response, or an
    ///     error; after `cancel()`, the error is `URLError.cancelled`. ``SessionTask`` ignores
    ///     calls after the first.
    func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) -> Void
    ) -> any DataTask

    /// The ``Response/source`` of the responses.
    ///
    /// Defaults to ``Response/Source/network``.
    var responseSource: Response.Source { get }

    /// Returns whether the session may add its own credentials, such as a client certificate,
    /// cookies or a password, to a request for a URL.
    ///
    /// A `ResponseCache` without an account then stores nothing. This method is called on any
    /// thread. Defaults to `false`.
    func addsCredentials(to url: URL) -> Bool
}

extension Session {
    /// The source of responses from a server, ``Response/Source/network``.
    public var responseSource: Response.Source { .network }

    /// Returns `false`.
    public func addsCredentials(to url: URL) -> Bool { false }
}

/// One exchange of a ``Session``.
///
/// All members may be called from any thread, in any order, any number of times.
public protocol DataTask: AnyObject, Sendable {
    /// The state of the exchange, initially `.suspended`.
    var state: DataTaskState { get }

    /// Sends the request. This method has no effect if the request was already sent or cancelled.
    func resume()

    /// Holds back a request that has not been sent yet.
    ///
    /// ``SessionTask`` never calls this method: it holds requests back before they reach the
    /// session.
    func suspend()

    /// Cancels the exchange.
    ///
    /// The completion receives `URLError.cancelled` unless a result is about to be delivered.
    func cancel()
}

/// The state of a ``DataTask`` or a ``SessionTask``.
public typealias DataTaskState = URLSessionTask.State

/// The session of services whose session is not set. It can be set once, before it is used.
final class DefaultSession: Sendable {
    private struct State {
        var session: (any Session)?
        /// A Boolean value that indicates whether the session was set or used.
        var isFixed = false
    }

    /// The session of the process.
    static let shared = DefaultSession()

    private let state = Mutex(State())

    /// The session. After the first access, it can no longer be set.
    var session: any Session {
        let session = state.withLock { state in
            state.isFixed = true
            return state.session
        }
        return session ?? FoundationSession.shared
    }

    /// Sets the session.
    ///
    /// - Throws: ``WebServiceError/Code/defaultSessionInUse`` if the session was set or used
    ///   before.
    func set(_ session: any Session) throws(WebServiceError) {
        let wasFixed = state.withLock { state in
            guard !state.isFixed else { return true }
            state = State(session: session, isFixed: true)
            return false
        }
        guard !wasFixed else {
            throw WebServiceError(
                .defaultSessionInUse,
                "the default session can be set only once, and only before the first service is created")
        }
    }
}

extension WebServiceError.Code {
    /// A default session that cannot be set, because it was set or used before; see
    /// ``WebService/setDefaultSession(_:)``.
    public static let defaultSessionInUse = WebServiceError.Code("defaultSessionInUse")
}
