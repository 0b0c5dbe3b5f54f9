public import Foundation

/// The unprocessed result of an endpoint: bytes, or a type that contains them.
///
/// `Data` conforms. A custom type can carry additional values, such as a status. Storages store
/// only its ``rawData`` and return it as `Data`.
public protocol RawDataSource: Sendable {
    /// The bytes to store; `nil` if there are none.
    var rawData: Data? { get }

    /// A Boolean value that indicates whether the result may be stored, raw or as a value.
    ///
    /// Defaults to `true`.
    var isStorable: Bool { get }
}

extension RawDataSource {
    /// `true`.
    public var isStorable: Bool { true }
}

extension Data: RawDataSource {
    /// The bytes.
    public var rawData: Data? { self }
}
