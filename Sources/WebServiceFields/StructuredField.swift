public import Foundation

/// Structured fields (RFC 9651): items, lists and dictionaries.
///
/// ```swift
/// try request.headers.setStructuredDictionary(["u": .item(1), "i": .item(true)], for: "Priority")
/// let priority = request.headers.structuredDictionary("Priority")
/// let urgency = priority?["u"]?.item?.value.integer ?? 3
/// ```
/// The definition of a header field specifies whether its value is an ``Item``, a ``List`` or a
/// ``Dictionary``. Parsing is strict: if any part of a value violates the grammar, the whole value
/// is malformed. Parsing and serializing take linear time.
public enum StructuredField {
    /// A list (RFC 9651, section 3.1). A field without members is not sent.
    public typealias List = [Member]

    /// A dictionary (RFC 9651, section 3.2). A field without members is not sent.
    public typealias Dictionary = OrderedMap<Member>

    /// The parameters of an item or an inner list (RFC 9651, section 3.1.2).
    public typealias Parameters = OrderedMap<BareItem>

    /// A value with parameters (RFC 9651, section 3.3).
    public struct Item: Hashable, Sendable {
        /// The value without its parameters.
        public var value: BareItem
        /// The parameters of the value, in order.
        public var parameters: Parameters

        /// Creates an item, by default without parameters.
        public init(_ value: BareItem, parameters: Parameters = [:]) {
            self.value = value
            self.parameters = parameters
        }
    }

    /// A list of items that is a member of a list or a dictionary (RFC 9651, section 3.1.1). It may
    /// be empty.
    public struct InnerList: Hashable, Sendable {
        /// The items between the parentheses, in order.
        public var items: [Item]
        /// The parameters of the list itself.
        public var parameters: Parameters

        /// Creates an inner list, by default without parameters.
        public init(_ items: [Item], parameters: Parameters = [:]) {
            self.items = items
            self.parameters = parameters
        }
    }

    /// A member of a list or a dictionary (RFC 9651, sections 3.1 and 3.2).
    public enum Member: Hashable, Sendable {
        /// A single value with its parameters.
        case item(Item)
        /// An inner list.
        case innerList(InnerList)

        /// Returns a member that is an item, by default without parameters.
        public static func item(_ value: BareItem, parameters: Parameters = [:]) -> Member {
            .item(Item(value, parameters: parameters))
        }

        /// Returns a member that is an inner list, by default without parameters.
        public static func innerList(_ items: [Item], parameters: Parameters = [:]) -> Member {
            .innerList(InnerList(items, parameters: parameters))
        }

        /// The item; `nil` if the member is an inner list.
        public var item: Item? { if case .item(let item) = self { item } else { nil } }

        /// The inner list; `nil` if the member is an item.
        public var innerList: InnerList? { if case .innerList(let list) = self { list } else { nil } }
    }

    /// A value without parameters (RFC 9651, section 3.3).
    ///
    /// Literals create integers, decimals, strings and Booleans. Values of different types are
    /// never equal: ``integer(_:)`` with 1 is not equal to ``decimal(_:)`` with 1.
    public enum BareItem: Hashable, Sendable {
        /// An integer with at most 15 digits (section 3.3.1).
        case integer(Int64)
        /// A number with a fraction (section 3.3.2). It has at most 12 digits before the decimal
        /// point and 3 digits after it.
        ///
        /// A `Double` can represent all of these numbers distinctly. Other values are rounded to 3
        /// digits after the decimal point when they are serialized. If two results are equally
        /// near, the even one is used.
        case decimal(Double)
        /// A string of printable ASCII characters (section 3.3.3). For other strings, see
        /// ``displayString(_:)``.
        case string(String)
        /// A short word, such as `gzip` or `text/html` (section 3.3.4).
        ///
        /// A token begins with a letter or `*`. The other characters are `:`, `/`, and those that
        /// HTTP allows in tokens.
        case token(String)
        /// Bytes, which are encoded in Base64 (section 3.3.5).
        case byteSequence(Data)
        /// A Boolean (section 3.3.6).
        case boolean(Bool)
        /// A date (section 3.3.7). When it is serialized, it is rounded down to whole seconds.
        case date(Date)
        /// A string of any characters, for display to people (section 3.3.8).
        case displayString(String)
    }
}

extension StructuredField.BareItem {
    /// The integer; `nil` for any other value.
    public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
    /// The decimal; `nil` for any other value, including an integer.
    public var decimal: Double? { if case .decimal(let value) = self { value } else { nil } }
    /// The string; `nil` for any other value, including a token and a display string.
    public var string: String? { if case .string(let value) = self { value } else { nil } }
    /// The token; `nil` for any other value.
    public var token: String? { if case .token(let value) = self { value } else { nil } }
    /// The bytes; `nil` for any other value.
    public var byteSequence: Data? { if case .byteSequence(let value) = self { value } else { nil } }
    /// The Boolean; `nil` for any other value.
    public var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
    /// The date; `nil` for any other value.
    public var date: Date? { if case .date(let value) = self { value } else { nil } }
    /// The display string; `nil` for any other value.
    public var displayString: String? { if case .displayString(let value) = self { value } else { nil } }
}

extension StructuredField.BareItem: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByStringInterpolation, ExpressibleByBooleanLiteral
{
    /// Creates an integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }

    /// Creates a decimal.
    public init(floatLiteral value: Double) { self = .decimal(value) }

    /// Creates a string, not a token.
    public init(stringLiteral value: String) { self = .string(value) }

    /// Creates a Boolean.
    public init(booleanLiteral value: Bool) { self = .boolean(value) }
}
