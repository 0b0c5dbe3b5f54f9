public import Foundation
public import WebServiceCore

/// A request whose successful responses are stored.
///
/// A response is stored in the first storage of the service that supports the request.
///
/// Conform to ``RawStorableRequest`` to store the received bytes, or to ``ValueStorableRequest`` to
/// store the value as bytes. By default, a storage supports both. If a request conforms only to
/// this protocol, the value itself is stored, and only in memory (``MemoryStorage``).
///
/// Responses to requests that do not conform to this protocol are not stored.
public protocol StorableRequest: ServiceRequest {
    /// The identifier of the stored response; `nil` if the response must not be stored.
    ///
    /// Any string may be used. It identifies the response in combination with
    /// ``dataClassification`` and the account of the service.
    var storageIdentifier: String? { get }

    /// The classification of the response. Defaults to ``DataClassification/default``.
    var dataClassification: DataClassification { get }
}

extension StorableRequest {
    /// The default classification.
    public var dataClassification: DataClassification { .default }

    /// Returns the key of the stored response, or `nil` if the response must not be stored.
    package func storageKey(account: String?) -> StorageKey? {
        storageIdentifier.map { StorageKey(identifier: $0, classification: dataClassification, account: account) }
    }
}

/// A request whose responses are stored as the received bytes.
///
/// When the stored bytes are read, the endpoint processes them like the bytes of a new response.
public protocol RawStorableRequest: StorableRequest {}

/// A request whose responses are stored as values. The request converts the values to bytes and
/// back.
///
/// If the output is `Codable`, the conversion needs no code.
public protocol ValueStorableRequest: StorableRequest {
    /// Returns the byte representation of a value.
    ///
    /// - Returns: `nil` if this value must not be stored. In that case, the previous entry remains.
    /// - Throws: Any error of the conversion. It is reported as a failure of the storage.
    func storageData(for value: Output) throws -> Data?

    /// Returns the value from bytes that ``storageData(for:)`` returned.
    ///
    /// The bytes may come from an older version of the program.
    ///
    /// - Returns: `nil` if the bytes are obsolete. If the method returns `nil` or throws an error,
    ///   there is no stored value (`WebServiceError.Code.noStoredData`).
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
