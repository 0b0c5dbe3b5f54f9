extension Request {
    /// Header fields that may be sent only to certain origins.
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

        /// Returns whether a field of a request contains one of the values. The field may contain
        /// other values as well, because a `URLRequest` joins all values of a field.
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

    /// Adds the fields that the request does not have yet, and restricts them to certain origins.
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

extension Request {
    /// A field whose value depends on the method, the URL and the other fields of the request that
    /// is sent, such as a credential.
    ///
    /// ``Request/encode()`` replaces the placeholder in the field, so a redirect is sent with the
    /// value for its own URL.
    package struct Signature: Sendable {
        /// The name of the field. Defaults to `Authorization`.
        let field: Headers.Name
        /// The value of the field until the request is encoded.
        let placeholder: String
        /// A closure that returns the value of the field, or `nil` to send no field.
        let value: @Sendable (_ method: Method, _ url: String, _ headers: Headers) throws(WebServiceError) -> String?

        package init(
            _ field: Headers.Name = .authorization, placeholder: String,
            value: @escaping @Sendable (Method, String, Headers) throws(WebServiceError) -> String?
        ) {
            (self.field, self.placeholder, self.value) = (field, placeholder, value)
        }
    }

    /// Returns the request with the placeholder in a field that only certain origins may receive.
    package func signed(by signature: Signature, for origins: Set<Origin>) -> Request {
        var request = self
        request.signature = signature
        request.headers[signature.field] = signature.placeholder
        request.bind(BoundFields([signature.field.rawValue: signature.placeholder], origins: origins))
        if signature.field == .authorization { request.credentialFields.insert(.authorization) }
        return request
    }

    /// Returns header fields in which the value of the signature replaces the placeholder.
    func signing(_ headers: Headers, url: String) throws(WebServiceError) -> Headers {
        guard let signature, headers[signature.field] == signature.placeholder else { return headers }
        var headers = headers
        headers[signature.field] = try signature.value(method, url, headers)
        return headers
    }

    /// Restores the placeholder in a request whose URL may have changed.
    ///
    /// - Parameter signature: The signature of the request before the change.
    mutating func removeSignature(of signature: Signature?) {
        guard let signature, let value = headers[signature.field],
            signature.field != .authorization || value.hasPrefix("Digest ")
        else { return }
        self.signature = signature
        headers[signature.field] = signature.placeholder
    }
}
