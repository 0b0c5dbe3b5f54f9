public import Foundation

/// One cookie of a ``CookieJar``. What it prints holds everything but its value.
public struct Cookie: Sendable, Hashable {
    /// The name; never empty.
    public let name: String
    /// The value as the server wrote it, with its quotation marks; may be empty.
    public let value: String
    /// The host that set it, or the domain that its `Domain` attribute named: lower case, without a dot in front.
    public let domain: String
    /// The path at and below which it is sent.
    public let path: String
    /// When it ends, at the latest in the year 9999. `nil` where the server named no end.
    public let expires: Date?
    /// Whether it goes over https only.
    public let isSecure: Bool
    /// Whether it goes to ``domain`` alone, and to no host below it.
    public let isHostOnly: Bool
    /// Whether the server wants it kept from scripts; that has no meaning here.
    public let isHTTPOnly: Bool
}

extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Name, domain and path: safe to log.
    public var description: String { "\(name) of \(domain)\(path)".escapingControls }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// What `dump` shows: the same as ``description``, because the value may be a secret.
    public var customMirror: Mirror {
        Mirror(self, children: ["cookie": description], displayStyle: .struct)
    }
}

extension Cookie {
    /// Name and value together, in bytes (RFC 6265, section 6.1).
    static let maximumLength = 4_096
    /// What is longer counts as not written.
    static let maximumAttributeLength = 1_024

    /// The cookies of one `Set-Cookie` field, of which Foundation makes one where a response has several: `", "` and a name with its `=` begin
    /// the next one. The comma of a date is followed by a day without `=`. A server that lets a part of a cookie's value be chosen cannot
    /// be told from one that sent several fields, so cookies after a comma whose prefix promises more are left out.
    static func split(_ field: String) -> [ArraySlice<UInt8>] {
        let bytes = Array(field.utf8)
        var cookies: [ArraySlice<UInt8>] = []
        var start = 0
        for comma in bytes.indices where bytes[comma] == UInt8(ascii: ",") && beginsCookie(bytes[(comma + 1)...]) {
            cookies.append(bytes[start..<comma])
            start = comma + 1
        }
        cookies.append(bytes[start...])
        return cookies.prefix(1) + cookies.dropFirst().filter { !hasPrefix($0.drop(while: isBlank)) }
    }

    /// Whether a name promises that the cookie is `Secure`, or that its host set it (RFC 6265bis, section 4.1.3).
    private static func hasPrefix(_ name: some Sequence<UInt8>) -> Bool {
        let name = name.prefix(9).map(ASCII.lowercased)
        return name.starts(with: "__host-".utf8) || name.starts(with: "__secure-".utf8)
    }

    private static func beginsCookie(_ bytes: ArraySlice<UInt8>) -> Bool {
        let name = bytes.drop(while: isBlank)
        guard name.startIndex > bytes.startIndex, let end = name.firstIndex(where: { "=;,\" \t".utf8.contains($0) }) else { return false }
        return end > name.startIndex && name[end] == UInt8(ascii: "=")
    }

    /// Reads one cookie by RFC 6265, sections 5.2 and 5.3. `nil` where it has to be ignored.
    init?(_ text: ArraySlice<UInt8>, from location: Location, at now: Date) {
        guard text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else { return nil }
        let parts = text.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map(Self.halves)
        guard let (name, value) = parts.first, let value, !name.isEmpty, name.utf8.count + value.utf8.count <= Self.maximumLength,
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

        let prefix = name.asciiLowercased().utf8
        if prefix.starts(with: "__host-".utf8), !isSecure || domain != nil || path != "/" { return nil }
        if prefix.starts(with: "__secure-".utf8), !isSecure { return nil }
        guard location.isSecure || !isSecure, let scope = location.scope(domain: domain) else { return nil }
        self.name = name
        self.value = value
        (self.domain, isHostOnly) = scope
        self.path = path ?? location.defaultPath
        expires = maxAge.map { $0 <= 0 ? .distantPast : min(now.addingTimeInterval(Double($0)), HTTPDate.latest) } ?? end
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
    }

