package import Foundation

/// Media types (RFC 9110, section 8.3.1), compared without regard to case and parameters.
package enum MediaType {
    /// Returns the type and subtype in lower case, without parameters; at most 80 printable bytes.
    package static func essence(_ value: String) -> String {
        let type = String(decoding: value.utf8.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
        let text = type.trimmingCharacters(in: .whitespaces).asciiLowercased()
        return String(decoding: text.utf8.prefix(80).filter { $0 > 0x20 && $0 < 0x7F }, as: UTF8.self)
    }

    /// Returns the words for the media type of a `Content-Type` field.
    package static func text(_ type: String?) -> String {
        type.map { "the media type '\(essence($0))'" } ?? "no media type"
    }

    /// Returns whether a media type matches a pattern.
    ///
    /// - Parameter pattern: A media type, `type/*` or `*/*`; `application/json` also matches every
    ///   `+json` type.
    package static func matches(_ value: String, pattern: String) -> Bool {
        let type = essence(value)
        let pattern = essence(pattern)
        if pattern == "*/*" || type == pattern { return true }
        if pattern.hasSuffix("/*") { return type.hasPrefix(pattern.dropLast()) }
        return pattern == ContentType.json && type.hasSuffix("+json")
    }

    /// Returns the value of a parameter such as `charset`, without quotes.
    ///
    /// - Parameter quotes: The characters that are removed from both ends of a value that is not a
    ///   quoted string.
    package static func parameter(
        _ name: String, of value: String, quotes: CharacterSet = ["\"", "'"]
    ) -> String? {
        var scanner = FieldScanner(value)
        let name = name.asciiLowercased()
        guard let parameter = scanner.parameters().first(where: { $0.name == name && $0.form != .absent }) else {
            return nil
        }
        let text = String(decoding: parameter.value, as: UTF8.self)
        guard parameter.form == .token else { return text }
        return text.isEmpty ? nil : text.trimmingCharacters(in: quotes)
    }
}

/// The media types that the library sets.
public enum ContentType {
    /// `application/json` (RFC 8259).
    public static let json = "application/json"
    /// `application/x-www-form-urlencoded` (WHATWG URL, section 5).
    public static let formEncoded = "application/x-www-form-urlencoded"
    /// `application/octet-stream` (RFC 2046, section 4.5.1): bytes of unknown type.
    public static let octetStream = "application/octet-stream"
}
