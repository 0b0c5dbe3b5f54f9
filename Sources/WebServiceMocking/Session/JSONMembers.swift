import Foundation
import WebServiceCore

/// The members of a JSON object, as a dictionary literal whose values may be variables.
typealias JSONMembers = KeyValuePairs<String, Any?>

extension JSONValue {
    /// Creates an object. If a name is repeated, the last value is used.
    ///
    /// - Throws: The error of the encoder, or `WebServiceError.Code.encoding` for a value that is
    ///   not `Encodable`.
    init(members: JSONMembers) throws {
        self = .object(try Dictionary(members.map { ($0.key, try JSONValue(any: $0.value)) }) { $1 })
    }

    private init(any value: Any?) throws {
        guard let value, (value as? any AnyOptional)?.isNil != true else {
            self = .null
            return
        }
        if let value = value as? JSONValue {
            self = value
        } else if let members = value as? [String: Any] {
            self = .object(try members.mapValues { try JSONValue(any: $0) })
        } else if let elements = value as? [Any] {
            self = .array(try elements.map { try JSONValue(any: $0) })
        } else if let value = value as? any Encodable {
            self = try JSON.decode(JSONValue.self, from: JSONEncoder().encode(value))
        } else {
            throw WebServiceError(
                .encoding, "a value of type \(type(of: value)) cannot be encoded as JSON; conform the type to Encodable"
            )
        }
    }
}

/// An optional as a value of the type `Any`.
private protocol AnyOptional {
    var isNil: Bool { get }
}

extension Optional: AnyOptional {
    fileprivate var isNil: Bool { if case .none = self { true } else { false } }
}
