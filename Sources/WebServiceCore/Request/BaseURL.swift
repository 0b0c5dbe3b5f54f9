import Foundation

/// An http or https URL, validated, normalized and split into the parts needed for joining.
///
/// Appending a path or a query never extends the host, because ``origin`` is always followed by `/`
/// or `?`.
final class BaseURL: Sendable {
    /// The scheme, host and port in lower case, such as `https://api.example.com:8443`.
    ///
    /// There is no trailing slash.
    let origin: String

    /// The normalized path, including trailing slashes. It is empty or begins with a slash.
    let path: String

    /// The prefix of every joined URL: ``origin`` and ``path``, without trailing slashes.
    let prefix: String

    /// The query without its question mark; `nil` if there is none.
    let query: String?

    /// Creates a base URL from an absolute URL.
    ///
    /// A fragment is dropped, because it is never sent (RFC 9110, section 7.1).
    ///
    /// - Throws: ``WebServiceError/Code/invalidURL``.
    init(_ text: String) throws(WebServiceError) {
        let absolute = try Self.splitOrigin(of: Array(text.utf8))
        let reference = Reference(absolute.rest)
        origin = absolute.origin
        var pathWriter = ByteWriter(reserving: text.utf8.count + 16)
        try PathJoin(reference.path, values: nil, isAbsolute: true).write(below: "", into: &pathWriter)
        path = pathWriter.text
        prefix =
            origin
            + path[..<(path.utf8.lastIndex { $0 != UInt8(ascii: "/") }.map(path.utf8.index(after:)) ?? path.startIndex)]
        var queryWriter = ByteWriter(reserving: 64)
        query = reference.writeQuery(into: &queryWriter, behind: nil) ? queryWriter.text : nil
    }

    /// Returns the scheme of a URI (RFC 3986, section 3.1), or `nil` if it has none.
    static func scheme(of text: [UInt8]) -> ArraySlice<UInt8>? {
        guard let first = text.first, ASCII.isAlpha(first) else { return nil }
        let end = text.firstIndex { byte in
            !ASCII.isAlphanumeric(byte) && byte != UInt8(ascii: "+") && byte != UInt8(ascii: "-")
                && byte != UInt8(ascii: ".")
        }
        guard let end, text[end] == UInt8(ascii: ":") else { return nil }
        return text[..<end]
    }

    /// Splits an absolute URL into `scheme://host:port` and the remainder.
    static func splitOrigin(of text: [UInt8]) throws(WebServiceError) -> (origin: String, rest: ArraySlice<UInt8>) {
        guard let bytes = Self.scheme(of: text) else {
            throw WebServiceError(.invalidURL, "the URL must begin with http:// or https://")
        }
        let scheme = ASCII.lowercased(bytes)
        guard scheme == "http" || scheme == "https" else {
            throw WebServiceError(.invalidURL, "the scheme '\(scheme.prefix(40))' is not supported; use http or https")
        }
        let behindScheme = text[(bytes.endIndex + 1)...]
        guard behindScheme.starts(with: "//".utf8) else {
            throw WebServiceError(.invalidURL, "'\(scheme):' must be followed by // and a host")
        }
        let behindSlashes = behindScheme.dropFirst(2)
        let end =
            behindSlashes.firstIndex {
                $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#")
            } ?? behindSlashes.endIndex
        return ("\(scheme)://\(try checkedAuthority(behindSlashes[..<end]))", behindSlashes[end...])
    }

    /// Returns the host and port (RFC 3986, section 3.2) in lower case.
    ///
    /// User information is rejected, because logs would contain it.
    private static func checkedAuthority(_ authority: ArraySlice<UInt8>) throws(WebServiceError) -> String {
        if authority.contains(UInt8(ascii: "@")) {
            throw WebServiceError(
                .invalidURL, "the URL must not contain user information; send an Authorization header instead")
        }
        let (text, port) = try splitPort(of: authority)
        let host = try asciiHost(text)
        if isAmbiguousNumber(host) { throw WebServiceError(.invalidURL, "the host \(ambiguousNumber)") }
        guard let port, !port.isEmpty else { return host }
        guard port.count <= 5, let number = ASCII.number(port), (1...65535).contains(number) else {
            throw WebServiceError(.invalidURL, "the port is not a number from 1 to 65535; correct the port")
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
            throw WebServiceError(.invalidURL, "the IPv6 host has no closing bracket; add ']' after the address")
        }
        let behind = authority[(close + 1)...]
        guard behind.isEmpty || behind.first == UInt8(ascii: ":") else {
            throw WebServiceError(.invalidURL, "only a port may follow the IPv6 host; remove the other characters")
        }
        return (authority[...close], behind.isEmpty ? nil : behind.dropFirst())
    }

