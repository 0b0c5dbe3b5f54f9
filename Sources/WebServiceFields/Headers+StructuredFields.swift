public import WebServiceCore

extension Headers {
    /// Returns the value of a field that is an item (RFC 9651, section 3.3).
    ///
    /// - Returns: `nil` if the field is absent or malformed. A malformed field must be ignored
    ///   (section 4.2).
    public func structuredItem(_ name: Name) -> StructuredField.Item? {
        self[name].flatMap { StructuredField.item(parsing: $0) }
    }

    /// Returns the value of a field that is a list (RFC 9651, section 3.1).
    ///
    /// The values of a repeated field form one list.
    ///
    /// - Returns: `nil` if the field is malformed, or an empty list if it is absent. A malformed
    ///   field must be ignored (section 4.2).
    public func structuredList(_ name: Name) -> StructuredField.List? {
        StructuredField.list(parsing: self[name] ?? "")
    }

    /// Returns the value of a field that is a dictionary (RFC 9651, section 3.2).
    ///
    /// The values of a repeated field form one dictionary. If a key is repeated, the last member
    /// replaces the first one in its place.
    ///
    /// - Returns: `nil` if the field is malformed, or an empty dictionary if it is absent. A
    ///   malformed field must be ignored (section 4.2).
    public func structuredDictionary(_ name: Name) -> StructuredField.Dictionary? {
        StructuredField.dictionary(parsing: self[name] ?? "")
    }

    /// Sets a field to an item (RFC 9651, section 4.1.3), and replaces all fields with that name.
    ///
    /// - Throws: `invalidHeader` if a value cannot be serialized; see
    ///   ``StructuredField/serialized(_:)->String``. In that case, the fields are unchanged.
    public mutating func setStructuredItem(
        _ item: StructuredField.Item, for name: Name
    ) throws(WebServiceError) {
        try set(name) { () throws(WebServiceError) in try StructuredField.serialized(item) }
    }

    /// Sets a field to a list (RFC 9651, section 4.1.1), and replaces all fields with that name.
    ///
    /// An empty list removes the field.
    ///
    /// - Throws: `invalidHeader` if a value cannot be serialized; see
    ///   ``StructuredField/serialized(_:)->String``. In that case, the fields are unchanged.
    public mutating func setStructuredList(
        _ list: StructuredField.List, for name: Name
    ) throws(WebServiceError) {
        try set(name) { () throws(WebServiceError) in try StructuredField.serialized(list) }
    }

    /// Sets a field to a dictionary (RFC 9651, section 4.1.2), and replaces all fields with that
    /// name.
    ///
    /// An empty dictionary removes the field.
    ///
    /// - Throws: `invalidHeader` if a value cannot be serialized; see
    ///   ``StructuredField/serialized(_:)->String``. In that case, the fields are unchanged.
    public mutating func setStructuredDictionary(
        _ dictionary: StructuredField.Dictionary, for name: Name
    ) throws(WebServiceError) {
        try set(name) { () throws(WebServiceError) in try StructuredField.serialized(dictionary) }
    }

    private mutating func set(
        _ name: Name, to value: () throws(WebServiceError) -> String?
    ) throws(WebServiceError) {
        do throws(WebServiceError) {
            self[name] = try value()
        } catch {
            let header = name.rawValue.shortenedForDisplay
            throw WebServiceError(error.code, "the value of the header field '\(header)' is invalid: \(error.message)")
        }
    }
}
