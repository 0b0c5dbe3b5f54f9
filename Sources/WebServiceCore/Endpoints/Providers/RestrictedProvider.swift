public import Foundation

/// Performs requests of some types only.
///
/// A request of another type fails with ``WebServiceError/Code/requestNotAllowed``, and nothing is sent; a debug build also says so on standard error,
/// because it is a mistake in the program.
public struct RestrictedProvider: Sendable {
    private let service: WebService
    private let allowed: Set<ObjectIdentifier>

    /// - Parameters:
    ///   - service: What performs the requests.
    ///   - requestTypes: The types that are let through.
    public init(service: WebService, requestTypes: [any ServiceRequest.Type]) {
        self.service = service
        allowed = Set(requestTypes.map { ObjectIdentifier($0) })
    }

    /// Whether requests of the type are let through.
    public func canUseRequest(type: any ServiceRequest.Type) -> Bool {
        allowed.contains(ObjectIdentifier(type))
    }

    /// Makes a task for a request; see ``WebService/perform(_:key:duplicates:)``.
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow
    ) -> TypedTask<Request.Output> {
        refusal(of: Request.self) ?? service.perform(request, key: key, duplicates: duplicates)
    }

    /// Performs a request at once; the closure gets what came of it, once, on the main actor.
    @discardableResult
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<Request.Output>) -> Void
    ) -> TypedTask<Request.Output> {
        perform(request, key: key, duplicates: duplicates).observeOnMain({ $0 }, { completion(ServiceResponse($0)) }).resume()
    }

    /// Makes a task for a request that may be answered from its storage; see ``WebService/perform(_:cachePolicy:maximumAge:key:duplicates:)``.
    public func perform<Request: StorableRequest>(
        _ request: Request, cachePolicy: CachePolicy, maximumAge: TimeInterval? = nil, key: (any Hashable & Sendable)? = nil,
        duplicates: DuplicateMode = .allow
    ) -> TypedTask<Request.Output> {
        refusal(of: Request.self)
            ?? service.perform(request, cachePolicy: cachePolicy, maximumAge: maximumAge, key: key, duplicates: duplicates)
    }

    /// Makes a task that reads the stored answer to a request; see ``WebService/stored(_:maximumAge:_:)``.
    public func stored<Request: StorableRequest>(
        _ request: Request, maximumAge: TimeInterval? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<StoredValue<Request.Output>> {
        refusal(of: Request.self) ?? service.stored(request, maximumAge: maximumAge, dependency)
    }

    /// Whether a request of one of the types is under way.
    public func containsRequests() -> Bool {
        service.core.registry.contains { canUseRequest(type: $0.type) }
    }

    /// Cancels all requests of these types.
    public func cancelRequests() {
        service.core.registry.cancel { canUseRequest(type: $0.type) }
    }

    /// - Returns: `nil` when the type is let through.
    private func refusal<Value: Sendable>(of type: any ServiceRequest.Type) -> TypedTask<Value>? {
        guard !canUseRequest(type: type) else { return nil }
        let error = WebServiceError(.requestNotAllowed, "the provider does not let requests of the type \(type) through")
        #if DEBUG
        try? FileHandle.standardError.write(contentsOf: Data("WebService: \(error.message)\n".utf8))  // whoever cannot be told has the error
        #endif
        let task = SessionTask(service.core) { $0.complete(.failure(error)) }
        return TypedTask(task, ResponseRules(.any), isOwn: true, step: { .failure($0.failure ?? error) })
    }
}

/// Request types that belong together.
public protocol RequestGroup {
    /// The types.
    static var requestTypes: [any ServiceRequest.Type] { get }
}

/// Performs requests of one group; see ``RestrictedProvider``.
public struct GroupProvider<Group: RequestGroup>: ServiceProvider {
    private let provider: RestrictedProvider

    /// Makes a provider of a service.
    public init(service: WebService) {
        provider = RestrictedProvider(service: service, requestTypes: Group.requestTypes)
    }

    /// Whether requests of the type are in the group.
    public func canUseRequest(type: any ServiceRequest.Type) -> Bool {
        provider.canUseRequest(type: type)
    }

    /// Makes a task for a request; see ``WebService/perform(_:key:duplicates:)``.
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow
    ) -> TypedTask<Request.Output> {
        provider.perform(request, key: key, duplicates: duplicates)
    }

    /// Performs a request at once; the closure gets what came of it, once, on the main actor.
    @discardableResult
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode = .allow,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<Request.Output>) -> Void
    ) -> TypedTask<Request.Output> {
        provider.perform(request, key: key, duplicates: duplicates, completion: completion)
    }

    /// Makes a task for a request that may be answered from its storage; see ``WebService/perform(_:cachePolicy:maximumAge:key:duplicates:)``.
    public func perform<Request: StorableRequest>(
        _ request: Request, cachePolicy: CachePolicy, maximumAge: TimeInterval? = nil, key: (any Hashable & Sendable)? = nil,
        duplicates: DuplicateMode = .allow
    ) -> TypedTask<Request.Output> {
        provider.perform(request, cachePolicy: cachePolicy, maximumAge: maximumAge, key: key, duplicates: duplicates)
    }

    /// Makes a task that reads the stored answer to a request; see ``WebService/stored(_:maximumAge:_:)``.
    public func stored<Request: StorableRequest>(
        _ request: Request, maximumAge: TimeInterval? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<StoredValue<Request.Output>> {
        provider.stored(request, maximumAge: maximumAge, dependency)
    }

    /// Whether a request of the group is under way.
    public func containsRequests() -> Bool {
        provider.containsRequests()
    }

    /// Cancels all requests of the group.
    public func cancelRequests() {
        provider.cancelRequests()
    }
}
