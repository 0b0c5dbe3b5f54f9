/// For which requests of one URL a stored answer is meant: the names of the request's fields that `Vary` selects by, and a fingerprint of what they
/// said. The values themselves are not kept.
struct CacheSelection: Sendable, Hashable {
    /// In lower case, in order, each once.
    let names: [String]
    let fingerprint: Fingerprint
    /// What the request said who asks, where nobody has named an account.
    let asker: Fingerprint?

    /// 128 bits.
    struct Fingerprint: Sendable, Hashable {
        var first: UInt64
        var second: UInt64
    }

    init(names: [String], fingerprint: Fingerprint, asker: Fingerprint?) {
        self.names = names
        self.fingerprint = fingerprint
        self.asker = asker
    }

    /// - Returns: `nil` for an answer that fits no other request: it varies by `*`, or by fields that are added behind the cache.
    init?(of headers: Headers, to request: Request, account: String?) {
        let names = Array(Set(headers.values(for: "Vary").flatMap(CacheControl.names))).sorted()
        guard Self.areKnown(names, in: request) else { return nil }
        self.names = names
        fingerprint = Self.fingerprint(names, request)
        asker = account == nil ? Self.fingerprint(Self.askerNames, request) : nil
    }

    /// Whether an answer to such a request answers this one as well (RFC 9111, section 4.1).
    func matches(_ request: Request) -> Bool {
        Self.areKnown(names, in: request) && fingerprint == Self.fingerprint(names, request)
            && (asker == nil || asker == Self.fingerprint(Self.askerNames, request))
    }

    private static let askerNames = ["authorization", "cookie"]

    /// Whether the request as the cache sees it says what will be sent: a cookie jar adds cookies behind it, an authentication may add credentials.
    private static func areKnown(_ names: [String], in request: Request) -> Bool {
        !names.contains("*") && !(names.contains("cookie") && request.shouldHandleCookies)
            && !(names.contains("authorization") && request.headers[.authorization] == nil)
    }

    private static func fingerprint(_ names: [String], _ request: Request) -> Fingerprint {
        var bytes: [UInt8] = []
        for name in names {
            bytes += name.utf8
            bytes.append(0)
            if let value = request.headers[name] {
                bytes += normalised(value, of: name)
                bytes.append(1)  // a field that is there and empty is another thing than none
            }
            bytes.append(0)
        }
        return bytes.withUnsafeBytes { Fingerprint(first: XXHash64.hash($0), second: XXHash64.hash($0, seed: 1)) }
    }

    /// Lists of languages, codings and character sets mean the same in any case and with blanks anywhere between; of other fields only what stands
    /// around the value has no meaning.
    private static func normalised(_ value: String, of name: String) -> [UInt8] {
        if ["accept-language", "accept-encoding", "accept-charset"].contains(name) {
            return value.utf8.filter { $0 != 0x20 && $0 != 0x09 }.map(ASCII.lowercased)
        }
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        return value.utf8.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
    }
}
