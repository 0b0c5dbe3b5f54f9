import Foundation

/// A JSON value of any shape (RFC 8259).
///
/// ```swift
/// let json = try await service.GET("/brewers").json().value
/// let name = json["brewers"]?[0]?["name"]?.string
/// ```
/// Decoded as a whole, by `json()` or `decode(JSONValue.self)`, it has at most 512 levels of arrays
/// and objects. Within another type it has at most 64, including those of the other type: there,
/// decoding tries one type after another, and on Linux each failed attempt takes time proportional
/// to the square of the depth.
@dynamicMemberLookup
public enum JSONValue: Sendable, Hashable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// A number. Integers beyond 2⁵³ lose precision.
    case number(Double)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object. If a name is repeated, one value remains.
    case object([String: JSONValue])

    /// The value of a name; `nil` if this value is not an object or has no such name.
    public subscript(name: String) -> JSONValue? {
        if case .object(let values) = self { values[name] } else { nil }
    }

    /// The value at an index; `nil` if this value is not an array or has no such index.
    public subscript(place: Int) -> JSONValue? {
        if case .array(let values) = self, values.indices.contains(place) { values[place] } else { nil }
    }

    /// The same as ``subscript(_:)-(String)``.
    public subscript(dynamicMember name: String) -> JSONValue? { self[name] }

    /// The string; `nil` for any other value.
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The number; `nil` for any other value.
    public var number: Double? { if case .number(let value) = self { value } else { nil } }
    /// The number if it is an integer; `nil` for any other value.
    public var integer: Int? { number.flatMap { Int(exactly: $0) } }
    /// The Boolean; `nil` for any other value.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The array; `nil` for any other value.
    public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

    /// Parses JSON of any shape. The depth is limited (``JSON/object(from:)``), which bounds the
    /// recursion over the result.
    struct Parser: BodyDecoder {
        func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
            let json = JSONValue(try JSON.object(from: data))
            guard let value = json as? Value else {
                throw DecodingError.typeMismatch(
                    type, .init(codingPath: [], debugDescription: "the type is not JSONValue"))
            }
            return value
        }
    }

    private init(_ json: Any) {
        switch json {
        case let value as String: self = .string(value)
        case let value as [Any]: self = .array(value.map(JSONValue.init))
        case let value as [String: Any]: self = .object(value.mapValues(JSONValue.init))
        case let value as NSNumber:
            self = String(cString: value.objCType) == "c" ? .bool(value.boolValue) : .number(value.doubleValue)
        default: self = .null
        }
    }
}

extension JSONValue: Decodable {
    /// The maximum depth within another type, including the levels of that type.
    private static let maximumDepth = 64

    /// Decodes from any decoder, so that the value can be part of other types.
    ///
    /// - Throws: `DecodingError.dataCorrupted` for more than 64 levels of arrays and objects;
    ///   otherwise the error of the decoder.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {  // a failure only rules out this type
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {  // as above
            self = .number(value)
        } else if let value = try? container.decode(String.self) {  // as above
            self = .string(value)
        } else {
            let path = decoder.codingPath
            guard path.count < Self.maximumDepth else {
                let message = "a JSONValue within another type has at most \(Self.maximumDepth) levels"
                throw DecodingError.dataCorrupted(DecodingError.Context(codingPath: path, debugDescription: message))
            }
            if var list = try? decoder.unkeyedContainer() {  // as above
                var values: [JSONValue] = []
                while !list.isAtEnd { values.append(try list.decode(JSONValue.self)) }
                self = .array(values)
            } else {
                self = .object(try container.decode([String: JSONValue].self))
            }
        }
    }
}
