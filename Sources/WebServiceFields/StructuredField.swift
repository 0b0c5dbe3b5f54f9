public import Foundation

/// Structured fields (RFC 9651): items, lists and dictionaries.
///
/// ```swift
/// try request.headers.setStructuredDictionary(["u": .item(1), "i": .item(true)], for: "Priority")
/// let priority = request.headers.structuredDictionary("Priority")
/// let urgency = priority?["u"]?.item?.value.integer ?? 3
/// ```
/// The definition of a header field specifies whether its value is an ``Item``, a ``List`` or a
/// ``Dictionary``. Parsing is strict: a value that the grammar does not allow is malformed as a
/// whole. Parsing and serializing take linear time.
public enum StructuredField {
    /// A list (RFC 9651, section 3.1). A field without members is not sent.
    public typealias List = [Member]

    /// A dictionary (RFC 9651, section 3.2). A field without members is not sent.
    public typealias Dictionary = OrderedMap<Member>

    /// The parameters of an item or an inner list (RFC 9651, section 3.1.2).
    public typealias Parameters = OrderedMap<BareItem>

    /// A value with parameters (RFC 9651, section 3.3).
    public struct Item: Hashable, Sendable {
        /// The value.
        public var value: BareItem
        /// The parameters.
        public var parameters: Parameters

        /// Creates an item. The parameters default to none.
        public init(_ value: BareItem, parameters: Parameters = [:]) {
            self.value = value
            self.parameters = parameters
        }
    }

    /// A list of items within a list or a dictionary (RFC 9651, section 3.1.1). It may be empty.
    public struct InnerList: Hashable, Sendable {
        /// The items.
        public var items: [Item]
        /// The parameters of the list itself.
        public var parameters: Parameters

        /// Creates an inner list. The parameters default to none.
        public init(_ items: [Item], parameters: Parameters = [:]) {
            self.items = items
            self.parameters = parameters
        }
    }

    /// A member of a list or a dictionary (RFC 9651, sections 3.1 and 3.2).
    public enum Member: Hashable, Sendable {
        /// An item.
        case item(Item)
        /// An inner list.
        case innerList(InnerList)

        /// Returns a member that is an item. The parameters default to none.
        public static func item(_ value: BareItem, parameters: Parameters = [:]) -> Member {
            .item(Item(value, parameters: parameters))
        }

        /// Returns a member that is an inner list. The parameters default to none.
        public static func innerList(_ items: [Item], parameters: Parameters = [:]) -> Member {
            .innerList(InnerList(items, parameters: parameters))
        }

        /// The item; `nil` for an inner list.
        public var item: Item? { if case .item(let item) = self { item } else { nil } }

        /// The inner list; `nil` for an item.
        public var innerList: InnerList? { if case .innerList(let list) = self { list } else { nil } }
    }

    /// A value without parameters (RFC 9651, section 3.3).
    ///
    /// Literals create integers, decimals, strings and Booleans. Values of different types are not
    /// equal: ``integer(_:)`` with 1 does not equal ``decimal(_:)`` with 1.
    public enum BareItem: Hashable, Sendable {
        /// An integer of at most 15 digits (section 3.3.1).
        case integer(Int64)
        /// A number with a fraction (section 3.3.2), of at most 12 digits before the point and 3
        /// after it.
        ///
        /// A `Double` represents each such number exactly once. Other values are serialized with 3
        /// digits after the point, rounded to the nearest one, or to the even one of two.
        case decimal(Double)
        /// A string of printable ASCII (section 3.3.3); see ``displayString(_:)`` for others.
        case string(String)
        /// A short word, such as `gzip` or `text/html` (section 3.3.4).
        ///
        /// A token begins with a letter or `*`. The other characters are those of tokens in HTTP,
        /// `:` and `/`.
        case token(String)
        /// Bytes, which are sent in Base64 (section 3.3.5).
        case byteSequence(Data)
        /// A Boolean (section 3.3.6).
        case boolean(Bool)
        /// A date (section 3.3.7), serialized with whole seconds, rounded down.
        case date(Date)
        /// A string of any characters, for people to read (section 3.3.8).
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
