public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A web API: its base URL, and the session and delegate that its requests use. Extend it to build an API client.
///
/// ```swift
/// let service = WebService(baseURLString: "https://brewhapi.example.com/v1")
/// service.GET("/brewers")
///     .responseJSON { json, response in .value(try brewers(from: json)) }
///     .updateUI { value in show(value) }
///     .updateErrorUI { error in show(error) }
///     .resume()
/// ```
/// The journey: a `WebService` makes a ``Request``, a value without any I/O. A ``SessionTask`` sends it once, when it is resumed, through a
/// ``Session``, and pushes `(Data?, URLResponse?, Error?)` through its handlers in order, to a value or an error; the delegate sees every
/// message on the wire. `WebService+Pipeline.swift` shows all stages in one function.
///
/// All members may be used from any thread. A task holds its service until it is complete; one for a typed request does not.
public final class WebService: Sendable {
    /// The URL that every path is below; `nil` when there is none, or when it is no absolute http or https URL, which each request then tells.
    public var baseURL: URL? { core.baseURL }

    /// Makes the URL of each path in place of the rules of ``absoluteURL(_:pathParameters:)``; `nil` for the rules.
    public var urlBuilder: URLBuilder? { core.urlBuilder }

    let core: ServiceCore
    /// Whether the typed requests in progress end when this handle is deallocated.
    private let isOwner: Bool

    /// Makes the URL of a path in a way of your own. It gets the base URL and the path as it was given, placeholders replaced by nobody. What it
    /// returns is checked like any absolute URL.
    public typealias URLBuilder = @Sendable (_ baseURL: URL?, _ path: String) throws -> URL

    /// Makes a service. Nothing is checked here: a URL that cannot be used is the error of each task.
    ///
    /// - Parameters:
    ///   - baseURL: An absolute http or https URL without user information; `nil` when every path is an absolute URL.
    ///   - passthroughDelegate: See ``passthroughDelegate``.
    ///   - urlBuilder: See ``urlBuilder``.
    public convenience init(
        baseURL: URL?, passthroughDelegate: (any ServicePassthroughDelegate)? = nil, urlBuilder: URLBuilder? = nil
    ) {
        self.init(baseURLString: baseURL?.absoluteString ?? "", passthroughDelegate: passthroughDelegate, urlBuilder: urlBuilder)
    }

    /// Makes a service. Nothing is checked here: a URL that cannot be used is the error of each task.
    ///
    /// - Parameters:
    ///   - baseURLString: An absolute http or https URL without user information; empty when every path is an absolute URL.
    ///   - passthroughDelegate: See ``passthroughDelegate``.
    ///   - urlBuilder: See ``urlBuilder``.
    public convenience init(
        baseURLString: String, passthroughDelegate: (any ServicePassthroughDelegate)? = nil, urlBuilder: URLBuilder? = nil
    ) {
        self.init(
            baseURLString: baseURLString, passthroughDelegate: passthroughDelegate, urlBuilder: urlBuilder, timekeeper: nil
        )
    }

    package init(
        baseURLString: String, passthroughDelegate: (any ServicePassthroughDelegate)?, urlBuilder: URLBuilder? = nil,
        timekeeper: (any Timekeeper)?, date: @escaping @Sendable () -> Date = { Date() }
    ) {
        core = ServiceCore(
            baseURLString: baseURLString, urlBuilder: urlBuilder, clock: TaskClock(timekeeper), date: date,
            delegate: passthroughDelegate.map(DelegateReference.init))
        isOwner = true
    }

    private init(owning core: ServiceCore) {
        self.core = core
        isOwner = true
    }

    /// Creates a handle for code that runs on behalf of a typed request, which ends with the service and must not keep it alive.
    init(borrowing core: ServiceCore) {
        self.core = core
        isOwner = false
    }

    deinit {
        if isOwner { core.registry.close() }
    }

    /// Makes a service with everything that this one has now, and with typed requests of its own: it neither finds nor cancels those of this one. Both
    /// share their storages and what is in them. What is set later on one is not set on the other.
    public func clone() -> WebService {
        WebService(owning: ServiceCore(copying: core))
    }

    /// ``baseURL`` as text; empty when there is none.
    public var baseURLString: String { baseURL?.absoluteString ?? "" }

    /// What sends the requests. Tasks ask for it when they are resumed. ``FoundationSession/shared`` unless set.
    public var session: any Session {
        get { core.configuration.session }
        set { core.configure { $0.session = newValue } }
    }

    /// Sees what passes through the service. Held weakly: keep it alive yourself. Tasks ask for it when they are resumed, and hold it
    /// weakly as well.
    public var passthroughDelegate: (any ServicePassthroughDelegate)? {
        get { core.pipeline.delegateReference?.delegate }
        set { core.configure { $0.delegate = newValue.map(DelegateReference.init) } }
    }

    /// What wraps the sending of every request, the first one outermost. Tasks ask for them when they are resumed. With none, nothing is in the way:
    /// no Swift task is made.
    public var interceptors: [any Interceptor] {
        get { core.configuration.interceptors }
        set { core.configure { $0.interceptors = newValue } }
    }

    /// Turns answers that are failures into errors of your own; `nil`, the default, for none. Asked when such an answer is there.
    public var errorMapper: (any ErrorMapper)? {
        get { core.errorMapper }
        set { core.configure { $0.errorMapper = newValue } }
    }

    /// Where cookies are kept and taken from; `nil`, the default, for no cookies. Requests whose ``Request/shouldHandleCookies`` is `false` neither
    /// send nor store any. Tasks ask for it when they are resumed.
    public var cookieJar: CookieJar? {
        get { core.configuration.cookieJar }
        set { core.configure { $0.cookieJar = newValue } }
    }

    /// The configuration of typed requests.
    var typed: TypedConfiguration { core.configuration.typed }

    /// Changes the configuration of typed requests in one step.
    func changeTyped(_ change: (inout TypedConfiguration) -> Void) {
        core.configure { change(&$0.typed) }
    }
}

/// A service is a session itself, so that its delegate sees any request sent through it. No other stage of the pipeline applies.
extension WebService: Session {
    /// Where the answers of its session come from.
    public var responseSource: Response.Source { session.responseSource }

    /// Makes a task that sends the request through the service's delegate and session once it is resumed. A request that cannot be
    /// encoded completes with its error, on the thread that resumes.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        let pipeline = core.pipeline
        let session = pipeline.session.session
        guard let delegate = pipeline.delegateReference?.delegate else { return session.dataTask(request: request, completion: completion) }
        do {
            return try DelegateStage(delegate: delegate).dataTask(for: request) { request, didReceive in
                session.dataTask(request: request) { data, response, error in
                    didReceive(data, response, error)
                    completion(data, response, error)
                }
            }
        } catch {
            return FailedDataTask { completion(nil, nil, error) }
        }
    }
}

/// A data task without a request: it completes with the error when it is resumed or cancelled.
private final class FailedDataTask: DataTask {
    private let completion: Mutex<(@Sendable () -> Void)?>

    init(_ completion: @escaping @Sendable () -> Void) {
        self.completion = Mutex(completion)
    }

    var state: DataTaskState { completion.withLock { $0 == nil } ? .completed : .suspended }
    func resume() { completion.withLock { $0.take() }?() }
    func suspend() {}
    func cancel() { resume() }
}
