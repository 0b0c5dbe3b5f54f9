public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A web API: its base URL, and the configuration that its requests share. Extend it to build an
/// API client.
///
/// ```swift
/// let service = WebService(baseURLString: "https://brewhapi.example.com/v1")
/// service.GET("/brewers")
///     .responseJSON { json, response in .value(try brewers(from: json)) }
///     .updateUI { value in show(value) }
///     .updateErrorUI { error in show(error) }
///     .resume()
/// ```
/// A `WebService` creates ``Request`` values, which perform no I/O. A ``SessionTask`` sends its
/// request once, when it is resumed, through the stages of an exchange (`Exchange.swift`) and over
/// a ``Session``, and passes the response through its handlers in order. The delegate is notified
/// of every request that is sent and of its response.
///
/// All members may be used from any thread. A ``SessionTask`` retains the configuration of its
/// service but not the service, and continues when the service is deallocated. The ``TypedTask`` of
/// a typed request also retains the service until the request has a result. If the typed task and
/// the service are both deallocated before that, the request ends with `URLError.cancelled`
/// (`ServiceCore.swift`).
public final class WebService: Sendable {
    /// The URL to which paths are appended. The value is `nil` if there is none, or if the URL
    /// cannot be used, in which case the requests that the service creates fail unless there is a
    /// ``urlBuilder``.
    public var baseURL: URL? { core.baseURL }

    /// The closure that creates the URL of each path; `nil` to apply the rules of
    /// ``absoluteURL(_:pathParameters:)``.
    public var urlBuilder: URLBuilder? { core.urlBuilder }

    package let core: ServiceCore
    /// Whether the typed requests in flight end when this handle is deallocated.
    private let isOwner: Bool

    /// A closure that creates a URL from the base URL and a path. The placeholders in the path have
    /// not been replaced. The result is validated like any absolute URL.
    public typealias URLBuilder = @Sendable (_ baseURL: URL?, _ path: String) throws -> URL

    /// Creates a service. If the URL cannot be used and there is no `urlBuilder`, the requests that
    /// the service creates fail.
    ///
    /// - Parameters:
    ///   - baseURL: An absolute http or https URL without user information; `nil` if every path is
    ///     an absolute URL.
    ///   - passthroughDelegate: See ``passthroughDelegate``. Defaults to `nil`.
    ///   - urlBuilder: See ``urlBuilder``. Defaults to `nil`.
    ///   - clock: See ``clock``. Defaults to `nil`, the system clock.
    public convenience init(
        baseURL: URL?, passthroughDelegate: (any ServicePassthroughDelegate)? = nil, urlBuilder: URLBuilder? = nil,
        clock: (any Clock<Duration>)? = nil
    ) {
        self.init(
            baseURLString: baseURL?.absoluteString ?? "", passthroughDelegate: passthroughDelegate,
            urlBuilder: urlBuilder, clock: clock)
    }

    /// Creates a service. If the URL cannot be used and there is no `urlBuilder`, the requests that
    /// the service creates fail.
    ///
    /// - Parameters:
    ///   - baseURLString: An absolute http or https URL without user information; empty if every
    ///     path is an absolute URL.
    ///   - passthroughDelegate: See ``passthroughDelegate``. Defaults to `nil`.
    ///   - urlBuilder: See ``urlBuilder``. Defaults to `nil`.
    ///   - clock: See ``clock``. Defaults to `nil`, the system clock.
    public convenience init(
        baseURLString: String, passthroughDelegate: (any ServicePassthroughDelegate)? = nil,
        urlBuilder: URLBuilder? = nil, clock: (any Clock<Duration>)? = nil
    ) {
        self.init(
            baseURLString: baseURLString, delegate: passthroughDelegate, urlBuilder: urlBuilder,
            taskClock: TaskClock(standard: clock))
    }

    package convenience init(
        baseURLString: String, passthroughDelegate: (any ServicePassthroughDelegate)?, urlBuilder: URLBuilder? = nil,
        timekeeper: (any Timekeeper)?
    ) {
        self.init(
            baseURLString: baseURLString, delegate: passthroughDelegate, urlBuilder: urlBuilder,
            taskClock: TaskClock(timekeeper))
    }

    private init(
        baseURLString: String, delegate: (any ServicePassthroughDelegate)?, urlBuilder: URLBuilder?,
        taskClock: TaskClock
    ) {
        core = ServiceCore(
            baseURLString: baseURLString, urlBuilder: urlBuilder, clock: taskClock,
            delegate: delegate.map(DelegateReference.init))
        isOwner = true
    }

    init(owning core: ServiceCore) {
        self.core = core
        isOwner = true
    }

    /// Creates a handle that does not own the core, for code that runs on behalf of a typed
    /// request. Such a request ends with the service and must not retain it.
    package init(borrowing core: ServiceCore) {
        self.core = core
        isOwner = false
    }

    deinit {
        if isOwner { for part in core.parts.values { part.close() } }
    }

    /// Returns a service with the current configuration of this one and with an empty registry of
    /// typed requests.
    ///
    /// Both services share their storages, including the stored responses. A later configuration
    /// change in one of them does not affect the other.
    public func clone() -> WebService { clone { _ in } }

    func clone(_ change: (inout Setup.Settings) -> Void) -> WebService {
        WebService(owning: ServiceCore(copying: core, change))
    }

    /// The base URL as a string; empty if there is none.
    public var baseURLString: String { baseURL?.absoluteString ?? "" }

