public import Foundation

/// What an endpoint fetched, before it is processed: bytes, or something richer that has bytes in it.
///
/// `Data` conforms. A type of your own can carry more, such as a status; its ``rawData`` is what storages keep of it. Read from a storage it comes back
/// as `Data`.
public protocol RawDataSource: Sendable {
    /// The bytes to keep in a storage; `nil` when there are none to keep.
    var rawData: Data? { get }

    /// Whether the answer may be stored, raw or as a value. Left out, it may.
    var isStorable: Bool { get }
}

extension RawDataSource {
    /// It may.
    public var isStorable: Bool { true }
}

extension Data: RawDataSource {
    /// The bytes themselves.
    public var rawData: Data? { self }
}
