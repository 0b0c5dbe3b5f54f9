import Foundation

/// A group of request types.
public protocol RequestGroup {
    /// The request types of the group.
    static var requestTypes: [any ServiceRequest.Type] { get }
}

/// A provider that accepts only requests of some types: those of a group, or those of a list
/// (``RestrictedProvider``).
///
/// A request of another type fails with ``WebServiceError/Code/requestNotAllowed`` and is not sent.
/// A debug build also prints the error to standard error, because it is a programming error.
public struct GroupProvider<Group: RequestGroup>: ServiceProvider {
    private let service: WebService
    private let allowed: Set<ObjectIdentifier>

    /// Creates a provider for a service that accepts the types of the group.
    public init(service: WebService) {
        self.init(service, Group.requestTypes)
    }

    private init(_ service: WebService, _ requestTypes: [any ServiceRequest.Type]) {
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

/// A provider that accepts only requests of the types in a list; see ``GroupProvider``.
public typealias RestrictedProvider = GroupProvider<ListedRequests>

/// The group of a ``RestrictedProvider``, which is created from a list of types.
public enum ListedRequests: RequestGroup {
    /// No types.
    public static let requestTypes: [any ServiceRequest.Type] = []
}

extension GroupProvider where Group == ListedRequests {
    /// Creates a provider for a service that accepts the given types.
    public init(service: WebService, requestTypes: [any ServiceRequest.Type]) {
        self.init(service, requestTypes)
    }
}
