/// What typed requests of this service are under way. Requests and keys are compared by `==` among values of the same type; types are told apart by identity.
///
/// A cancelled request ends with `URLError.cancelled`. Where several wait for one answer, all of them end.
extension WebService {
    /// Whether any request is under way.
    public func containsRequests() -> Bool {
        core.registry.contains { _ in true }
    }

    /// Whether an equal request is under way.
    public func containsRequest<Request: ServiceRequest & Hashable>(_ request: Request) -> Bool {
        let request = RequestKey(request)
        return core.registry.contains { $0.request == request }
    }

    /// Whether a request of the type is under way.
    public func containsRequest(type: any ServiceRequest.Type) -> Bool {
        core.registry.contains { $0.type == type }
    }

    /// Whether a request with an equal key is under way.
    public func containsRequest(key: any Hashable & Sendable) -> Bool {
        let key = RequestKey(key)
        return core.registry.contains { $0.key == key }
    }

    /// Whether a request with a key of the type is under way.
    public func containsRequest<Key: Hashable & Sendable>(keyType: Key.Type) -> Bool {
        core.registry.contains { $0.key?.type == ObjectIdentifier(keyType) }
    }

    /// Cancels all requests.
    public func cancelRequests() {
        core.registry.cancel { _ in true }
    }

    /// Cancels equal requests.
    public func cancelRequests<Request: ServiceRequest & Hashable>(_ request: Request) {
        let request = RequestKey(request)
        core.registry.cancel { $0.request == request }
    }

    /// Cancels requests of the type.
    public func cancelRequests(type: any ServiceRequest.Type) {
        core.registry.cancel { $0.type == type }
    }

    /// Cancels requests with an equal key.
    public func cancelRequests(key: any Hashable & Sendable) {
        let key = RequestKey(key)
        core.registry.cancel { $0.key == key }
    }

    /// Cancels requests with a key of the type.
    public func cancelRequests<Key: Hashable & Sendable>(keyType: Key.Type) {
        core.registry.cancel { $0.key?.type == ObjectIdentifier(keyType) }
    }
}
