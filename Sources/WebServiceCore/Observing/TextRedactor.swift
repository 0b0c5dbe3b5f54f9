/// Removes user information from URLs and replaces the values of secret names, in one pass over the
/// bytes of a text.
///
/// JSON strings and percent-encoded values are decoded and redacted in the same way, up to
/// ``maximumDepth`` levels, and encoded again only if they contain a secret. Each level processes a
/// byte a constant number of times, so the time is linear in the length.
struct TextRedactor {
    enum Syntax {
        /// A query or a form.
        case pairs
        /// A header field value, or a string within JSON or pairs: `name=value`, and
        /// `name: value` for secret header fields.
        case value
        /// Text: also `name: value`, quoted names and elements.
        case text
        /// JSON: as text, and its strings as values.
        case json
    }

    /// The number of nested encodings that are decoded.
    static let maximumDepth = 4

    let redaction: Redaction
    /// A Boolean value that indicates whether `name: value` is redacted within strings.
    var isText = false
    var depth = 0

    func redacted(_ text: String, as syntax: Syntax) -> String {
        String(decoding: redacted(Array(text.utf8)[...], as: syntax), as: UTF8.self)
    }

    func redacted(_ bytes: ArraySlice<UInt8>, as syntax: Syntax) -> [UInt8] {
        if syntax == .pairs { return pairs(bytes) }
        let isAuthorization = OAuthContext.covers(bytes, isJSON: syntax == .json)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        // The number of colons since a `<` that only names and colons follow; `nil` elsewhere. One
        // name after each `<` is treated as that of an element, so that all end tags are searched
        // for in linear time.
        var colonsInTag: Int?
        while index < bytes.endIndex {
            let byte = bytes[index]
            if Self.isNameByte(byte) {
                let name = bytes[index...].prefix(while: Self.isNameByte)
                result += name
                index = name.endIndex
                let isElement =
                    syntax != .value && colonsInTag.map { $0 == 1 || bytes[index...].first != 0x3A } ?? false
                let place = Place(syntax: syntax, isElement: isElement, isAuthorization: isAuthorization)
                guard let value = secretValue(of: name, in: bytes, place) else { continue }
                result += bytes[index..<value.startIndex]
                result += Array(redaction.replacement(of: value).utf8)
                index = value.endIndex
                // A closing quotation mark must not be treated as the start of a JSON string.
                if value.startIndex > bytes.startIndex, index < bytes.endIndex, Self.isQuote(bytes[index]),
                    bytes[index] == bytes[value.startIndex - 1]
                {
                    result.append(bytes[index])
                    index += 1
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "<"): colonsInTag = 0
            case UInt8(ascii: ":"): colonsInTag = colonsInTag.flatMap { $0 == 0 ? 1 : nil }
            default: colonsInTag = nil
            }
            if byte == UInt8(ascii: "/"), let end = endOfUserInformation(bytes[(index + 1)...]) {
                result += [byte, byte]
                index = end
            } else if byte == UInt8(ascii: "\""), syntax == .json {
                index = appendString(to: &result, bytes, from: index, isAuthorization)
            } else {
                result.append(byte)
                index += 1
            }
        }
        return result
    }

    /// Returns the redaction of a value that may be JSON.
    func redacted(value bytes: ArraySlice<UInt8>) -> [UInt8] {
        let first = bytes.first { !" \t\r\n".utf8.contains($0) }
        let isJSON = first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
        return redacted(bytes, as: isJSON ? .json : isText ? .text : .value)
    }

    /// Returns the redaction of a decoded value; the placeholder if it is nested too deeply.
    private func nested(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        guard depth < Self.maximumDepth else { return Array(redaction.replacement(of: bytes).utf8) }
        return TextRedactor(redaction: redaction, isText: isText, depth: depth + 1).redacted(value: bytes)
    }

    // MARK: Queries and forms

    private func pairs(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let pairs = bytes.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map { pair in
            (name: pair.prefix { $0 != UInt8(ascii: "=") }, pair: pair)
        }
        let isAuthorization = pairs.contains { OAuthContext.names.contains(Self.decodedName($0.name)) }
        let redacted = pairs.map { name, pair in
            guard name.count < pair.count else { return nestedPair(pair) }
            let value = pair.dropFirst(name.count + 1)
            guard isSecret(parameter: Self.decodedName(name), value, isAuthorization) else {
                return nestedPair(name) + [UInt8(ascii: "=")] + nestedPair(value)
            }
            return nestedPair(name) + Array("=\(redaction.replacement(of: value))".utf8)
        }
        return Array(redacted.joined(separator: "&".utf8))
    }

