import Foundation

/// A JSON value of any shape (RFC 8259).
///
/// ```swift
/// let json = try await service.GET("/brewers").json().value
/// let name = json["brewers"]?[0]?["name"]?.string
/// let id = json["brewers"]?[0]?["id"]?.int
/// ```
/// Integers of 64 bits are exact. Numbers with the same value are equal, so ``integer(_:)`` with 1
/// equals ``double(_:)`` with 1.
///
/// A value that `json()` or `decode(JSONValue.self)` decodes as a whole has at most 512 levels of
/// arrays and objects. A value within another type has at most 64 levels, including those of the
/// other type, because its decoding tries one type after another, and each failed attempt takes
/// time proportional to the square of the depth on Linux.
public enum JSONValue: Sendable {
    /// The value `null`.
    case null
    /// The value `true` or `false`.
    case bool(Bool)
    /// An integer that `Int64` represents.
    case integer(Int64)
    /// An integer too large for `Int64`.
    case unsigned(UInt64)
    /// Any other number, rounded to the nearest `Double`: one with a fraction or an exponent, or an
    /// integer of more than 64 bits.
    ///
    /// Parsing a number beyond the range of `Double`, such as `1e400`, fails.
    case double(Double)
    /// A string, without its escape sequences.
    case string(String)
    /// An array, in the order of the document.
    case array([JSONValue])
    /// An object. If a document repeats a name, the first value remains.
    case object([String: JSONValue])

    /// Creates an integer.
    public init(_ value: Int) { self = .integer(Int64(value)) }

    /// The value of a name; `nil` if this value is not an object or has no such name.
    public subscript(name: String) -> JSONValue? { object?[name] }

    /// The value at an index; `nil` if this value is not an array or has no such index.
    public subscript(place: Int) -> JSONValue? {
        if case .array(let values) = self, values.indices.contains(place) { values[place] } else { nil }
    }

    /// The string; `nil` for any other value.
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The number if it is exactly an `Int`; `nil` for any other value.
    ///
    /// The property is also `nil` for a ``double(_:)`` of 2⁵³ or more, which may have been rounded.
    public var int: Int? { whole() }
    /// The number if it is exactly a `UInt64`; `nil` for any other value.
    ///
    /// The property is also `nil` for a ``double(_:)`` of 2⁵³ or more, which may have been rounded.
    public var uint64: UInt64? { whole() }
    /// The number as a `Double`; `nil` for any other value.
    ///
    /// An integer beyond 2⁵³ is rounded to the nearest `Double`.
    public var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .unsigned(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }
    /// The Boolean; `nil` for any other value.
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The array; `nil` for any other value.
    public var array: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    /// The object; `nil` for any other value.
    public var object: [String: JSONValue]? { if case .object(let value) = self { value } else { nil } }
    /// Whether this is `null`.
    public var isNull: Bool { if case .null = self { true } else { false } }

    private func whole<Integer: FixedWidthInteger>() -> Integer? {
        switch self {
        case .integer(let value): Integer(exactly: value)
        case .unsigned(let value): Integer(exactly: value)
        case .double(let value) where value.magnitude < 0x1p53: Integer(exactly: value)
        default: nil
        }
    }

    /// The value as Foundation objects: `NSNumber` or `Double`, `String`, `NSNull`, `[Any]` and
    /// `[String: Any]`.
    var foundationValue: Any {
        switch self {
        case .null: NSNull()
        case .bool(let value): NSNumber(value: value)
        case .integer(let value): NSNumber(value: value)
        case .unsigned(let value): NSNumber(value: value)
        // A `Double` beyond 2⁵³ may have been rounded, so it is not cast to an integer.
        case .double(let value): value.magnitude < 0x1p53 ? NSNumber(value: value) : value
        case .string(let value): value
        case .array(let values): values.map(\.foundationValue)
        case .object(let values): values.mapValues(\.foundationValue)
        }
    }
}

extension JSONValue: Hashable {
    /// Returns whether two values are equal. Numbers are compared by value.
    public static func == (a: JSONValue, b: JSONValue) -> Bool {
        switch (a, b) {
        case (.null, .null): true
        case (.bool(let a), .bool(let b)): a == b
        case (.string(let a), .string(let b)): a == b
        case (.array(let a), .array(let b)): a == b
        case (.object(let a), .object(let b)): a == b
        default: a.number.map { $0 == b.number } ?? false
        }
    }

