public import WebServiceCore
public import WebServiceStorage

/// A protocol for groups of request types.
public protocol RequestGroup {
    /// The request types of the group.
    static var requestTypes: [any ServiceRequest.Type] { get }
}

/// A provider that accepts only requests of certain types: those of a group, or those in a list
/// (``RestrictedProvider``).
///
/// A request of any other type fails with `WebServiceError.Code.requestNotAllowed` and is not sent.
public struct GroupProvider<Group: RequestGroup>: ServiceProvider {
    let service: WebService
    private let allowed: Set<ObjectIdentifier>

    /// The duplicate mode for calls that do not specify one.
    ///
    /// Defaults to `DuplicateMode.allow`.
    public var duplicates = DuplicateMode.allow

    /// The delegate that receives the results of ``performForDelegate(_:key:duplicates:)`` and
    /// ``storedForDelegate(_:key:maximumAge:_:)``.
    ///
    /// The provider holds it weakly.
    public weak var delegate: (any ServiceDelegate)?

    /// Whether the delegate receives only values from storage reads.
    ///
    /// If `true`, the delegate is not notified of errors and cancellations of storage reads.
    /// Defaults to `true`.
    public var notifiesDelegateOnlyOfStoredData = true

    /// Creates a provider that accepts the request types of the group.
    public init(service: WebService) {
        self.init(service, Group.requestTypes)
    }

    private init(_ service: WebService, _ requestTypes: [any ServiceRequest.Type]) {
        self.service = service
        allowed = Set(requestTypes.map { ObjectIdentifier($0) })
    }

    /// Returns whether the provider accepts requests of the type.
    public func canUseRequest(type: any ServiceRequest.Type) -> Bool {
        allowed.contains(ObjectIdentifier(type))
    }

    /// Creates a task for a request; see `WebService.perform(_:key:duplicates:)`.
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil
    ) -> TypedTask<Request.Output> {
        refusal(of: Request.self) ?? service.perform(request, key: key, duplicates: duplicates ?? self.duplicates)
    }

    /// Starts a request. The closure is called once with the result, on the main actor.
    @discardableResult
    public func perform<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<Request.Output>) -> Void
    ) -> TypedTask<Request.Output> {
        perform(request, key: key, duplicates: duplicates).observeOnMain({ $0 }, { completion(ServiceResponse($0)) })
            .resume()
    }

    /// Starts a request. The current ``delegate`` receives the result once, on the main actor.
    @discardableResult
    public func performForDelegate<Request: ServiceRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil
    ) -> TypedTask<Request.Output> {
        perform(request, key: key, duplicates: duplicates) { [weak delegate] response in
            delegate?.serviceDidRespond(response.convert(), to: request, key: key, isFromStorage: false)
        }
    }

    /// Creates a task for a request whose value can come from a storage.
    ///
    /// See `WebService.perform(_:fetchPolicy:maximumAge:key:duplicates:configuring:)`.
    public func perform<Request: StorableRequest>(
        _ request: Request, fetchPolicy: FetchPolicy, maximumAge: Duration? = nil,
        key: (any Hashable & Sendable)? = nil, duplicates: DuplicateMode? = nil
    ) -> TypedTask<Request.Output> {
        refusal(of: Request.self)
            ?? service.perform(
                request, fetchPolicy: fetchPolicy, maximumAge: maximumAge, key: key,
                duplicates: duplicates ?? self.duplicates)
    }

    /// Creates a task that reads the stored value of a request.
    ///
    /// See `WebService.stored(_:maximumAge:_:)`.
    public func stored<Request: StorableRequest>(
        _ request: Request, maximumAge: Duration? = nil, _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<SourcedValue<Request.Output>> {
        refusal(of: Request.self) ?? service.stored(request, maximumAge: maximumAge, dependency)
    }

    /// Reads the stored value of a request.
    ///
    /// The closure is called once with the result, on the main actor.
    @discardableResult
    public func stored<Request: StorableRequest>(
        _ request: Request, maximumAge: Duration? = nil, _ dependency: StorageReadDependency = .independent,
        completion: @escaping @MainActor @Sendable (_ response: ServiceResponse<SourcedValue<Request.Output>>) -> Void
    ) -> TypedTask<SourcedValue<Request.Output>> {
        stored(request, maximumAge: maximumAge, dependency).observeOnMain({ $0 }, { completion(ServiceResponse($0)) })
            .resume()
    }

    /// Reads the stored value of a request.
    ///
    /// The current ``delegate`` receives the result on the main actor, unless
    /// ``notifiesDelegateOnlyOfStoredData`` excludes this result.
    @discardableResult
    public func storedForDelegate<Request: StorableRequest>(
        _ request: Request, key: (any Hashable & Sendable)? = nil, maximumAge: Duration? = nil,
        _ dependency: StorageReadDependency = .independent
    ) -> TypedTask<SourcedValue<Request.Output>> {
        let onlyData = notifiesDelegateOnlyOfStoredData
        return stored(request, maximumAge: maximumAge, dependency) { [weak delegate] response in
            if onlyData, response.data == nil { return }
            let response = response.map { $0.value as any Sendable }
            delegate?.serviceDidRespond(response, to: request, key: key, isFromStorage: true)
        }
    }

    /// Removes the stored value of a request.
    ///
    /// See `WebService.deleteStored(_:)`.
    ///
    /// - Throws: `WebServiceError.Code.requestNotAllowed`, or any error of
    ///   `WebService.deleteStored(_:)`.
    public func deleteStored<Request: StorableRequest>(_ request: Request) async throws {
        if let error = notAllowed(Request.self) { throw error }
        try await service.deleteStored(request)
    }

    /// - Returns: `nil` if the type is accepted.
    private func notAllowed(_ type: any ServiceRequest.Type) -> WebServiceError? {
        guard !canUseRequest(type: type) else { return nil }
        return WebServiceError(
            .requestNotAllowed,
            "the provider does not allow requests of type \(type); add the type to its requestTypes")
    }

    /// - Returns: `nil` if the type is accepted.
    private func refusal<Value: Sendable>(of type: any ServiceRequest.Type) -> TypedTask<Value>? {
        notAllowed(type).map { service.failingTask($0) }
    }
}

/// A provider that accepts only requests of the types in a list; see ``GroupProvider``.
public typealias RestrictedProvider = GroupProvider<ListedRequests>

/// The group of a ``RestrictedProvider``, which is created from a list of request types.
public enum ListedRequests: RequestGroup {
    /// An empty list; the provider uses the types that its initializer receives.
    public static let requestTypes: [any ServiceRequest.Type] = []
}

extension GroupProvider where Group == ListedRequests {
    /// Creates a provider that accepts the given types.
    public init(service: WebService, requestTypes: [any ServiceRequest.Type]) {
        self.init(service, requestTypes)
    }
}
