public import Foundation

/// A cookie of a ``CookieJar``. Its descriptions omit the value.
public struct Cookie: Sendable, Hashable {
    /// The name, which is never empty.
    public let name: String
    /// The value as received, including quotation marks. It may be empty.
    public let value: String
    /// The host that set the cookie, or the value of the `Domain` attribute without a leading dot,
    /// in lower case.
    public let domain: String
    /// The path at or below which the cookie is sent.
    public let path: String
    /// The expiry date, no later than the end of the year 9999; `nil` for a session cookie.
    public let expires: Date?
    /// Whether the cookie is sent only over https.
    public let isSecure: Bool
    /// Whether the cookie is sent only to ``domain`` itself.
    public let isHostOnly: Bool
    /// Whether the cookie has the `HttpOnly` attribute.
    ///
    /// The attribute has no effect in a ``CookieJar``.
    public let isHTTPOnly: Bool

    /// Creates a cookie that can be added to a jar with ``CookieJar/add(_:)``.
    ///
    /// - Parameters:
    ///   - name: The name.
    ///   - value: The value.
    ///   - domain: The host or domain, in ASCII.
    ///   - path: The path at or below which the cookie is sent. Defaults to `/`.
    ///   - expires: The expiry date. Defaults to `nil`, a session cookie.
    ///   - isSecure: Whether the cookie is sent only over https. Defaults to `true`.
    ///   - isHostOnly: Whether the cookie is sent only to the domain itself. Always `true` for an
    ///     IP address, a domain without a dot and a public suffix. Defaults to `true`.
    ///   - isHTTPOnly: Whether the cookie has the `HttpOnly` attribute. Defaults to `false`.
    /// - Throws: ``WebServiceError/Code/invalidHeader`` if a `Set-Cookie` field could not set the
    ///   cookie (RFC 6265, section 4.1.1). Possible reasons are an empty name, `=` in the name, a
    ///   control character, `;`, surrounding spaces, more than 4,096 bytes, an invalid domain or
    ///   path, an expiry date that is not a number, or a violated name prefix.
    public init(
        name: String, value: String, domain: String, path: String = "/", expires: Date? = nil,
        isSecure: Bool = true, isHostOnly: Bool = true, isHTTPOnly: Bool = false
    ) throws(WebServiceError) {
        self.name = name
        self.value = value
        self.domain = domain.asciiLowercased()
        self.path = path
        self.expires = expires.map { min($0, HTTPDate.latest) }
        self.isSecure = isSecure
        self.isHostOnly = isHostOnly || !Location.hasSubdomains(self.domain, .system)
        self.isHTTPOnly = isHTTPOnly
        guard let complaint else { return }
        throw WebServiceError(.invalidHeader, "the cookie has \(complaint)")
    }
}

extension Cookie: RedactedReflectable {
    /// A description that is safe to log: the name, domain and path.
    public var description: String { "\(name) of \(domain)\(path)".escapingControls }
}

extension Cookie {
    /// The maximum length of name and value together, in bytes (RFC 6265, section 6.1).
    static let maximumLength = 4_096
    /// The maximum length of an attribute value, in bytes. A longer attribute is ignored.
    static let maximumAttributeLength = 1_024

    /// Splits a `Set-Cookie` field into its cookies. Foundation joins the fields of a response into
    /// one, so `", "` followed by a name and `=` starts the next cookie; the comma in a date is
    /// followed by a day without `=`. An attacker who controls part of a cookie value can create
    /// such a field, so a cookie after a comma is dropped if its name has a cookie prefix.
    static func split(_ field: String) -> [ArraySlice<UInt8>] {
        let bytes = Array(field.utf8)
        var cookies: [ArraySlice<UInt8>] = []
        var start = 0
        for comma in bytes.indices where bytes[comma] == UInt8(ascii: ",") && beginsCookie(bytes[(comma + 1)...]) {
            cookies.append(bytes[start..<comma])
            start = comma + 1
        }
        cookies.append(bytes[start...])
        return cookies.prefix(1) + cookies.dropFirst().filter { !hasPrefix($0.drop(while: ASCII.isSpaceOrTab)) }
    }

