/// Removes user information from URLs and replaces the values of secret names in text, byte by
/// byte.
struct TextRedactor {
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
            result += Array(redaction.replacement(of: value).utf8)
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
