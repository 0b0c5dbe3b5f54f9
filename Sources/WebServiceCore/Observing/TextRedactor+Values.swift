extension TextRedactor {
    /// The syntax around a name.
    struct Place {
        let syntax: Syntax
        /// A Boolean value that indicates whether the name may be that of an element.
        let isElement: Bool
        let isAuthorization: Bool
    }

    /// Returns the value after a secret name; `nil` if the name is not secret or has no value.
    func secretValue(of name: ArraySlice<UInt8>, in bytes: ArraySlice<UInt8>, _ place: Place)
        -> ArraySlice<UInt8>?
    {
        let isBody = place.syntax != .value
        let text = Self.decodedName(name)
        if place.isElement, redaction.isSecret(key: text), let content = content(ofElement: name, in: bytes) {
            return content
        }
        var rest = bytes[name.endIndex...]
        if rest.first == UInt8(ascii: "]") { rest = rest.dropFirst() }
        let isQuotedName = rest.first.map(Self.isQuote) ?? false
        if isQuotedName { rest = rest.dropFirst() }
        if isBody { rest = rest.drop(while: ASCII.isSpaceOrTab) }
        let separator = rest.popFirst()
        let isField = separator == UInt8(ascii: ":")
        guard isField || separator == UInt8(ascii: "=") else { return nil }
        if isField || isBody { rest = rest.drop(while: ASCII.isSpaceOrTab) }
        if isField {
            let isSecret =
                redaction.headerNames.contains(text.asciiLowercased())
                || (isBody || isQuotedName) && redaction.isSecret(key: text)
            guard isSecret else { return nil }
        } else {
            // The value is examined only after a name that may be secret, so that each is examined
            // at most once.
            guard isSecret(parameter: text, [], true) else { return nil }
        }
        let value = value(rest, isBody: isBody, isLine: isField && !isQuotedName)
        guard !value.isEmpty, isField || isSecret(parameter: text, value, place.isAuthorization) else { return nil }
        return value
    }

    private func value(_ rest: ArraySlice<UInt8>, isBody: Bool, isLine: Bool) -> ArraySlice<UInt8> {
        switch rest.first {
        case UInt8(ascii: "\"")?: return quoted(rest.dropFirst(), UInt8(ascii: "\""))
        case UInt8(ascii: "'")? where isBody: return quoted(rest.dropFirst(), UInt8(ascii: "'"))
        case UInt8(ascii: "{")?, UInt8(ascii: "[")?:
            if isBody { return rest[..<JSONLiteral.endOfValue(rest, from: rest.startIndex)] }
        default: break
        }
        if isLine { return rest.prefix { $0 != 0x0A && $0 != 0x0D } }
        var index = rest.startIndex
        while index < rest.endIndex, !Self.isBlank(rest[index]), !"&;<>\"".utf8.contains(rest[index]) {
            // A comma ends the value only at the end of a list element, because secrets contain it.
            if rest[index] == UInt8(ascii: ","), rest[(index + 1)...].first.map(Self.isBlank) ?? true { break }
            index += 1
        }
        return rest[..<index]
    }

    /// Returns everything up to the end tag of an element, or up to the end.
    private func content(ofElement name: ArraySlice<UInt8>, in bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let tag = bytes[name.endIndex...].prefix { !"<>".utf8.contains($0) }
        guard tag.endIndex < bytes.endIndex, bytes[tag.endIndex] == UInt8(ascii: ">"), tag.last != UInt8(ascii: "/"),
            tag.first.map(Self.isBlank) ?? true
        else { return nil }
        let start = tag.endIndex + 1
        var end = start
        while end < bytes.endIndex {
            let endTag = bytes[end...].drop { $0 != UInt8(ascii: "<") }
            end = endTag.startIndex
            if endTag.dropFirst().first == UInt8(ascii: "/") {
                let local = endTag.dropFirst(2).prefix { $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "<") }
                if local.elementsEqual(name) || local.suffix(name.count + 1).elementsEqual([UInt8(ascii: ":")] + name) {
                    break
                }
            }
            end = min(end + 1, bytes.endIndex)
        }
        return start < end ? bytes[start..<end] : nil
    }

    /// Returns the content of a quoted string; without a closing quote it extends to the end.
    private func quoted(_ bytes: ArraySlice<UInt8>, _ quote: UInt8) -> ArraySlice<UInt8> {
        var index = bytes.startIndex
        while index < bytes.endIndex, bytes[index] != quote { index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1 }
        return bytes[..<min(index, bytes.endIndex)]
    }
}
