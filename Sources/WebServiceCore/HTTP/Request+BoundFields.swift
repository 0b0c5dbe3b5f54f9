extension Request {
    /// Header fields that may be sent to certain origins only.
    struct BoundFields: Sendable {
        let fields: Headers
        let origins: Set<Origin>

        /// - Parameters:
        ///   - fields: The fields. Those that every origin may receive are ignored.
        ///   - origins: The origins that may receive the fields.
        init(_ fields: Headers, origins: Set<Origin>) {
            self.fields = fields.filtered { !unboundFields.contains($0.name.asciiLowercased()) }
            self.origins = origins
        }

        /// Returns whether a field of a request has one of the values, possibly among others: a
        /// `URLRequest` joins all values of a field.
        fileprivate func contains(_ name: String, _ value: String) -> Bool {
            let separator = name.equalsIgnoringASCIICase("Cookie") ? "; " : ", "
            let value = separator + Substring(ASCII.trimmed(value.utf8)) + separator
            return fields.contains { field in
                guard field.name.equalsIgnoringASCIICase(name) else { return false }
                let own = separator + Substring(ASCII.trimmed(field.value.utf8)) + separator
                return value.utf8.contains(own.utf8)
            }
        }
    }

    /// The names of the fields that every origin may receive, in lower case.
    static let unboundFields = ["accept", "accept-encoding", "accept-language", "user-agent"]

    /// Adds fields that the request does not have, for certain origins only.
    mutating func add(_ fields: Headers, for origins: Set<Origin>) {
        headers = headers.adding(fields)
        bind(BoundFields(fields, origins: origins))
    }

    /// Restricts fields of the request to certain origins.
    mutating func bind(_ bound: BoundFields) {
        guard !bound.fields.isEmpty else { return }
        boundFields.append(bound)
        removeForeignFields()
    }

    /// Removes the fields that may not be sent to the origin of the URL.
    mutating func removeForeignFields() {
        guard !boundFields.isEmpty else { return }
        let origin = url.flatMap(Origin.init)
        for bound in boundFields where !(origin.map(bound.origins.contains) ?? false) {
            headers = headers.filtered { !bound.contains($0.name, $0.value) }
        }
    }
}
