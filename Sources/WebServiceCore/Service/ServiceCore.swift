import Foundation
import Synchronization

/// The state that a ``WebService`` and its tasks share.
///
/// The Swift task that runs an ``Exchange`` retains the ``SessionTask``, which retains the core but
/// not the handle (the ``WebService``). Only the ``TypedTask`` of a typed request retains the
/// handle (``TaskOwner``). Deallocating the handle cancels the typed requests in flight
/// (``ServicePart/close()``).
package final class ServiceCore: Sendable {
    /// The base of every path.
    enum Base: Sendable {
        case none
        case url(BaseURL)
        indirect case invalid(WebServiceError)
    }

    private struct State: Sendable {
        var setup: Setup
        var inFlight = InFlight()
        var parts: [ObjectIdentifier: any ServicePart] = [:]
    }

    let baseURL: URL?
    let base: Base
    let baseOrigin: Origin?
    /// See `WebService.urlBuilder`.
    let urlBuilder: (@Sendable (URL?, String) throws -> URL)?
    package let clock: TaskClock
    /// Whether the data source may supply the delegate.
    let suppliesDelegate: Bool
    private let state: Mutex<State>
    /// The number of tasks that run custom handlers.
    private let runningHandlers = Atomic(0)
    private let isFinishing = Atomic(false)

    init(
        baseURLString: String, urlBuilder: (@Sendable (URL?, String) throws -> URL)?, clock: TaskClock,
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
        suppliesDelegate = Self.hasDataSource
        state = Mutex(State(setup: Setup(Setup.Settings(delegate: delegate), baseOrigin: baseOrigin)))
    }

    /// Creates a core without a base URL, for tasks that send no requests.
    init(_ clock: TaskClock) {
        (baseURL, base, baseOrigin, urlBuilder) = (nil, .none, nil, nil)
        self.clock = clock
        suppliesDelegate = false
        state = Mutex(State(setup: Setup(Setup.Settings(session: FoundationSession.shared))))
    }

    /// Creates a core with the settings of another one, after a change, and with an empty registry.
    ///
    /// - Parameter suppliesDelegate: Defaults to `nil`: the value of the other core.
    init(
        copying other: ServiceCore, suppliesDelegate: Bool? = nil, _ change: (inout Setup.Settings) -> Void = { _ in }
    ) {
        (baseURL, base, baseOrigin, urlBuilder) = (other.baseURL, other.base, other.baseOrigin, other.urlBuilder)
        (clock, self.suppliesDelegate) = (other.clock, suppliesDelegate ?? other.suppliesDelegate)
        var settings = other.settings
        change(&settings)
        let isOfOtherAccount = settings.scope !== other.settings.scope
        let parts = other.parts.mapValues { $0.copy(forOtherAccount: isOfOtherAccount) }
        state = Mutex(State(setup: Setup(settings, baseOrigin: baseOrigin), parts: parts))
        enter(settings.scope)
    }

    var settings: Setup.Settings { state.withLock { $0.setup }.settings }

    package var errorMapper: (any ErrorMapper)? { settings.errorMapper }
    package var decoder: any BodyDecoder { state.withLock { $0.setup }.settings.decoder }
    package var encoder: any BodyEncoder & Sendable { state.withLock { $0.setup }.settings.encoder }

    /// The header fields and options of the requests that the service creates.
    var requestDefaults: (headers: Headers, boundFields: [Request.BoundFields], options: Request.Options) {
        let setup = state.withLock { $0.setup }
        return (setup.settings.headers, setup.boundFields, setup.inheritedOptions)
    }

    /// Changes the configuration in one step. Replaced values are released outside the lock.
    func configure(_ change: (inout Setup.Settings) -> Void) {
        let replaced = state.withLock { state in
            let replaced = state.setup
            var settings = replaced.settings
            change(&settings)
            state.setup = Setup(settings, baseOrigin: baseOrigin)
            return replaced
        }
        withExtendedLifetime(replaced) {}
    }

    /// The current setup. Its delegate is the one that was set or, if none was set, the one that
    /// the data source supplies.
    package var setup: Setup { supplyingDelegate(state.withLock { $0.setup }) }
}