    /// What stands before and behind the first `=`, without the blanks around it.
    private static func halves(_ text: ArraySlice<UInt8>) -> (name: String, value: String?) {
        let halves = text.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false).map { half in
            String(decoding: half.drop(while: isBlank).reversed().drop(while: isBlank).reversed(), as: UTF8.self)
        }
        return (halves.first ?? "", halves.count == 2 ? halves[1] : nil)
    }

    /// The number of a `Max-Age` attribute (RFC 6265, section 5.2.2); one beyond the year 9999 is as good as any other.
    private static func seconds(_ text: String.UTF8View) -> Int64? {
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = text.dropFirst(isNegative ? 1 : 0)
        guard !digits.isEmpty, digits.allSatisfy(ASCII.isDigit) else { return nil }
        return isNegative ? 0 : digits.reduce(0) { min($0 * 10 + Int64($1 - UInt8(ascii: "0")), 1_000_000_000_000) }
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09
    }

    func isExpired(at now: Date) -> Bool {
        expires.map { $0 <= now } ?? false
    }

    /// RFC 6265, section 5.4, step 1.
    func isSent(to location: Location) -> Bool {
        (location.isSecure || !isSecure) && Self.path(location.path, matches: path)
            && (isHostOnly ? location.host == domain : location.domains.contains(domain))
    }

    /// Whether both are one and the same cookie with, at most, another value and another end (RFC 6265, section 5.3, step 11).
    func replaces(_ other: Cookie) -> Bool {
        domain == other.domain && name.utf8.elementsEqual(other.name.utf8) && path.utf8.elementsEqual(other.path.utf8)
    }

    /// Whether this cookie could be sent in the place of another: same name, domains one of which holds the other, a path below the other's.
    func overlaps(_ other: Cookie) -> Bool {
        name.utf8.elementsEqual(other.name.utf8) && Self.path(path, matches: other.path)
            && (domain == other.domain || domain.hasSuffix("." + other.domain) || other.domain.hasSuffix("." + domain))
    }

    /// RFC 6265, section 5.1.4.
    private static func path(_ path: String, matches prefix: String) -> Bool {
        guard path.utf8.starts(with: prefix.utf8) else { return false }
        return path.utf8.count == prefix.utf8.count || prefix.utf8.last == UInt8(ascii: "/")
            || path.utf8.dropFirst(prefix.utf8.count).first == UInt8(ascii: "/")
    }
}

extension Cookie {
    /// The parts of a URL that decide over cookies.
    struct Location {
        /// Lower case; an IPv6 address in its brackets.
        let host: String
        /// Percent-encoded, as it is sent.
        let path: String
        let isSecure: Bool
        /// The host and, unless it is an IP address, every domain above it.
        let domains: [String]

        /// `nil` for what is no http or https URL, holds user information, or has a host longer than the 255 bytes of a DNS name.
        init?(_ url: URL) {
            let parts = try? BaseURL.splitOrigin(of: Array(url.absoluteString.utf8))  // no request goes to what is refused here, so no cookie either
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

        /// An IPv6 or IPv4 address.
        static func isAddress(_ host: String) -> Bool {
            host.hasPrefix("[") || BaseURL.endsInNumber(host)
        }

        /// RFC 6265, section 5.1.4: the path up to its last slash.
        var defaultPath: String {
            let parent = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[..<$0] } ?? ""
            return parent.isEmpty ? "/" : String(parent)
        }

        /// Where a cookie with that `Domain` attribute goes (RFC 6265, section 5.3, steps 4 to 6). `nil` where this host must not set it.
        func scope(domain: String?) -> (domain: String, isHostOnly: Bool)? {
            let domain = (domain ?? "").asciiLowercased().utf8
            let name = domain.dropFirst(domain.first == UInt8(ascii: ".") ? 1 : 0)
            guard !name.isEmpty else { return (host, true) }
            guard let known = domains.first(where: { $0.utf8.elementsEqual(name) }) else { return nil }
            let isBroad = domains.count > 1 && known.split(separator: ".").count > 1
            return isBroad ? (known, false) : known == host ? (host, true) : nil
        }
    }
}
