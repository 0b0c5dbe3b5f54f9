public import Foundation

/// A request to a service as a type.
///
/// Its properties are the parameters, and its ``Output`` is the type of the result.
///
/// ```swift
/// struct BrewersRequest: HTTPServiceRequest, Hashable {
///     var state: String
///     typealias Output = [Brewer]
///
///     func request(for service: WebService) -> Request {
///         var request = service.request(.GET, path: "/brewers")
///         request.queryParameters = ["state": state]
///         return request
///     }
/// }
/// let brewers = try await service.perform(BrewersRequest(state: "ny")).value
/// ```
/// The first ``ServiceEndpoint`` that supports the type executes the request. A `Hashable` request
/// in flight can be found, cancelled and compared with others (``DuplicateMode``) by its value.
public protocol ServiceRequest: Sendable {
    /// The type of the value of a successful request.
    associatedtype Output: Sendable
}

/// A request without parameters, which providers create automatically.
public protocol EmptyServiceRequest: ServiceRequest {
    /// Creates the request.
    init()
}

/// A request whose successful responses are stored.
///
/// A response is stored in the first storage of the service that supports the request.
///
/// Conform to ``RawStorableRequest`` to store the bytes received, or to ``ValueStorableRequest`` to
/// store the value as bytes; every storage supports both. For a request that conforms only to this
/// protocol, the value itself is stored, and only in memory (``MemoryStorage``).
///
/// Responses to requests that do not conform are not stored.
public protocol StorableRequest: ServiceRequest {
    /// The identifier of the stored response; `nil` if the response must not be stored.
    ///
    /// Any string identifies the response, in combination with ``dataClassification`` and
    /// ``WebService/storageAccount``.
    var storageIdentifier: String? { get }

    /// The classification of the response. Defaults to ``DataClassification/default``.
    var dataClassification: DataClassification { get }
}

extension StorableRequest {
    /// The default classification.
    public var dataClassification: DataClassification { .default }

    func storageKey(account: String?) -> StorageKey? {
        storageIdentifier.map { StorageKey(identifier: $0, classification: dataClassification, account: account) }
    }
}

/// A request whose responses are stored as the bytes received.
///
/// When stored bytes are read, the endpoint processes them like those of a new response.
public protocol RawStorableRequest: StorableRequest {}

/// A request whose responses are stored as values, which the request converts to bytes and back.
///
/// A `Codable` output needs no code.
public protocol ValueStorableRequest: StorableRequest {
    /// Returns the byte representation of a value.
    ///
    /// - Returns: `nil` if this value must not be stored; the previous entry remains.
    /// - Throws: Any error of the conversion; it is reported as a failure of the storage.
    func storageData(for value: Output) throws -> Data?

    /// Returns the value from bytes that ``storageData(for:)`` returned.
    ///
    /// The bytes may come from an older version of the program.
    ///
    /// - Returns: `nil` if the bytes are obsolete. In this case, and if the method throws, there is
    ///   no stored value (``WebServiceError/Code/noStoredData``).
    func storedValue(from data: Data) throws -> Output?
}

extension ValueStorableRequest where Output: Codable {
    /// Returns the value as JSON.
    public func storageData(for value: Output) throws -> Data? {
        try JSONEncoder().encode(value)
    }

    /// Returns the value from JSON.
    public func storedValue(from data: Data) throws -> Output? {
        try JSON.decode(Output.self, from: data)
    }
}

/// The dependency of a read on a task, whose response makes the stored one obsolete.
public struct StorageReadDependency: Sendable {
    /// Returns whether the read is obsolete; `nil` if it never becomes obsolete.
    let isOver: (@Sendable () -> Bool)?
    /// Registers a closure to call when the task has ended and the read is obsolete. The task
    /// retains the closure, so the closure must not retain the task.
    let observe: (@Sendable (@escaping @Sendable () -> Void) -> Void)?

    /// The absence of a dependency: the read never becomes obsolete.
    public static let independent = StorageReadDependency(isOver: nil, observe: nil)

    /// Returns a dependency that cancels the read if the task has a value first.
    public static func untilSuccess<Value>(of task: TypedTask<Value>) -> StorageReadDependency {
        until(task) { if case .data = $0 { true } else { false } }
    }

    /// Returns a dependency that cancels the read if the task ends first without an error.
    ///
    /// The task may have a value, be cancelled, or be refused as a duplicate. If it fails, the read
    /// continues, because the stored response is the only one.
    public static func untilFinished<Value>(_ task: TypedTask<Value>) -> StorageReadDependency {
        until(task) { if case .error = $0 { false } else { true } }
    }

    private static func until<Value>(
        _ task: TypedTask<Value>, _ ends: @escaping @Sendable (ServiceResponse<Value>) -> Bool
    ) -> StorageReadDependency {
        StorageReadDependency {
            task.settled.map { ends(ServiceResponse($0)) } ?? false
        } observe: { ended in
            _ = task.observe { if ends(ServiceResponse($0)) { ended() } }
        }
    }
}
