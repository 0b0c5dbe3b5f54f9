import WebServiceCore

/// The grammar that the parser and the serializer share.
enum StructuredFieldSyntax {
    /// The maximum number of digits of an integer, and of a decimal before the decimal point.
    static let (integerDigits, decimalDigits) = (15, 12)
    /// The smallest integer, and the smallest decimal in thousandths, that has too many digits.
    static let bound: Int64 = 1_000_000_000_000_000

    static func isKeyStart(_ byte: UInt8) -> Bool { isLowercase(byte) || byte == UInt8(ascii: "*") }

    static func isKey(_ byte: UInt8) -> Bool {
        isLowercase(byte) || ASCII.isDigit(byte) || "_-.*".utf8.contains(byte)
    }

    static func isTokenStart(_ byte: UInt8) -> Bool { ASCII.isAlpha(byte) || byte == UInt8(ascii: "*") }

    static func isToken(_ byte: UInt8) -> Bool { ASCII.isToken(byte) || ":/".utf8.contains(byte) }

    static func isPrintable(_ byte: UInt8) -> Bool { byte >= 0x20 && byte < 0x7F }

    static func isLowercase(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") }
}
