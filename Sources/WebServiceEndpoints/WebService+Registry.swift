public import WebServiceCore

/// Methods that find and cancel typed requests in flight. Tasks with
/// `SessionTask.setDuplicates(_:key:)` are included. Requests and keys of the same type are
/// compared with `==`.
///
/// A cancelled request ends with `URLError.cancelled`. If several tasks wait for one response, all
/// of them end.
extension WebService {
    /// Returns whether any typed request, or any task with `SessionTask.setDuplicates(_:key:)`, is
    /// in flight.
    public func containsRequests() -> Bool {
        typed.registry.contains { _ in true }
    }

    /// Returns whether a request that is equal to the given one is in flight.
    public func containsRequest<Request: ServiceRequest & Hashable>(_ request: Request) -> Bool {
        let request = RequestKey(request)
        return typed.registry.contains { $0.request == request }
    }

    /// Returns whether a request of the given type is in flight.
    public func containsRequest(type: any ServiceRequest.Type) -> Bool {
        typed.registry.contains { $0.type == type }
    }

    /// Returns whether a request with the given key is in flight.
    public func containsRequest(key: any Hashable & Sendable) -> Bool {
        let key = RequestKey(key)
        return typed.registry.contains { $0.key == key }
    }

    /// Returns whether a request with a key of the given type is in flight.
    public func containsRequest<Key: Hashable & Sendable>(keyType: Key.Type) -> Bool {
        typed.registry.contains { $0.key?.type == ObjectIdentifier(keyType) }
    }

    /// Cancels all typed requests of the service, and all tasks with
    /// `SessionTask.setDuplicates(_:key:)`.
    ///
    /// `cancelAll()` also cancels other tasks, streams and downloads.
    public func cancelRequests() {
        typed.registry.cancel { _ in true }
    }

    /// Cancels the requests that are equal to the given one.
    public func cancelRequests<Request: ServiceRequest & Hashable>(_ request: Request) {
        let request = RequestKey(request)
        typed.registry.cancel { $0.request == request }
    }

    /// Cancels the requests of the given type.
    public func cancelRequests(type: any ServiceRequest.Type) {
        typed.registry.cancel { $0.type == type }
    }

    /// Cancels the requests with the given key.
    public func cancelRequests(key: any Hashable & Sendable) {
        let key = RequestKey(key)
        typed.registry.cancel { $0.key == key }
    }

    /// Cancels the requests with a key of the given type.
    public func cancelRequests<Key: Hashable & Sendable>(keyType: Key.Type) {
        typed.registry.cancel { $0.key?.type == ObjectIdentifier(keyType) }
    }

    /// Returns whether a request whose type and key satisfy a condition is in flight.
    package func containsRequest(
        where isMeant: (_ type: any ServiceRequest.Type, _ key: RequestKey?) -> Bool
    ) -> Bool {
        typed.registry.contains { isMeant($0.type, $0.key) }
    }

    /// Cancels the requests whose type and key satisfy a condition.
    package func cancelRequests(where isMeant: (_ type: any ServiceRequest.Type, _ key: RequestKey?) -> Bool) {
        typed.registry.cancel { isMeant($0.type, $0.key) }
    }

    /// Returns a task that fails when it is resumed.
    package func failingTask<Value: Sendable>(_ error: WebServiceError) -> TypedTask<Value> {
        TypedTask(core, providing: TypedResult()) { $0.complete(.failure(error)) }
    }
}
