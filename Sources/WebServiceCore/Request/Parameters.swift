/// Named values for a query, a form or a JSON body: ordered, repeated names kept.
///
/// ```swift
/// request.queryParameters = ["state": "new york", "page": page, "tag": "ale", "tag": "lager"]
/// ```
/// How values become text is said by ``ParameterStrategy``.
public struct Parameters: Sendable, Hashable {
    /// One named value.
    public typealias Element = (key: String, value: ParameterValue)

    struct Item: Sendable, Hashable {
        var key: String
        var value: ParameterValue
    }

    private(set) var items: [Item]

    /// Makes parameters in the given order; repeated names are kept.
    public init(_ elements: some Sequence<(String, ParameterValue)>) {
        items = elements.map { Item(key: $0.0, value: $0.1) }
    }

    /// Makes parameters from a dictionary of anything, sorted by name because a dictionary has no order.
    ///
    /// A value that cannot be a parameter is not lost: encoding the request fails and names the parameter and the type.
    public init(_ dictionary: [String: Any]) {
        self.init(dictionary, depth: 0)
    }

    init(_ dictionary: [String: Any], depth: Int) {
        items = dictionary.map { Item(key: $0.key, value: ParameterValue(any: $0.value, depth: depth)) }.sorted(by: Self.precedes)
    }

    init(sorting dictionary: [String: some ParameterConvertible]) {
        items = dictionary.map { Item(key: $0.key, value: $0.value.parameterValue) }.sorted(by: Self.precedes)
    }

    private static func precedes(_ a: Item, _ b: Item) -> Bool {
        a.key.utf8.lexicographicallyPrecedes(b.key.utf8)
    }

    /// Adds a value behind the others, also where one of that name exists.
    public mutating func append(_ name: String, _ value: (any ParameterConvertible)?) {
        items.append(Item(key: name, value: ParameterValue(value)))
    }

    /// The first value of that name, `nil` when there is none.
    public subscript(name: String) -> ParameterValue? {
        items.first { $0.key == name }?.value
    }
}

extension Parameters: ExpressibleByDictionaryLiteral {
    /// Makes parameters from a literal; order and repeated names are kept.
    public init(dictionaryLiteral elements: (String, (any ParameterConvertible)?)...) {
        items = elements.map { Item(key: $0.0, value: ParameterValue($0.1)) }
    }
}

extension Parameters {
    /// The parameters of both, in order.
    static func + (first: Parameters, second: Parameters) -> Parameters {
        var result = first
        result.items += second.items
        return result
    }
}

extension Parameters: RandomAccessCollection {
    /// The place of the first parameter.
    public var startIndex: Int { items.startIndex }
    /// The place behind the last parameter.
    public var endIndex: Int { items.endIndex }
    /// The parameter at a place.
    public subscript(position: Int) -> Element {
        (items[position].key, items[position].value)
    }
}

extension Parameters: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Names and values, those of secret names replaced (``Redaction/standard``): safe to log.
    public var description: String {
        let pairs = items.map { "\($0.key): \(Redaction.standard.isSecret(key: $0.key) ? Redaction.standard.placeholder : $0.value.description)" }
        return "[\(pairs.joined(separator: ", "))]".escapingControls
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// What `dump` shows: the same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["parameters": description], displayStyle: .struct) }
}
