public import Foundation

/// A request whose successful answers are kept in the first of the service's storages that supports it.
///
/// Conform to ``RawStorableRequest`` to keep the bytes that came, or to ``ValueStorableRequest`` to keep the value as bytes; every storage supports
/// both. A request that conforms to this protocol alone is kept as the value it is, in memory only (``MemoryStorage``).
///
/// Nothing is kept of a request that does not conform: storing is opted in to.
public protocol StorableRequest: ServiceRequest {
    /// What the answer is found by later, together with ``dataClassification`` and ``WebService/storageAccount``; any text. `nil` when this request is
    /// not to be kept.
    var storageIdentifier: String? { get }

    /// What kind of data the answer is. Left out, it is ``DataClassification/default``.
    var dataClassification: DataClassification { get }
}

extension StorableRequest {
    /// The default kind.
    public var dataClassification: DataClassification { .default }

    func storageKey(account: String?) -> StorageKey? {
        storageIdentifier.map { StorageKey(identifier: $0, classification: dataClassification, account: account) }
    }
}

/// A request whose answers are kept as the bytes that came. When they are read, the endpoint processes them like those of a new answer.
public protocol RawStorableRequest: StorableRequest {}

/// A request whose answers are kept as values, turned into bytes and back by the request itself. For a `Codable` output nothing is to be written.
public protocol ValueStorableRequest: StorableRequest {
    /// The bytes of a value.
    ///
    /// - Returns: `nil` when this value is not to be kept; the one kept before stays.
    /// - Throws: What kept it from being turned into bytes, which is reported as the storage's failure.
    func storageData(for value: Output) throws -> Data?

    /// The value of bytes that ``storageData(for:)`` made, perhaps in an older version of the program.
    ///
    /// - Returns: `nil` when they are of no use any more. Then, and when it throws, there is no stored value
    ///   (``WebServiceError/Code/noStoredData``).
    func storedValue(from data: Data) throws -> Output?
}

extension ValueStorableRequest where Output: Codable {
    /// The value in JSON.
    public func storageData(for value: Output) throws -> Data? {
        try JSONEncoder().encode(value)
    }

    /// The value out of JSON.
    public func storedValue(from data: Data) throws -> Output? {
        try JSON.decode(Output.self, from: data)
    }
}
