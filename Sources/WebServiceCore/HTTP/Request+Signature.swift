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
