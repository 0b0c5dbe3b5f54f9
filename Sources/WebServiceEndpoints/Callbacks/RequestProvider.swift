public import WebServiceCore
public import WebServiceStorage

/// A provider for requests of one type. It finds and cancels only requests of this type.
///
/// ```swift
/// let brewers: RequestProvider<BrewersRequest> = service.createProvider()
/// let list = try await brewers.perform(.init(state: "ny")).value
/// ```
public struct RequestProvider<Request: ServiceRequest>: ServiceProvider {
    private let service: WebService

    /// The duplicate mode for calls that do not specify one.
    ///
    /// Defaults to `DuplicateMode.allow`.
    public var duplicates = DuplicateMode.allow

    /// The delegate that receives the results of ``performForDelegate(_:key:duplicates:)`` and
    /// ``storedForDelegate(_:maximumAge:_:)``.
    ///
    /// The provider holds it weakly.
    public weak var delegate: (any ServiceDelegate)?

    /// Whether the delegate receives only values from storage reads.
    ///
    /// If `true`, the delegate is not notified of errors and cancellations of storage reads.
    /// Defaults to `true`.
    public var notifiesDelegateOnlyOfStoredData = true

    /// Creates a provider for a service.
    public init(service: WebService) {
        self.service = service
    }

    /// Creates a task for a request; see `WebService.perform(_:key:duplicates:)`.
    public func perform(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil
    ) -> TypedTask<Request.Output> {
        service.perform(request, key: key, duplicates: duplicates ?? self.duplicates)
    }

    /// Starts a request. The closure is called once with the result, on the main actor.
    @discardableResult
    public func perform(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<Request.Output>) -> Void
    ) -> TypedTask<Request.Output> {
        service.perform(request, key: key, duplicates: duplicates ?? self.duplicates, completion: completion)
    }

    /// Starts a request. The current ``delegate`` receives the result once, on the main actor.
    @discardableResult
    public func performForDelegate(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil
    ) -> TypedTask<Request.Output> {
        guard let delegate else { return perform(request, key: key, duplicates: duplicates).resume() }
        return service.perform(request, key: key, duplicates: duplicates ?? self.duplicates, delegate: delegate)
    }

    /// Returns whether a request of the provider's type is in flight.
    public func containsRequests() -> Bool {
        service.containsRequest(type: Request.self)
    }

    /// Returns whether a request of the provider's type with the given key is in flight.
    public func containsRequest(key: any Hashable & Sendable) -> Bool {
        let key = RequestKey(key)
        return service.containsRequest { $0 == Request.self && $1 == key }
    }

    /// Cancels all requests of the provider's type.
    public func cancelRequests() {
        service.cancelRequests(type: Request.self)
    }

    /// Cancels the requests of the provider's type with the given key.
    public func cancelRequests(key: any Hashable & Sendable) {
        let key = RequestKey(key)
        service.cancelRequests { $0 == Request.self && $1 == key }
    }
}

extension RequestProvider where Request: Hashable {
    /// Returns whether a request that is equal to the given one is in flight.
    public func containsRequest(_ request: Request) -> Bool {
        service.containsRequest(request)
    }

    /// Cancels the requests that are equal to the given one.
    public func cancelRequests(_ request: Request) {
        service.cancelRequests(request)
    }
}

extension RequestProvider where Request: EmptyServiceRequest {
    /// Creates a task for the request; see `WebService.perform(_:key:duplicates:)`.
    public func perform(
        key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil
    ) -> TypedTask<Request.Output> {
        perform(Request(), key: key, duplicates: duplicates)
    }

    /// Starts the request. The closure is called once with the result, on the main actor.
    @discardableResult
    public func perform(
        key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<Request.Output>) -> Void
    ) -> TypedTask<Request.Output> {
        perform(Request(), key: key, duplicates: duplicates, completion: completion)
    }

    /// Starts the request. The current ``delegate`` receives the result once, on the main actor.
    @discardableResult
    public func performForDelegate(
        key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil
    ) -> TypedTask<Request.Output> {
        performForDelegate(Request(), key: key, duplicates: duplicates)
    }
}

extension RequestProvider where Request: StorableRequest {
    /// Creates a task for a request whose value can come from a storage.
    ///
    /// See `WebService.perform(_:fetchPolicy:maximumAge:key:duplicates:configuring:)`.
    public func perform(
        _ request: Request, fetchPolicy: FetchPolicy, maximumAge: Duration? = nil,
        key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil
    ) -> TypedTask<Request.Output> {
        service.perform(
            request, fetchPolicy: fetchPolicy, maximumAge: maximumAge, key: key,
            duplicates: duplicates ?? self.duplicates)
    }

    /// Creates a task that reads the stored value of a request.
    ///
    /// See `WebService.stored(_:maximumAge:_:)`.
    public func stored(
        _ request: Request, maximumAge: Duration? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<SourcedValue<Request.Output>> {
        service.stored(request, maximumAge: maximumAge, dependency)
    }

    /// Reads the stored value of a request.
    ///
    /// The closure is called once with the result, on the main actor.
    @discardableResult
    public func stored(
        _ request: Request, maximumAge: Duration? = nil, _ dependency: StorageReadDependency = .independent,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<SourcedValue<Request.Output>>) -> Void
    ) -> TypedTask<SourcedValue<Request.Output>> {
        service.stored(request, maximumAge: maximumAge, dependency, completion: completion)
    }

    /// Reads the stored value of a request.
    ///
    /// The current ``delegate`` receives the result on the main actor, unless
    /// ``notifiesDelegateOnlyOfStoredData`` excludes this result.
    @discardableResult
    public func storedForDelegate(
        _ request: Request, maximumAge: Duration? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<SourcedValue<Request.Output>> {
        guard let delegate else { return stored(request, maximumAge: maximumAge, dependency).resume() }
        return service.stored(
            request, maximumAge: maximumAge, dependency, onlyData: notifiesDelegateOnlyOfStoredData, delegate: delegate
        )
    }

    /// Removes the stored value of a request.
    ///
    /// See `WebService.deleteStored(_:)`.
    ///
    /// - Throws: The errors of `WebService.deleteStored(_:)`.
    public func deleteStored(_ request: Request) async throws {
        try await service.deleteStored(request)
    }
}
