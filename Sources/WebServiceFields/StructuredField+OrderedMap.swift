extension StructuredField {
    /// Values by key, in order: a ``Dictionary`` or ``Parameters`` (RFC 9651, sections 3.1.2 and
    /// 3.2).
    ///
    /// Two maps are equal if they have the same keys and values in the same order.
    public struct OrderedMap<Value: Hashable & Sendable>: Hashable, Sendable {
        private var keys: [String] = []
        private var values: [Value] = []
        /// The index of each key.
        private var places: [String: Int] = [:]

        /// Creates a map without keys.
        public init() {}

        /// Creates a map from keys and values.
        ///
        /// If a key is repeated, it keeps its first position and receives the last value.
        public init(_ pairs: some Sequence<(String, Value)>) {
            for (key, value) in pairs { self[key] = value }
        }

        /// The value of a key; `nil` if there is no such key.
        ///
        /// A new key is added after all others. The value of an existing key is replaced in its
        /// place. Setting `nil` removes the key, in time proportional to the number of keys.
        public subscript(key: String) -> Value? {
            get { places[key].map { values[$0] } }
            set {
                switch (places[key], newValue) {
                case (let place?, let value?): values[place] = value
                case (nil, let value?):
                    places[key] = keys.count
                    keys.append(key)
                    values.append(value)
                case (let place?, nil):
                    keys.remove(at: place)
                    values.remove(at: place)
                    places[key] = nil
                    for index in place..<keys.count { places[keys[index]] = index }
                case (nil, nil): break
                }
            }
        }
    }
}

extension StructuredField.OrderedMap: ExpressibleByDictionaryLiteral {
    /// Creates a map from a literal.
    ///
    /// If a key is repeated, the last value replaces the first one in its place.
    public init(dictionaryLiteral elements: (String, Value)...) {
        self.init(elements)
    }
}

extension StructuredField.OrderedMap: RandomAccessCollection {
    /// The index of the first key.
    public var startIndex: Int { 0 }

    /// The number of keys.
    public var endIndex: Int { keys.count }

    /// The key and the value at an index, which must be valid.
    public subscript(place: Int) -> (key: String, value: Value) { (keys[place], values[place]) }
}

extension StructuredField.OrderedMap: CustomStringConvertible {
    /// The keys and values, in order, formatted like a dictionary literal.
    public var description: String {
        isEmpty ? "[:]" : "[" + map { "\($0.key): \($0.value)" }.joined(separator: ", ") + "]"
    }
}
