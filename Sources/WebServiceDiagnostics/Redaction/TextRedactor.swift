import WebServiceCore

/// A redactor that finds the secrets in a text, in linear time.
///
/// The redactor collects the ranges to replace, so a text without secrets remains byte for byte.
/// Escaped and encoded parts are decoded and redacted by another redactor, up to ``maximumDepth``
/// levels. The replacements in such a part are escaped and inserted at the right places, so the
/// rest of the part also remains byte for byte.
struct TextRedactor {
    /// The notations in which a name precedes its value.
    enum Syntax {
        /// Finds `name=value`, quoted names, and the names of header fields before `:`. This is the
        /// syntax for strings and header fields, in which `password: must be long` is ordinary
        /// text.
        case value
        /// Also finds `name: value` and YAML blocks. This is the syntax for text in any notation.
        case text
        /// Finds `name: value` only if the value is a literal, such as `name: "value"` (GraphQL,
        /// JavaScript).
        case literals
    }

    /// The maximum depth of nested encodings that are decoded.
    static let maximumDepth = 4

    let rules: SecretRules
    let bytes: [UInt8]
    let depth: Int
    private(set) var edits: [(range: Range<Int>, text: [UInt8])] = []
    /// The current depth of nested formats that share the bytes.
    var level = 0

    init(_ rules: SecretRules, _ bytes: [UInt8], depth: Int = 0) {
        self.rules = rules
        self.bytes = bytes
        self.depth = depth
    }

    /// The text without secrets; `nil` if it contains no secrets.
    var redacted: [UInt8]? {
        guard !edits.isEmpty else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        for edit in edits {
            result += bytes[index..<edit.range.lowerBound]
            result += edit.text
            index = edit.range.upperBound
        }
        return result + bytes[index...]
    }

    /// Replaces a range, which must follow the previous ranges.
    mutating func edit(_ range: Range<Int>, _ text: [UInt8]) { edits.append((range, text)) }

    /// Escapes the replacements for a JSON string, starting with the edit at an index.
    mutating func escapeEdits(from start: Int) {
        for index in start..<edits.count { edits[index].text = JSONLiteral.escaped(edits[index].text) }
    }

    /// Extends the last edit to another index if it ends at `end`.
    mutating func extendEdit(from end: Int, to index: Int) {
        guard let last = edits.last, last.range.upperBound == end, index > end else { return }
        edits[edits.count - 1].range = last.range.lowerBound..<index
    }

    /// Removes the edit at an index and all later edits.
    mutating func removeEdits(from start: Int) { edits.removeSubrange(start...) }

    mutating func replace(_ range: Range<Int>) {
        let secret = String(decoding: bytes[range], as: UTF8.self)
        edit(range, Array(rules.redaction.replacement(of: secret).utf8))
    }

    // MARK: Values

    /// Redacts a value, which may be JSON, markup or GraphQL.
    mutating func value(_ range: Range<Int>, _ syntax: Syntax = .value) {
        level += 1
        defer { level -= 1 }
        let start = range.first { !Self.isSpace(bytes[$0]) && bytes[$0] != 0x1E } ?? range.upperBound
        guard level <= Self.maximumDepth, start < range.upperBound else { return scan(range, syntax) }
        let hasBrackets = bytes[start] == UInt8(ascii: "{") || bytes[start] == UInt8(ascii: "[")
        if hasBrackets, json(range) { return }
        if hasBrackets && syntax == .value || isQuery(start..<range.upperBound) { return scan(range, .literals) }
        if hasTags(range) { return markup(range, syntax) }
        scan(range, syntax)
    }

    private func isQuery(_ range: Range<Int>) -> Bool {
        let word = String(decoding: bytes[range].prefix(12).prefix(while: ASCII.isAlpha), as: UTF8.self)
        return ["query", "mutation", "subscription", "fragment"].contains(word)
            && bytes[range].contains(UInt8(ascii: "{"))
    }

    private func hasTags(_ range: Range<Int>) -> Bool {
        var index = range.lowerBound
        while index + 1 < range.upperBound {
            if bytes[index] == UInt8(ascii: "<"), ASCII.isAlpha(bytes[index + 1]) { return true }
            index += 1
        }
        return false
    }

    // MARK: Queries and forms

    /// Redacts the names and values of a query or a form.
    ///
    /// - Parameter isQuery: Whether the pairs are from a URL.
    mutating func pairs(_ range: Range<Int>, isQuery: Bool) {
        var starts: [Range<Int>] = []
        var start = range.lowerBound
        for index in range where bytes[index] == UInt8(ascii: "&") {
            starts.append(start..<index)
            start = index + 1
        }
        starts.append(start..<range.upperBound)
        lazy var isAuthorization = OAuthContext.covers(bytes[range])
        lazy var isLogIn = OAuthContext.coversLogIn(bytes[range])
        for pair in starts {
            guard let equals = bytes[pair].firstIndex(of: UInt8(ascii: "=")) else {
                encoded(pair)
                continue
            }
            encoded(pair.lowerBound..<equals)
            let value = equals + 1..<pair.upperBound
            let place: SecretRules.Place = isQuery ? .query : .form
            let name = Self.decodedName(bytes[pair.lowerBound..<equals])
            let isSecret = rules.isSecret(
                name, bytes[value], place, isAuthorization: { isAuthorization }, isLogIn: { isLogIn })
            if isSecret {
                replace(value)
            } else {
                encoded(value)
            }
        }
    }

    /// Redacts a name or a value that may be percent-encoded.
    private mutating func encoded(_ range: Range<Int>) {
        bytes[range].contains(UInt8(ascii: "%")) ? nested(range, .percent) : value(range)
    }

    static func decodedName(_ name: ArraySlice<UInt8>) -> String {
        String(decoding: name.contains(UInt8(ascii: "%")) ? percentDecoded(name) : Array(name), as: UTF8.self)
    }

    // MARK: Bytes

    static func isNameByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "%")
    }
    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    static func isQuote(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") }

    /// Returns the number of bytes of a character that is cut off at the end, or `nil` if the bytes
    /// are not UTF-8.
    static func cutBytes(_ bytes: ArraySlice<UInt8>) -> Int? {
        let maximum = min(3, bytes.count, bytes.suffix(3).reversed().prefix { $0 >= 0x80 }.count)
        return (0...maximum).first { String(validating: bytes.dropLast($0), as: UTF8.self) != nil }
    }

    func trimmed(_ range: Range<Int>) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, Self.isSpace(bytes[start]) { start += 1 }
        while start < end, Self.isSpace(bytes[end - 1]) { end -= 1 }
        return start..<end
    }

    /// Returns the index of the first occurrence of a text, or the end of the range if there is
    /// none.
    func index(of text: StaticString, in range: Range<Int>) -> Int {
        let text = Array(text.description.utf8)
        var index = range.lowerBound
        while index < range.upperBound {
            if bytes[index] == text.first, begins(text, at: index, before: range.upperBound) { return index }
            index += 1
        }
        return range.upperBound
    }

    func begins(_ text: StaticString, at index: Int, before end: Int) -> Bool {
        begins(Array(text.description.utf8), at: index, before: end)
    }

    func begins(_ text: [UInt8], at index: Int, before end: Int) -> Bool {
        end - index >= text.count && bytes[index..<index + text.count].elementsEqual(text)
    }
}