/// The work in flight.
extension ServiceCore {
    /// Adds work to the list of work in flight.
    ///
    /// - Returns: The current setup.
    /// - Throws: ``WebServiceError/Code/serviceInvalidated``.
    @discardableResult
    func begin(_ work: any InFlightWork, isRetained: Bool) throws(WebServiceError) -> Setup {
        let (setup, change) = try state.withLock { state throws(WebServiceError) in
            (state.setup, try state.inFlight.begin(work, isRetained: isRetained))
        }
        change.notify()
        return supplyingDelegate(setup)
    }

    /// Lists a stream in place of its task, unless the stream has ended.
    func replace(_ task: any InFlightWork, with stream: any InFlightWork) {
        state.withLock { $0.inFlight.replace(task, with: stream) }
    }

    /// Removes work from the list.
    func end(_ work: ObjectIdentifier) {
        state.withLock { $0.inFlight.end(work) }.notify()
    }

    /// The work in flight, in the order in which it began.
    var workInFlight: [any InFlightWork] { state.withLock { $0.inFlight }.ordered }

    /// Refuses further work.
    func invalidate() {
        state.withLock { $0.inFlight.invalidate() }
    }

    /// Counts the handlers of a task, before its exchange ends.
    func beginHandlers() { runningHandlers.add(1, ordering: .sequentiallyConsistent) }

    func endHandlers() {
        let count = runningHandlers.subtract(1, ordering: .sequentiallyConsistent).newValue
        if count == 0, isFinishing.load(ordering: .sequentiallyConsistent) {
            state.withLock { $0.inFlight.change }.notify()
        }
    }

    /// Refuses further work, except that of the exchanges in flight.
    func refuse() {
        isFinishing.store(true, ordering: .sequentiallyConsistent)
        state.withLock { $0.inFlight.finish() }
    }

    /// Refuses further work, except that of the exchanges in flight, and waits until these
    /// exchanges and the handlers have ended or the Swift task is cancelled.
    package func finish() async {
        let changes = changes
        refuse()
        for await _ in changes where isIdle { return }
    }

    /// Whether nothing is in flight and no handler runs. A task's handlers are counted before its
    /// exchange ends.
    private var isIdle: Bool {
        workInFlight.isEmpty && runningHandlers.load(ordering: .sequentiallyConsistent) == 0
    }

    /// - Throws: ``WebServiceError/Code/serviceInvalidated``.
    func checkValid() throws(WebServiceError) {
        try state.withLock { state throws(WebServiceError) in try state.inFlight.checkValid() }
    }

    /// - Throws: ``WebServiceError/Code/serviceInvalidated``, also while the service is finishing.
    func checkAccepts() throws(WebServiceError) {
        try state.withLock { state throws(WebServiceError) in try state.inFlight.checkAccepts() }
    }

    /// A sequence with one element at the start and one after each change of the work in flight. A
    /// slow reader receives one element for several changes.
    var changes: AsyncStream<Void> {
        ChangeObservers.changes { [weak self] body in self?.state.withLock { body(&$0.inFlight.observers, ()) } }
    }
}

/// The configuration and the work in progress that another module adds to a service.
///
/// The service creates the part of a module when the module first accesses it.
package protocol ServicePart: AnyObject, Sendable {
    init()

    /// Returns the part for a copy of the service.
    ///
    /// - Parameter forOtherAccount: Whether the copy belongs to another account. If so, the part
    ///   must not contain anything that belongs to the account of this service.
    func copy(forOtherAccount: Bool) -> any ServicePart

    /// Resets the configuration after the service's account has ended.
    func reset()

    /// Cancels the work when the service's handle is deallocated.
    func close()
}

extension ServiceCore {
    var parts: [ObjectIdentifier: any ServicePart] { state.withLock { $0.parts } }

    package func part<Part: ServicePart>(_ type: Part.Type = Part.self) -> Part {
        state.withLock { state in
            if let part = state.parts[ObjectIdentifier(type)] as? Part { return part }
            let part = Part()
            state.parts[ObjectIdentifier(type)] = part
            return part
        }
    }
}
