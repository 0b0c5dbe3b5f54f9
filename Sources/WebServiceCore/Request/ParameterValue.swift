public import Foundation

/// The value of one parameter of a query, a form or a JSON body.
///
/// Values are made from Swift values by ``ParameterConvertible``; you meet this type when you write a
/// ``QueryParameterEncoder`` of your own or a value that mixes types:
/// `["tags": [1, "two", nil] as ParameterValue]`.
public enum ParameterValue: Sendable, Hashable {
    /// No value; see ``ParameterStrategy/nulls``.
    case null
    /// A truth value; see ``ParameterStrategy/booleans``.
    case bool(Bool)
    /// A whole number.
    case integer(Int64)
    /// A whole number too large for `Int64`.
    case unsigned(UInt64)
    /// A floating-point number. NaN and the infinities cannot be encoded.
    case double(Double)
    /// Text.
    case string(String)
    /// A moment; see ``ParameterStrategy/dates``.
    case date(Date)
    /// A list; see ``ParameterStrategy/arrays``.
    case array([ParameterValue])
    /// Named values; see ``ParameterStrategy/nesting``.
    case object(Parameters)
    /// A value of a type that cannot be a parameter, by the name of the type; encoding it fails and says so.
    case unsupported(type: String)

    /// Makes a value from anything convertible; an optional that is `nil` gives ``null``.
    public init(_ value: (any ParameterConvertible)?) {
        self = value?.parameterValue ?? .null
    }

    /// Makes a value from anything at all, as found in a `[String: Any]`. A dictionary's names are sorted, so that the
    /// same dictionary always gives the same request.
    public init(any value: Any?) {
        self.init(any: value, depth: 0)
    }

    /// What is nested too deep to be encoded is cut off, so that it cannot exhaust the stack here; encoding still fails.
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
        case let value as String:  // an `NSString`; the next ones likewise
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
        case let value as NSNumber:  // behind the lists: a cast to a class first turns them, and all they hold, into objects
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
        switch String(cString: number.objCType) {
        case "d", "f": self = .double(number.doubleValue)
        case "Q": self = .init(number.uint64Value)
        default: self = .integer(number.int64Value)
        }
    }
}

extension ParameterValue: CustomStringConvertible {
    /// The text of a plain value as the default strategy writes it, not escaped; for lists and objects a readable form.
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

    /// The shortest text that reads back as the same number; whole numbers without a fraction.
    static func text(of number: Double) -> String {
        if let whole = Int64(exactly: number), whole.magnitude <= 1 << 53 { return String(whole) }
        return String(number)
    }
}

extension ParameterValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Makes ``string(_:)``.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Makes ``integer(_:)``.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Makes ``double(_:)``.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// Makes ``bool(_:)``.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Makes ``null``.
    public init(nilLiteral: ()) { self = .null }
    /// Makes ``array(_:)``.
    public init(arrayLiteral elements: ParameterValue...) { self = .array(elements) }
    /// Makes ``object(_:)``; order and repeated names are kept.
    public init(dictionaryLiteral elements: (String, ParameterValue)...) {
        self = .object(Parameters(elements))
    }
}

/// A type whose values can be parameters.
///
/// Strings, numbers, `Bool`, `Date`, `URL`, `UUID`, and optionals, arrays and dictionaries of these conform. Conform your own
/// type by giving the value that stands for it; a `RawRepresentable` type needs only the declaration.
public protocol ParameterConvertible: Sendable {
    /// The value that stands for this one.
    var parameterValue: ParameterValue { get }
}

extension ParameterConvertible where Self: RawRepresentable, RawValue: ParameterConvertible {
    /// The raw value.
    public var parameterValue: ParameterValue { rawValue.parameterValue }
}

extension ParameterConvertible where Self: BinaryInteger {
    /// A whole number.
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
    /// The text.
    public var parameterValue: ParameterValue { .string(self) }
}

extension Substring: ParameterConvertible {
    /// The text.
    public var parameterValue: ParameterValue { .string(String(self)) }
}

extension Bool: ParameterConvertible {
    /// The truth value.
    public var parameterValue: ParameterValue { .bool(self) }
}

extension Double: ParameterConvertible {
    /// The number.
    public var parameterValue: ParameterValue { .double(self) }
}

extension Float: ParameterConvertible {
    /// The number, with the digits that the `Float` has: `0.1` stays `0.1`.
    public var parameterValue: ParameterValue { .double(Double(String(self)) ?? Double(self)) }
}

extension Decimal: ParameterConvertible {
    /// The number's exact digits as text.
    public var parameterValue: ParameterValue { isNaN ? .double(.nan) : .string(description) }
}

extension Date: ParameterConvertible {
    /// The moment.
    public var parameterValue: ParameterValue { .date(self) }
}

extension URL: ParameterConvertible {
    /// The absolute URL as text.
    public var parameterValue: ParameterValue { .string(absoluteString) }
}

extension UUID: ParameterConvertible {
    /// The identifier as text.
    public var parameterValue: ParameterValue { .string(uuidString) }
}

extension Optional: ParameterConvertible where Wrapped: ParameterConvertible {
    /// The wrapped value, or ``ParameterValue/null``.
    public var parameterValue: ParameterValue { map(\.parameterValue) ?? .null }
}

extension Array: ParameterConvertible where Element: ParameterConvertible {
    /// The list.
    public var parameterValue: ParameterValue { .array(map(\.parameterValue)) }
}

extension Dictionary: ParameterConvertible where Key == String, Value: ParameterConvertible {
    /// The named values, sorted by name because a dictionary has no order.
    public var parameterValue: ParameterValue { .object(Parameters(sorting: self)) }
}
