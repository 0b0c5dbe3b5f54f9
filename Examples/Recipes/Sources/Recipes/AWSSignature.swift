import Foundation
import WebServiceCore

#if canImport(CryptoKit)
import CryptoKit
#else
import Crypto
#endif

/// An interceptor that signs requests for the services of AWS (Signature Version 4).
///
/// Install it as the last interceptor, so that each attempt has its own date, and no other
/// interceptor changes the request after it is signed.
///
/// A body in memory is hashed. For a file or a stream, set the header field `X-Amz-Content-Sha256`
/// of the request to ``hash(ofFile:)``; for S3 over https, `UNSIGNED-PAYLOAD` is possible as well.
public struct AWSSigner: Interceptor {
    /// The credentials of an AWS account.
    public struct Credentials: Sendable {
        var accessKey: String
        var secretKey: String
        var sessionToken: String?

        /// Creates credentials. Temporary credentials have a session token.
        public init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
            (self.accessKey, self.secretKey, self.sessionToken) = (accessKey, secretKey, sessionToken)
        }
    }

    let service: String
    let region: String
    let now: @Sendable () -> Date
    let credentials: @Sendable () async throws -> Credentials

    /// Creates an interceptor.
    ///
    /// - Parameters:
    ///   - service: The name of the service, such as `s3` or `execute-api`.
    ///   - region: The region of the service, such as `us-east-1`.
    ///   - now: Returns the current date.
    ///   - credentials: Returns the current credentials; called for each attempt.
    public init(
        service: String, region: String, now: @escaping @Sendable () -> Date = { Date() },
        credentials: @escaping @Sendable () async throws -> Credentials
    ) {
        (self.service, self.region, self.now, self.credentials) = (service, region, now, credentials)
    }

    /// Signs the request and sends it.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        try await next(signed(request, with: credentials()))
    }

    /// Returns the hash of a file, which is read in pieces.
    public static func hash(ofFile file: URL) throws -> String {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }  // the file was only read
        var hash = SHA256()
        while let piece = try handle.read(upToCount: 256 << 10), !piece.isEmpty { hash.update(data: piece) }
        return hash.finalize().hexadecimal
    }

    /// Returns a URL of an object in S3 that is valid without credentials for a duration.
    public func presignedURL(
        _ url: URL, method: Request.Method = .GET, validFor duration: Duration, with credentials: Credentials
    ) throws -> URL {
        let date = timestamp
        var query = [
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"), ("X-Amz-Credential", "\(credentials.accessKey)/\(scope(date))"),
            ("X-Amz-Date", date), ("X-Amz-Expires", "\(duration.components.seconds)"), ("X-Amz-SignedHeaders", "host"),
        ]
        if let token = credentials.sessionToken { query.append(("X-Amz-Security-Token", token)) }
        let text = canonicalQuery(url, adding: query)
        let lines = [method.rawValue, canonicalPath(url), text, "host:\(host(of: url))\n", "host", "UNSIGNED-PAYLOAD"]
        var components = URLComponents(url: url, resolvingAgainstBaseURL: false) ?? URLComponents()
        let signature = signature(of: lines, date: date, with: credentials)
        components.percentEncodedQuery = "\(text)&X-Amz-Signature=\(signature)"
        guard let signed = components.url else { throw URLError(.badURL) }
        return signed
    }

    func signed(_ request: Request, with credentials: Credentials) throws -> Request {
        var request = request
        let date = timestamp
        request.headers["X-Amz-Date"] = date
        request.headers["X-Amz-Security-Token"] = credentials.sessionToken
        let encoded = try request.urlRequest()
        guard let url = encoded.url else { throw URLError(.badURL) }
        var hash = request.headers["X-Amz-Content-Sha256"]
        if hash == nil {
            guard encoded.httpBodyStream == nil else { throw MissingHash() }
            hash = SHA256.hash(data: encoded.httpBody ?? Data()).hexadecimal
        }
        if service == "s3" { request.headers["X-Amz-Content-Sha256"] = hash }

        var fields = try request.urlRequest().allHTTPHeaderFields ?? [:]
        for name in ["Authorization", "User-Agent", "traceparent"] { fields[name] = nil }  // may be changed later
        fields["host"] = host(of: url)
        let sorted = fields.map { ($0.lowercased(), $1.trimmed) }.sorted { $0.0 < $1.0 }
        let names = sorted.map(\.0).joined(separator: ";")
        let lines = [
            request.method.rawValue, canonicalPath(url), canonicalQuery(url),
            sorted.map { "\($0):\($1)\n" }.joined(), names, hash ?? "",
        ]
        request.headers["Authorization"] =
            "AWS4-HMAC-SHA256 Credential=\(credentials.accessKey)/\(scope(date)), SignedHeaders=\(names), "
            + "Signature=\(signature(of: lines, date: date, with: credentials))"
        return request
    }
}

/// The error of a request with a file or a stream and without the field `X-Amz-Content-Sha256`.
public struct MissingHash: Error {}

extension AWSSigner {
    private var timestamp: String {
        now().formatted(Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted))
    }

    private func scope(_ date: String) -> String { "\(date.prefix(8))/\(region)/\(service)/aws4_request" }

    private func signature(of lines: [String], date: String, with credentials: Credentials) -> String {
        let hash = SHA256.hash(data: Data(lines.joined(separator: "\n").utf8)).hexadecimal
        let text = ["AWS4-HMAC-SHA256", date, scope(date), hash].joined(separator: "\n")
        let parts = [String(date.prefix(8)), region, service, "aws4_request", text]
        return parts.reduce(Data("AWS4\(credentials.secretKey)".utf8)) { key, part in
            Data(HMAC<SHA256>.authenticationCode(for: Data(part.utf8), using: SymmetricKey(data: key)))
        }.hexadecimal
    }

    private func host(of url: URL) -> String {
        let host = url.host() ?? ""
        return url.port.map { "\(host):\($0)" } ?? host
    }

    /// All services except S3 encode the path twice.
    private func canonicalPath(_ url: URL) -> String {
        let segments = url.path(percentEncoded: true).split(separator: "/", omittingEmptySubsequences: false)
        let path = segments.map { segment in
            let once = (segment.removingPercentEncoding ?? String(segment)).encoded
            return service == "s3" ? once : once.encoded
        }.joined(separator: "/")
        return path.isEmpty ? "/" : path
    }

    private func canonicalQuery(_ url: URL, adding pairs: [(String, String)] = []) -> String {
        let items = URLComponents(url: url, resolvingAgainstBaseURL: false)?.percentEncodedQueryItems ?? []
        let own = items.map { ($0.name.removingPercentEncoding ?? $0.name, $0.value?.removingPercentEncoding ?? "") }
        return (own + pairs).map { ($0.encoded, $1.encoded) }.sorted { $0 < $1 }
            .map { "\($0)=\($1)" }.joined(separator: "&")
    }
}

extension String {
    /// Every byte except the unreserved characters of RFC 3986 is percent-encoded.
    fileprivate var encoded: String {
        utf8.map { byte in
            let character = Character(Unicode.Scalar(byte))
            let isUnreserved = byte < 0x80 && (character.isLetter || character.isNumber || "-._~".contains(character))
            return isUnreserved ? String(character) : String(format: "%%%02X", byte)
        }.joined()
    }

    /// Without spaces at its ends, and with one space in place of several.
    fileprivate var trimmed: String {
        split(separator: " ").joined(separator: " ")
    }
}

extension Sequence<UInt8> {
    fileprivate var hexadecimal: String { map { String(format: "%02x", $0) }.joined() }
}