    /// The service's clock. Custom code can also use it to measure durations and to wait.
    ///
    /// ```swift
    /// try await service.clock.sleep(for: .seconds(30))
    /// ```
    /// This is the clock with which the service was created, by default a `SuspendingClock`. It
    /// measures deadlines, the pauses of retries and event reconnection, rate limits, the age of
    /// stored and cached data, and the expiry of tokens and cookies. The idle timeouts of sessions
    /// do not follow this clock, except those of a `MockSession` with the same `TestClock`.
    ///
    /// The date of a `SuspendingClock` or a `ContinuousClock` is that of the system, and a
    /// `TestClock` has its own date. The date of any other clock is the date at which the service
    /// was created, plus the duration that has passed on the clock since then. The clock's `now`
    /// may be read on any thread.
    public var clock: any Clock<Duration> { core.clock.standard }

    /// The current date on the service's ``clock``.
    ///
    /// Compute expiry dates from this date, so that tests can control them with a `TestClock`.
    public var date: Date { core.clock.date }

    /// The session that sends the requests. Tasks read this property when they are resumed.
    /// Defaults to ``defaultSession``.
    public var session: any Session {
        get { core.settings.session }
        set { core.configure { $0.session = newValue } }
    }

    /// The delegate, which is notified of requests, responses and failures. The service and its
    /// tasks have only weak references to the delegate, except while an attempt is in flight. Tasks
    /// read this property when they are resumed.
    public var passthroughDelegate: (any ServicePassthroughDelegate)? {
        get { core.setup.delegate }
        set { core.configure { $0.delegate = newValue.map(DelegateReference.init) } }
    }

    /// The interceptors of every request, the first one outermost. Tasks read this property when
    /// they are resumed. Defaults to none.
    ///
    /// ``Interceptor/headers(_:origins:)`` also adds header fields to requests that were created
    /// elsewhere.
    public var interceptors: [any Interceptor] {
        get { core.settings.interceptors }
        set { core.configure { $0.interceptors = newValue } }
    }

    /// The observers of the exchanges, which the service retains.
    ///
    /// Each event is delivered to the observers in the order of the array. Tasks read this property
    /// when they are resumed. Defaults to none. A request for which the service is used as a
    /// ``Session`` produces no events.
    public var observers: [any Observer] {
        get { core.settings.observers }
        set { core.configure { $0.observers = newValue } }
    }

    /// The mapper that converts unacceptable responses into custom errors. Defaults to `nil`.
    public var errorMapper: (any ErrorMapper)? {
        get { core.errorMapper }
        set { core.configure { $0.errorMapper = newValue } }
    }

    /// The jar of the cookies that requests send and responses set. A request whose
    /// ``Request/Options/shouldHandleCookies`` is `false` does not use the jar. A task reads this
    /// property when it is resumed. Defaults to `nil`, in which case the service sends and stores
    /// no cookies.
    public var cookieJar: CookieJar? {
        get { core.settings.cookieJar }
        set { core.configure { $0.cookieJar = newValue } }
    }
}

/// A service can be used as a session, in which case its delegate is notified of each request. No
/// other stage of an exchange applies.
extension WebService: Session {
    /// The source of the responses of the service's session.
    public var responseSource: Response.Source { session.responseSource }

    /// Returns whether the service's session may add credentials to a request for a URL.
    public func addsCredentials(to url: URL) -> Bool { session.addsCredentials(to: url) }

    /// Returns a data task that sends the request over the service's session when it is resumed.
    ///
    /// The task of a request that cannot be encoded completes with the error when it is resumed. A
    /// task that is created after ``invalidate()`` completes in the same way, with the error
    /// ``WebServiceError/Code/serviceInvalidated``.
    public func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        let (setup, original) = (core.setup, request as? EncodedRequest)
        let session = setup.session
        do {
            try core.checkValid()
            guard let delegate = setup.delegate else {
                return session.dataTask(request: request, completion: completion)
            }
            var (request, urlRequest) = (request, try request.urlRequest())
            if let replacement = delegate.replacement(for: urlRequest, source: original?.source) {
                let encoded = try replacement.encode()
                (request, urlRequest) = (encoded, encoded.urlRequestValue)
            }
            return Announcement(delegate, urlRequest, original?.source).announcing { [request] didReceive in
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

/// A data task without a request, which completes with an error when it is resumed or cancelled.
private final class FailedDataTask: DataTask {
    private let isComplete = OnceFlag()
    private let completion: @Sendable () -> Void

    init(_ completion: @escaping @Sendable () -> Void) {
        self.completion = completion
    }

    var state: DataTaskState { isComplete.isSet ? .completed : .suspended }
    func resume() { if isComplete.set() { completion() } }
    func suspend() {}
    func cancel() { resume() }
}

/// The delegate of the data source.
extension ServiceCore {
    /// Returns the setup with the delegate of the data source, if there is no other delegate.
    func supplyingDelegate(_ setup: Setup) -> Setup {
        guard suppliesDelegate, setup.delegate == nil else { return setup }
        let source = WebService(borrowing: self) as? any ServicePassthroughDataSource
        guard let delegate = source?.servicePassthroughDelegate else { return setup }
        return setup.with { $0.delegate = DelegateReference(delegate) }
    }

    /// Whether a module conforms `WebService` to the data source. This does not change while the
    /// program runs.
    static let hasDataSource = WebService.self is any ServicePassthroughDataSource.Type
}
