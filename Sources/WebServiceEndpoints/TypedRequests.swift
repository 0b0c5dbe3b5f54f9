public import Foundation
public import WebServiceCore
public import WebServiceStorage

/// The configuration of a service for typed requests.
struct TypedConfiguration: Sendable {
    var endpoints: [any ServiceEndpoint] = [HTTPEndpoint()]
    var storages: [any ResponseStorage] = []
    var storageAccount: String?
    var storageErrorObserver: (@Sendable (StorageEntry.Failure) -> Void)?
    var activity = ActivityCounter.shared
    /// The order of changes to the storages. Clones of a service share it, because they share the
    /// storages.
    let order = StorageOrder()
    /// The requests in progress.
    var registry = RequestRegistry()

    /// Returns the storage and the key for the response to a request, or `nil` if the response is
    /// not stored.
    func place(of request: any ServiceRequest) -> StoragePlace? {
        guard let request = request as? any StorableRequest, let key = request.storageKey(account: storageAccount),
            let storage = storages.first(where: { $0.isFor(request) })
        else { return nil }
        return StoragePlace(storage: storage, key: key)
    }

    func report(
        _ error: any Error, of operation: StorageEntry.Failure.Operation, key: StorageKey?,
        in storage: any ResponseStorage
    ) {
        storageErrorObserver?(StorageEntry.Failure(operation: operation, key: key, storage: storage, error: error))
    }
}

/// The typed requests of a service.
final class TypedRequests: ServicePart {
    private let current: Mutex<TypedConfiguration>

    convenience init() { self.init(TypedConfiguration()) }

    private init(_ configuration: TypedConfiguration) { current = Mutex(configuration) }

    var configuration: TypedConfiguration { current.withLock { $0 } }

    /// Changes the configuration atomically.
    func configure(_ change: (inout TypedConfiguration) -> Void) {
        let replaced = current.withLock { configuration in
            let replaced = configuration
            change(&configuration)
            return replaced
        }
        withExtendedLifetime(replaced) {}
    }

    func copy(forOtherAccount: Bool) -> any ServicePart {
        var copy = configuration
        if forOtherAccount {
            copy = TypedConfiguration(
                endpoints: copy.endpoints, storageErrorObserver: copy.storageErrorObserver, activity: copy.activity)
        }
        copy.registry = RequestRegistry()
        return TypedRequests(copy)
    }

    func reset() { configure { $0 = TypedConfiguration(registry: $0.registry) } }

    func close() { configuration.registry.close() }
}

extension ServiceCore {
    var typed: TypedRequests { part() }
}

extension WebService {
    /// The configuration of typed requests.
    var typed: TypedConfiguration { core.typed.configuration }
}

/// A key in a storage.
struct StoragePlace: Sendable {
    let storage: any ResponseStorage
    let key: StorageKey
}

extension WebService {
    /// Creates a service for typed requests.
    ///
    /// - Parameters:
    ///   - baseURL: See `baseURL`.
    ///   - endpoints: See ``endpoints``.
    ///   - storages: See ``storages``.
    public convenience init(
        baseURL: URL? = nil, endpoints: [any ServiceEndpoint], storages: [any ResponseStorage] = []
    ) {
        self.init(baseURL: baseURL)
        core.typed.configure { typed in
            typed.endpoints = endpoints
            typed.storages = storages
        }
    }

    /// The endpoints for typed requests.
    ///
    /// The first endpoint that supports a request executes it. Defaults to one ``HTTPEndpoint``.
    public var endpoints: [any ServiceEndpoint] {
        get { typed.endpoints }
        set { core.typed.configure { $0.endpoints = newValue } }
    }

    /// The storages for successful responses to typed requests.
    ///
    /// The first storage that supports a request and its classification stores the response.
    /// Defaults to none.
    public var storages: [any ResponseStorage] {
        get { typed.storages }
        set { core.typed.configure { $0.storages = newValue } }
    }

    /// The account whose responses are stored and read. Defaults to `nil`, which means no account.
    ///
    /// The account is part of every storage key, so a response that was stored for one account is
    /// never read for another. A request uses the account that is set when the request is started.
    /// If the account changes before the response arrives, the response is stored for the previous
    /// account.
    public var storageAccount: String? {
        get { typed.storageAccount }
        set { core.typed.configure { $0.storageAccount = newValue } }
    }

    /// An observer of storage errors, called in the background.
    ///
    /// A request that is sent never fails because of a storage error. Defaults to `nil`.
    public var storageErrorObserver: (@Sendable (_ failure: StorageEntry.Failure) -> Void)? {
        get { typed.storageErrorObserver }
        set { core.typed.configure { $0.storageErrorObserver = newValue } }
    }

    /// The counter of the typed requests in flight. Defaults to ``ActivityCounter/shared``.
    public var activity: ActivityCounter {
        get { typed.activity }
        set { core.typed.configure { $0.activity = newValue } }
    }
}

/// The number of typed requests in flight, for example for a network activity indicator.
///
/// A request counts from when its endpoint starts until the request has a result. Requests that
/// share one response (``DuplicateMode/join``) count as one. An endpoint can exclude its requests
/// (``ServiceEndpoint/countsAsActivity``).
public final class ActivityCounter: Sendable {
    private struct State {
        var count = 0
        var observers = ChangeObservers<Void>()
    }

    private let state = Mutex(State())

    /// Creates a counter at zero.
    public init() {}

    /// The counter that services use by default.
    public static let shared = ActivityCounter()

    /// The current number of requests in flight.
    public var count: Int { state.withLock { $0.count } }

    /// An asynchronous sequence of the current count and the count after every change.
    ///
    /// A slow reader skips intermediate counts but always receives the latest count. The sequence
    /// ends when the reading Swift task is cancelled.
    public var counts: AsyncStream<Int> {
        let changes = changes
        return AsyncStream {
            for await _ in changes { return self.count }
            return nil
        }
    }

    private var changes: AsyncStream<Void> {
        ChangeObservers.changes { [weak self] body in self?.state.withLock { body(&$0.observers, ()) } }
    }

    func add(_ change: Int) {
        let observers = state.withLock { state in
            state.count += change
            return state.observers.all
        }
        for observer in observers { observer.yield() }
    }
}

/// The service that executes the typed request of the current Swift task. It provides the defaults
/// of ``HTTPServiceRequest/decoder`` and ``ParameterizedRequest/encoder``.
enum PerformingService {
    @TaskLocal static var core: ServiceCore?
}
