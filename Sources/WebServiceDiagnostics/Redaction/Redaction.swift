import WebServiceCore

/// The rules for secrets, and the placeholder that replaces them.
///
/// The words of a name determine whether its value is secret. ASCII case is ignored. A name is
/// split into words at `-`, `_`, `.`, spaces and changes of case, and a leading `X` is dropped. The
/// last word is the head noun: `access_token`, `userPassword` and `X-Api-Key` are secret, but
/// `token_type`, `session.title` and `sort_key` are not. Common compounds without a separator, such
/// as `apikey` and `jsessionid`, are recognized.
/// - Some nouns are secret only after certain words, such as `key` in `signing_key` and `code` in
///   `otp_code`. `key` alone is secret as a header field and in the query of a URL. All header
///   fields of the form `X-…-Key` are secret, except keys that identify data, such as
///   `X-Cache-Key`.
/// - In JSON, numbers, Booleans and `null` are not secret. Inside the value of a name such as
///   `password` or `credentials`, all strings are secret, except in an object that describes a
///   value, such as `{"type": "string"}`. `tokens` is a count if its value is a number.
/// - A noun that also has another meaning, such as `ticket`, `pass` or `session`, is secret in JSON
///   only if its value is a single word.
/// - In every other format, all values are text, so the value in `otp=123456` is secret.
/// - A private key in PEM, a JSON Web Token, a token with a well-known prefix such as `ghp_`, and
///   the path of a webhook at `hooks.slack.com` and similar hosts are secret under any name.
/// - In JSON, the private members of a JSON Web Key are secret.
/// - The credentials in a curl command line, such as `curl -u user:password`, are secret.
///
/// Text within other text, such as a percent-encoded URL in a header field or JSON in a string, is
/// decoded up to four levels deep. Everything except the secrets remains byte for byte.
///
/// All input is processed in linear time, regardless of its content. ``ExchangeLogger``,
/// `Request.curlDescription(redaction:)` and `SessionTask.httpArchive(redaction:)` apply a
/// redaction.
public struct Redaction: Sendable {
    /// Additional secret names. Names are compared word by word, so `Station-Key` also covers
    /// `stationKey`.
    public var secretNames: Set<String> { didSet { secrets = Self.normalized(secretNames) } }
    /// Names that are not secret. They take precedence over ``secretNames`` and the other rules for
    /// names, but not over the rules for values.
    ///
    /// Some header fields remain secret, such as `Authorization`, `Proxy-Authorization`, `Cookie`,
    /// `Set-Cookie` and `DPoP`.
    public var harmlessNames: Set<String> { didSet { exceptions = Self.normalized(harmlessNames) } }
    /// The replacement for a secret.
    public var placeholder: String
    /// A closure that returns the replacement for a secret. Defaults to `nil`, which means that
    /// ``placeholder`` is used.
    package var substitute: (@Sendable (_ secret: String) -> String)?

    private var secrets: Set<String>
    private var exceptions: Set<String>

    /// Creates a redaction.
    ///
    /// - Parameters:
    ///   - secretNames: Additional secret names. Defaults to none.
    ///   - harmlessNames: Names that are not secret. Defaults to none.
    ///   - placeholder: The replacement for a secret. Defaults to `[redacted]`.
    public init(
        secretNames: Set<String> = [], harmlessNames: Set<String> = [], placeholder: String = "[redacted]"
    ) {
        self.secretNames = secretNames
        self.harmlessNames = harmlessNames
        self.placeholder = placeholder
        secrets = Self.normalized(secretNames)
        exceptions = Self.normalized(harmlessNames)
    }

    /// The default redaction.
    public static let standard = Redaction()

    private static func normalized(_ names: Set<String>) -> Set<String> { Set(names.map { normalized($0) }) }

    private static func normalized(_ name: String) -> String {
        let words = SecretName.words(of: name)
        return words.isEmpty ? name.asciiLowercased() : words.joined(separator: " ")
    }

    // MARK: Names

    /// The header fields whose values are always secret.
    static let secretFields: Set<String> = [
        "authentication", "authorization", "cookie", "dpop", "proxy-authorization", "set-cookie", "set-cookie2",
        "x-jfrog-art-api",
    ]

    func meaning(of name: String) -> SecretName {
        if !exceptions.isEmpty || !secrets.isEmpty {
            let name = Self.normalized(name)
            if exceptions.contains(name) { return .harmless }
            if secrets.contains(name) { return .secret }
        }
        return SecretName(name)
    }

