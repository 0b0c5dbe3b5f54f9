public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The rules for secrets in logs, and the placeholder that replaces them.
///
/// Names are compared without regard to ASCII case. A header field, a query or form parameter or a
/// JSON key is secret if its name is in one of the sets, or contains one of ``fragments`` after
/// `-`, `_`, `.` and spaces are removed: `access_token` and `X-Amz-Security-Token` contain `token`.
///
/// All input is processed in linear time, whatever it contains. ``ExchangeLogger``,
/// ``Request/curlDescription(redaction:)`` and ``SessionTask/httpArchive(redaction:)`` apply a
/// redaction.
public struct Redaction: Sendable {
    /// The names of secret header fields. Converted to lower case.
    public var headerNames: Set<String> { didSet { headerNames = Self.lowercased(headerNames) } }
    /// The names of secret parameters and JSON keys. Converted to lower case.
    public var keys: Set<String> { didSet { keys = Self.lowercased(keys) } }
    /// The names of parameters that are secret in OAuth. Converted to lower case.
    ///
    /// `code` is an authorization code in OAuth (RFC 6749, section 4.1.2), and an error code
    /// elsewhere. A parameter of a query, a form or text is secret if they also contain one of the
    /// parameters `client_id`, `code_verifier`, `grant_type`, `iss`, `redirect_uri` and `state`,
    /// and otherwise unless its value has the form of an error code: up to four digits, or words
    /// joined by underscores, such as `missing_field`. A JSON key is secret in a document with the
    /// key `code_verifier`, `grant_type` or `redirect_uri`.
    public var parameters: Set<String> { didSet { parameters = Self.lowercased(parameters) } }
    /// Substrings that make any name secret. Converted to lower case.
    public var fragments: Set<String> { didSet { fragments = Self.lowercased(fragments) } }
    /// The replacement for a secret.
    public var placeholder: String
    /// Returns the replacement for a secret in place of ``placeholder``. In a JSON body, both are
    /// JSON text. `nil`, the default, uses the placeholder.
    package var substitute: (@Sendable (_ secret: String, _ isJSON: Bool) -> String)?

    /// Creates a redaction. Each parameter defaults to the value of ``standard``.
    public init(
        headerNames: Set<String> = ["authorization", "proxy-authorization", "cookie", "set-cookie"],
        keys: Set<String> = [
            "auth", "bearer", "cvc", "cvv", "jwt", "key", "mfa", "otp", "pass", "pin", "pwd", "session", "sid", "sig",
            "ssn", "totp",
        ],
        parameters: Set<String> = ["code"],
        fragments: Set<String> = [
            "accesskey", "apikey", "assertion", "authcode", "authkey", "authorization", "codeverifier", "credential",
            "devicecode", "passcode", "passphrase", "passwd", "password", "privatekey", "secret", "sessid", "sessionid",
            "signature", "subscriptionkey", "token", "usercode",
        ],
        placeholder: String = "[redacted]"
    ) {
        self.headerNames = Self.lowercased(headerNames)
        self.keys = Self.lowercased(keys)
        self.parameters = Self.lowercased(parameters)
        self.fragments = Self.lowercased(fragments)
        self.placeholder = placeholder
    }

    private static func lowercased(_ names: Set<String>) -> Set<String> { Set(names.map { $0.asciiLowercased() }) }

    /// The default redaction.
    ///
    /// It covers authorization, cookies, API keys, and parameters and JSON keys that look like
    /// credentials.
    public static let standard = Redaction()

    /// Returns whether the value of a header field is secret.
    public func isSecret(header name: String) -> Bool {
        let name = name.asciiLowercased()
        return headerNames.contains(name) || isSecret(key: name.hasPrefix("x-") ? String(name.dropFirst(2)) : name)
    }

    /// Returns whether the value of a JSON key is secret.
    public func isSecret(key name: String) -> Bool {
        let name = name.asciiLowercased()
        return keys.contains(name) || holdsFragment(name)
    }

    /// Returns whether the value of a query or form parameter is secret, in OAuth or in general.
    public func isSecret(parameter name: String) -> Bool {
        parameters.contains(name.asciiLowercased()) || isSecret(key: name)
    }

