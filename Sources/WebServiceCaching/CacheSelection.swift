import Foundation
import WebServiceCore

/// The requests for one URL that a stored response matches. A selection does not contain the field
/// values of these requests, but a hash of the values that is keyed with a random salt.
struct CacheSelection: Sendable, Hashable {
    /// The lowercase names of the request fields in `Vary`, sorted, without duplicates.
    let names: [String]
    /// The request fields that are compared in addition to those in `Vary`.
    let scope: Scope
    /// The key of the fingerprint, which is different for each stored response.
    let salt: Data
    /// The HMAC-SHA256 of the names and values of the compared fields.
    let fingerprint: Data
    /// Whether the response is for a QUERY request, whose content is part of the fingerprint.
    let isOfQuery: Bool

    enum Scope: UInt64, Sendable {
        /// No further fields, because the account distinguishes the requests.
        case account
        /// Fields with credentials. `Cache-Control: public` declares that no other field matters.
        case credentials
        /// Fields with credentials, and all other fields except those in ``harmlessFields``.
        case unknown
    }

    static let saltLength = 16
    static let fingerprintLength = 32

    init(names: [String], scope: Scope, salt: Data, fingerprint: Data, isOfQuery: Bool) {
        self.names = names
        self.scope = scope
        self.salt = salt
        self.fingerprint = fingerprint
        self.isOfQuery = isOfQuery
    }

    /// - Parameter request: The request with the fields that are sent, including cookies.
    /// - Throws: The reason why the response could not match any other request.
    init(of headers: Headers, to request: Request, account: String?) throws(CacheRefusal) {
        let members = Set(headers.values(for: "Vary").flatMap(Self.members))
        guard !members.contains("*") else { throw CacheRefusal("Vary is *") }
        guard members.allSatisfy({ ASCII.isToken($0.utf8) }) else { throw CacheRefusal("Vary is malformed") }
        names = members.sorted()
        let isPublic = CacheControl(headers.values(for: .cacheControl)).has("public")
        scope = account != nil ? .account : isPublic ? .credentials : .unknown
        var generator = SystemRandomNumberGenerator()
        salt = Data((0..<Self.saltLength).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
        fingerprint = Self.fingerprint(of: request, names, scope, salt: salt)
        isOfQuery = request.options[QueryContent.self] != nil
    }

    /// Returns whether a response with this selection may be used for a request (RFC 9111, section
    /// 4.1).
    func matches(_ request: Request) -> Bool {
        fingerprint == Self.fingerprint(of: request, names, scope, salt: salt)
    }

    /// Returns the nonempty members of a list in lower case (RFC 9110, section 5.6.1).
    private static func members(_ list: String) -> [String] {
        list.utf8.split(separator: UInt8(ascii: ",")).compactMap { member in
            let name = ASCII.trimmed(member)
            return name.isEmpty ? nil : ASCII.lowercased(name)
        }
    }

    /// Common request fields that describe the client and the exchange, not the user. A server
    /// whose response depends on one of these fields names the field in `Vary`.
    static let harmlessFields: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "date", "dnt",
        "if-modified-since", "if-none-match", "origin", "pragma", "priority", "referer", "request-id", "save-data",
        "sec-gpc", "traceparent", "tracestate", "user-agent", "x-correlation-id", "x-request-id",
    ]

    /// Returns the lowercase names of the request fields that are compared in a scope.
    static func fields(of request: Request, in scope: Scope) -> Set<String> {
        let names = Set(request.headers.map { $0.name.asciiLowercased() })
        switch scope {
        case .account: return []
        case .unknown: return names.filter { !harmlessFields.contains($0) || isCredential($0, of: request) }
        case .credentials: return names.filter { isCredential($0, of: request) }
        }
    }

    private static func isCredential(_ name: String, of request: Request) -> Bool {
        request.credentialFields.contains(Headers.Name(name)) || Secrets.mayBeNamed(by: name)
    }

    private static func fingerprint(
        of request: Request, _ names: [String], _ scope: Scope, salt: Data
    ) -> Data {
        var bytes = Data()
        for name in fields(of: request, in: scope).union(names).sorted() {
            bytes += name.utf8
            bytes.append(0)
            if let value = request.headers[name] {
                bytes += normalised(value, of: name)
                bytes.append(1)  // distinguishes an empty field from an absent one
            }
            bytes.append(0)
        }
        if let query = request.options[QueryContent.self] { bytes += query }
        return Data(SHA2.sha256.authenticationCode(of: bytes, key: salt))
    }

    /// Returns a field value without insignificant differences. Lists of languages, codings and
    /// character sets are case-insensitive, and whitespace in them is insignificant. In other
    /// fields, only leading and trailing whitespace is insignificant.
    private static func normalised(_ value: String, of name: String) -> [UInt8] {
        if ["accept-language", "accept-encoding", "accept-charset"].contains(name) {
            return value.utf8.filter { !ASCII.isSpaceOrTab($0) }.map(ASCII.lowercased)
        }
        return Array(ASCII.trimmed(value.utf8))
    }
}

/// The content of a QUERY request, which selects the stored responses (RFC 10008, section 2.7). The
/// value is a hash of the body, its media type and its content coding.
enum QueryContent: RequestTagKey {
    static var defaultValue: Data? { nil }

    /// - Returns: `nil` if the body is not in memory.
    static func hash(of request: Request) -> Data? {
        guard let encoded = try? request.encode(),  // the error is reported when the request is sent
            encoded.bodySource == nil, encoded.stream == nil, !encoded.hasBodyStream
        else { return nil }
        let type = encoded.headers[.contentType] ?? encoded.contentType ?? ""
        let text = "\(type)\n\(encoded.headers["Content-Encoding"] ?? "")\n"
        return Data(SHA2.sha256.hash(Data(text.utf8) + (encoded.body ?? Data())))
    }
}

/// The reason why a response is not stored.
struct CacheRefusal: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}
