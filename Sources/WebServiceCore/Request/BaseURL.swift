import Foundation

/// An http or https URL, checked and normalised, in the pieces that joining needs. Text goes in, text comes out: nothing
/// here is ever glued to a host that was not written as one.
final class BaseURL: Sendable {
    /// Scheme, host and port: `https://api.example.com:8443`, lower case, without a slash at the end.
    let origin: String

    /// The path as given: empty, or beginning with a slash.
    let path: String

    /// Origin and path without slashes at the end: what a path is joined to.
    let prefix: String

    /// The query without its question mark. `nil` when there is none.
    let query: String?

    /// Reads an absolute URL. A fragment is dropped: it is never sent (RFC 9110, section 7.1).
    init(_ text: String) throws(WebServiceError) {
        let absolute = try Self.splitOrigin(of: Array(text.utf8))
        let reference = Reference(absolute.rest)
        origin = absolute.origin
        var pathWriter = ByteWriter(reserving: text.utf8.count + 16)
        try PathJoin(reference.path, values: nil, isAbsolute: true).write(below: "", into: &pathWriter)
        path = pathWriter.text
        prefix = origin + path[..<(path.utf8.lastIndex { $0 != UInt8(ascii: "/") }.map(path.utf8.index(after:)) ?? path.startIndex)]
        var queryWriter = ByteWriter(reserving: 64)
        query = reference.writeQuery(into: &queryWriter, behind: nil) ? queryWriter.text : nil
    }

    /// The scheme that a text begins with (RFC 3986, section 3.1), `nil` where it begins with none.
    static func scheme(of text: [UInt8]) -> ArraySlice<UInt8>? {
        guard let first = text.first, ASCII.isAlpha(first) else { return nil }
        let end = text.firstIndex { byte in
            !(ASCII.isAlpha(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "."))
        }
        guard let end, text[end] == UInt8(ascii: ":") else { return nil }
        return text[..<end]
    }

    /// Takes `scheme://host:port` off the front of an absolute URL.
    static func splitOrigin(of text: [UInt8]) throws(WebServiceError) -> (origin: String, rest: ArraySlice<UInt8>) {
        guard let bytes = Self.scheme(of: text) else {
            throw WebServiceError(.invalidURL, "a URL has to begin with http:// or https://")
        }
        let scheme = String(decoding: bytes.map(ASCII.lowercased), as: UTF8.self)
        guard scheme == "http" || scheme == "https" else {
            throw WebServiceError(.invalidURL, "the scheme '\(scheme.prefix(40))' is not supported, only http and https are")
        }
        let behindScheme = text[(bytes.endIndex + 1)...]
        guard behindScheme.starts(with: "//".utf8) else {
            throw WebServiceError(.invalidURL, "'\(scheme):' has to be followed by // and a host")
        }
        let behindSlashes = behindScheme.dropFirst(2)
        let end = behindSlashes.firstIndex { "/?#".utf8.contains($0) } ?? behindSlashes.endIndex
        return ("\(scheme)://\(try checkedAuthority(behindSlashes[..<end]))", behindSlashes[end...])
    }

    /// Host and port (RFC 3986, section 3.2) in lower case; user information is refused, because it would end up in logs.
    private static func checkedAuthority(_ authority: ArraySlice<UInt8>) throws(WebServiceError) -> String {
        if authority.contains(UInt8(ascii: "@")) {
            throw WebServiceError(.invalidURL, "a URL must not hold user information; send an Authorization header instead")
        }
        var host = authority
        var port: ArraySlice<UInt8>?
        if authority.first == UInt8(ascii: "[") {
            guard let close = authority.firstIndex(of: UInt8(ascii: "]")) else {
                throw WebServiceError(.invalidURL, "the IPv6 host has no closing bracket")
            }
            host = authority[...close]
            let behind = authority[(close + 1)...]
            guard behind.isEmpty || behind.first == UInt8(ascii: ":") else {
                throw WebServiceError(.invalidURL, "behind the IPv6 host only a port can stand")
            }
            port = behind.isEmpty ? nil : behind.dropFirst()
        } else if let colon = authority.firstIndex(of: UInt8(ascii: ":")) {
            host = authority[..<colon]
            port = authority[(colon + 1)...]
        }
        let checked = try checkedHost(host)
        guard let port, !port.isEmpty else { return checked }
        guard port.count <= 5, port.allSatisfy(ASCII.isDigit), let number = Int(String(decoding: port, as: UTF8.self)),
            (1...65535).contains(number)
        else {
            throw WebServiceError(.invalidURL, "the port is not a number from 1 to 65535")
        }
        return "\(checked):\(number)"
    }

    private static func checkedHost(_ host: ArraySlice<UInt8>) throws(WebServiceError) -> String {
        guard !host.isEmpty else { throw WebServiceError(.invalidURL, "the URL has no host") }
        if host.first == UInt8(ascii: "[") {
            let inside = host.dropFirst().dropLast()
            guard inside.count >= 2, inside.allSatisfy({ ASCII.hexValue($0) != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
            else { throw WebServiceError(.invalidURL, "the IPv6 host is malformed") }
            return String(decoding: host.map(ASCII.lowercased), as: UTF8.self)
        }
        if host.contains(where: { $0 >= 128 }) { return try internationalHost(String(decoding: host, as: UTF8.self)) }
        return try plainHost(host)
    }

    private static func plainHost(_ host: some Collection<UInt8>) throws(WebServiceError) -> String {
        let allowed = host.allSatisfy {
            ASCII.isAlpha($0) || ASCII.isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_")
        }
        guard allowed, !host.isEmpty else { throw WebServiceError(.invalidURL, "the host holds a character that no host can have") }
        return String(decoding: host.map(ASCII.lowercased), as: UTF8.self)
    }

    /// Foundation turns an international name into its ASCII form (UTS 46); what does not become ASCII is refused.
    private static func internationalHost(_ host: String) throws(WebServiceError) -> String {
        guard let ascii = URLComponents(string: "http://\(host)/")?.encodedHost else {
            throw WebServiceError(.invalidURL, "the international host name is malformed")
        }
        return try plainHost(Array(ascii.utf8))
    }
}

/// The pieces of a relative reference: what stands before `?`, between `?` and `#`, and nothing of what stands behind.
struct Reference {
    let path: ArraySlice<UInt8>
    let query: ArraySlice<UInt8>?

    init(_ text: ArraySlice<UInt8>) {
        let end = text.firstIndex(of: UInt8(ascii: "#")) ?? text.endIndex
        let mark = text[..<end].firstIndex(of: UInt8(ascii: "?"))
        path = text[..<(mark ?? end)]
        query = mark.map { text[($0 + 1)..<end] }
    }

    /// - Returns: Whether there is a query.
    func writeQuery(into writer: inout ByteWriter, behind separator: UInt8?) -> Bool {
        guard let query else { return false }
        if let separator { writer.write(byte: separator) }
        writer.encodeKeepingTriplets(query, allowed: .query)
        return true
    }
}