    private func holdsFragment(_ name: String) -> Bool {
        let plain = name.utf8.filter { !"-_. ".utf8.contains($0) }
        return fragments.contains { plain.holds($0.utf8) }
    }

    /// Returns the value of a header field, or the placeholder if it is secret.
    ///
    /// In any other value, including URLs and JSON within it, user information is removed and the
    /// values of secret names are replaced.
    public func value(ofHeader name: String, _ value: String) -> String {
        if isSecret(header: name) { return substitute?(value, false) ?? placeholder }
        guard value.utf8.contains(where: TextRedactor.isDelimiter) else { return value }
        return String(decoding: TextRedactor(redaction: self).redacted(value: Array(value.utf8)[...]), as: UTF8.self)
    }

    /// Returns a URL with the secret values of its query replaced.
    ///
    /// User information and the fragment are removed.
    public func url(_ text: String) -> String {
        // Bytes, because a delimiter followed by a combining character is a different `Character`.
        let bytes = Array(text.utf8)
        let withoutFragment = bytes.prefix { $0 != UInt8(ascii: "#") }
        var address = withoutFragment.prefix { $0 != UInt8(ascii: "?") }
        let query = withoutFragment[address.endIndex...]
        let start = address.starts(with: "//".utf8) ? 2 : address.firstRange(of: "://".utf8)?.upperBound
        if let start {
            let authority = address[start...].prefix { $0 != UInt8(ascii: "/") }
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) { address.removeSubrange(start...at) }
        }
        let redactor = TextRedactor(redaction: self)
        // Path parameters, such as `;jsessionid=`.
        if address.contains(UInt8(ascii: "=")) { address = redactor.redacted(address, as: .value)[...] }
        if !query.isEmpty { address += query.prefix(1) + redactor.redacted(query.dropFirst(), as: .pairs) }
        return String(decoding: address, as: UTF8.self)
    }

    /// Returns the pairs of a query or a form with the secret values replaced.
    ///
    /// Values that contain URLs, pairs or JSON are redacted as well.
    public func pairs(_ text: String) -> String {
        TextRedactor(redaction: self).redacted(text, as: .pairs)
    }

    /// Returns the replacement for a secret.
    func replacement(of secret: ArraySlice<UInt8>, isJSON: Bool = false) -> String {
        guard let substitute else { return isJSON ? "\"\(placeholder)\"" : placeholder }
        return substitute(String(decoding: secret, as: UTF8.self), isJSON)
    }

    /// Returns a body as text with the secret values replaced.
    ///
    /// Supports JSON, forms and `text/…`. Returns `nil` for any other media type, and for bytes
    /// that are not UTF-8 or contain NUL, as in UTF-16.
    ///
    /// In JSON, the values of secret keys are replaced, and URLs, pairs and JSON within strings are
    /// redacted. In `text/…`, user information in URLs is removed, and the value of a secret name
    /// is replaced:
    /// - after `=`, and after `:` if the name is quoted: a quoted string, a list or an object in
    ///   brackets, or everything up to the next space, `&`, `;`, `<`, `>`, quotation mark, or comma
    ///   before a space,
    /// - after `:` if the name is not quoted: the rest of the line,
    /// - in an element of that name: its content.
    ///
    /// Values at any other position, such as in another attribute or column, are not recognized.
    public func body(_ data: Data, contentType: String?) -> String? {
        let type = contentType?.asciiLowercased() ?? ""
        let begin = data.drop { [0xEF, 0xBB, 0xBF].contains($0) }.first { !" \t\r\n\u{1E}".utf8.contains($0) }
        let isJSON = type.contains("json") || begin == UInt8(ascii: "{") || begin == UInt8(ascii: "[")
        let isForm = type.hasPrefix(ContentType.formEncoded)
        let isText = type.hasPrefix("text/")
        guard isJSON || isForm || isText, !data.contains(0) else { return nil }
        // A character that is cut off at the end must not prevent the redaction of the rest.
        guard let text = (0...3).lazy.compactMap({ String(validating: data.dropLast($0), as: UTF8.self) }).first else {
            return nil
        }
        let redactor = TextRedactor(redaction: self, isText: isText)
        return redactor.redacted(text, as: isJSON ? .json : isForm ? .pairs : .text)
    }
}
