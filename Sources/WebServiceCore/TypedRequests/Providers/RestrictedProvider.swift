import Foundation

/// A provider that accepts only requests of the given types.
///
/// A request of another type fails with ``WebServiceError/Code/requestNotAllowed`` and is not sent.
/// A debug build also prints the error to standard error, because it is a programming error.
public struct RestrictedProvider: Sendable {
    private let service: WebService
    private let allowed: Set<ObjectIdentifier>

    /// - Parameters:
    ///   - service: The service that executes the requests.
    ///   - requestTypes: The accepted types.
    public init(service: WebService, requestTypes: [any ServiceRequest.Type]) {
        self.service = service
        allowed = Set(requestTypes.map { ObjectIdentifier($0) })
    }

    /// Returns whether requests of the type are accepted.
    public func canUseRequest(type: any ServiceRequest.Type) -> Bool {
        allowed.contains(ObjectIdentifier(type))
    }

    /// Creates a task for a request; see ``WebService/perform(_:key:duplicates:)``.
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow
    ) -> TypedTask<Request.Output> {
        refusal(of: Request.self) ?? service.perform(request, key: key, duplicates: duplicates)
    }

    /// Starts a request. The closure receives the result, once, on the main actor.
    @discardableResult
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<Request.Output>) -> Void
    ) -> TypedTask<Request.Output> {
        perform(request, key: key, duplicates: duplicates).observeOnMain({ $0 }, { completion(ServiceResponse($0)) })
            .resume()
    }

    /// Creates a task for a request whose value can come from its storage.
    ///
    /// See ``WebService/perform(_:fetchPolicy:maximumAge:key:duplicates:)``.
    public func perform<Request: StorableRequest>(
        _ request: Request, fetchPolicy: FetchPolicy, maximumAge: Duration? = nil,
        key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow
    ) -> TypedTask<Request.Output> {
        refusal(of: Request.self)
            ?? service.perform(
                request, fetchPolicy: fetchPolicy, maximumAge: maximumAge, key: key, duplicates: duplicates)
    }

    /// Creates a task that reads the stored value of a request.
    ///
    /// See ``WebService/stored(_:maximumAge:_:)``.
    public func stored<Request: StorableRequest>(
        _ request: Request, maximumAge: Duration? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<SourcedValue<Request.Output>> {
        refusal(of: Request.self) ?? service.stored(request, maximumAge: maximumAge, dependency)
    }

    /// Returns whether a request of an accepted type is in flight.
    public func containsRequests() -> Bool {
        service.core.registry.contains { canUseRequest(type: $0.type) }
    }

    /// Cancels all requests of the accepted types.
    public func cancelRequests() {
        service.core.registry.cancel { canUseRequest(type: $0.type) }
    }

    /// - Returns: `nil` if the type is accepted.
    private func refusal<Value: Sendable>(of type: any ServiceRequest.Type) -> TypedTask<Value>? {
        guard !canUseRequest(type: type) else { return nil }
        let error = WebServiceError(.requestNotAllowed, "the provider does not allow requests of type \(type)")
        #if DEBUG
        try? FileHandle.standardError.write(contentsOf: Data("WebService: \(error.message)\n".utf8))  // best effort
        #endif
        let task = SessionTask(service.core) { $0.complete(.failure(error)) }
        return TypedTask(task, ResponseRules(.any), isOwn: true, step: { .failure($0.failure ?? error) })
    }
}

/// A group of request types.
public protocol RequestGroup {
    /// The request types of the group.
    static var requestTypes: [any ServiceRequest.Type] { get }
}

/// A provider that accepts only requests of one group; see ``RestrictedProvider``.
public struct GroupProvider<Group: RequestGroup>: ServiceProvider {
    private let provider: RestrictedProvider

    /// Creates a provider for a service.
    public init(service: WebService) {
        provider = RestrictedProvider(service: service, requestTypes: Group.requestTypes)
    }

    /// Returns whether requests of the type are in the group.
    public func canUseRequest(type: any ServiceRequest.Type) -> Bool {
        provider.canUseRequest(type: type)
    }

    /// Creates a task for a request; see ``WebService/perform(_:key:duplicates:)``.
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow
    ) -> TypedTask<Request.Output> {
        provider.perform(request, key: key, duplicates: duplicates)
    }

    /// Starts a request. The closure receives the result, once, on the main actor.
    @discardableResult
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<Request.Output>) -> Void
    ) -> TypedTask<Request.Output> {
        provider.perform(request, key: key, duplicates: duplicates, completion: completion)
    }

    /// Creates a task for a request whose value can come from its storage.
    ///
    /// See ``WebService/perform(_:fetchPolicy:maximumAge:key:duplicates:)``.
    public func perform<Request: StorableRequest>(
        _ request: Request, fetchPolicy: FetchPolicy, maximumAge: Duration? = nil,
        key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow
    ) -> TypedTask<Request.Output> {
        provider.perform(request, fetchPolicy: fetchPolicy, maximumAge: maximumAge, key: key, duplicates: duplicates)
    }

    /// Creates a task that reads the stored value of a request.
    ///
    /// See ``WebService/stored(_:maximumAge:_:)``.
    public func stored<Request: StorableRequest>(
        _ request: Request, maximumAge: Duration? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<SourcedValue<Request.Output>> {
        provider.stored(request, maximumAge: maximumAge, dependency)
    }

    /// Returns whether a request of the group is in flight.
    public func containsRequests() -> Bool {
        provider.containsRequests()
    }

    /// Cancels all requests of the group.
    public func cancelRequests() {
        provider.cancelRequests()
    }
}
