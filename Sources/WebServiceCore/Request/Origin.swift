public import Foundation

/// The origin of an http or https URL: scheme, host and port (RFC 6454, section 4).
///
/// Data that belongs to one origin, such as a credential, is not sent to another.
///
/// ```swift
/// Origin("https://API.example.com:443/v1") == Origin("https://api.example.com")  // true
/// Origin("https://api.example.com") == Origin("https://example.com")  // false
/// ```
/// Two origins are equal if all three parts are equal. A missing port means the default port of the
/// scheme, 80 or 443. Names are compared in lower case, international names in their ASCII form
/// (UTS 46), and IPv6 addresses in their canonical form (RFC 5952). No other hosts are equal: a
/// host does not match its subdomains, `example.com.` with a trailing dot differs from
/// `example.com`, and the IPv6 address `[::ffff:127.0.0.1]` differs from `127.0.0.1`. A host that
/// ends in a number must be an IPv4 address of four decimal numbers: URLs with the hosts `127.1`
/// and `0x7f000001` have no origin, because parsers interpret these hosts differently.
public struct Origin: Sendable, Hashable {
    /// The scheme, `http` or `https`.
    public let scheme: String
    /// The host in lower case. An IPv6 address is in brackets and in its canonical form.
    public let host: String
    /// The port, from 1 to 65535.
    public let port: Int

    /// Creates the origin of an absolute URL.
    ///
    /// - Returns: `nil` if the URL is not http or https, has no valid host or port, or contains
    ///   user information.
    public init?(_ url: URL) {
        self.init(url.absoluteString)
    }

    /// Creates the origin of an absolute URL string.
    ///
    /// Anything after the host and port is ignored.
    ///
    /// - Returns: `nil` if the URL is not http or https, has no valid host or port, or contains
    ///   user information.
    public init?(_ text: String) {
        let checked = try? BaseURL.splitOrigin(of: Array(text.utf8)).origin  // an invalid URL has no origin
        guard let checked, let mark = checked.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let authority = checked[mark...].dropFirst(3)
        // The authority has already been checked: a colon after the bracket of an IPv6 address
        // precedes a port, and so does any colon in an authority without brackets.
        let end = authority.utf8.lastIndex(of: UInt8(ascii: "]")) ?? authority.startIndex
        let colon = authority[end...].utf8.firstIndex(of: UInt8(ascii: ":"))
        scheme = String(checked[..<mark])
        host = String(authority[..<(colon ?? authority.endIndex)])
        port = colon.flatMap { Int(authority[$0...].dropFirst()) } ?? Self.defaultPort(of: scheme)
    }

    private static func defaultPort(of scheme: String) -> Int {
        scheme == "https" ? 443 : 80
    }
}

extension Origin: CustomStringConvertible {
    /// The origin as the start of a URL, such as `https://api.example.com:8443`.
    ///
    /// The default port of the scheme is omitted (RFC 6454, section 6.2).
    public var description: String {
        port == Self.defaultPort(of: scheme) ? "\(scheme)://\(host)" : "\(scheme)://\(host):\(port)"
    }
}
