import Foundation

/// JSON of any shape (RFC 8259).
///
/// ```swift
/// let json = try await service.GET("/brewers").json().value
/// let name = json["brewers"]?[0]?["name"]?.string
/// ```
/// Read as a whole, by `json()` or `decode(JSONValue.self)`, it has at most 512 levels of arrays and objects. Within
/// another type it has at most 64, those of the other type included: there one type after another is tried, and on
/// Linux each attempt that fails takes time proportional to the square of the depth.
@dynamicMemberLookup
public enum JSONValue: Sendable, Hashable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// A number; whole ones beyond 2⁵³ lose digits.
    case number(Double)
    /// Text.
    case string(String)
    /// A list.
    case array([JSONValue])
    /// Named values; of a repeated name one remains.
    case object([String: JSONValue])

    /// The value of a name; `nil` when this is no object or has no such name.
    public subscript(name: String) -> JSONValue? {
        if case .object(let values) = self { values[name] } else { nil }
    }

    /// The value at a place; `nil` when this is no list or has no such place.
    public subscript(place: Int) -> JSONValue? {
        if case .array(let values) = self, values.indices.contains(place) { values[place] } else { nil }
    }

    /// The same as ``subscript(_:)-(String)``.
    public subscript(dynamicMember name: String) -> JSONValue? { self[name] }

    /// The text; `nil` for everything else.
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The number; `nil` for everything else.
    public var number: Double? { if case .number(let value) = self { value } else { nil } }
    /// The number when it is a whole one; `nil` for everything else.
    public var integer: Int? { number.flatMap { Int(exactly: $0) } }
    /// The truth value; `nil` for everything else.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The list; `nil` for everything else.
    public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }

    /// Parses JSON of any shape. The depth is limited (``JSON/object(from:)``), so that the walk over the result is bounded.
    struct Parser: BodyDecoder {
        func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
            let json = JSONValue(try JSON.object(from: data))
            guard let value = json as? Value else {
                throw DecodingError.typeMismatch(type, .init(codingPath: [], debugDescription: "not JSON of any shape"))
            }
            return value
        }
    }

    private init(_ json: Any) {
        switch json {
        case let value as String: self = .string(value)
        case let value as [Any]: self = .array(value.map(JSONValue.init))
        case let value as [String: Any]: self = .object(value.mapValues(JSONValue.init))
        case let value as NSNumber: self = String(cString: value.objCType) == "c" ? .bool(value.boolValue) : .number(value.doubleValue)
        default: self = .null
        }
    }
}

extension JSONValue: Decodable {
    /// The most levels within another type, those of the other type included.
    private static let maximumDepth = 64

    /// Decodes from any decoder, so that it can be a part of other types.
    ///
    /// - Throws: `DecodingError.dataCorrupted` for more than 64 levels of arrays and objects; the error of the decoder.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {  // what it is not says nothing about what it is
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {  // as above
            self = .number(value)
        } else if let value = try? container.decode(String.self) {  // as above
            self = .string(value)
        } else {
            let path = decoder.codingPath
            guard path.count < Self.maximumDepth else {
                let message = "JSON of any shape within another type has at most \(Self.maximumDepth) levels."
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