    /// Returns whether a name has the prefix `__Secure-` or `__Host-` (RFC 6265bis, section 4.1.3).
    private static func hasPrefix(_ name: some Sequence<UInt8>) -> Bool {
        let name = name.prefix(9).map(ASCII.lowercased)
        return name.starts(with: "__host-".utf8) || name.starts(with: "__secure-".utf8)
    }

    private static func beginsCookie(_ bytes: ArraySlice<UInt8>) -> Bool {
        let name = bytes.drop(while: ASCII.isSpaceOrTab)
        guard name.startIndex > bytes.startIndex, let end = name.firstIndex(where: { "=;,\" \t".utf8.contains($0) })
        else { return false }
        return end > name.startIndex && name[end] == UInt8(ascii: "=")
    }

    /// Creates a cookie from its text in a `Set-Cookie` field (RFC 6265, sections 5.2 and 5.3).
    /// Returns `nil` if the cookie must be ignored.
    ///
    /// - Parameter suffixes: The public suffixes, if they are known.
    init?(_ text: ArraySlice<UInt8>, from location: Location, at now: Date, _ suffixes: PublicSuffixList?) {
        guard ASCII.isFieldValue(text) else { return nil }
        let parts = text.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map(Self.halves)
        guard let (name, value) = parts.first, let value, !name.isEmpty,
            name.utf8.count + value.utf8.count <= Self.maximumLength,
            !name.utf8.contains(0x09), !value.utf8.contains(0x09)
        else { return nil }

        var domain: String?
        var path: String?
        var end: Date?
        var maxAge: Int64?
        var isSecure = false
        var isHTTPOnly = false
        for (name, value) in parts.dropFirst() {
            let value = value ?? ""
            guard value.utf8.count <= Self.maximumAttributeLength else { continue }
            switch name.asciiLowercased() {
            case "domain" where !value.isEmpty: domain = value
            case "path": path = value.utf8.first == UInt8(ascii: "/") ? value : nil
            case "expires": end = HTTPDate.parseCookieDate(value.utf8) ?? end
            case "max-age": maxAge = Self.seconds(value.utf8) ?? maxAge
            case "secure": isSecure = true
            case "httponly": isHTTPOnly = true
            default: break
            }
        }

        guard location.isSecure || !isSecure, let scope = location.scope(domain: domain, suffixes) else { return nil }
        self.name = name
        self.value = value
        (self.domain, isHostOnly) = scope
        self.path = path ?? location.defaultPath
        expires =
            maxAge.map { $0 <= 0 ? .distantPast : min(now.addingTimeInterval(Double($0)), HTTPDate.latest) } ?? end
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        guard isPrefixValid(hasDomain: domain != nil, path: path) else { return nil }
    }

    /// The reason why no `Set-Cookie` field can set the cookie; `nil` if there is none.
    private var complaint: StaticString? {
        func isPlain(_ text: String) -> Bool {
            ASCII.isFieldValue(text.utf8) && !text.utf8.contains(0x09) && !text.utf8.contains(UInt8(ascii: ";"))
                && text.utf8.first != 0x20 && text.utf8.last != 0x20
        }
        if name.isEmpty || !isPlain(name) || name.utf8.contains(UInt8(ascii: "=")) {
            return "an invalid name; use one without '=', ';', control characters or surrounding spaces"
        }
        if !isPlain(value) { return "an invalid value; use one without ';', control characters or surrounding spaces" }
        if name.utf8.count + value.utf8.count > Self.maximumLength {
            return "more than 4,096 bytes in its name and value; shorten the value"
        }
        if !isPlain(path) || path.utf8.first != UInt8(ascii: "/") || path.utf8.count > Self.maximumAttributeLength {
            return "an invalid path; use one of at most 1,024 bytes that begins with '/'"
        }
        if domain.utf8.count > 255 || Origin("https://" + domain)?.host != domain {
            return "an invalid domain; use a host name"
        }
        if expires?.timeIntervalSince1970.isFinite == false {
            return "an expiry date that is not finite; use a finite date or nil"
        }
        if isPrefixValid(hasDomain: !isHostOnly, path: path) { return nil }
        return """
            the name prefix __Secure-, which requires isSecure, or __Host-, which requires isSecure, isHostOnly and \
            the path '/'; set these values or use another name
            """
    }

