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

extension Request {
    /// A credential that depends on the method and the URL of the request that is sent.
    ///
    /// ``Request/encode()`` replaces the placeholder in the field `Authorization`, so a redirect is
    /// sent with the credential of its own URL.
    struct Signature: Sendable {
        /// The value of the field until the request is encoded.
        let placeholder: String
        /// Returns the value of the field; `nil` to send none.
        let value: @Sendable (_ method: Method, _ url: String) -> String?
    }

    /// Returns the request with the placeholder of a credential that only certain origins may
    /// receive.
    func signed(by signature: Signature, for origins: Set<Origin>) -> Request {
        var request = self
        request.signature = signature
        request.headers[.authorization] = signature.placeholder
        request.bind(BoundFields(["Authorization": signature.placeholder], origins: origins))
        request.credentialFields.insert(.authorization)
        return request
    }

    /// Returns header fields in which the credential replaces the placeholder.
    func signing(_ headers: Headers, url: String) -> Headers {
        guard let signature, headers[.authorization] == signature.placeholder else { return headers }
        var headers = headers
        headers[.authorization] = signature.value(method, url)
        return headers
    }

    /// Restores the placeholder in a request whose URL may have changed.
    ///
    /// - Parameter signature: The signature of the request before the change.
    mutating func removeSignature(of signature: Signature?) {
        guard let signature, headers[.authorization]?.hasPrefix("Digest ") == true else { return }
        self.signature = signature
        headers[.authorization] = signature.placeholder
    }
}
