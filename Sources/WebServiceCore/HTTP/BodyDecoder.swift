public import Foundation

/// A type that decodes `Decodable` values from the bytes of a body.
///
/// For a `JSONDecoder`, the library first checks that the body is nested no deeper than 512 levels.
/// A custom decoder that calls a `JSONDecoder` must do the same on Linux, where that class traps on
/// some input that is nested deeper.
public protocol BodyDecoder: Sendable {
    /// Returns the decoded value.
    ///
    /// - Throws: An error if the value cannot be decoded.
    func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value
}

extension JSONDecoder: BodyDecoder {}
extension PropertyListDecoder: BodyDecoder {}
