public import Foundation

/// The origin of an http or https URL: scheme, host and port (RFC 6454, section 4). What belongs to one origin, such as a credential, is not given
/// to another.
///
/// ```swift
/// Origin("https://API.example.com:443/v1") == Origin("https://api.example.com")  // true
/// Origin("https://api.example.com") == Origin("https://example.com")             // false: a host stands for itself, not for what ends in it
/// ```
/// Two origins are equal when all three parts are. A missing port is the scheme's own, 80 or 443;
/// names are in lower case, international ones in their ASCII form (UTS 46), IPv6 addresses in
/// their canonical form (RFC 5952). Nothing else is made equal: `example.com.` with a dot at the
/// end is a host of its own, and so is the IPv6 address `[::ffff:127.0.0.1]` beside `127.0.0.1`. A
/// host that ends in a number is an IPv4 address of four decimal numbers; `127.1` and `0x7f000001`
/// have no origin, because parsers do not agree on the host.
public struct Origin: Sendable, Hashable {
    /// `http` or `https`.
    public let scheme: String
    /// The host in lower case; an IPv6 address stands in brackets, in its canonical form.
    public let host: String
    /// The port, from 1 to 65535.
    public let port: Int

    /// The origin of an absolute URL.
    ///
    /// - Returns: `nil` when the URL is not http or https, has no valid host or port, or holds user information.
    public init?(_ url: URL) {
        self.init(url.absoluteString)
    }

    /// The origin of an absolute URL in text form; what stands behind host and port is not looked at.
    ///
    /// - Returns: `nil` when the URL is not http or https, has no valid host or port, or holds user information.
    public init?(_ text: String) {
        let checked = try? BaseURL.splitOrigin(of: Array(text.utf8)).origin  // what is wrong is no concern here: it has no origin
        guard let checked, let mark = checked.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let authority = checked[mark...].dropFirst(3)
        // Checked already: a colon behind the bracket of an IPv6 address begins a port, as does one where there is no bracket.
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
    /// The origin as it begins a URL, such as `https://api.example.com:8443`; a port that is the scheme's own is left out (RFC 6454, section 6.2).
    public var description: String {
        port == Self.defaultPort(of: scheme) ? "\(scheme)://\(host)" : "\(scheme)://\(host):\(port)"
    }
}
