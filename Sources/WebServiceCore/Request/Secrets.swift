/// The detection of names and values that may be secret, for descriptions and for the separation of
/// accounts.
///
/// In case of doubt, a value counts as secret, because it is better to hide a harmless value than
/// to show a credential. `WebServiceDiagnostics` finds the secrets within a value.
package enum Secrets {
    /// The replacement for a value that may be secret.
    static let placeholder = "[redacted]"

    /// Returns whether a name or a value contains a part that is typical of credential names, such
    /// as "token".
    ///
    /// Only ASCII letters and digits are compared, without regard to case.
    package static func mayBeNamed(by text: String) -> Bool {
        let plain = Array(ASCII.lowercased(text.utf8.filter(ASCII.isAlphanumeric)).utf8)
        return plain.indices.contains { start in
            fragments[plain[start]]?.contains { plain[start...].starts(with: $0) } ?? false
        }
    }

    /// The parts that are typical of credential names, by their first byte.
    private static let fragments = Dictionary(
        grouping: [
            "accesskey", "apikey", "artapi", "assertion", "auth", "bearer", "code", "connectionstring", "connstr",
            "cookie", "credential", "csrf", "cvc", "cvv", "dpop", "dockerconfig", "hmac", "jwt", "key", "mfa",
            "mnemonic", "otp", "pass", "phrase", "pin", "psk", "pswd", "pw", "saml", "secret", "sess", "sid", "sig",
            "ssn", "ticket", "token", "verifier", "wresult", "xsrf",
        ].map { Array($0.utf8) }, by: { $0.first ?? 0 })

    /// Returns a value, or the placeholder if the value may be a secret because of its name, or
    /// because it contains user information, the name of a credential, the URL of a webhook, an
    /// escape sequence, or a word that looks random.
    static func shown(_ value: String, of name: String) -> String {
        let bytes = value.utf8
        let isSecret =
            mayBeNamed(by: name) || bytes.contains { "@%\\".utf8.contains($0) } || mayBeNamed(by: value)
            || bytes.holds("hook".utf8) || bytes.split { !isWordByte($0) }.contains(where: looksRandom)
        return isSecret ? placeholder : value
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
    }

    /// Returns whether a word is long and contains digits and letters of both cases, as tokens do.
    private static func looksRandom(_ word: Substring.UTF8View) -> Bool {
        word.count >= 16 && word.contains(where: ASCII.isDigit)
            && word.contains { ASCII.isAlpha($0) && $0 & 0x20 == 0 }
            && word.contains { ASCII.isAlpha($0) && $0 & 0x20 != 0 }
    }
}

/// A type that prints only its description, because its properties may contain secrets.
package protocol RedactedReflectable: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {}

extension RedactedReflectable {
    /// The `description`, so that debugging shows no secrets.
    public var debugDescription: String { description }

    /// The mirror that `dump` prints. It contains only `description`.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