    /// Returns the host in the form that is compared and sent.
    ///
    /// The host is in lower case, an international name in its ASCII form, and an IPv6 address in
    /// its canonical form.
    private static func asciiHost(_ host: ArraySlice<UInt8>) throws(WebServiceError) -> String {
        guard !host.isEmpty else { throw WebServiceError(.invalidURL, "the URL has no host; add a host after '//'") }
        if host.first == UInt8(ascii: "[") {
            guard let address = canonicalIPv6(host.dropFirst().dropLast()) else {
                throw WebServiceError(
                    .invalidURL, "the host in brackets is not an IPv6 address; correct it or remove the brackets")
            }
            return "[\(address)]"
        }
        if host.contains(where: { $0 >= 128 }) { return try internationalHost(String(decoding: host, as: UTF8.self)) }
        return try plainHost(host)
    }

    private static func plainHost(_ host: some Collection<UInt8>) throws(WebServiceError) -> String {
        let allowed = host.allSatisfy {
            ASCII.isAlphanumeric($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
                || $0 == UInt8(ascii: "_")
        }
        guard allowed, !host.isEmpty else {
            throw WebServiceError(
                .invalidURL, "the host contains a character other than letters, digits, '-', '.' and '_'; remove it")
        }
        return ASCII.lowercased(host)
    }

    /// Returns the ASCII form of an international name (UTS 46, nontransitional).
    ///
    /// Foundation computes the form. A name without an ASCII form is rejected.
    private static func internationalHost(_ host: String) throws(WebServiceError) -> String {
        guard let ascii = URLComponents(string: "http://\(host)/")?.encodedHost else {
            throw WebServiceError(.invalidURL, "the international host name is malformed; use its ASCII form")
        }
        return try plainHost(Array(ascii.utf8))
    }
}

// MARK: Addresses

extension BaseURL {
    /// The part of an error message that describes an ambiguous host; see ``hasAmbiguousHost(_:)``.
    static let ambiguousNumber = "ends in a number but is not an IPv4 address in canonical form, such as 192.0.2.1"

    /// Returns whether parsers disagree on the host in the authority of a URL.
    ///
    /// Some parsers read `127.1` and `0x7f000001` as addresses (WHATWG URL, section 3.5), and
    /// others read them as names. Returns `false` for a malformed authority.
    static func hasAmbiguousHost(_ authority: ArraySlice<UInt8>) -> Bool {
        let host = try? asciiHost(splitPort(of: authority).host)  // a malformed authority is reported elsewhere
        return host.map(isAmbiguousNumber) ?? false
    }

    /// - Parameter host: The host in lower case.
    private static func isAmbiguousNumber(_ host: String) -> Bool {
        endsInNumber(host) && !isCanonicalIPv4(host)
    }

    /// Returns whether the last label of a lower-case host is a number (WHATWG URL, section 3.5).
    static func endsInNumber(_ host: String) -> Bool {
        let dot = UInt8(ascii: ".")
        // Most hosts are names, whose last letter is none of these.
        guard let last = host.utf8.last, ASCII.hexValue(last) != nil || last == dot || last == UInt8(ascii: "x")
        else { return false }
        let label = Array(host.utf8.reversed().drop { $0 == dot }.prefix { $0 != dot }.reversed())
        if label.starts(with: "0x".utf8) { return label.dropFirst(2).allSatisfy { ASCII.hexValue($0) != nil } }
        return !label.isEmpty && label.allSatisfy(ASCII.isDigit)
    }

    /// Returns whether a host is an IPv4 address in canonical form.
    ///
    /// The form consists of four decimal numbers up to 255 without leading zeros (RFC 3986, section
    /// 3.2.2).
    private static func isCanonicalIPv4(_ host: String) -> Bool {
        guard host.utf8.count <= 15 else { return false }
        let parts = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 4
            && parts.allSatisfy { part in
                (part.count == 1 || part.first != UInt8(ascii: "0")) && ASCII.number(part).map { $0 <= 255 } ?? false
            }
    }

    /// Returns the canonical form of an IPv6 address (RFC 5952), or `nil` for anything else.
    ///
    /// A zone identifier is not part of an address, so an address with a zone is rejected.
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

/// A relative reference, split into path, query and fragment.
struct Reference {
    let path: ArraySlice<UInt8>
    let query: ArraySlice<UInt8>?
    let fragment: ArraySlice<UInt8>?

    init(_ text: ArraySlice<UInt8>) {
        let end = text.firstIndex(of: UInt8(ascii: "#")) ?? text.endIndex
        let mark = text[..<end].firstIndex(of: UInt8(ascii: "?"))
        path = text[..<(mark ?? end)]
        query = mark.map { text[($0 + 1)..<end] }
        fragment = end < text.endIndex ? text[(end + 1)...] : nil
    }

    /// Writes the separator and the query, in which illegal bytes are percent-encoded.
    ///
    /// - Returns: `true` if there is a query.
    func writeQuery(into writer: inout ByteWriter, behind separator: UInt8?) -> Bool {
        guard let query else { return false }
        if let separator { writer.write(byte: separator) }
        writer.encodeKeepingTriplets(query, allowed: .query)
        return true
    }
}
