import WebServiceCore

/// Text within other text, such as a URL in a parameter of another URL, or JSON in a string.
extension TextRedactor {
    /// Redacts an escaped part in its decoded form. Everything that is not secret remains byte for
    /// byte.
    ///
    /// A part that is nested more than ``maximumDepth`` levels deep is replaced if it may contain a
    /// secret.
    mutating func nested(_ range: Range<Int>, _ escaping: Escaping, _ syntax: Syntax = .value) {
        let text = escaping.decoded(bytes[range])
        guard depth < Self.maximumDepth else {
            if text.contains(where: { "=:@%<".utf8.contains($0) }) {
                edit(range, escaping.escaped(Array(replacement(of: text).utf8)))
            }
            return
        }
        var redactor = TextRedactor(rules, text, depth: depth + 1)
        redactor.value(text.indices, syntax)
        guard !redactor.edits.isEmpty else { return }
        let source = bytes[range]
        var (index, position) = (range.lowerBound, 0)
        func place(of end: Int) -> Int {
            while position < end, index < range.upperBound {
                guard escaping.mayBegin(source[index]) else {
                    (index, position) = (index + 1, position + 1)
                    continue
                }
                let unit = escaping.unit(at: index, in: source)
                (index, position) = (index + unit.length, position + unit.count)
            }
            return index
        }
        for edit in redactor.edits {
            let start = place(of: edit.range.lowerBound)
            let end = place(of: edit.range.upperBound)
            self.edit(start..<end, escaping.escaped(edit.text))
        }
    }

    private func replacement(of text: [UInt8]) -> String {
        rules.redaction.replacement(of: String(decoding: text, as: UTF8.self))
    }

    // MARK: Escaped text without quotation marks

    /// Redacts escaped text that begins with a name, such as a URL in a parameter of another URL.
    ///
    /// - Returns: The index after the last secret, or `nil` if there is none.
    mutating func escapedText(_ name: Range<Int>, _ end: Int, _ state: inout ScanState) -> Int? {
        guard name.lowerBound >= state.escapedEnd else { return nil }
        if isEncoded(name) { return escapedText(from: name.lowerBound, end, .percent, &state) }
        guard name.upperBound < end else { return nil }
        switch bytes[name.upperBound] {
        case UInt8(ascii: "\\") where isEscape(afterBackslashes: name.upperBound, end).isEscape:
            return escapedText(from: name.lowerBound, end, .json, &state)
        case UInt8(ascii: "&") where isReference(at: name.upperBound, end):
            return escapedText(from: name.lowerBound, end, .markup, &state)
        default: return nil
        }
    }

    /// Redacts text that begins with a JSON escape sequence or with a character reference.
    ///
    /// - Returns: The index at which the scan continues.
    mutating func escapedText(fromEscape index: Int, _ end: Int, _ state: inout ScanState) -> Int {
        if bytes[index] == UInt8(ascii: "&") {
            guard isReference(at: index, end), index >= state.escapedEnd else { return index + 1 }
            return escapedText(from: index, end, .markup, &state) ?? index + 1
        }
        let (isEscape, next) = isEscape(afterBackslashes: index, end)
        guard isEscape, index >= state.escapedEnd else { return next }
        return escapedText(from: index, end, .json, &state) ?? next
    }

    private mutating func escapedText(from start: Int, _ end: Int, _ escaping: Escaping, _ state: inout ScanState)
        -> Int?
    {
        var stop = start
        while stop < end, !Self.endsText(bytes[stop], escaping) { stop += 1 }
        // Each byte is decoded only once, because the text after a name includes the names in it.
        state.escapedEnd = stop
        // A backslash before a quotation mark belongs to the surrounding text.
        while escaping == .json, stop > start, bytes[stop - 1] == UInt8(ascii: "\\") { stop -= 1 }
        let count = edits.count
        nested(start..<stop, escaping)
        guard edits.count > count else { return nil }
        if escaping == .percent, stop < end, bytes[stop] == UInt8(ascii: "=") {
            // An unencoded `=` is part of the secret before it.
            let rest = bytes[stop..<end].firstIndex { Self.endsText($0, .percent) && $0 != UInt8(ascii: "=") }
            extendEdit(from: stop, to: rest ?? end)
        }
        return edits.last?.range.upperBound
    }

    /// Returns whether a byte ends text that is escaped as a whole.
    private static func endsText(_ byte: UInt8, _ escaping: Escaping) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "<"), UInt8(ascii: ">"), 0x0A...0x0D: true
        case 0x20, 0x09, UInt8(ascii: "&"), UInt8(ascii: "="), UInt8(ascii: "#"), UInt8(ascii: "\\"):
            escaping == .percent
        default: false
        }
    }

    /// Returns whether there is a numeric character reference at an index, except that of a
    /// quotation mark.
    private func isReference(at index: Int, _ end: Int) -> Bool {
        begins("&#", at: index, before: end) && quoteEntity(at: index, before: end) == nil
    }

    /// Returns whether backslashes at an index begin a JSON escape sequence other than that of a
    /// quotation mark, and the index after the backslashes.
    private func isEscape(afterBackslashes index: Int, _ end: Int) -> (isEscape: Bool, next: Int) {
        let next = bytes[index..<end].firstIndex { $0 != UInt8(ascii: "\\") } ?? end
        guard next < end else { return (false, end) }
        if "/nrt".utf8.contains(bytes[next]) { return (true, next) }
        let digits = bytes[(next + 1)..<end].prefix(4)
        return (bytes[next] == UInt8(ascii: "u") && digits.count { ASCII.hexValue($0) != nil } == 4, next)
    }

    // MARK: Names

    /// Returns whether a name contains a percent-encoded byte that cannot be part of a name.
    func isEncoded(_ name: Range<Int>) -> Bool {
        var index = name.lowerBound
        while index < name.upperBound {
            if bytes[index] == UInt8(ascii: "%"), let byte = Escaping.percentEncoded(at: index, in: bytes[name]) {
                if !Self.isNameByte(byte) || byte == UInt8(ascii: "%"), !"[]".utf8.contains(byte) { return true }
                index += 3
            } else {
                index += 1
            }
        }
        return false
    }

    /// Returns the name at the end of percent-encoded text, and whether it is the name of a URL
    /// parameter.
    static func lastName(_ text: ArraySlice<UInt8>) -> (name: String, isParameter: Bool) {
        let plain = percentDecoded(text)
        guard let delimiter = plain.lastIndex(where: { "?&#/;,:=\"{".utf8.contains($0) }) else {
            return (String(decoding: plain, as: UTF8.self), false)
        }
        let name = String(decoding: plain[(delimiter + 1)...], as: UTF8.self)
        return (name, "?&#".utf8.contains(plain[delimiter]))
    }
}
