public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
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
    public let baseURL: URL?

    /// Makes the URL of each path in place of the rules of ``absoluteURL(_:pathParameters:)``; `nil` for the rules.
    public let urlBuilder: URLBuilder?

    let base: Base
    let clock: TaskClock
    /// Tells the date by which stored answers age.
    let date: @Sendable () -> Date
    /// The typed requests under way.
    let registry: RequestRegistry
    private let shared: Shared
    /// The same service for those who must not keep it alive: typed requests, which end with it. `nil` in the twin itself.
    private let twin: WebService?

    /// What a service and its twin share.
    private final class Shared: Sendable {
        let state: Mutex<State>

        init(_ state: State) {
            self.state = Mutex(state)
        }
    }

    private struct State: Sendable {
        /// Made anew when a part of it is set, so that tasks only have to take it.
        var wire = Wire(session: FoundationSession.shared, interceptors: nil, cookieJar: nil)
        var delegate: DelegateReference?
        var errorMapper: (any ErrorMapper)?
        var typed = TypedConfiguration()
    }

    enum Base: Sendable {
        case none
        case url(BaseURL)
        indirect case invalid(WebServiceError)
    }

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
        if baseURLString.isEmpty {
            base = .none
        } else {
            do { base = .url(try BaseURL(baseURLString)) } catch {
                base = .invalid(WebServiceError(error.code, "the base URL cannot be used: \(error.message)"))
            }
        }
        if case .url = base { baseURL = URL(string: baseURLString) } else { baseURL = nil }
        self.urlBuilder = urlBuilder
        clock = TaskClock(timekeeper)
        self.date = date
        registry = RequestRegistry()
        shared = Shared(State(delegate: passthroughDelegate.map(DelegateReference.init)))
        twin = WebService(baseURL, base, urlBuilder, clock, date, registry, shared, twin: nil)
    }

    private init(
        _ baseURL: URL?, _ base: Base, _ urlBuilder: URLBuilder?, _ clock: TaskClock, _ date: @escaping @Sendable () -> Date,
        _ registry: RequestRegistry, _ shared: Shared, twin: WebService?
    ) {
        self.baseURL = baseURL
        self.base = base
        self.urlBuilder = urlBuilder
        self.clock = clock
        self.date = date
        self.registry = registry
        self.shared = shared
        self.twin = twin
    }

    deinit {
        if twin != nil { registry.close() }
    }

    /// Makes a service with everything that this one has now, and with typed requests of its own: it neither finds nor cancels those of this one. Both
    /// share their storages and what is in them. What is set later on one is not set on the other.
    public func clone() -> WebService {
        let registry = RequestRegistry()
        let shared = Shared(self.shared.state.withLock { $0 })
        let twin = WebService(baseURL, base, urlBuilder, clock, date, registry, shared, twin: nil)
        return WebService(baseURL, base, urlBuilder, clock, date, registry, shared, twin: twin)
    }

    /// What typed requests hold: the service as it is, without keeping it alive.
    var performing: WebService { twin ?? self }

    /// ``baseURL`` as text; empty when there is none.
    public var baseURLString: String { baseURL?.absoluteString ?? "" }

    /// What sends the requests. Tasks ask for it when they are resumed. ``FoundationSession/shared`` unless set.
    public var session: any Session {
        get { shared.state.withLock { $0.wire }.session }
        set { replaceWire { Wire(session: newValue, interceptors: $0.interceptors, cookieJar: $0.cookieJar) } }
    }

    /// Sees what passes through the service. Held weakly: keep it alive yourself. Tasks ask for it when they are resumed, and hold it
    /// weakly as well.
    public var passthroughDelegate: (any ServicePassthroughDelegate)? {
        get { wireAndDelegate.delegate }
        set { change { $0.delegate = newValue.map(DelegateReference.init) } }
    }

    /// What wraps the sending of every request, the first one outermost. Tasks ask for them when they are resumed. With none, nothing is in the way:
    /// no Swift task is made.
    public var interceptors: [any Interceptor] {
        get { shared.state.withLock { $0.wire }.interceptors ?? [] }
        set {
            let interceptors = newValue.isEmpty ? nil : newValue
            replaceWire { Wire(session: $0.session, interceptors: interceptors, cookieJar: $0.cookieJar) }
        }
    }

    /// Turns answers that are failures into errors of your own; `nil`, the default, for none. Asked when such an answer is there.
    public var errorMapper: (any ErrorMapper)? {
        get { shared.state.withLock { $0.errorMapper } }
        set { change { $0.errorMapper = newValue } }
    }

    /// Where cookies are kept and taken from; `nil`, the default, for no cookies. Requests whose ``Request/shouldHandleCookies`` is `false` neither
    /// send nor store any. Tasks ask for it when they are resumed.
    public var cookieJar: CookieJar? {
        get { shared.state.withLock { $0.wire }.cookieJar }
        set { replaceWire { Wire(session: $0.session, interceptors: $0.interceptors, cookieJar: newValue) } }
    }

    private func replaceWire(_ make: (Wire) -> Wire) {
        change { $0.wire = make($0.wire) }
    }

    /// What is replaced is freed outside the lock.
    private func change(_ change: (inout State) -> Void) {
        let old = shared.state.withLock { state in
            defer { change(&state) }
            return state
        }
        withExtendedLifetime(old) {}
    }

    /// What typed requests are performed with.
    var typed: TypedConfiguration { shared.state.withLock { $0.typed } }

    /// Changes it in one step.
    func changeTyped(_ change: (inout TypedConfiguration) -> Void) {
        self.change { change(&$0.typed) }
    }

    /// What one exchange needs of the service, read in one step. The delegate is the one given to the service, or else that of the data source.
    var wireAndDelegate: (wire: Wire, delegate: (any ServicePassthroughDelegate)?) {
        let (wire, reference) = shared.state.withLock { ($0.wire, $0.delegate) }
        let delegate = reference?.delegate
        guard delegate == nil, Self.suppliesDelegate else { return (wire, delegate) }
        return (wire, (self as? any ServicePassthroughDataSource)?.servicePassthroughDelegate)
    }

    /// Whether some module conforms `WebService` to the data source. A fact of the program, so it is asked for once.
    private static let suppliesDelegate = WebService.self is any ServicePassthroughDataSource.Type
}
