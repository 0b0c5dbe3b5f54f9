import WebServiceCore

/// Functions that find, decode and encode literals in JSON text, which may be truncated or
/// malformed (RFC 8259).
///
/// A redaction cannot use `JSONParser` of `WebServiceCore`, for two reasons: that parser rejects
/// truncated or damaged text, and it returns values, whereas everything except the secrets must
/// remain byte for byte.
enum JSONLiteral {
    /// Returns the end of the string whose opening quotation mark is at the given index.
    static func endOfString(_ bytes: ArraySlice<UInt8>, from quote: Int) -> Int {
        var index = quote + 1
        while index < bytes.endIndex, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(index + 1, bytes.endIndex)
    }

    /// Returns the end of a string, an array or an object, or otherwise the index of the next comma
    /// or closing bracket.
    static func endOfValue(_ bytes: ArraySlice<UInt8>, from start: Int) -> Int {
        var index = start
        var depth = 0
        while index < bytes.endIndex {
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

    /// Returns the escape sequence at an index (RFC 8259, section 7), or `nil` if it is invalid.
    ///
    /// An unpaired surrogate becomes U+FFFD.
    static func escape(at index: Int, in text: ArraySlice<UInt8>) -> Escaping.Unit? {
        guard index + 1 < text.endIndex else { return nil }
        let escape = text[index + 1]
        switch escape {
        case UInt8(ascii: "b"): return Escaping.Unit(content: .byte(0x08), length: 2)
        case UInt8(ascii: "f"): return Escaping.Unit(content: .byte(0x0C), length: 2)
        case UInt8(ascii: "n"): return Escaping.Unit(content: .byte(0x0A), length: 2)
        case UInt8(ascii: "r"): return Escaping.Unit(content: .byte(0x0D), length: 2)
        case UInt8(ascii: "t"): return Escaping.Unit(content: .byte(0x09), length: 2)
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"):
            return Escaping.Unit(content: .byte(escape), length: 2)
        case UInt8(ascii: "u"):
            guard let unit = codeUnit(text[(index + 2)...]) else { return nil }
            if let scalar = Unicode.Scalar(unit) { return Escaping.Unit(content: .scalar(scalar), length: 6) }
            let rest = text[(index + 6)...]
            guard unit >> 10 == 0x36, rest.starts(with: "\\u".utf8), let low = codeUnit(rest.dropFirst(2)),
                low >> 10 == 0x37,
                let scalar = Unicode.Scalar(0x10000 + (UInt32(unit & 0x3FF) << 10 | UInt32(low & 0x3FF)))
            else { return Escaping.Unit(content: .scalar("\u{FFFD}"), length: 6) }
            return Escaping.Unit(content: .scalar(scalar), length: 12)
        default: return nil
        }
    }

    /// Returns the content of a string with its escape sequences decoded.
    static func unescaped(_ content: ArraySlice<UInt8>) -> [UInt8] { Escaping.json.decoded(content) }

    /// Returns the value of four hexadecimal digits, or `nil` if there are fewer.
    private static func codeUnit(_ bytes: ArraySlice<UInt8>) -> UInt16? {
        let digits = bytes.prefix(4).compactMap(ASCII.hexValue)
        return digits.count == 4 ? digits.reduce(0) { $0 << 4 | UInt16($1) } : nil
    }

    /// Returns the content of a string with the characters escaped for which JSON requires it.
    static func escaped(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): result += [UInt8(ascii: "\\"), byte]
            case 0x0A: result += Array("\\n".utf8)
            case 0..<0x20:
                result += Array("\\u00".utf8) + [byte >> 4, byte & 15].map { Array("0123456789abcdef".utf8)[Int($0)] }
            default: result.append(byte)
            }
        }
        return result
    }
}
