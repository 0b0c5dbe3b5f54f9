/// Byte classes of RFC 9110, section 5.
enum HTTPBytes {
    /// The bytes of a method and of a field name.
    static func isToken(_ text: some Collection<UInt8>) -> Bool {
        !text.isEmpty
            && text.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }

    /// The bytes of a field value: visible ones, blanks and everything above ASCII.
    static func isFieldValue(_ text: some Collection<UInt8>) -> Bool {
        text.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == UInt8(ascii: "\t") }
    }

    /// The visible bytes of ASCII, without the space.
    static func isVisible(_ text: some Collection<UInt8>) -> Bool {
        text.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// The text without blanks at either end.
    static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let isBlank: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        guard let last = text.lastIndex(where: { !isBlank($0) }) else { return [] }
        return text[...last].drop(while: isBlank)
    }

    /// Reads a number that consists of digits alone; `nil` for anything else, `Int.max` for a number that is too large.
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

    /// The value of a hexadecimal digit.
    static func hexValue(_ byte: UInt8) -> Int? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): Int(byte - UInt8(ascii: "a")) + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): Int(byte - UInt8(ascii: "A")) + 10
        default: nil
        }
    }
}