    /// Returns whether the attributes fulfill the name prefixes (RFC 6265bis, section 4.1.3).
    private func isPrefixValid(hasDomain: Bool, path: String?) -> Bool {
        let name = name.asciiLowercased().utf8
        if name.starts(with: "__host-".utf8) { return isSecure && !hasDomain && path == "/" }
        return isSecure || !name.starts(with: "__secure-".utf8)
    }

    /// Splits at the first `=` and trims whitespace.
    private static func halves(_ text: ArraySlice<UInt8>) -> (name: String, value: String?) {
        let halves = text.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false).map {
            String(decoding: ASCII.trimmed($0), as: UTF8.self)
        }
        return (halves.first ?? "", halves.count == 2 ? halves[1] : nil)
    }

    /// Returns the number of a `Max-Age` attribute (RFC 6265, section 5.2.2). The limit of the
    /// result lies far beyond the year 9999, which is the limit of ``expires``.
    private static func seconds(_ text: String.UTF8View) -> Int64? {
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = text.dropFirst(isNegative ? 1 : 0)
        return ASCII.number(digits).map { isNegative ? 0 : min(Int64($0), 1_000_000_000_000) }
    }

    func isExpired(at now: Date) -> Bool {
        expires.map { $0 <= now } ?? false
    }

    /// Returns whether the cookie is sent to a location (RFC 6265, section 5.4, step 1).
    func isSent(to location: Location) -> Bool {
        (location.isSecure || !isSecure) && Self.path(location.path, matches: path)
            && (isHostOnly ? location.host == domain : location.domains.contains(domain))
    }

    /// Returns whether both cookies have the same name, domain and path, so that one replaces the
    /// other (RFC 6265, section 5.3, step 11).
    func replaces(_ other: Cookie) -> Bool {
        domain == other.domain && name.utf8.elementsEqual(other.name.utf8) && path.utf8.elementsEqual(other.path.utf8)
    }

    /// Returns whether this cookie could be sent instead of another: both have the same name and
    /// equal or nested domains, and the path of this cookie is at or below that of the other.
    func overlaps(_ other: Cookie) -> Bool {
        name.utf8.elementsEqual(other.name.utf8) && Self.path(path, matches: other.path)
            && (domain == other.domain || domain.hasSuffix("." + other.domain) || other.domain.hasSuffix("." + domain))
    }

    /// Returns whether a path is at or below the path of a cookie (RFC 6265, section 5.1.4).
    private static func path(_ path: String, matches prefix: String) -> Bool {
        guard path.utf8.starts(with: prefix.utf8) else { return false }
        return path.utf8.count == prefix.utf8.count || prefix.utf8.last == UInt8(ascii: "/")
            || path.utf8.dropFirst(prefix.utf8.count).first == UInt8(ascii: "/")
    }
}

extension Cookie {
    /// The components of a URL that are relevant for cookies.
    struct Location {
        /// The host in lower case; an IPv6 address in brackets.
        let host: String
        /// The percent-encoded path, as it is sent.
        let path: String
        let isSecure: Bool
        /// The host and, unless it is an IP address, all its parent domains.
        let domains: [String]

