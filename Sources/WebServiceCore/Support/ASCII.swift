/// Byte classes and comparisons that protocols define for ASCII.
///
/// They operate on UTF-8 bytes. In Swift, `"\r\n"` is one `Character`, so checks of characters
/// would miss it.
package enum ASCII {
    /// Returns whether a byte is legal in a token, such as a method or a field name.
    ///
    /// RFC 9110, section 5.6.2, defines these bytes.
    package static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// Returns whether bytes are a token.
    package static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy(isToken)
    }

    @inlinable package static func isAlpha(_ byte: UInt8) -> Bool {
        (byte | 0x20) >= UInt8(ascii: "a") && (byte | 0x20) <= UInt8(ascii: "z")
    }

    @inlinable package static func isDigit(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
    }

    @inlinable package static func isAlphanumeric(_ byte: UInt8) -> Bool { isAlpha(byte) || isDigit(byte) }

    @inlinable package static func isSpaceOrTab(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Returns whether all bytes are visible ASCII, which excludes the space.
    package static func isVisible(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// Returns whether bytes are a field value (RFC 9110, section 5.5): visible ASCII, spaces, tabs
    /// and bytes above ASCII.
    package static func isFieldValue(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }

    @inlinable package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }

    /// Returns bytes as a string with A–Z in lower case.
    package static func lowercased(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes.map { lowercased($0) }, as: UTF8.self)
    }

    /// Returns whether bytes are equal, with A–Z equal to a–z.
    package static func areEqualIgnoringCase(
        _ first: some Collection<UInt8>, _ second: some Collection<UInt8>
    ) -> Bool {
        first.count == second.count
            && zip(first, second).allSatisfy { $0 == $1 || lowercased($0) == lowercased($1) }
    }

    /// Returns the bytes without the spaces and tabs around them (RFC 9110, section 5.6.3).
    package static func trimmed<Bytes: BidirectionalCollection<UInt8>>(_ bytes: Bytes) -> Bytes.SubSequence {
        guard let first = bytes.firstIndex(where: { !isSpaceOrTab($0) }),
            let last = bytes.lastIndex(where: { !isSpaceOrTab($0) })
        else {
            return bytes[bytes.endIndex...]
        }
        return bytes[first...last]
    }

    /// Returns the value of a number that consists only of digits.
    ///
    /// - Returns: `nil` for anything else, and `Int.max` for a number that is too large.
    package static func number(_ digits: some Collection<UInt8>, radix: UInt8 = 10) -> Int? {
        guard !digits.isEmpty else { return nil }
        var number = 0
        for byte in digits {
            guard let digit = hexValue(byte), digit < radix else { return nil }
            let (product, overflows) = number.multipliedReportingOverflow(by: Int(radix))
            let (sum, overflowsToo) = product.addingReportingOverflow(Int(digit))
            number = overflows || overflowsToo ? Int.max : sum
        }
        return number
    }

    /// Returns the value of a hexadecimal digit, or `nil` for any other byte.
    package static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension StringProtocol {
    /// Returns whether two strings are equal according to the rules of RFC 9110 for field names.
    ///
    /// Bytes are compared, with A–Z equal to a–z, regardless of the locale.
    package func equalsIgnoringASCIICase(_ other: some StringProtocol) -> Bool {
        ASCII.areEqualIgnoringCase(utf8, other.utf8)
    }

    /// Returns the string with A–Z in lower case, regardless of the locale.
    package func asciiLowercased() -> String {
        ASCII.lowercased(utf8)
    }
}

extension ASCII {
    /// Returns two hexadecimal digits in lower case for each byte.
    static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

extension UInt64 {
    /// The number as 16 hexadecimal digits in lower case.
    package var hexadecimal: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}

extension Collection<UInt8> {
    /// Returns whether a short sequence of bytes occurs in this collection.
    package func holds(_ part: some Collection<UInt8>) -> Bool {
        guard let first = part.first else { return true }
        var rest = self[...]
        while let start = rest.firstIndex(of: first) {
            if rest[start...].starts(with: part) { return true }
            rest = rest[rest.index(after: start)...]
        }
        return false
    }
}
