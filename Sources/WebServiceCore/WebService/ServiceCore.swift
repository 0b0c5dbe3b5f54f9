import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The state that a ``WebService`` and its tasks share.
///
/// The Swift task that runs an ``Exchange`` retains the ``SessionTask``, which retains the core but
/// not the handle. Only the ``TypedTask`` of a typed request retains the handle (``TaskOwner``),
/// whose deallocation cancels the typed requests in flight (``RequestRegistry/close()``).
final class ServiceCore: PipelineSource {
    /// The base of every path.
    enum Base: Sendable {
        case none
        case url(BaseURL)
        indirect case invalid(WebServiceError)
    }

    /// The settings of a service.
    struct Configuration: Sendable {
        var session: any Session = DefaultSession.shared.session
        var delegate: DelegateReference?
        var interceptors: [any Interceptor] = []
        var observers: [any Observer] = []
        var cookieJar: CookieJar?
        var errorMapper: (any ErrorMapper)?
        var headers = Headers()
        var headerOrigins: Set<Origin> = []
        var options = Request.Options()
        var decoder: any BodyDecoder = JSONDecoder()
        var encoder: any BodyEncoder & Sendable = JSONEncoder()
        var typed = TypedConfiguration()
        /// The account to which the service belongs.
        var scope: AccountScope?

        fileprivate var stages: Stages {
            Stages(
                session: session, interceptors: interceptors, cookieJar: cookieJar, delegate: delegate,
                observers: observers, scope: scope)
        }
    }

    private struct State: Sendable {
        var configuration: Configuration
        /// The stages of the configuration, created at each change so that a task only takes a
        /// reference.
        var stages: Stages
        /// The header fields that are sent to certain origins only.
        var boundFields: [Request.BoundFields] = []
        var inheritedOptions = Request.Options()
        var inFlight = InFlight()
    }

    let baseURL: URL?
    let base: Base
    let baseOrigin: Origin?
    let urlBuilder: WebService.URLBuilder?
    let clock: TaskClock
    /// The typed requests in progress.
    let registry = RequestRegistry()
    private let state: Mutex<State>

    init(
        baseURLString: String, urlBuilder: WebService.URLBuilder?, clock: TaskClock,
        delegate: DelegateReference?
    ) {
        if baseURLString.isEmpty {
            base = .none
        } else {
            do { base = .url(try BaseURL(baseURLString)) } catch {
                base = .invalid(WebServiceError(error.code, "the base URL cannot be used: \(error.message)"))
            }
        }
        if case .url = base { baseURL = URL(string: baseURLString) } else { baseURL = nil }
        baseOrigin = baseURL.flatMap(Origin.init)
        self.urlBuilder = urlBuilder
        self.clock = clock
        let configuration = Configuration(delegate: delegate)
        state = Mutex(State(configuration: configuration, stages: configuration.stages))
    }

    /// Creates a core with the configuration of another one, after a change, and with an empty
    /// registry.
    init(copying other: ServiceCore, _ change: (inout Configuration) -> Void = { _ in }) {
        (baseURL, base, baseOrigin, urlBuilder) = (other.baseURL, other.base, other.baseOrigin, other.urlBuilder)
        clock = other.clock
        var copy = other.state.withLock { $0 }
        copy.inFlight = InFlight()
        change(&copy.configuration)
        copy.stages = copy.configuration.stages
        state = Mutex(copy)
        enter(copy.configuration.scope)
    }

    /// Returns a core with the same configuration and another session.
    func with(_ session: any Session) -> ServiceCore {
        let core = ServiceCore(copying: self)
        core.configure { $0.session = session }
        return core
    }

    var configuration: Configuration { state.withLock { $0.configuration } }

    var errorMapper: (any ErrorMapper)? { configuration.errorMapper }
    var decoder: any BodyDecoder { state.withLock { $0.configuration.decoder } }
    var encoder: any BodyEncoder & Sendable { state.withLock { $0.configuration.encoder } }

    /// The header fields and options of the requests that the service creates.
    var requestDefaults: (headers: Headers, boundFields: [Request.BoundFields], options: Request.Options) {
        state.withLock { ($0.configuration.headers, $0.boundFields, $0.inheritedOptions) }
    }

    /// Changes the configuration in one step. Replaced values are released outside the lock.
    func configure(_ change: (inout Configuration) -> Void) {
        let replaced = state.withLock { state in
            let replaced = state
            change(&state.configuration)
            state.stages = state.configuration.stages
            let origins = state.configuration.headerOrigins.union([baseOrigin].compactMap(\.self))
            let bound = Request.BoundFields(state.configuration.headers, origins: origins)
            state.boundFields = bound.fields.isEmpty ? [] : [bound]
            state.inheritedOptions = state.configuration.options.inherited
            return replaced
        }
        withExtendedLifetime(replaced) {}
    }

    /// The stages for the current configuration. Their delegate is the one that was set, or else
    /// that of the data source.
    var stages: Stages { supplyingDelegate(state.withLock { $0.stages }) }

    private func supplyingDelegate(_ stages: Stages) -> Stages {
        guard Self.suppliesDelegate, stages.delegateReference?.delegate == nil else { return stages }
        let source = WebService(borrowing: self) as? any ServicePassthroughDataSource
        guard let delegate = source?.servicePassthroughDelegate else { return stages }
        var configuration = configuration
        configuration.delegate = DelegateReference(delegate)
        return configuration.stages
    }

    /// A Boolean value that indicates whether a module conforms `WebService` to the data source. It
    /// does not change while the program runs.
    private static let suppliesDelegate = WebService.self is any ServicePassthroughDataSource.Type
}

/// The work in flight.
extension ServiceCore {
    func begin(_ work: any InFlightWork, isRetained: Bool) throws(WebServiceError) -> Stages {
        let (stages, change) = try state.withLock { state throws(WebServiceError) in
            (state.stages, try state.inFlight.begin(work, isRetained: isRetained))
        }
        change.notify()
        return supplyingDelegate(stages)
    }

    func release(_ task: any InFlightWork, continuedBy stream: any InFlightWork) {
        state.withLock { $0.inFlight.release(task, continuedBy: stream) }
    }

    func end(_ work: ObjectIdentifier) {
        state.withLock { $0.inFlight.end(work) }.notify()
    }

    /// The work in flight, in the order in which it began.
    var workInFlight: [any InFlightWork] { state.withLock { $0.inFlight }.ordered }

    /// Refuses further work.
    func invalidate() {
        state.withLock { $0.inFlight.invalidate() }
    }

    /// - Throws: ``WebServiceError/Code/serviceInvalidated``.
    func checkValid() throws(WebServiceError) {
        try state.withLock { state throws(WebServiceError) in try state.inFlight.checkValid() }
    }

    /// A sequence with an element after each change of the work in flight, and one at the start. A
    /// slow reader receives one element for several changes.
    var changes: AsyncStream<Void> {
        ChangeObservers.changes { [weak self] body in self?.state.withLock { body(&$0.inFlight.observers, ()) } }
    }
}
