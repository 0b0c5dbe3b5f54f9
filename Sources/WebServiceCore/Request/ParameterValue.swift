public import Foundation

/// The value of a parameter in a query, a form or a JSON body.
///
/// ``ParameterConvertible`` converts Swift values to this type. Use `ParameterValue` directly in a
/// custom ``QueryParameterEncoder``, or for a value that mixes types:
/// `["tags": [1, "two", nil] as ParameterValue]`.
public enum ParameterValue: Sendable, Hashable {
    /// The absence of a value; see ``ParameterStrategy/nulls``.
    case null
    /// A Boolean value; see ``ParameterStrategy/booleans``.
    case bool(Bool)
    /// An integer, sent in decimal.
    case integer(Int64)
    /// An integer too large for `Int64`.
    case unsigned(UInt64)
    /// A floating-point number. NaN and infinity cannot be encoded.
    case double(Double)
    /// A string, percent-encoded in a query or a form.
    case string(String)
    /// A date; see ``ParameterStrategy/dates``.
    case date(Date)
    /// An array; see ``ParameterStrategy/arrays``.
    case array([ParameterValue])
    /// An object of named values; see ``ParameterStrategy/nesting``.
    case object(Parameters)
    /// A value of an unsupported type. Encoding it throws an error that names the type.
    case unsupported(type: String)

    /// Creates a parameter value from a convertible value. An optional that is `nil` becomes
    /// ``null``.
    public init(_ value: (any ParameterConvertible)?) {
        self = value?.parameterValue ?? .null
    }

    /// Creates a parameter value from a value of any type, such as an element of a `[String: Any]`.
    ///
    /// A `RawRepresentable` value, such as a case of an enumeration, becomes its raw value. The
    /// keys of a dictionary are sorted, so that equal dictionaries produce the same request.
    public init(any value: Any?) {
        self.init(any: value, depth: 0)
    }

    /// Creates a value, in which values nested too deeply to be encoded become ``null``.
    ///
    /// The replacement protects the stack in this initializer. Encoding the value still fails.
    init(any value: Any?, depth: Int) {
        guard depth < ParameterStrategy.maximumDepth else {
            self = .null
            return
        }
        switch value {
        case nil:
            self = .null
        case let value as any ParameterConvertible:
            self = value.parameterValue
        case let value as any RawRepresentable:
            self = ParameterValue(any: value.rawValue, depth: depth)
            if case .unsupported = self { self = .unsupported(type: String(describing: type(of: value))) }
        case let value as String:  // an `NSString`; the following casts are for bridged types as well
            self = .string(value)
        case let value as Date:
            self = .date(value)
        case let value as URL:
            self = value.parameterValue
        case let value as UUID:
            self = value.parameterValue
        case let value as [String: Any]:
            self = .object(Parameters(value, depth: depth + 1))
        case let value as [Any]:
            self = .array(value.map { ParameterValue(any: $0, depth: depth + 1) })
        // Arrays are handled above, because a cast to a class first converts them and all their
        // elements to objects.
        case let value as NSNumber:
            self = ParameterValue(number: value)
        case is NSNull:
            self = .null
        case let value?:
            let mirror = Mirror(reflecting: value)
            if mirror.displayStyle == .optional {
                self = ParameterValue(any: mirror.children.first?.value, depth: depth)
            } else {
                self = .unsupported(type: String(describing: type(of: value)))
            }
        }
    }

    private init(number: NSNumber) {
        if number === NSNumber(value: true) || number === NSNumber(value: false) {
            self = .bool(number.boolValue)
            return
        }
        if let number = number as? NSDecimalNumber {
            self = .init(decimal: number.decimalValue)
            return
        }
        switch String(cString: number.objCType) {
        case "d", "f": self = .double(number.doubleValue)
        case "Q": self = .init(number.uint64Value)
        default: self = .integer(number.int64Value)
        }
    }
}

extension ParameterValue {
    /// Creates an integer or a floating-point number if one of them represents the value exactly;
    /// otherwise creates a string of the digits.
    private init(decimal: Decimal) {
        let digits = decimal.description
        if let value = Int64(digits) {
            self = .integer(value)
        } else if let value = UInt64(digits) {
            self = .unsigned(value)
        } else if let value = Double(digits), Decimal(string: String(value)) == decimal {
            self = .double(value)
        } else {
            self = decimal.parameterValue
        }
    }
}

extension ParameterValue: CustomStringConvertible {
    /// The unescaped string of a single value in the default strategy.
    ///
    /// Arrays and objects have a readable form.
    public var description: String {
        switch self {
        case .null: ""
        case .bool(let value): value ? "true" : "false"
        case .integer(let value): String(value)
        case .unsigned(let value): String(value)
        case .double(let value): Self.text(of: value)
        case .string(let value): value
        case .date(let value): ParameterStrategy.Dates.iso8601.text(of: value) ?? "(date out of range)"
        case .array(let values): "[" + values.map(\.description).joined(separator: ", ") + "]"
        case .object(let values): "[" + values.map { "\($0.key): \($0.value)" }.joined(separator: ", ") + "]"
        case .unsupported(let type): "(unsupported: \(type))"
        }
    }