    private func nestedPair(_ value: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard value.contains(UInt8(ascii: "%")) else {
            return value.contains(where: Self.isDelimiter) ? nested(value)[...] : value
        }
        let plain = percentDecoded(value.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 })
        guard plain.contains(where: Self.isDelimiter) else { return value }
        let shown = nested(plain[...])
        if shown == plain { return value }
        var writer = ByteWriter(reserving: shown.count)
        writer.encode(String(decoding: shown, as: UTF8.self), allowed: .unreserved)
        return Array(writer.text.utf8)[...]
    }

    static func decodedName(_ name: ArraySlice<UInt8>) -> String {
        String(decoding: name.contains(UInt8(ascii: "%")) ? percentDecoded(name) : Array(name), as: UTF8.self)
    }

    /// Returns whether a parameter is secret, such as `token` or `user[pin]`.
    func isSecret(parameter name: String, _ value: ArraySlice<UInt8>, _ isAuthorization: Bool) -> Bool {
        let parts =
            name.utf8.contains(UInt8(ascii: "[")) ? name.utf8.split { "[]".utf8.contains($0) } : [name.utf8[...]]
        return parts.contains { part in
            let part = String(decoding: part, as: UTF8.self)
            return redaction.isSecret(key: part)
                || redaction.parameters.contains(part.asciiLowercased())
                    && (isAuthorization || !OAuthContext.isErrorCode(value))
        }
    }

    // MARK: JSON strings

    /// Appends a string, and the value after it if it is a secret key.
    ///
    /// - Returns: The index after the appended text.
    private func appendString(
        to result: inout [UInt8], _ bytes: ArraySlice<UInt8>, from quote: Int, _ isAuthorization: Bool
    ) -> Int {
        let end = JSONLiteral.endOfString(bytes, from: quote)
        let isClosed = end > quote + 1 && bytes[end - 1] == UInt8(ascii: "\"")
        let content = bytes[(quote + 1)..<max(quote + 1, isClosed ? end - 1 : end)]
        let hasEscapes = content.contains(UInt8(ascii: "\\"))
        let plain = hasEscapes ? JSONLiteral.unescaped(content)[...] : content
        let shown = plain.contains(where: Self.isDelimiter) ? nested(plain)[...] : plain
        if shown.elementsEqual(plain) {
            result += bytes[quote..<end]
        } else {
            result += [UInt8(ascii: "\"")] + JSONLiteral.escaped(shown) + (isClosed ? [UInt8(ascii: "\"")] : [])
        }
        let colon = JSONLiteral.skippingBlanks(bytes, from: end)
        if colon < bytes.endIndex, bytes[colon] == UInt8(ascii: ":") {
            let key = String(decoding: plain, as: UTF8.self)
            if redaction.isSecret(key: key) || redaction.headerNames.contains(key.asciiLowercased())
                || isAuthorization && redaction.parameters.contains(key.asciiLowercased())
            {
                let start = JSONLiteral.skippingBlanks(bytes, from: colon + 1)
                let valueEnd = JSONLiteral.endOfValue(bytes, from: start)
                result += bytes[end...colon]
                result += Array(redaction.replacement(of: bytes[start..<valueEnd], isJSON: true).utf8)
                return valueEnd
            }
        }
        return end
    }

    /// Returns the index after the last `@` of an authority that follows the second slash.
    private func endOfUserInformation(_ bytes: ArraySlice<UInt8>) -> Int? {
        guard bytes.first == UInt8(ascii: "/") else { return nil }
        let authority = bytes.dropFirst().prefix { !Self.isBlank($0) && !"/?#<>\"".utf8.contains($0) }
        return authority.lastIndex(of: UInt8(ascii: "@")).map { $0 + 1 }
    }

    static func isNameByte(_ byte: UInt8) -> Bool { ASCII.isAlphanumeric(byte) || "_.%-".utf8.contains(byte) }
    /// Returns whether a byte separates a name from its value, or user information from a host.
    static func isDelimiter(_ byte: UInt8) -> Bool { "=:@".utf8.contains(byte) }
    static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    static func isQuote(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") }
}
