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
/// All input is processed in linear time, whatever it contains.
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
        if isSecret(header: name) { return placeholder }
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
            return name + Array("=\(placeholder)".utf8)
        }
        return Array(pairs.joined(separator: "&".utf8))
    }

    /// Returns a body as text with the secret values replaced.
    ///
    /// Supports JSON, forms and `text/…`. Returns `nil` for any other media type and for bytes that
    /// are not UTF-8.
    ///
    /// In `text/…`, user information in URLs is removed, and the value of a secret name is
    /// replaced: after `=`, and after `:` if the name is quoted, a quoted string or everything up
    /// to the next space, `&`, `;`, `,`, `<`, `>` or quotation mark; after `:` otherwise the rest
    /// of the line; and the content of an element of that name. Values at any other position, such
    /// as in another attribute or column, are not recognized.
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
        // A line of a log can begin with a bracket as well, so text is processed twice.
        let redacted = isJSON ? JSONRedactor(self).redacted(text) : text
        return type.hasPrefix("text/") ? TextRedactor(redaction: self, isBody: true).redacted(redacted) : redacted
    }
}

/// Removes user information from URLs and replaces the values of secret names in text, byte by
/// byte.
private struct TextRedactor {
    let redaction: Redaction
    /// A Boolean value that indicates whether the text is a body, in which `name: value`, quoted
    /// names and elements are also recognized.
    let isBody: Bool

    func redacted(_ text: String) -> String {
        String(decoding: withoutSecrets(withoutUserInformation(Array(text.utf8))), as: UTF8.self)
    }

