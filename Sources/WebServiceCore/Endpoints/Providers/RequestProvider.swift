public import Foundation

/// Performs requests of one type, and knows only those: what it finds and cancels is of that type.
///
/// ```swift
/// let brewers: RequestProvider<BrewersRequest> = service.createProvider()
/// let list = try await brewers.perform(.init(state: "ny")).value
/// ```
public struct RequestProvider<Request: ServiceRequest>: ServiceProvider {
    private let service: WebService

    /// What happens to duplicates where a call says nothing else; ``DuplicateMode/allow`` unless set.
    public var duplicates = DuplicateMode.allow

    /// Hears of answers to ``performForDelegate(_:key:duplicates:)`` and ``storedForDelegate(_:maximumAge:_:)``. Held weakly.
    public weak var delegate: (any ServiceDelegate)?

    /// Whether the delegate hears of nothing but data when a storage is read; `true` unless set.
    public var tellsDelegateOnlyOfStoredData = true

    /// Makes a provider of a service.
    public init(service: WebService) {
        self.service = service
    }

    /// Makes a task for a request; see ``WebService/perform(_:key:duplicates:)``.
    public func perform(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil
    ) -> TypedTask<Request.Output> {
        service.perform(request, key: key, duplicates: duplicates ?? self.duplicates)
    }

    /// Performs a request at once; the closure gets what came of it, once, on the main actor.
    @discardableResult
    public func perform(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<Request.Output>) -> Void
    ) -> TypedTask<Request.Output> {
        service.perform(request, key: key, duplicates: duplicates ?? self.duplicates, completion: completion)
    }

    /// Performs a request at once; the ``delegate`` of now gets what came of it, once, on the main actor.
    @discardableResult
    public func performForDelegate(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil
    ) -> TypedTask<Request.Output> {
        guard let delegate else { return perform(request, key: key, duplicates: duplicates).resume() }
        return service.perform(request, key: key, duplicates: duplicates ?? self.duplicates, delegate: delegate)
    }

    /// Whether a request of the type is under way.
    public func containsRequests() -> Bool {
        service.containsRequest(type: Request.self)
    }

    /// Whether a request of the type with an equal key is under way.
    public func containsRequest(key: any Hashable & Sendable) -> Bool {
        let key = RequestKey(key)
        return service.core.registry.contains { $0.type == Request.self && $0.key == key }
    }

    /// Cancels all requests of the type.
    public func cancelRequests() {
        service.cancelRequests(type: Request.self)
    }

    /// Cancels requests of the type with an equal key.
    public func cancelRequests(key: any Hashable & Sendable) {
        let key = RequestKey(key)
        service.core.registry.cancel { $0.type == Request.self && $0.key == key }
    }
}

extension RequestProvider where Request: Hashable {
    /// Whether an equal request is under way.
    public func containsRequest(_ request: Request) -> Bool {
        service.containsRequest(request)
    }

    /// Cancels equal requests.
    public func cancelRequests(_ request: Request) {
        service.cancelRequests(request)
    }
}

extension RequestProvider where Request: EmptyServiceRequest {
    /// Makes a task for the request; see ``WebService/perform(_:key:duplicates:)``.
    public func perform(key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil) -> TypedTask<Request.Output> {
        perform(Request(), key: key, duplicates: duplicates)
    }

    /// Performs the request at once; the closure gets what came of it, once, on the main actor.
    @discardableResult
    public func perform(
        key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<Request.Output>) -> Void
    ) -> TypedTask<Request.Output> {
        perform(Request(), key: key, duplicates: duplicates, completion: completion)
    }

    /// Performs the request at once; the ``delegate`` of now gets what came of it, once, on the main actor.
    @discardableResult
    public func performForDelegate(key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil) -> TypedTask<Request.Output> {
        performForDelegate(Request(), key: key, duplicates: duplicates)
    }
}

extension RequestProvider where Request: StorableRequest {
    /// Makes a task for a request that may be answered from its storage; see ``WebService/perform(_:cachePolicy:maximumAge:key:duplicates:)``.
    public func perform(
        _ request: Request, cachePolicy: CachePolicy, maximumAge: TimeInterval? = nil, key: (any Hashable & Sendable)? = nil,
        duplicates: DuplicateMode? = nil
    ) -> TypedTask<Request.Output> {
        service.perform(
            request, cachePolicy: cachePolicy, maximumAge: maximumAge, key: key, duplicates: duplicates ?? self.duplicates)
    }

    /// Makes a task that reads the stored answer to a request; see ``WebService/stored(_:maximumAge:_:)``.
    public func stored(
        _ request: Request, maximumAge: TimeInterval? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<StoredValue<Request.Output>> {
        service.stored(request, maximumAge: maximumAge, dependency)
    }

    /// Reads the stored answer to a request at once; the closure gets what came of it, once, on the main actor.
    @discardableResult
    public func stored(
        _ request: Request, maximumAge: TimeInterval? = nil, _ dependency: StorageReadDependency = .independent,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<StoredValue<Request.Output>>) -> Void
    ) -> TypedTask<StoredValue<Request.Output>> {
        service.stored(request, maximumAge: maximumAge, dependency, completion: completion)
    }

    /// Reads the stored answer to a request at once; the ``delegate`` of now gets the value, on the main actor.
    @discardableResult
    public func storedForDelegate(
        _ request: Request, maximumAge: TimeInterval? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<StoredValue<Request.Output>> {
        guard let delegate else { return stored(request, maximumAge: maximumAge, dependency).resume() }
        return service.stored(
            request, maximumAge: maximumAge, dependency, onlyData: tellsDelegateOnlyOfStoredData, delegate: delegate
        )
    }

    /// Removes what is stored of a request; see ``WebService/deleteStored(_:)-(StorableRequest)``.
    public func deleteStored(_ request: Request) async throws {
        try await service.deleteStored(request)
    }
}
