extension Headers {
    /// Creates fields from a dictionary, sorted by name.
    public init(_ dictionary: [String: String]) {
        self.init(dictionary.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    }

    /// The number of fields; a field that is repeated counts each time.
    public var count: Int { fields.count }

    /// Removes every field of a name.
    ///
    /// - Returns: The values of the fields, in order.
    @discardableResult
    public mutating func remove(_ name: Name) -> [String] {
        let values = values(for: name)
        self[name] = nil
        return values
    }
}