        /// Returns `nil` for a URL that is not http or https, has user information, or has a host
        /// of more than 255 bytes, the limit of a DNS name.
        init?(_ url: URL) {
            let parts = try? BaseURL.splitOrigin(of: Array(url.absoluteString.utf8))  // an invalid URL is never sent
            guard let parts, let origin = Origin(parts.origin) else { return nil }
            host = origin.host
            isSecure = origin.scheme == "https"
            guard host.utf8.count <= 255 else { return nil }
            let path = Reference(parts.rest).path
            self.path = path.first == UInt8(ascii: "/") ? String(decoding: path, as: UTF8.self) : "/"
            var domains = [host]
            var rest = Self.isAddress(host) ? "" : host[...]
            while let dot = rest.firstIndex(of: ".") {
                rest = rest[rest.index(after: dot)...]
                domains.append(String(rest))
            }
            self.domains = domains
        }

        /// Returns whether a host is an IPv4 or IPv6 address.
        static func isAddress(_ host: String) -> Bool {
            host.hasPrefix("[") || BaseURL.endsInNumber(host)
        }

        /// Returns whether a cookie can be set for a domain and its subdomains. This is impossible
        /// for an IP address, a domain without a dot and a public suffix (RFC 6265, section 5.3,
        /// step 5).
        static func hasSubdomains(_ domain: String, _ suffixes: PublicSuffixList?) -> Bool {
            !isAddress(domain) && domain.split(separator: ".").count > 1 && suffixes?.contains(domain) != true
        }

        /// The path up to its last slash (RFC 6265, section 5.1.4).
        var defaultPath: String {
            let parent = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[..<$0] } ?? ""
            return parent.isEmpty ? "/" : String(parent)
        }

        /// Returns the domain of a cookie with this `Domain` attribute (RFC 6265, section 5.3,
        /// steps 4 to 6), or `nil` if this host must not set it. The domain `.` belongs to no host.
        func scope(domain: String?, _ suffixes: PublicSuffixList?) -> (domain: String, isHostOnly: Bool)? {
            let domain = (domain ?? "").asciiLowercased().utf8
            guard !domain.isEmpty else { return (host, true) }
            let name = domain.dropFirst(domain.first == UInt8(ascii: ".") ? 1 : 0)
            guard let known = domains.first(where: { $0.utf8.elementsEqual(name) }) else { return nil }
            return Self.hasSubdomains(known, suffixes) ? (known, false) : known == host ? (host, true) : nil
        }
    }
}

/// The encoded form contains all attributes. Decoding applies the checks of
/// ``init(name:value:domain:path:expires:isSecure:isHostOnly:isHTTPOnly:)``.
extension Cookie: Codable {
    private enum CodingKeys: String, CodingKey {
        case name, value, domain, path, expires, isSecure, isHostOnly, isHTTPOnly
    }

    /// Encodes the cookie, including its value.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(value, forKey: .value)
        try container.encode(domain, forKey: .domain)
        try container.encode(path, forKey: .path)
        try container.encodeIfPresent(expires, forKey: .expires)
        try container.encode(isSecure, forKey: .isSecure)
        try container.encode(isHostOnly, forKey: .isHostOnly)
        try container.encode(isHTTPOnly, forKey: .isHTTPOnly)
    }

    /// Decodes a cookie and checks its attributes.
    ///
    /// - Throws: `DecodingError.dataCorrupted` if the cookie is invalid.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        do {
            try self.init(
                name: container.decode(String.self, forKey: .name),
                value: container.decode(String.self, forKey: .value),
                domain: container.decode(String.self, forKey: .domain),
                path: container.decode(String.self, forKey: .path),
                expires: container.decodeIfPresent(Date.self, forKey: .expires),
                isSecure: container.decode(Bool.self, forKey: .isSecure),
                isHostOnly: container.decode(Bool.self, forKey: .isHostOnly),
                isHTTPOnly: container.decode(Bool.self, forKey: .isHTTPOnly))
        } catch let error as WebServiceError {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: error.message))
        }
    }
}
