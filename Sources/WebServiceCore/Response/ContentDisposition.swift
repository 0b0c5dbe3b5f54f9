import Foundation

/// The file name of a `Content-Disposition` field (RFC 6266).
package enum ContentDisposition {
    /// Returns the file name as sent, without validation; `nil` if there is none.
    ///
    /// `filename*` takes precedence over `filename`, unless the charset of `filename*` is neither
    /// UTF-8 nor ISO-8859-1, or the value is malformed (RFC 8187, section 3.2.1). The characters
    /// `'()*`, which `encodeURIComponent` of JavaScript does not encode, are accepted. If a
    /// parameter is repeated, the first one applies.
    package static func fileName(_ value: String) -> String? {
        var plain: String?
        var extended: String?
        var scanner = FieldScanner(value)
        for parameter in scanner.parameters() {
            switch (parameter.name, parameter.form) {
            case ("filename", .token), ("filename", .quoted):
                plain = plain ?? String(decoding: parameter.value, as: UTF8.self)
            case ("filename*", .token): extended = extended ?? decoded(parameter.value)
            default: break
            }
        }
        return extended ?? plain
    }

    /// Returns an extended value, `charset'language'text` (RFC 8187, section 3.2), as a string.
    private static func decoded(_ value: [UInt8]) -> String? {
        let parts = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let charset = parts.first, let text = parts.last else { return nil }
        let bytes = percentDecoded(text)
        let triplets = text.count(where: { $0 == UInt8(ascii: "%") })
        guard text.allSatisfy({ ASCII.isToken($0) || $0 == UInt8(ascii: "(") || $0 == UInt8(ascii: ")") }),
            text.count - bytes.count == 2 * triplets
        else { return nil }
        switch String(decoding: charset, as: UTF8.self).asciiLowercased() {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: return nil
        }
    }
}
