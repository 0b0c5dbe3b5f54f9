import WebServiceCore

/// A notation for text within other text.
enum Escaping {
    /// Percent-encoding (RFC 3986, section 2.1), including the variant that forms use.
    case percent
    /// The escape sequences of JSON (RFC 8259, section 7).
    case json
    /// The character references of XML and HTML.
    case markup
    /// The `data` lines of an event (HTML, section 9.2).
    case lines

    /// A part of escaped text that represents one byte or one scalar.
    struct Unit {
        enum Content {
            case byte(UInt8)
            case scalar(Unicode.Scalar)
        }
        let content: Content
        /// The number of escaped bytes.
        var length = 1

        /// The number of bytes that the unit represents.
        var count: Int {
            switch content {
            case .byte: 1
            case .scalar(let scalar): UTF8.width(scalar)
            }
        }
    }

    // MARK: Decoding

    /// Returns escaped text in its decoded form. Invalid sequences remain unchanged.
    func decoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        var index = text.startIndex
        while index < text.endIndex {
            guard mayBegin(text[index]) else {
                result.append(text[index])
                index += 1
                continue
            }
            let unit = unit(at: index, in: text)
            switch unit.content {
            case .byte(let byte): result.append(byte)
            case .scalar(let scalar): result += Array(String(scalar).utf8)
            }
            index += unit.length
        }
        return result
    }

    /// Returns whether a byte can begin a unit that has several bytes or represents a different
    /// byte.
    func mayBegin(_ byte: UInt8) -> Bool {
        switch self {
        case .percent: byte == UInt8(ascii: "%") || byte == UInt8(ascii: "+")
        case .json: byte == UInt8(ascii: "\\")
        case .markup: byte == UInt8(ascii: "&")
        case .lines: byte == 0x0A || byte == 0x0D
        }
    }

    /// Returns the unit at an index.
    func unit(at index: Int, in text: ArraySlice<UInt8>) -> Unit {
        let byte = text[index]
        let unit: Unit? =
            switch (self, byte) {
            case (.percent, UInt8(ascii: "%")):
                Self.percentEncoded(at: index, in: text).map { Unit(content: .byte($0), length: 3) }
            case (.percent, UInt8(ascii: "+")): Self.isSpace(at: index, in: text) ? Unit(content: .byte(0x20)) : nil
            case (.json, UInt8(ascii: "\\")): JSONLiteral.escape(at: index, in: text)
            case (.markup, UInt8(ascii: "&")): Self.reference(at: index, in: text)
            case (.lines, 0x0A), (.lines, 0x0D): Self.lineBreak(at: index, in: text)
            default: nil
            }
        return unit ?? Unit(content: .byte(byte))
    }

    static func percentEncoded(at index: Int, in text: ArraySlice<UInt8>) -> UInt8? {
        guard index >= text.startIndex, index + 2 < text.endIndex, text[index] == UInt8(ascii: "%"),
            let high = ASCII.hexValue(text[index + 1]), let low = ASCII.hexValue(text[index + 2])
        else { return nil }
        return high << 4 | low
    }

    /// Returns whether a `+` is a space in a form.
    ///
    /// Between two Base64 characters, it is part of a value that was not encoded correctly.
    private static func isSpace(at index: Int, in text: ArraySlice<UInt8>) -> Bool {
        func isText(_ byte: UInt8?) -> Bool { byte.map { ASCII.isAlphanumeric($0) || "+/=".utf8.contains($0) } ?? true }
        let previous =
            percentEncoded(at: index - 3, in: text) ?? (index > text.startIndex ? text[index - 1] : nil)
        let next =
            percentEncoded(at: index + 1, in: text) ?? (index + 1 < text.endIndex ? text[index + 1] : nil)
        return !isText(previous) || !isText(next)
    }

    /// The character references that XML defines (section 4.6).
    private static let references: [(name: String, byte: UInt8)] = [
        ("amp", UInt8(ascii: "&")), ("lt", UInt8(ascii: "<")), ("gt", UInt8(ascii: ">")),
        ("quot", UInt8(ascii: "\"")), ("apos", UInt8(ascii: "'")),
    ]

    private static func reference(at index: Int, in text: ArraySlice<UInt8>) -> Unit? {
        let rest = text[(index + 1)...].prefix(10)
        guard let end = rest.firstIndex(of: UInt8(ascii: ";")) else { return nil }
        let (name, length) = (rest[..<end], end + 1 - index)
        if let known = references.first(where: { name.elementsEqual($0.name.utf8) }) {
            return Unit(content: .byte(known.byte), length: length)
        }
        guard name.first == UInt8(ascii: "#") else { return nil }
        let isHexadecimal = name.dropFirst().first.map { $0 | 0x20 } == UInt8(ascii: "x")
        return ASCII.number(name.dropFirst(isHexadecimal ? 2 : 1), radix: isHexadecimal ? 16 : 10)
            .flatMap { UInt32(exactly: $0) }.flatMap(Unicode.Scalar.init).map {
                Unit(content: .scalar($0), length: length)
            }
    }

    /// Returns the line break before a `data` line, including the prefix of that line.
    private static func lineBreak(at index: Int, in text: ArraySlice<UInt8>) -> Unit? {
        var end = index + (text[index...].starts(with: "\r\n".utf8) ? 2 : 1)
        guard text[min(end, text.endIndex)...].starts(with: "data:".utf8) else { return nil }
        end += 5
        if end < text.endIndex, text[end] == 0x20 { end += 1 }
        return Unit(content: .byte(0x0A), length: end - index)
    }

    // MARK: Encoding

    /// Returns a replacement in its escaped form.
    func escaped(_ text: [UInt8]) -> [UInt8] {
        switch self {
        case .percent: text.flatMap(Self.percentEncoded)
        case .json: JSONLiteral.escaped(text)
        case .markup: text.flatMap(Self.reference)
        case .lines: text.flatMap { $0 == 0x0A ? Array("\ndata: ".utf8) : [$0] }
        }
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Returns a byte as it is written in a URL (RFC 3986, section 2.3).
    private static func percentEncoded(_ byte: UInt8) -> [UInt8] {
        if ASCII.isAlphanumeric(byte) || "-._~".utf8.contains(byte) { return [byte] }
        return [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }

    private static func reference(_ byte: UInt8) -> [UInt8] {
        references.first { $0.byte == byte }.map { Array("&\($0.name);".utf8) } ?? [byte]
    }
}
