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
    /// The names of secret header fields, in lower case.
    public var headerNames: Set<String>
    /// The names of secret parameters and JSON keys, in lower case.
    public var keys: Set<String>
    /// The names of secret query and form parameters and header fields, in lower case.
    ///
    /// As JSON keys they are secret only in a document that has the key `grant_type`: `code` is an
    /// authorization code in a token request (RFC 6749, section 4.1.3), and an error code in most
    /// responses.
    public var parameters: Set<String>
    /// Substrings that make any name secret, in lower case.
    public var fragments: Set<String>
    /// The replacement for a secret.
    public var placeholder: String
    /// Returns the replacement for a secret in place of ``placeholder``. In a JSON body, both are
    /// JSON text. `nil`, the default, uses the placeholder.
    package var substitute: (@Sendable (_ secret: String, _ isJSON: Bool) -> String)?

    /// Creates a redaction. Each parameter defaults to the value of ``standard``.
    public init(
        headerNames: Set<String> = ["authorization", "proxy-authorization", "cookie", "set-cookie"],
        keys: Set<String> =
            ["auth", "cvc", "cvv", "jwt", "key", "otp", "pass", "pin", "pwd", "session", "sid", "sig", "ssn"],
        parameters: Set<String> = ["code"],
        fragments: Set<String> = [
            "accesskey", "apikey", "assertion", "authkey", "authorization", "credential", "passphrase", "passwd",
            "password", "privatekey", "secret", "sessionid", "signature", "token",
        ],
        placeholder: String = "[redacted]"
    ) {
        self.headerNames = headerNames
        self.keys = keys
        self.parameters = parameters
        self.fragments = fragments
        self.placeholder = placeholder
    }

    /// The default redaction.
    ///
    /// It covers authorization, cookies, API keys, and parameters and JSON keys that look like
    /// credentials.
    public static let standard = Redaction()

    /// Returns whether the value of a header field is secret.
    public func isSecret(header name: String) -> Bool {
        let name = name.asciiLowercased()
        return headerNames.contains(name)
            || isSecret(parameter: name.hasPrefix("x-") ? String(name.dropFirst(2)) : name)
    }

    /// Returns whether the value of a JSON key is secret.
    public func isSecret(key name: String) -> Bool {
        let name = name.asciiLowercased()
        return keys.contains(name) || holdsFragment(name)
    }

    /// Returns whether the value of a query or form parameter is secret.
    public func isSecret(parameter name: String) -> Bool {
        parameters.contains(name.asciiLowercased()) || isSecret(key: name)
    }

    private func holdsFragment(_ name: String) -> Bool {
        let plain = name.utf8.filter { !"-_. ".utf8.contains($0) }
        return fragments.contains { plain.holds($0.utf8) }
    }

    /// Returns the value of a header field, or the placeholder if it is secret.
    ///
    /// In any other value, including URLs within it, user information is removed and the values of
    /// secret parameters are replaced.
    public func value(ofHeader name: String, _ value: String) -> String {
        if isSecret(header: name) { return substitute?(value, false) ?? placeholder }
        guard value.utf8.contains(UInt8(ascii: "=")) || value.utf8.contains(UInt8(ascii: "@")) else { return value }
        return TextRedactor(redaction: self, isBody: false).redacted(value)
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
        return String(
            decoding: query.isEmpty ? address : address + query.prefix(1) + pairs(query.dropFirst()), as: UTF8.self)
    }

    /// Returns the pairs of a query or a form with the secret values replaced.
    public func pairs(_ text: String) -> String {
        String(decoding: pairs(Array(text.utf8)[...]), as: UTF8.self)
    }

    private func pairs(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let pairs = bytes.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map { pair in
            let name = pair.prefix { $0 != UInt8(ascii: "=") }
            guard name.count < pair.count, isSecret(parameter: String(decoding: percentDecoded(name), as: UTF8.self))
            else { return pair }
            return name + Array("=\(replacement(of: pair.dropFirst(name.count + 1)))".utf8)
        }
        return Array(pairs.joined(separator: "&".utf8))
    }

    /// Returns the replacement for a secret.
    func replacement(of secret: ArraySlice<UInt8>, isJSON: Bool = false) -> String {
        guard let substitute else { return isJSON ? "\"\(placeholder)\"" : placeholder }
        return substitute(String(decoding: secret, as: UTF8.self), isJSON)
    }

    /// Returns a body as text with the secret values replaced.
    ///
    /// Supports JSON, forms and `text/…`. Returns `nil` for any other media type and for bytes that
    /// are not UTF-8.
    ///
    /// In `text/…`, user information in URLs is removed, and the value of a secret name is
    /// replaced:
    /// - after `=`, and after `:` if the name is quoted: a quoted string, or everything up to the
    ///   next space, `&`, `;`, `,`, `<`, `>` or quotation mark,
    /// - after `:` if the name is not quoted: the rest of the line,
    /// - in an element of that name: its content.
    ///
    /// Values at any other position, such as in another attribute or column, are not recognized.
    public func body(_ data: Data, contentType: String?) -> String? {
        let type = contentType?.asciiLowercased() ?? ""
        let begin = data.drop { [0xEF, 0xBB, 0xBF].contains($0) }.first { !" \t\r\n\u{1E}".utf8.contains($0) }
        let isJSON = type.contains("json") || begin == UInt8(ascii: "{") || begin == UInt8(ascii: "[")
        let isForm = type.hasPrefix(ContentType.formEncoded)
        guard isJSON || isForm || type.hasPrefix("text/") else { return nil }
        // A character that is cut off at the end must not prevent the redaction of the rest.
        guard let text = (0...3).lazy.compactMap({ String(validating: data.dropLast($0), as: UTF8.self) }).first else {
            return nil
        }
        if isForm, !isJSON { return pairs(text) }
        // A log line can also begin with a bracket, so text is processed twice.
        let redacted = isJSON ? JSONRedactor(self).redacted(text) : text
        return type.hasPrefix("text/") ? TextRedactor(redaction: self, isBody: true).redacted(redacted) : redacted
    }
}
