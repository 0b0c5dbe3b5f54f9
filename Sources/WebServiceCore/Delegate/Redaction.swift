public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What must not be read in logs, and the text that stands in its place.
///
/// Names are compared without regard to ASCII case. A header field, a query or form parameter or a JSON key is secret when its name is in one of the
/// sets, or holds one of ``fragments`` once `-`, `_`, `.` and blanks are left out: `access_token` and `X-Amz-Security-Token` hold `token`.
///
/// Everything is read in time that grows with its length, whatever it holds.
public struct Redaction: Sendable {
    /// Names of header fields that are secret, in lower case.
    public var headerNames: Set<String>
    /// Names of parameters and JSON keys that are secret, in lower case.
    public var keys: Set<String>
    /// Names that are secret as query and form parameters and as header fields, in lower case. As JSON keys they are secret only in a text that
    /// has the key `grant_type`: `code` is an authorization code in a token request (RFC 6749, section 4.1.3), and an error code in most responses.
    public var parameters: Set<String>
    /// What makes a name secret wherever it stands in it, in lower case.
    public var fragments: Set<String>
    /// The text in place of a secret.
    public var placeholder: String

    /// Makes a redaction; what is left out is that of ``standard``.
    public init(
        headerNames: Set<String> = ["authorization", "proxy-authorization", "cookie", "set-cookie"],
        keys: Set<String> = ["auth", "cvc", "cvv", "jwt", "key", "otp", "pass", "pin", "pwd", "session", "sid", "sig", "ssn"],
        parameters: Set<String> = ["code"],
        fragments: Set<String> = [
            "accesskey", "apikey", "assertion", "authkey", "authorization", "credential", "passphrase", "passwd", "password", "privatekey", "secret",
            "sessionid", "signature", "token",
        ],
        placeholder: String = "[redacted]"
    ) {
        self.headerNames = headerNames
        self.keys = keys
        self.parameters = parameters
        self.fragments = fragments
        self.placeholder = placeholder
    }

    /// Authorization, cookies, API keys, and parameters and JSON keys that look like credentials.
    public static let standard = Redaction()

    /// Whether a header field's value is secret.
    public func isSecret(header name: String) -> Bool {
        let name = name.asciiLowercased()
        return headerNames.contains(name) || isSecret(parameter: name.hasPrefix("x-") ? String(name.dropFirst(2)) : name)
    }

    /// Whether the value of a JSON key is secret.
    public func isSecret(key name: String) -> Bool {
        let name = name.asciiLowercased()
        return keys.contains(name) || holdsFragment(name)
    }

    /// Whether the value of a query or form parameter is secret.
    public func isSecret(parameter name: String) -> Bool {
        parameters.contains(name.asciiLowercased()) || isSecret(key: name)
    }

    private func holdsFragment(_ name: String) -> Bool {
        let plain = name.utf8.filter { !"-_. ".utf8.contains($0) }
        return fragments.contains { plain.holds($0.utf8) }
    }

    /// A header field's value, or the placeholder; in all others, and in URLs within them, user information and the values of secret parameters
    /// are replaced.
    public func value(ofHeader name: String, _ value: String) -> String {
        if isSecret(header: name) { return placeholder }
        guard value.utf8.contains(UInt8(ascii: "=")) || value.utf8.contains(UInt8(ascii: "@")) else { return value }
        return TextRedactor(redaction: self, isBody: false).redacted(value)
    }

    /// A URL with the secret values of its query replaced, and user information and fragment left out.
    public func url(_ text: String) -> String {
        // Bytes, because a character that combines with a delimiter is another `Character`.
        let bytes = Array(text.utf8)
        let withoutFragment = bytes.prefix { $0 != UInt8(ascii: "#") }
        var address = withoutFragment.prefix { $0 != UInt8(ascii: "?") }
        let query = withoutFragment[address.endIndex...]
        let start = address.starts(with: "//".utf8) ? 2 : address.firstRange(of: "://".utf8)?.upperBound
        if let start {
            let authority = address[start...].prefix { $0 != UInt8(ascii: "/") }
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) { address.removeSubrange(start...at) }
        }
        return String(decoding: query.isEmpty ? address : address + query.prefix(1) + pairs(query.dropFirst()), as: UTF8.self)
    }

    /// The pairs of a query or a form with the secret values replaced.
    public func pairs(_ text: String) -> String {
        String(decoding: pairs(Array(text.utf8)[...]), as: UTF8.self)
    }

    private func pairs(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let pairs = bytes.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map { pair in
            let name = pair.prefix { $0 != UInt8(ascii: "=") }
            guard name.count < pair.count, isSecret(parameter: String(decoding: percentDecoded(name), as: UTF8.self)) else { return pair }
            return name + Array("=\(placeholder)".utf8)
        }
        return Array(pairs.joined(separator: "&".utf8))
    }

    /// A body as text with the secret values replaced: JSON, forms and `text/…`. `nil` for any other media type and for what is no UTF-8.
    ///
    /// In `text/…` user information of URLs is replaced, and what follows a secret name: after `=` and after a name in quotation marks a
    /// quoted string or everything up to the next space, `&`, `;`, `,`, `<`, `>` or quotation mark; after `:` the rest of the line; the
    /// content of an element of that name. Values whose name stands elsewhere, such as in another attribute or column, are not recognised.
    public func body(_ data: Data, contentType: String?) -> String? {
        let type = contentType?.asciiLowercased() ?? ""
        let begin = data.drop { [0xEF, 0xBB, 0xBF].contains($0) }.first { !" \t\r\n\u{1E}".utf8.contains($0) }
        let isJSON = type.contains("json") || begin == UInt8(ascii: "{") || begin == UInt8(ascii: "[")
        let isForm = type.hasPrefix(ContentType.formEncoded)
        guard isJSON || isForm || type.hasPrefix("text/") else { return nil }
        // A cut through a character at the end must not hide the rest.
        guard let text = (0...3).lazy.compactMap({ String(validating: data.dropLast($0), as: UTF8.self) }).first else { return nil }
        if isForm, !isJSON { return pairs(text) }
        // A line of a log may begin with a bracket as well.
        let redacted = isJSON ? JSONRedactor(self).redacted(text) : text
        return type.hasPrefix("text/") ? TextRedactor(redaction: self, isBody: true).redacted(redacted) : redacted
    }
}

