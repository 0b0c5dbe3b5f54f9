/// Named values for a query, a form or a JSON body: ordered, with repeated names preserved.
///
/// ```swift
/// request.queryParameters = ["state": "new york", "page": page, "tag": "ale", "tag": "lager"]
/// ```
/// ``ParameterStrategy`` defines how values are converted to strings.
public struct Parameters: Sendable, Hashable {
    /// A name and its value.
    public typealias Element = (key: String, value: ParameterValue)

    struct Item: Sendable, Hashable {
        var key: String
        var value: ParameterValue
    }

    private(set) var items: [Item]

    /// Creates parameters in the given order. Repeated names are preserved.
    public init(_ elements: some Sequence<(String, ParameterValue)>) {
        items = elements.map { Item(key: $0.0, value: $0.1) }
    }

    /// Creates parameters from a dictionary of any values, sorted by name.
    ///
    /// A value of an unsupported type is not dropped: encoding the request throws an error that
    /// names the parameter and the type.
    public init(_ dictionary: [String: Any]) {
        self.init(dictionary, depth: 0)
    }

    init(_ dictionary: [String: Any], depth: Int) {
        items = dictionary.map { Item(key: $0.key, value: ParameterValue(any: $0.value, depth: depth)) }
            .sorted(by: Self.precedes)
    }

    init(sorting dictionary: [String: some ParameterConvertible]) {
        items = dictionary.map { Item(key: $0.key, value: $0.value.parameterValue) }.sorted(by: Self.precedes)
    }

    private static func precedes(_ a: Item, _ b: Item) -> Bool {
        a.key.utf8.lexicographicallyPrecedes(b.key.utf8)
    }

    /// Appends a value, even if there already is a value with the same name.
    public mutating func append(_ name: String, _ value: (any ParameterConvertible)?) {
        items.append(Item(key: name, value: ParameterValue(value)))
    }

    /// The first value with the given name; `nil` if there is none.
    ///
    /// Setting a value replaces the first one with that name and removes the others. Setting `nil`
    /// removes all of them.
    public subscript(name: String) -> ParameterValue? {
        get { items.first { $0.key == name }?.value }
        set {
            let place = items.firstIndex { $0.key == name }
            guard let newValue else { return items.removeAll { $0.key == name } }
            guard let place else { return items.append(Item(key: name, value: newValue)) }
            let tail = items[(place + 1)...].filter { $0.key != name }
            items.replaceSubrange(place..., with: [Item(key: name, value: newValue)] + tail)
        }
    }

    /// The first value with the given name, to which any convertible value can be assigned, such as
    /// a number or a dictionary; see ``subscript(_:)-(String)``.
    @_disfavoredOverload
    public subscript(name: String) -> (any ParameterConvertible)? {
        get { self[name] as ParameterValue? }
        set { self[name] = newValue.map(\.parameterValue) as ParameterValue? }
    }
}

extension Parameters: ExpressibleByDictionaryLiteral {
    /// Creates parameters from a literal. Order and repeated names are preserved.
    public init(dictionaryLiteral elements: (String, (any ParameterConvertible)?)...) {
        items = elements.map { Item(key: $0.0, value: ParameterValue($0.1)) }
    }
}

extension Parameters {
    /// Returns the parameters of both operands, in order.
    static func + (first: Parameters, second: Parameters) -> Parameters {
        var result = first
        result.items += second.items
        return result
    }
}

extension Parameters: RandomAccessCollection {
    /// The position of the first parameter.
    public var startIndex: Int { items.startIndex }
    /// The position after the last parameter.
    public var endIndex: Int { items.endIndex }
    /// The parameter at a position.
    public subscript(position: Int) -> Element {
        (items[position].key, items[position].value)
    }
}

extension Parameters: RedactedReflectable {
    /// A description that is safe to log: names and values, without values that may be or contain a
    /// secret.
    public var description: String {
        let pairs = items.map { "\($0.key): \(Secrets.shown($0.value.description, of: $0.key))" }
        return "[\(pairs.joined(separator: ", "))]".escapingControls
    }
}
