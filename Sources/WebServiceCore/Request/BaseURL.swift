import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

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
        let (text, port) = try splitPort(of: authority)
        let host = try asciiHost(text)
        if isAmbiguousNumber(host) { throw WebServiceError(.invalidURL, "the host \(ambiguousNumber)") }
        guard let port, !port.isEmpty else { return host }
        guard port.count <= 5, port.allSatisfy(ASCII.isDigit), let number = Int(String(decoding: port, as: UTF8.self)),
            (1...65535).contains(number)
        else {
            throw WebServiceError(.invalidURL, "the port is not a number from 1 to 65535")
        }
        return "\(host):\(number)"
    }

    private static func splitPort(
        of authority: ArraySlice<UInt8>
    ) throws(WebServiceError) -> (host: ArraySlice<UInt8>, port: ArraySlice<UInt8>?) {
        guard authority.first == UInt8(ascii: "[") else {
            guard let colon = authority.firstIndex(of: UInt8(ascii: ":")) else { return (authority, nil) }
            return (authority[..<colon], authority[(colon + 1)...])
        }
        guard let close = authority.firstIndex(of: UInt8(ascii: "]")) else {
            throw WebServiceError(.invalidURL, "the IPv6 host has no closing bracket")
        }
        let behind = authority[(close + 1)...]
        guard behind.isEmpty || behind.first == UInt8(ascii: ":") else {
            throw WebServiceError(.invalidURL, "behind the IPv6 host only a port can stand")
        }
        return (authority[...close], behind.isEmpty ? nil : behind.dropFirst())
    }

    /// The host as it is compared and sent: in lower case, an international name in its ASCII form,
    /// an IPv6 address in its canonical form.
    private static func asciiHost(_ host: ArraySlice<UInt8>) throws(WebServiceError) -> String {
        guard !host.isEmpty else { throw WebServiceError(.invalidURL, "the URL has no host") }
        if host.first == UInt8(ascii: "[") {
            guard let address = canonicalIPv6(host.dropFirst().dropLast()) else {
                throw WebServiceError(.invalidURL, "the host in brackets is not an IPv6 address")
            }
            return "[\(address)]"
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

    /// Foundation turns an international name into its ASCII form (UTS 46, nontransitional); what
    /// does not become ASCII is refused.
    private static func internationalHost(_ host: String) throws(WebServiceError) -> String {
        guard let ascii = URLComponents(string: "http://\(host)/")?.encodedHost else {
            throw WebServiceError(.invalidURL, "the international host name is malformed")
        }
        return try plainHost(Array(ascii.utf8))
    }
}

// MARK: Addresses

extension BaseURL {
    /// What is wrong with the host of ``hasAmbiguousHost(_:)``.
    static let ambiguousNumber = "ends in a number but is not an IPv4 address in canonical form"

    /// A Boolean value that indicates whether parsers read different hosts in the authority of a
    /// URL: `127.1` and `0x7f000001` are addresses for some (WHATWG URL, section 3.5), names for
    /// others. `false` also for an authority that is malformed in another way.
    static func hasAmbiguousHost(_ authority: ArraySlice<UInt8>) -> Bool {
        let host = try? asciiHost(splitPort(of: authority).host)  // what is malformed has its own error elsewhere
        return host.map(isAmbiguousNumber) ?? false
    }

    /// - Parameter host: In lower case.
    private static func isAmbiguousNumber(_ host: String) -> Bool {
        endsInNumber(host) && !isCanonicalIPv4(host)
    }

    /// A Boolean value that indicates whether the last label of a host in lower case is a number
    /// (WHATWG URL, section 3.5).
    static func endsInNumber(_ host: String) -> Bool {
        let dot = UInt8(ascii: ".")
        let label = Array(host.utf8.reversed().drop { $0 == dot }.prefix { $0 != dot }.reversed())
        if label.starts(with: "0x".utf8) { return label.dropFirst(2).allSatisfy { ASCII.hexValue($0) != nil } }
        return !label.isEmpty && label.allSatisfy(ASCII.isDigit)
    }

    /// Four decimal numbers up to 255 without leading zeros (RFC 3986, section 3.2.2).
    private static func isCanonicalIPv4(_ host: String) -> Bool {
        guard host.utf8.count <= 15 else { return false }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts.allSatisfy { part in UInt8(part).map(String.init) == String(part) }
    }

    /// The canonical form of an IPv6 address (RFC 5952). `nil` for what is no IPv6 address; a zone
    /// is not part of one.
    private static func canonicalIPv6(_ text: ArraySlice<UInt8>) -> String? {
        guard text.count < Int(INET6_ADDRSTRLEN),
            text.allSatisfy({ ASCII.hexValue($0) != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
        else { return nil }
        var address = in6_addr()
        var canonical = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_pton(AF_INET6, String(decoding: text, as: UTF8.self), &address) == 1,
            inet_ntop(AF_INET6, &address, &canonical, socklen_t(canonical.count)) != nil
        else { return nil }
        return String(decoding: canonical.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
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