/// Replaces user information in URLs and the values of secret names in text, byte by byte.
private struct TextRedactor {
    let redaction: Redaction
    /// Whether the text is a body: `name: value`, quoted names and elements count, too.
    let isBody: Bool

    func redacted(_ text: String) -> String {
        String(decoding: withoutSecrets(withoutUserInformation(Array(text.utf8))), as: UTF8.self)
    }

    /// Leaves out everything between `//` and the last `@` of an authority.
    private func withoutUserInformation(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            result.append(bytes[index])
            index += 1
            guard bytes[index - 1] == UInt8(ascii: "/"), index < bytes.count, bytes[index] == UInt8(ascii: "/") else { continue }
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
            let name = bytes[index...].prefix { ASCII.isAlpha($0) || ASCII.isDigit($0) || "_.%-".utf8.contains($0) }
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

    /// What stands after a secret name; `nil` when the name is not secret or has no value.
    private func secretValue(of name: ArraySlice<UInt8>, in bytes: [UInt8]) -> ArraySlice<UInt8>? {
        var rest = bytes[name.endIndex...]
        var isQuotedName = false
        if isBody {
            isQuotedName = rest.first.map(Self.isQuote) ?? false
            rest = rest.dropFirst(isQuotedName ? 1 : 0).drop { $0 == 0x20 || $0 == 0x09 }
        }
        guard let separator = rest.popFirst() else { return nil }
        let text = String(decoding: name.contains(UInt8(ascii: "%")) ? percentDecoded(name) : Array(name), as: UTF8.self)
        switch separator {
        case UInt8(ascii: "="): guard redaction.isSecret(parameter: text) else { return nil }
        case UInt8(ascii: ":") where isBody:
            guard redaction.isSecret(key: text) || redaction.headerNames.contains(text.asciiLowercased()) else { return nil }
        case UInt8(ascii: ">") where isBody && name.startIndex > 0 && "<:".utf8.contains(bytes[name.startIndex - 1]):
            guard redaction.isSecret(key: text) else { return nil }
        default: return nil
        }
        if isBody { rest = rest.drop { $0 == 0x20 || $0 == 0x09 } }
        if let quote = rest.first, quote == UInt8(ascii: "\"") || isBody && Self.isQuote(quote) { return quoted(rest.dropFirst(), quote) }
        let value =
            switch separator {
            case UInt8(ascii: ":") where !isQuotedName: rest.prefix { $0 != 0x0A && $0 != 0x0D }
            case UInt8(ascii: ">"): rest.prefix { $0 != UInt8(ascii: "<") }
            default: rest.prefix { !Self.isBlank($0) && !"&;,<>\"".utf8.contains($0) }
            }
        return value.isEmpty ? nil : value
    }

    /// The content of a quoted string; one that is not closed goes to the end.
    private func quoted(_ bytes: ArraySlice<UInt8>, _ quote: UInt8) -> ArraySlice<UInt8> {
        var index = bytes.startIndex
        while index < bytes.endIndex, bytes[index] != quote { index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1 }
        return bytes[..<min(index, bytes.endIndex)]
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    private static func isQuote(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") }
}

extension Collection<UInt8> {
    /// Returns whether a short sequence of bytes stands anywhere in this one.
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

/// Replaces the values of secret keys in JSON text and leaves everything else as it is, also where the text is cut off or broken.
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
            if colon < bytes.count, bytes[colon] == UInt8(ascii: ":"), redaction.isSecret(key: key(bytes[index..<end])) {
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
            let key = try? JSON.decode(String.self, from: data)  // a literal that is no JSON is compared as it stands
            if let key { return key }
        }
        return String(decoding: literal.dropFirst().dropLast(), as: UTF8.self)
    }

    private func skipBlanks(_ bytes: [UInt8], from start: Int) -> Int {
        bytes[start...].firstIndex { !" \t\r\n".utf8.contains($0) } ?? bytes.count
    }

    private func endOfString(_ bytes: [UInt8], from quote: Int) -> Int {
        var index = quote + 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") { index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1 }
        return min(index + 1, bytes.count)
    }

    /// Behind a string, a whole list or object, or everything up to the next comma or bracket.
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
    /// The text with control characters, line separators and invisible format characters (so also those that turn the direction of writing)
    /// written as `\n`, `\u{1B}` …: safe for terminals and for logs that count lines.
    package var escapingControls: String {
        // Bytes, because a view of scalars takes quadratic time to grow.
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
