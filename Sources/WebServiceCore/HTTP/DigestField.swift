import Foundation

/// The values of `Repr-Digest` and `Content-Digest` fields (RFC 9530).
enum DigestField {
    /// Returns the digests of known algorithms.
    ///
    /// The field is a dictionary of byte sequences (RFC 9651, sections 3.2 and 3.3.5). Other
    /// algorithms and digests of the wrong length are ignored, as is an entire value that is not a
    /// dictionary.
    static func digests(_ value: String) -> [SHA2: [UInt8]] {
        var reader = StructuredFieldReader(value)
        var digests: [SHA2: [UInt8]] = [:]
        guard let members = reader.dictionaryOfBytes() else { return [:] }
        for algorithm in SHA2.allCases {
            if let digest = members[algorithm.rawValue], digest.count == algorithm.length {
                digests[algorithm] = digest
            }
        }
        return digests
    }
}

/// A reader of structured fields (RFC 9651, section 4.2) that retains only byte sequences.
///
/// Each step returns `nil` or `false` for a value that the grammar does not allow.
struct StructuredFieldReader {
    private var rest: Substring.UTF8View

    init(_ value: String) {
        rest = Substring(value).utf8
    }

    /// Returns the members of a dictionary that are byte sequences; a member of another type
    /// replaces an earlier one with the same key.
    mutating func dictionaryOfBytes() -> [String: [UInt8]]? {
        var members: [String: [UInt8]] = [:]
        skip { $0 == UInt8(ascii: " ") }
        while !rest.isEmpty {
            guard let key = key() else { return nil }
            var bytes: [UInt8]?
            if take("=") {
                guard value(&bytes) else { return nil }
            }
            guard parameters() else { return nil }
            members[key] = bytes
            skip(Self.isSpace)
            guard !rest.isEmpty else { break }
            guard take(",") else { return nil }
            skip(Self.isSpace)
            if rest.isEmpty { return nil }  // a trailing comma
        }
        return members
    }

    // MARK: Members

    private mutating func value(_ bytes: inout [UInt8]?) -> Bool {
        take("(") ? innerList() : item(&bytes)
    }

    private mutating func innerList() -> Bool {
        while true {
            skip { $0 == UInt8(ascii: " ") }
            if take(")") { return true }
            var ignored: [UInt8]?
            guard item(&ignored), parameters(), rest.first == UInt8(ascii: " ") || rest.first == UInt8(ascii: ")")
            else { return false }
        }
    }

    private mutating func parameters() -> Bool {
        while take(";") {
            skip { $0 == UInt8(ascii: " ") }
            guard key() != nil else { return false }
            var ignored: [UInt8]?
            if take("="), !item(&ignored) { return false }
        }
        return true
    }

    private mutating func key() -> String? {
        guard let first = rest.first, Self.isLowercase(first) || first == UInt8(ascii: "*") else { return nil }
        return String(
            decoding: skip { Self.isLowercase($0) || ASCII.isDigit($0) || "_-.*".utf8.contains($0) }, as: UTF8.self)
    }

    // MARK: Items

    private mutating func item(_ bytes: inout [UInt8]?) -> Bool {
        switch rest.first {
        case UInt8(ascii: ":")?:
            bytes = byteSequence()
            return bytes != nil
        case UInt8(ascii: "\"")?: return string()
        case UInt8(ascii: "?")?: return take("?") && (take("0") || take("1"))
        case UInt8(ascii: "@")?: return take("@") && number(isDate: true)
        case let first? where ASCII.isDigit(first) || first == UInt8(ascii: "-"): return number(isDate: false)
        case let first? where ASCII.isAlpha(first) || first == UInt8(ascii: "*"):
            skip { ASCII.isToken($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }
            return true
        default: return false
        }
    }

    private mutating func byteSequence() -> [UInt8]? {
        guard take(":") else { return nil }
        let text = String(decoding: skip { $0 != UInt8(ascii: ":") }, as: UTF8.self)
        // Senders may omit the padding.
        let padded = text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        guard take(":"), let data = Data(base64Encoded: padded) else { return nil }
        return [UInt8](data)
    }

    private mutating func string() -> Bool {
        guard take("\"") else { return false }
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return true
            case UInt8(ascii: "\\"): guard take("\\") || take("\"") else { return false }
            case 0x20...0x7E: continue
            default: return false
            }
        }
        return false
    }

    /// An integer of 15 digits, or a decimal with 12 digits before and 3 after the point.
    private mutating func number(isDate: Bool) -> Bool {
        _ = take("-")
        let whole = skip(ASCII.isDigit).count
        guard !isDate, take(".") else { return (1...15).contains(whole) }
        return (1...12).contains(whole) && (1...3).contains(skip(ASCII.isDigit).count)
    }

    // MARK: Bytes

    private mutating func take(_ mark: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: mark) else { return false }
        rest = rest.dropFirst()
        return true
    }

    @discardableResult
    private mutating func skip(_ belongs: (UInt8) -> Bool) -> Substring.UTF8View {
        let skipped = rest.prefix(while: belongs)
        rest = rest[skipped.endIndex...]
        return skipped
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func isLowercase(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
    }
}
