/// Quoted strings in header fields (RFC 9110, section 5.6.4).
package enum QuotedStrings {
    /// Splits at a separator outside quoted strings.
    package static func split(_ bytes: [UInt8], at separator: UInt8) -> [ArraySlice<UInt8>] {
        var parts: [ArraySlice<UInt8>] = []
        var (start, index, isQuoted) = (0, 0, false)
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: "\\") where isQuoted: index += 1
            case separator where !isQuoted:
                parts.append(bytes[start..<index])
                start = index + 1
            default: break
            }
            index += 1
        }
        parts.append(bytes[start...])
        return parts
    }

    /// Returns the content of a quoted string; `nil` without a closing quote.
    ///
    /// - Parameter value: The bytes from the opening quote.
    package static func content(_ value: ArraySlice<UInt8>) -> [UInt8]? {
        var content: [UInt8] = []
        var isEscaped = false
        for byte in value.dropFirst() {
            if !isEscaped, byte == UInt8(ascii: "\"") { return content }
            isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
            if !isEscaped { content.append(byte) }
        }
        return nil
    }
}
