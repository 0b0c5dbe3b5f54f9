/// The requests of one URL that a stored response matches: the names of the request fields in
/// `Vary`, and a fingerprint of their values. The values are not stored.
struct CacheSelection: Sendable, Hashable {
    /// The lowercase field names, sorted, without duplicates.
    let names: [String]
    let fingerprint: Fingerprint
    /// The fingerprint of the names and values of the request's credential fields, if no account is
    /// named.
    let asker: Fingerprint?

    /// A 128-bit hash.
    struct Fingerprint: Sendable, Hashable {
        var first: UInt64
        var second: UInt64
    }

    init(names: [String], fingerprint: Fingerprint, asker: Fingerprint?) {
        self.names = names
        self.fingerprint = fingerprint
        self.asker = asker
    }

    /// - Throws: The reason why the response matches no other request: it varies by `*`, or by
    ///   cookies that are added after the cache.
    init(of headers: Headers, to request: Request, account: String?) throws(CacheRefusal) {
        let members = Set(headers.values(for: "Vary").flatMap(Self.members))
        guard !members.contains("*") else { throw CacheRefusal("Vary is *") }
        guard members.allSatisfy({ ASCII.isToken($0.utf8) }) else { throw CacheRefusal("Vary is malformed") }
        names = members.sorted()
        guard Self.areKnown(names, in: request) else {
            throw CacheRefusal("Vary names Cookie, and the cookie jar adds cookies after the cache")
        }
        fingerprint = Self.fingerprint(names, request)
        asker = account == nil ? Self.asker(of: request) : nil
    }

    /// Returns whether a response with this selection may be used for a request (RFC 9111, section
    /// 4.1).
    func matches(_ request: Request) -> Bool {
        Self.areKnown(names, in: request) && fingerprint == Self.fingerprint(names, request)
            && (asker == nil || asker == Self.asker(of: request))
    }

    /// Returns the nonempty members of a list in lower case (RFC 9110, section 5.6.1). A member
    /// that is not a field name makes the list malformed.
    private static func members(_ list: String) -> [String] {
        list.utf8.split(separator: UInt8(ascii: ",")).compactMap { member in
            let name = ASCII.trimmed(member)
            return name.isEmpty ? nil : ASCII.lowercased(name)
        }
    }

    /// Returns whether the request already has the values that will be sent: a cookie jar adds
    /// cookies after the cache.
    private static func areKnown(_ names: [String], in request: Request) -> Bool {
        !(names.contains("cookie") && request.options.shouldHandleCookies)
    }

    private static func asker(of request: Request) -> Fingerprint {
        let names = Set(request.headers.map { $0.name.asciiLowercased() })
        let isCredential = {
            request.credentialFields.contains(Headers.Name($0)) || Redaction.standard.isSecret(header: $0)
        }
        return fingerprint(names.filter(isCredential).sorted(), request)
    }

    private static func fingerprint(_ names: [String], _ request: Request) -> Fingerprint {
        var bytes: [UInt8] = []
        for name in names {
            bytes += name.utf8
            bytes.append(0)
            if let value = request.headers[name] {
                bytes += normalised(value, of: name)
                bytes.append(1)  // distinguishes an empty field from an absent one
            }
            bytes.append(0)
        }
        return bytes.withUnsafeBytes { Fingerprint(first: XXHash64.hash($0), second: XXHash64.hash($0, seed: 1)) }
    }

    /// Lists of languages, codings and character sets are case-insensitive, and whitespace in them
    /// is insignificant. In other fields, only leading and trailing whitespace is.
    private static func normalised(_ value: String, of name: String) -> [UInt8] {
        if ["accept-language", "accept-encoding", "accept-charset"].contains(name) {
            return value.utf8.filter { !ASCII.isSpaceOrTab($0) }.map(ASCII.lowercased)
        }
        return Array(ASCII.trimmed(value.utf8))
    }
}

/// The reason why a response is not stored.
struct CacheRefusal: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}