    /// Removes everything between `//` and the last `@` of an authority.
    private func withoutUserInformation(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            result.append(bytes[index])
            index += 1
            guard bytes[index - 1] == UInt8(ascii: "/"), index < bytes.count, bytes[index] == UInt8(ascii: "/") else {
                continue
            }
            let authority = bytes[(index + 1)...].prefix { !Self.isBlank($0) && !"/?#<>\"".utf8.contains($0) }
            guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else { continue }
            result.append(UInt8(ascii: "/"))
            index = at + 1
        }
        return result
    }

    private func withoutSecrets(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let name = bytes[index...].prefix { ASCII.isAlphanumeric($0) || "_.%-".utf8.contains($0) }
            guard !name.isEmpty else {
                result.append(bytes[index])
                index += 1
                continue
            }
            result += name
            index = name.endIndex
            guard let value = secretValue(of: name, in: bytes) else { continue }
            result += bytes[index..<value.startIndex]
            result += Array(redaction.placeholder.utf8)
            index = value.endIndex
        }
        return result
    }

    /// Returns the value after a secret name; `nil` if the name is not secret or has no value.
    private func secretValue(of name: ArraySlice<UInt8>, in bytes: [UInt8]) -> ArraySlice<UInt8>? {
        var rest = bytes[name.endIndex...]
        var isQuotedName = false
        if isBody {
            isQuotedName = rest.first.map(Self.isQuote) ?? false
            rest = rest.dropFirst(isQuotedName ? 1 : 0).drop(while: ASCII.isSpaceOrTab)
        }
        guard let separator = rest.popFirst() else { return nil }
        let text = String(
            decoding: name.contains(UInt8(ascii: "%")) ? percentDecoded(name) : Array(name), as: UTF8.self)
        switch separator {
        case UInt8(ascii: "="): guard redaction.isSecret(parameter: text) else { return nil }
        case UInt8(ascii: ":") where isBody:
            guard redaction.isSecret(key: text) || redaction.headerNames.contains(text.asciiLowercased()) else {
                return nil
            }
        case UInt8(ascii: ">") where isBody && name.startIndex > 0 && "<:".utf8.contains(bytes[name.startIndex - 1]):
            guard redaction.isSecret(key: text) else { return nil }
        default: return nil
        }
        if isBody { rest = rest.drop(while: ASCII.isSpaceOrTab) }
        if let quote = rest.first, quote == UInt8(ascii: "\"") || isBody && Self.isQuote(quote) {
            return quoted(rest.dropFirst(), quote)
        }
        let value =
            switch separator {
            case UInt8(ascii: ":") where !isQuotedName: rest.prefix { $0 != 0x0A && $0 != 0x0D }
            case UInt8(ascii: ">"): rest.prefix { $0 != UInt8(ascii: "<") }
            default: rest.prefix { !Self.isBlank($0) && !"&;,<>\"".utf8.contains($0) }
            }
        return value.isEmpty ? nil : value
    }

    /// Returns the content of a quoted string; without a closing quote it extends to the end.
    private func quoted(_ bytes: ArraySlice<UInt8>, _ quote: UInt8) -> ArraySlice<UInt8> {
        var index = bytes.startIndex
        while index < bytes.endIndex, bytes[index] != quote { index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1 }
        return bytes[..<min(index, bytes.endIndex)]
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    private static func isQuote(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") }
}

extension Collection<UInt8> {
    /// Returns whether a short sequence of bytes occurs in this collection.
    fileprivate func holds(_ part: some Collection<UInt8>) -> Bool {
        guard let first = part.first else { return true }
        var rest = self[...]
        while let start = rest.firstIndex(of: first) {
            if rest[start...].starts(with: part) { return true }
            rest = rest[rest.index(after: start)...]
        }
        return false
    }
}

/// Replaces the values of secret keys in JSON text and leaves the rest unchanged, even if the text
/// is truncated or malformed.
private struct JSONRedactor {
    let redaction: Redaction

    init(_ redaction: Redaction) {
        self.redaction = redaction
    }

    func redacted(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var redaction = redaction
        if bytes.holds("\"grant_type\"".utf8) { redaction.keys.formUnion(redaction.parameters) }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            guard bytes[index] == UInt8(ascii: "\"") else {
                result.append(bytes[index])
                index += 1
                continue
            }
            let end = endOfString(bytes, from: index)
            result += bytes[index..<end]
            let colon = skipBlanks(bytes, from: end)
            if colon < bytes.count, bytes[colon] == UInt8(ascii: ":"),
                redaction.isSecret(key: key(bytes[index..<end]))
            {
                result += bytes[end...colon]
                result += Array("\"\(redaction.placeholder)\"".utf8)
                index = endOfValue(bytes, from: skipBlanks(bytes, from: colon + 1))
            } else {
                index = end
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private func key(_ literal: ArraySlice<UInt8>) -> String {
        let data = Data(literal)
        if literal.contains(UInt8(ascii: "\\")) {
            let key = try? JSON.decode(String.self, from: data)  // an invalid literal is compared as is
            if let key { return key }
        }
        return String(decoding: literal.dropFirst().dropLast(), as: UTF8.self)
    }

    private func skipBlanks(_ bytes: [UInt8], from start: Int) -> Int {
        bytes[start...].firstIndex { !" \t\r\n".utf8.contains($0) } ?? bytes.count
    }

    private func endOfString(_ bytes: [UInt8], from quote: Int) -> Int {
        var index = quote + 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(index + 1, bytes.count)
    }

    /// Returns the end of a value: of a string, an array, an object, or of everything up to the
    /// next comma or bracket.
    private func endOfValue(_ bytes: [UInt8], from start: Int) -> Int {
        var index = start
        var depth = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                index = endOfString(bytes, from: index)
                if depth == 0 { return index }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return index }
                depth -= 1
                if depth == 0 { return index + 1 }
            case UInt8(ascii: ",") where depth == 0:
                return index
            default:
                break
            }
            index += 1
        }
        return index
    }
}

extension String {
    /// The string with control characters, line separators and invisible format characters
    /// (including bidirectional controls) escaped as `\n`, `\u{1B}` …: safe for terminals and
    /// line-based logs.
    package var escapingControls: String {
        // Bytes, because appending to a view of scalars takes quadratic time.
        var result: [UInt8] = []
        result.reserveCapacity(utf8.count)
        for scalar in unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
                let text: String =
                    switch scalar {
                    case "\n": "\\n"
                    case "\r": "\\r"
                    case "\t": "\\t"
                    default: "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
                    }
                result.append(contentsOf: text.utf8)
            default:
                result.append(contentsOf: scalar.utf8)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
