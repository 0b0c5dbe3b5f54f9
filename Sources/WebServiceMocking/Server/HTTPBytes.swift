/// Byte classes of RFC 9110, section 5.
enum HTTPBytes {
    /// Returns whether the bytes are a token, the syntax of methods and field names.
    static func isToken(_ text: some Collection<UInt8>) -> Bool {
        !text.isEmpty
            && text.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }

    /// Returns whether the bytes are a valid field value.
    ///
    /// Valid are visible ASCII, space, tab, and bytes above ASCII.
    static func isFieldValue(_ text: some Collection<UInt8>) -> Bool {
        text.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == UInt8(ascii: "\t") }
    }

    /// Returns whether all bytes are visible ASCII, which excludes the space.
    static func isVisible(_ text: some Collection<UInt8>) -> Bool {
        text.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// Returns the bytes without leading and trailing spaces and tabs.
    static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isBlank: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        guard let last = text.lastIndex(where: { !isBlank($0) }) else { return [] }
        return text[...last].drop(while: isBlank)
    }

    /// Parses a number that consists of digits only.
    ///
    /// - Returns: `nil` for anything else, and `Int.max` for a number that is too large.
    static func number(_ text: some Collection<UInt8>, radix: Int) -> Int? {
        guard !text.isEmpty else { return nil }
        var number = 0
        for byte in text {
            guard let digit = hexValue(byte), digit < radix else { return nil }
            let (product, overflows) = number.multipliedReportingOverflow(by: radix)
            let (sum, overflowsToo) = product.addingReportingOverflow(digit)
            number = overflows || overflowsToo ? Int.max : sum
        }
        return number
    }

    /// Returns the value of a hexadecimal digit.
    static func hexValue(_ byte: UInt8) -> Int? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte - UInt8(ascii: "A")) + 10
        default: nil
        }
    }
}
