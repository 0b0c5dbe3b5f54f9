import Foundation

/// Replaces the values of secret keys in JSON text and leaves the rest unchanged, even if the text
/// is truncated or malformed.
struct JSONRedactor {
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
            if colon < bytes.count, bytes[colon] == UInt8(ascii: ":"),
                redaction.isSecret(key: key(bytes[index..<end]))
            {
                result += bytes[end...colon]
                let start = skipBlanks(bytes, from: colon + 1)
                index = endOfValue(bytes, from: start)
                result += Array(redaction.replacement(of: bytes[start..<index], isJSON: true).utf8)
            } else {
                index = end
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private func key(_ literal: ArraySlice<UInt8>) -> String {
        let data = Data(literal)
        if literal.contains(UInt8(ascii: "\\")) {
            let key = try? JSON.decode(String.self, from: data)  // an invalid literal is compared as is
            if let key { return key }
        }
        return String(decoding: literal.dropFirst().dropLast(), as: UTF8.self)
    }

    private func skipBlanks(_ bytes: [UInt8], from start: Int) -> Int {
        bytes[start...].firstIndex { !" \t\r\n".utf8.contains($0) } ?? bytes.count
    }

    private func endOfString(_ bytes: [UInt8], from quote: Int) -> Int {
        var index = quote + 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(index + 1, bytes.count)
    }

    /// Returns the end of a value: of a string, an array, an object, or of everything up to the
    /// next comma or bracket.
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
