package import Foundation

/// The directives of the `Cache-Control` fields of a request or a response (RFC 9111, section 5.2).
///
/// Names are case-insensitive, and quoted strings are unquoted. A directive whose argument is
/// invalid has the most restrictive meaning. If a directive is repeated, the most restrictive value
/// applies.
package struct CacheControl: Sendable {
    /// The largest number of seconds, 2³¹; greater values are reduced to this number (RFC 9111,
    /// section 1.2.2).
    package static let maximum: TimeInterval = 2_147_483_648

    /// The arguments of each directive: `nil` if there is no argument, and an empty string if the
    /// argument is invalid.
    private var arguments: [String: [String?]] = [:]

    package init(_ fields: [String]) {
        for field in fields {
            var scanner = FieldScanner(field)
            while let (name, argument) = scanner.directive() { arguments[name, default: []].append(argument) }
        }
    }

    /// Returns whether a directive is present, with or without an argument.
    package func has(_ name: String) -> Bool { arguments[name] != nil }

    /// Returns whether `no-cache` or `private` applies to the whole response, not only to some
    /// fields.
    package func isWhole(_ name: String) -> Bool {
        arguments[name]?.contains { $0.map(Self.names)?.isEmpty ?? true } == true
    }

    /// Returns the lowercase names of the fields to which `no-cache` or `private` is limited.
    package func fields(_ name: String) -> [String] {
        (arguments[name] ?? []).flatMap { $0.map(Self.names) ?? [] }
    }

    /// Returns the smallest number of seconds of a directive that may be repeated; `nil` if the
    /// directive is absent. An invalid number counts as 0.
    ///
    /// - Parameter bare: The value of a directive without an argument.
    package func least(_ name: String, bare: TimeInterval = 0) -> TimeInterval? {
        arguments[name]?.map { $0.map { Self.seconds($0) ?? 0 } ?? bare }.min()
    }

    /// Returns the largest number of seconds of a directive, or `nil` if the directive is absent. A
    /// missing or invalid argument counts as infinity.
    package func greatest(_ name: String) -> TimeInterval? {
        arguments[name]?.map { $0.flatMap(Self.seconds) ?? .infinity }.max()
    }

    /// Returns a number of seconds (RFC 9111, section 1.2.2); `nil` unless the string consists of
    /// one or more digits.
    package static func seconds(_ text: some StringProtocol) -> TimeInterval? {
        ASCII.number(text.utf8).map { min(TimeInterval($0), maximum) }
    }

    /// Returns the members of a list in lower case (RFC 9110, section 5.6.1). Members are names, so
    /// none contains a comma.
    package static func names(_ list: some StringProtocol) -> [String] {
        list.utf8.split { $0 == UInt8(ascii: ",") || ASCII.isSpaceOrTab($0) }.map { ASCII.lowercased($0) }
    }
}

extension FieldScanner {
    /// - Returns: The lowercase name and the argument of the next directive; `nil` at the end.
    fileprivate mutating func directive() -> (name: String, argument: String?)? {
        while true {
            skipToMember()
            guard !rest.isEmpty else { return nil }
            let name = ASCII.lowercased(take(while: ASCII.isToken))
            var argument: String?
            if take("=") {
                let bytes = take("\"") ? quotedString().content : Array(take(while: ASCII.isToken))
                argument = String(decoding: bytes, as: UTF8.self)
            }
            if !skip(to: ",") { argument = "" }
            if !name.isEmpty { return (name, argument) }
        }
    }
}

/// Whether a cache has added `If-None-Match` and `If-Modified-Since` to a request. These fields
/// belong to the URL of the request, so a redirect removes them (RFC 9110, section 15.4).
package enum CacheConditions: RequestTagKey {
    package static var defaultValue: Bool { false }
}