    /// Hashes the value. Equal numbers have equal hashes.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let value): hasher.combine(value)
        case .string(let value): hasher.combine(value)
        case .array(let values): hasher.combine(values)
        case .object(let values): hasher.combine(values)
        case .integer, .unsigned, .double: hasher.combine(number)
        }
    }

    /// A number in the first representation that fits.
    private enum Number: Hashable {
        case integer(Int64)
        case unsigned(UInt64)
        case double(Double)
    }

    private var number: Number? {
        switch self {
        case .integer(let value): .integer(value)
        case .unsigned(let value): Int64(exactly: value).map(Number.integer) ?? .unsigned(value)
        case .double(let value):
            Int64(exactly: value).map(Number.integer) ?? UInt64(exactly: value).map(Number.unsigned) ?? .double(value)
        default: nil
        }
    }
}

extension JSONValue: Decodable {
    /// The maximum depth within another type, including the levels of that type.
    private static let maximumDepth = 64

    /// Creates a value from a decoder, so that other types can contain it.
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
            self = Self.integer(in: container, near: value) ?? .double(value)
        } else if let value = try? container.decode(String.self) {  // as above
            self = .string(value)
        } else {
            let path = decoder.codingPath
            guard path.count < Self.maximumDepth else {
                let message = "A JSONValue within another type is nested deeper than \(Self.maximumDepth) levels."
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
    /// Returns the exact integer for a number that a decoder has read as a `Double`; `nil` if the
    /// number is not an integer of 64 bits.
    private static func integer(in container: any SingleValueDecodingContainer, near value: Double) -> JSONValue? {
        let integer: JSONValue
        if let value = try? container.decode(Int64.self) {  // a failure only rules out this type
            integer = .integer(value)
        } else if let value = try? container.decode(UInt64.self) {  // as above
            integer = .unsigned(value)
        } else {
            return nil
        }
        // On Linux, `JSONDecoder` removes the fraction of a number beyond 2⁵³.
        if value.magnitude >= 0x1p53, let exact = try? container.decode(Decimal.self),  // as above
            exact.description != integer.description
        {
            return nil
        }
        return integer
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// Creates `null`.
    public init(nilLiteral: ()) { self = .null }

    /// Creates a Boolean.
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    /// Creates an integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }

    /// Creates a number.
    public init(floatLiteral value: Double) { self = .double(value) }

    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }

    /// Creates an array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

    /// Creates an object. If a name is repeated, the last value remains.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements) { $1 })
    }
}

extension JSONValue: Encodable {
    /// Encodes the value as the corresponding JSON value.
    ///
    /// - Throws: The error of the encoder, for example for a number that JSON cannot represent.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .unsigned(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .object(let values): try container.encode(values)
        }
    }
}

extension JSONValue: CustomStringConvertible {
    /// The value as JSON text in one line, with sorted names.
    ///
    /// A number that JSON cannot represent, such as NaN, is written as `null`.
    public var description: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .integer(let value): String(value)
        case .unsigned(let value): String(value)
        case .double(let value): value.isFinite ? String(value) : "null"
        case .string(let value): Self.literal(value)
        case .array(let values): "[" + values.map(\.description).joined(separator: ", ") + "]"
        case .object(let values):
            "{"
                + values.sorted { $0.key < $1.key }.map { "\(Self.literal($0.key)): \($0.value)" }
                .joined(separator: ", ") + "}"
        }
    }

    /// Returns the literal of a string, with control characters escaped (RFC 8259, section 7).
    private static func literal(_ text: String) -> String {
        var literal = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": literal += "\\\""
            case "\\": literal += "\\\\"
            case "\n": literal += "\\n"
            case "\r": literal += "\\r"
            case "\t": literal += "\\t"
            case _ where scalar.properties.generalCategory == .control:
                literal += "\\u" + String(0x10000 + scalar.value, radix: 16).dropFirst()
            default: literal.unicodeScalars.append(scalar)
            }
        }
        return literal + "\""
    }
}