    /// Returns whether the value of a header field is secret.
    public func isSecret(header name: String) -> Bool {
        if Self.secretFields.contains(name.asciiLowercased()) { return true }
        if !exceptions.isEmpty, exceptions.contains(Self.normalized(name)) { return false }
        switch meaning(of: name) {
        case .harmless, .code, .state: return SecretName.isKeyField(name)
        case .parameter, .word, .text, .list, .secret: return true
        }
    }

    /// Returns whether the value of a header field is secret because of the field's name.
    ///
    /// Empty values, Booleans and counts of tokens are not secret, except in ``secretFields``.
    func isSecret(header name: String, value: ArraySlice<UInt8>) -> Bool {
        guard isSecret(header: name) else { return false }
        if Self.secretFields.contains(name.asciiLowercased()) { return true }
        if case .list = meaning(of: name), SecretRules.isNumber(value) { return false }
        return !SecretRules.isNothing(value)
    }

    /// Returns whether the string value of a JSON member is secret because of the member's name.
    public func isSecret(key name: String) -> Bool {
        switch meaning(of: name) {
        case .harmless, .parameter, .code, .state: false
        case .word, .text, .list, .secret: true
        }
    }

    /// Returns whether the value of a query or form parameter is secret. The parameter `code`
    /// counts as secret, although it may be an error code. The parameter `state` does not count as
    /// secret.
    public func isSecret(parameter name: String) -> Bool {
        switch meaning(of: name) {
        case .harmless, .state: false
        case .parameter, .code, .word, .text, .list, .secret: true
        }
    }

    /// Returns the replacement for a secret.
    func replacement(of secret: String) -> String { substitute?(secret) ?? placeholder }

    // MARK: Values

    /// Returns the value of a header field, or the placeholder if the value is secret.
    ///
    /// In all other values, including URLs and JSON in them, user information is removed and the
    /// values of secret names are replaced. In `Sec-WebSocket-Protocol`, the token after a name
    /// such as `bearer` is also replaced.
    public func value(ofHeader name: String, _ value: String) -> String {
        if isSecret(header: name, value: Array(value.utf8)[...]) { return replacement(of: value) }
        let isProtocol = name.equalsIgnoringASCIICase("Sec-WebSocket-Protocol")
        return redacted(value) { isProtocol ? $0.protocols($1) : $0.value($1) }
    }

    /// Returns text such as an error message with its secrets replaced.
    package func text(_ text: String) -> String { redacted(text) { $0.value($1) } }

    /// Returns whether text contains a placeholder, including one that is percent-encoded.
    package func containsPlaceholder(_ text: String) -> Bool {
        var bytes = Array(text.utf8)
        for _ in 0...TextRedactor.maximumDepth {
            if bytes.holds(placeholder.utf8) { return true }
            bytes = percentDecoded(bytes)
        }
        return false
    }

    /// Returns a URL with the secret values in its query replaced.
    ///
    /// User information and the fragment are removed, and secrets in the path are also replaced.
    public func url(_ text: String) -> String {
        // The URL is split as bytes, because a delimiter that is followed by a combining character
        // is a different `Character`.
        let bytes = Array(text.utf8)
        let withoutFragment = bytes.prefix { $0 != UInt8(ascii: "#") }
        var address = withoutFragment.prefix { $0 != UInt8(ascii: "?") }
        let query = withoutFragment[address.endIndex...].dropFirst()
        let hasQuery = address.count < withoutFragment.count
        let start = address.starts(with: "//".utf8) ? 2 : address.firstRange(of: "://".utf8)?.upperBound
        if let start {
            let authority = address[start...].prefix { $0 != UInt8(ascii: "/") }
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) { address.removeSubrange(start...at) }
        }
        // The path can contain parameters, such as `;jsessionid=`, and tokens.
        let path = redacted(String(decoding: address, as: UTF8.self)) { $0.scan($1, .value) }
        return path + (hasQuery ? "?" + pairs(String(decoding: query, as: UTF8.self)) : "")
    }

    /// Returns the name-value pairs of a query with the secret values replaced.
    ///
    /// Secrets in values that contain URLs, pairs or JSON are also replaced.
    public func pairs(_ text: String) -> String { redacted(text) { $0.pairs($1, isQuery: true) } }

    private func redacted(_ text: String, _ body: (inout TextRedactor, Range<Int>) -> Void) -> String {
        var redactor = TextRedactor(SecretRules(self), Array(text.utf8))
        body(&redactor, redactor.bytes.indices)
        return redactor.redacted.map { String(decoding: $0, as: UTF8.self) } ?? text
    }
}
