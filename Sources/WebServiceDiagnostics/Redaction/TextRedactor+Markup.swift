import WebServiceCore

/// Redaction of XML, SOAP, HTML and SVG, even if the markup is malformed.
extension TextRedactor {
    /// An element whose texts are secret.
    private struct SecretElement {
        let name: ArraySlice<UInt8>
        let meaning: SecretName
        /// The number of open elements with this name.
        var level = 1
    }

    private struct Tag {
        var name: ArraySlice<UInt8>
        /// The index after the tag.
        var end: Int
        var isClosed = false
        /// The meaning that results from the value of the attribute `name`, `key`, `id`, `type` or
        /// `property`.
        var named = SecretName.harmless
        /// The value of the attribute `value`, `content` or `val`.
        var value: Range<Int>?
        var isNamedElement = false
    }

    /// Redacts the texts and the attributes of a document.
    ///
    /// - Parameter syntax: The syntax of the texts between the tags.
    mutating func markup(_ range: Range<Int>, _ syntax: Syntax) {
        let lastEnd = bytes[range].lastIndex(of: UInt8(ascii: ">")) ?? range.lowerBound
        var secret: SecretElement?
        /// The meaning of the next element, from the text of an element such as `key`.
        var next = SecretName.harmless
        var opened: ArraySlice<UInt8> = []
        var index = range.lowerBound
        while index < range.upperBound {
            let start = index
            if bytes[start] != UInt8(ascii: "<") || start >= lastEnd {
                let end =
                    start >= lastEnd
                    ? range.upperBound
                    : bytes[(start + 1)..<range.upperBound].firstIndex(of: UInt8(ascii: "<")) ?? range.upperBound
                text(start..<end, syntax, in: secret, opened: opened, next: &next)
                index = end
                continue
            }
            if begins("<![CDATA[", at: start, before: range.upperBound) {
                let end = self.index(of: "]]>", in: start..<range.upperBound)
                text(start + 9..<max(start + 9, end), syntax, in: secret, opened: opened, next: &next)
                index = min(end + 3, range.upperBound)
            } else if begins("<!--", at: start, before: range.upperBound) {
                index = self.index(of: "-->", in: start + 4..<range.upperBound)
                scan(start..<index, syntax)
                index = min(index + 3, range.upperBound)
            } else if begins("</", at: start, before: range.upperBound) {
                // If the `>` is missing, the tag ends where the next tag begins.
                let rest = bytes[(start + 2)..<range.upperBound]
                let end = rest.firstIndex { "<>".utf8.contains($0) } ?? range.upperBound
                let nameEnd = bytes[(start + 2)..<end].firstIndex { Self.isSpace($0) || "/=&\"'".utf8.contains($0) }
                let name = localName(start + 2..<(nameEnd ?? end))
                // The rest is malformed, because an end tag consists only of a name.
                if let nameEnd { text(nameEnd..<end, syntax, in: secret, opened: [], next: &next) }
                index = end < range.upperBound && bytes[end] == UInt8(ascii: ">") ? end + 1 : end
                opened = []
                guard var element = secret, element.name.elementsEqual(name) else { continue }
                element.level -= 1
                secret = element.level == 0 ? nil : element
            } else if let tag = tag(start..<range.upperBound) {
                let meaning = rules.meaning(of: String(decoding: tag.name, as: UTF8.self))
                attributes(tag, start, secret == nil ? [meaning, tag.named] : [.secret])
                index = tag.end
                opened = tag.isClosed ? [] : tag.name
                let content = [meaning, tag.isNamedElement ? tag.named : .harmless, next].first(
                    where: SecretRules.isSecret)
                next = .harmless
                if tag.isClosed { continue }
                if var element = secret {
                    if element.name.elementsEqual(tag.name) { element.level += 1 }
                    secret = element
                } else if let content {
                    secret = SecretElement(name: tag.name, meaning: content)
                }
            } else {
                let end = bytes[(start + 1)..<range.upperBound].firstIndex(of: UInt8(ascii: "<")) ?? range.upperBound
                text(start..<end, syntax, in: secret, opened: opened, next: &next)
                index = end
            }
        }
    }