    /// Returns the shortest string that parses to the same number.
    ///
    /// A whole number up to 2⁵⁴ has no fraction. `Double` writes larger ones with an exponent.
    static func text(of number: Double) -> String {
        if let whole = Int64(exactly: number), whole.magnitude <= 1 << 54 { return String(whole) }
        return String(number)
    }
}

extension ParameterValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Creates ``string(_:)``.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates ``integer(_:)``.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Creates ``double(_:)``.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// Creates ``bool(_:)``.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates ``null``.
    public init(nilLiteral: ()) { self = .null }
    /// Creates ``array(_:)``.
    public init(arrayLiteral elements: ParameterValue...) { self = .array(elements) }
    /// Creates ``object(_:)``. Order and repeated names are preserved.
    public init(dictionaryLiteral elements: (String, ParameterValue)...) {
        self = .object(Parameters(elements))
    }
}

/// A type whose values can be parameters.
///
/// Strings, numbers, `Bool`, `Date`, `URL`, `UUID`, and optionals, arrays and dictionaries of these
/// conform. A custom type conforms by returning its ``parameterValue``. A `RawRepresentable` type
/// only needs to declare the conformance; in a `[String: Any]`, even the declaration is
/// unnecessary.
public protocol ParameterConvertible: Sendable {
    /// The parameter value that represents this value.
    var parameterValue: ParameterValue { get }
}

extension ParameterConvertible where Self: RawRepresentable, RawValue: ParameterConvertible {
    /// The parameter value of the raw value.
    public var parameterValue: ParameterValue { rawValue.parameterValue }
}

extension ParameterConvertible where Self: BinaryInteger {
    /// The integer, or its digits as a string if it exceeds 64 bits.
    public var parameterValue: ParameterValue {
        if let value = Int64(exactly: self) { return .integer(value) }
        if let value = UInt64(exactly: self) { return .unsigned(value) }
        return .string(String(self))
    }
}

extension Int: ParameterConvertible {}
extension Int8: ParameterConvertible {}
extension Int16: ParameterConvertible {}
extension Int32: ParameterConvertible {}
extension Int64: ParameterConvertible {}
extension UInt: ParameterConvertible {}
extension UInt8: ParameterConvertible {}
extension UInt16: ParameterConvertible {}
extension UInt32: ParameterConvertible {}
extension UInt64: ParameterConvertible {}

extension ParameterValue: ParameterConvertible {
    /// The value itself.
    public var parameterValue: ParameterValue { self }
}

extension Parameters: ParameterConvertible {
    /// The parameters as a nested object.
    public var parameterValue: ParameterValue { .object(self) }
}

extension String: ParameterConvertible {
    /// The string as a value of a parameter.
    public var parameterValue: ParameterValue { .string(self) }
}

extension Substring: ParameterConvertible {
    /// The characters as a string.
    public var parameterValue: ParameterValue { .string(String(self)) }
}

extension Bool: ParameterConvertible {
    /// The Boolean value.
    public var parameterValue: ParameterValue { .bool(self) }
}

extension Double: ParameterConvertible {
    /// The number as a value of a parameter.
    public var parameterValue: ParameterValue { .double(self) }
}

extension Float: ParameterConvertible {
    /// The number, with the digits of the `Float`: `0.1` remains `0.1`.
    public var parameterValue: ParameterValue { .double(Double(String(self)) ?? Double(self)) }
}

extension Decimal: ParameterConvertible {
    /// The exact digits of the number as a string.
    public var parameterValue: ParameterValue { isNaN ? .double(.nan) : .string(description) }
}

extension Date: ParameterConvertible {
    /// The date as a value of a parameter.
    public var parameterValue: ParameterValue { .date(self) }
}

extension URL: ParameterConvertible {
    /// The absolute URL as a string.
    public var parameterValue: ParameterValue { .string(absoluteString) }
}

extension UUID: ParameterConvertible {
    /// The UUID as a string.
    public var parameterValue: ParameterValue { .string(uuidString) }
}

extension Optional: ParameterConvertible where Wrapped: ParameterConvertible {
    /// The wrapped value, or ``ParameterValue/null``.
    public var parameterValue: ParameterValue { map(\.parameterValue) ?? .null }
}

extension Array: ParameterConvertible where Element: ParameterConvertible {
    /// The parameter values of the elements, as an array.
    public var parameterValue: ParameterValue { .array(map(\.parameterValue)) }
}

extension Dictionary: ParameterConvertible where Key == String, Value: ParameterConvertible {
    /// The parameter values as an object, sorted by name because a dictionary has no order.
    public var parameterValue: ParameterValue { .object(Parameters(sorting: self)) }
}
