public import WebServiceCore

/// Methods that find and cancel requests in flight. They correspond to those of `WebService`, but
/// apply only to requests of the accepted types.
extension GroupProvider {
    /// Returns whether a request of an accepted type is in flight.
    public func containsRequests() -> Bool {
        contains { _, _ in true }
    }

    /// Returns whether a request that is equal to the given one is in flight.
    public func containsRequest<Request: ServiceRequest & Hashable>(_ request: Request) -> Bool {
        canUseRequest(type: Request.self) && service.containsRequest(request)
    }

    /// Returns whether a request of the given type is in flight.
    public func containsRequest(type: any ServiceRequest.Type) -> Bool {
        contains { other, _ in other == type }
    }

    /// Returns whether a request with the given key is in flight.
    public func containsRequest(key: any Hashable & Sendable) -> Bool {
        let key = RequestKey(key)
        return contains { $1 == key }
    }

    /// Returns whether a request with a key of the given type is in flight.
    public func containsRequest<Key: Hashable & Sendable>(keyType: Key.Type) -> Bool {
        contains { $1?.type == ObjectIdentifier(keyType) }
    }

    /// Cancels all typed requests of the accepted types.
    public func cancelRequests() {
        cancel { _, _ in true }
    }

    /// Cancels the requests that are equal to the given one.
    public func cancelRequests<Request: ServiceRequest & Hashable>(_ request: Request) {
        if canUseRequest(type: Request.self) { service.cancelRequests(request) }
    }

    /// Cancels the requests of the given type.
    public func cancelRequests(type: any ServiceRequest.Type) {
        cancel { other, _ in other == type }
    }

    /// Cancels the requests with the given key.
    public func cancelRequests(key: any Hashable & Sendable) {
        let key = RequestKey(key)
        cancel { $1 == key }
    }

    /// Cancels the requests with a key of the given type.
    public func cancelRequests<Key: Hashable & Sendable>(keyType: Key.Type) {
        cancel { $1?.type == ObjectIdentifier(keyType) }
    }

    private func contains(_ isMeant: (any ServiceRequest.Type, RequestKey?) -> Bool) -> Bool {
        service.containsRequest { canUseRequest(type: $0) && isMeant($0, $1) }
    }

    private func cancel(_ isMeant: (any ServiceRequest.Type, RequestKey?) -> Bool) {
        service.cancelRequests { canUseRequest(type: $0) && isMeant($0, $1) }
    }
}