    private mutating func text(
        _ range: Range<Int>, _ syntax: Syntax, in secret: SecretElement?, opened: ArraySlice<UInt8>,
        next: inout SecretName
    ) {
        let text = trimmed(range)
        guard !text.isEmpty else { return }
        if let secret, rules.isSecret(secret.meaning, bytes[text], .text) { return replace(text) }
        if opened.count <= 4, ["key", "name"].contains(ASCII.lowercased(opened)), text.count <= 96 {
            next = rules.meaning(of: String(decoding: bytes[text], as: UTF8.self))
        }
        bytes[range].contains(UInt8(ascii: "&")) ? nested(range, .markup, syntax) : value(range, syntax)
    }

    /// Redacts the attributes of a tag, including a value that the tag's name or another attribute
    /// describes.
    private mutating func attributes(_ tag: Tag, _ start: Int, _ meanings: [SecretName]) {
        guard let value = tag.value, meanings.contains(where: { rules.isSecret($0, bytes[value], .text) }) else {
            return scan(start..<tag.end, .value)
        }
        scan(start..<value.lowerBound, .value)
        replace(value)
        scan(value.upperBound..<tag.end, .value)
    }

    private func localName(_ range: Range<Int>) -> ArraySlice<UInt8> {
        let name = bytes[range].prefix { !Self.isSpace($0) && !"/>".utf8.contains($0) }
        return name.lastIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name
    }

    private static let voidElements: Set<String> = ["br", "hr", "img", "input", "link", "meta"]

    /// Returns the start tag or declaration at the beginning of a range, or `nil` if `<` does not
    /// begin one.
    private func tag(_ range: Range<Int>) -> Tag? {
        var index = range.lowerBound + 1
        let end = range.upperBound
        guard index < end, ASCII.isAlpha(bytes[index]) || "_!?".utf8.contains(bytes[index]) else { return nil }
        while index < end, !Self.isSpace(bytes[index]), !"/<>=\"'".utf8.contains(bytes[index]) { index += 1 }
        var tag = Tag(name: localName(range.lowerBound + 1..<index), end: end)
        while index < end, bytes[index] != UInt8(ascii: ">") {
            if bytes[index] == UInt8(ascii: "<") { return nil }
            if Self.isSpace(bytes[index]) || "/\"'=".utf8.contains(bytes[index]) {
                index += 1
                continue
            }
            let start = index
            while index < end, !Self.isSpace(bytes[index]), !"/<>=\"'".utf8.contains(bytes[index]) { index += 1 }
            let name = start..<index
            while index < end, Self.isSpace(bytes[index]) { index += 1 }
            guard index < end, bytes[index] == UInt8(ascii: "=") else { continue }
            index += 1
            while index < end, Self.isSpace(bytes[index]) { index += 1 }
            guard index < end else { break }
            var value = index
            if Self.isQuote(bytes[index]) {
                let quote = bytes[index]
                value += 1
                index = bytes[value..<end].firstIndex(of: quote) ?? end
            } else {
                while index < end, !Self.isSpace(bytes[index]), !"<>".utf8.contains(bytes[index]) { index += 1 }
            }
            take(name, value..<index, &tag)
            index = min(index + (value > start && index < end && Self.isQuote(bytes[index]) ? 1 : 0), end)
        }
        tag.end = min(index + 1, end)
        let isVoid = tag.name.count <= 5 && Self.voidElements.contains(ASCII.lowercased(tag.name))
        tag.isClosed =
            isVoid || index > 0 && "/?".utf8.contains(bytes[index - 1]) || tag.name.first == UInt8(ascii: "!")
        return tag
    }

    private func take(_ name: Range<Int>, _ value: Range<Int>, _ tag: inout Tag) {
        guard name.count <= 8 else { return }
        switch ASCII.lowercased(bytes[name]) {
        case "value", "content", "val": tag.value = value
        case "name", "key", "id", "type", "property":
            guard value.count <= 96 else { return }
            let meaning = rules.meaning(of: String(decoding: bytes[value], as: UTF8.self))
            guard SecretRules.isSecret(meaning) else { return }
            tag.named = meaning
            if "nk".utf8.contains(bytes[name.lowerBound] | 0x20) { tag.isNamedElement = true }
        default: break
        }
    }
}
