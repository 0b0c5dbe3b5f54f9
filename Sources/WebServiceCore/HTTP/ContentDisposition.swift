import Foundation

/// The file name of a `Content-Disposition` field (RFC 6266).
enum ContentDisposition {
    /// Returns the file name as sent, which may be any string.
    ///
    /// `filename*` takes precedence over `filename`, unless its charset is neither UTF-8 nor
    /// ISO-8859-1 or its value is malformed (RFC 8187, section 3.2.1). If a parameter is repeated,
    /// the first one applies.
    static func fileName(_ value: String) -> String? {
        var plain: String?
        var extended: String?
        for parameter in parameters(Array(value.utf8)) {
            switch parameter.name {
            case "filename": plain = plain ?? String(decoding: parameter.value, as: UTF8.self)
            case "filename*" where !parameter.isQuoted: extended = extended ?? decoded(parameter.value)
            default: break
            }
        }
        return extended ?? plain
    }

    private struct Parameter {
        let name: String
        let value: [UInt8]
        let isQuoted: Bool
    }

    /// Returns the parameters after the type. A string without a closing quote is not a parameter.
    private static func parameters(_ bytes: [UInt8]) -> [Parameter] {
        QuotedStrings.split(bytes, at: UInt8(ascii: ";")).dropFirst().compactMap { part in
            guard let equals = part.firstIndex(of: UInt8(ascii: "=")) else { return nil }
            let name = String(decoding: ASCII.trimmed(part[..<equals]), as: UTF8.self).asciiLowercased()
            let value = ASCII.trimmed(part[(equals + 1)...])
            guard value.first == UInt8(ascii: "\"") else {
                return Parameter(name: name, value: Array(value), isQuoted: false)
            }
            return QuotedStrings.content(value).map { Parameter(name: name, value: $0, isQuoted: true) }
        }
    }

    /// Returns an extended value, `charset'language'text` (RFC 8187, section 3.2), as a string.
    private static func decoded(_ value: [UInt8]) -> String? {
        let parts = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let charset = parts.first, let text = parts.last else { return nil }
        let bytes = percentDecoded(text)
        let triplets = text.count(where: { $0 == UInt8(ascii: "%") })
        guard text.allSatisfy({ ASCII.isToken($0) && $0 != UInt8(ascii: "*") && $0 != UInt8(ascii: "'") }),
            text.count - bytes.count == 2 * triplets
        else { return nil }
        switch String(decoding: charset, as: UTF8.self).asciiLowercased() {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: return nil
        }
    }
}
