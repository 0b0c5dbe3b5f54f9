import WebServiceCore

/// Finds, decodes and encodes literals in JSON text that may be truncated or malformed (RFC 8259).
///
/// A redaction cannot use `JSONParser` of `WebServiceCore`: that parser rejects truncated or
/// damaged text, and returns values, whereas everything except the secrets must remain byte for
/// byte.
enum JSONLiteral {
    /// Returns the end of the string whose opening quotation mark is at an index.
    static func endOfString(_ bytes: ArraySlice<UInt8>, from quote: Int) -> Int {
        var index = quote + 1
        while index < bytes.endIndex, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(index + 1, bytes.endIndex)
    }

    /// Returns the end of a string, an array or an object, or else the index of the next comma or
    /// bracket.
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

    /// Returns the content of a string without its escape sequences (RFC 8259, section 7).
    ///
    /// Invalid escape sequences are retained; surrogates without a partner become U+FFFD.
    static func unescaped(_ content: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(content.count)
        var rest = content
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let escape = rest.popFirst() else {
                result.append(byte)
                continue
            }
            switch escape {
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0C)
            case UInt8(ascii: "n"): result.append(0x0A)
            case UInt8(ascii: "r"): result.append(0x0D)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): result.append(escape)
            case UInt8(ascii: "u"):
                guard let unit = codeUnit(rest) else {
                    result += [byte, escape]
                    continue
                }
                rest = rest.dropFirst(4)
                var units = [unit]
                if unit >> 10 == 0x36, rest.starts(with: "\\u".utf8), let low = codeUnit(rest.dropFirst(2)),
                    low >> 10 == 0x37
                {
                    units.append(low)
                    rest = rest.dropFirst(6)
                }
                result += Array(String(decoding: units, as: UTF16.self).utf8)
            default: result += [byte, escape]
            }
        }
        return result
    }

    /// Returns the value of four hexadecimal digits.
    private static func codeUnit(_ bytes: ArraySlice<UInt8>) -> UInt16? {
        let digits = bytes.prefix(4).compactMap(ASCII.hexValue)
        return digits.count == 4 ? digits.reduce(0) { $0 << 4 | UInt16($1) } : nil
    }

    /// Returns the content of a string with the escape sequences that JSON requires.
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
