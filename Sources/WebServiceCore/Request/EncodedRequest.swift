public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A checked and encoded request, ready to be sent.
///
/// A session that needs a `URLRequest` builds it from this object. Other sessions read the
/// properties directly and avoid that step.
public final class EncodedRequest: URLRequestEncodable {
    /// The request that was encoded.
    public let source: Request
    /// The absolute URL. Every byte is valid according to RFC 3986.
    public let url: String
    /// The validated header fields, in order and with trimmed values, without the fields that frame
    /// the request.
    public let headers: Headers
    /// The body in memory; `nil` if there is none or if the body is read while the request is sent.
    public let body: Data?
    /// The body that is read while the request is sent, because it contains files; otherwise `nil`.
    package let bodySource: BodySource?
    /// The body that a sequence produces while the request is sent; otherwise `nil`.
    package let stream: StreamedBody?
    /// The media type of the body if the header fields do not specify it.
    public let contentType: String?

    init(
        _ source: Request, url: String, headers: Headers, body: Data?, bodySource: BodySource? = nil,
        stream: StreamedBody? = nil, contentType: String?
    ) {
        self.source = source
        self.url = url
        self.headers = headers
        self.body = body
        self.bodySource = bodySource
        self.stream = stream
        self.contentType = contentType
    }

    /// The method, which is a token.
    public var method: Request.Method { source.method }
    /// The idle timeout: the longest wait for the next bytes.
    ///
    /// The maximum is 1e9 seconds (about 30 years), because Foundation on Linux traps on values
    /// that do not fit into its integers.
    package var timeout: Duration { min(source.options.idleTimeout, .seconds(1_000_000_000)) }
    /// The maximum size of the response body in bytes.
    package var maximumResponseBytes: Int { source.options.bodyMaximum }

    /// Encodes any request, for a session that does not need a `URLRequest`.
    ///
    /// The limits of a ``Request`` are preserved, whereas the only limit of a `URLRequest` is its
    /// timeout.
    package static func encoding(_ encodable: any URLRequestEncodable) throws -> EncodedRequest {
        if let encoded = encodable as? EncodedRequest { return encoded }
        if let request = encodable as? Request { return try request.encode() }
        return try Request(try encodable.urlRequest()).encode()
    }

    /// The size of the body in bytes; 0 for a streamed body and for a Foundation input stream.
    package var bodyCount: Int { bodySource?.count ?? body?.count ?? 0 }

    /// The length of the body in bytes; `nil` if it is unknown.
    package var bodyLength: Int64? { hasBodyStream ? nil : stream.map(\.length) ?? Int64(bodyCount) }

    /// Whether the body is a Foundation input stream.
    package var hasBodyStream: Bool { source.template?.httpBodyStream != nil }

    /// Returns a copy with one more header field, whose value must be valid.
    func adding(_ name: String, _ value: String) -> EncodedRequest {
        var headers = headers
        headers.add(value, for: Headers.Name(name))
        return EncodedRequest(
            source, url: url, headers: headers, body: body, bodySource: bodySource, stream: stream,
            contentType: contentType)
    }

    /// Returns a copy with the bytes of its streamed body.
    func collecting(_ body: Data) -> EncodedRequest {
        EncodedRequest(source, url: url, headers: headers, body: body, contentType: contentType)
    }

    /// A description that is safe to log: the method, and the URL without its query and without
    /// parameters of path segments such as `;jsessionid=…`.
    package var summary: String { "\(method) \(url.withoutParameters)" }

    /// The substitute for a request that cannot be encoded. No session supports its scheme.
    static let unsendable = URLRequest(url: URL(string: "invalid:") ?? URL(fileURLWithPath: "/"))

    /// The request as a Foundation value, created on each access.
    public var urlRequestValue: URLRequest {
        guard let url = URL(string: url, encodingInvalidCharacters: false) else { return Self.unsendable }
        // The setters of `URLRequest` are slow on Linux, so properties that already have the right
        // value are not set. Assigning all header fields together takes a tenth of the time of
        // setting each one.
        let template = source.template
        var request =
            template
            ?? URLRequest(url: url, cachePolicy: source.options.cachePolicy, timeoutInterval: timeout.inSeconds)
        if template != nil {
            request.url = url
            request.cachePolicy = source.options.cachePolicy
            request.timeoutInterval = timeout.inSeconds
        }
        if method != .GET || template != nil { request.httpMethod = method.rawValue }
        if let body { request.httpBody = body }
        if bodySource != nil || stream != nil { request.httpBodyStream = BodyStream(source.content, bodySource) }
        if !headers.isEmpty || contentType != nil || template != nil { request.allHTTPHeaderFields = combinedHeaders() }
        if !source.options.shouldHandleCookies || template != nil {
            request.httpShouldHandleCookies = source.options.shouldHandleCookies
        }
        return request
    }

    /// The header fields of the most common requests, created once.
    private static let jsonHeaders = ["Content-Type": ContentType.json]
    private static let formHeaders = ["Content-Type": ContentType.formEncoded]

    /// Returns the header fields with one value per name, as `URLRequest` requires.
    private func combinedHeaders() -> [String: String] {
        if headers.isEmpty {
            if contentType == ContentType.json { return Self.jsonHeaders }
            if contentType == ContentType.formEncoded { return Self.formHeaders }
        }
        return Headers((contentType.map { [("Content-Type", $0)] } ?? []) + headers.map { ($0.name, $0.value) })
            .combined()
    }
}

extension EncodedRequest: RedactedReflectable {
    /// A description that is safe to log: the method, and the URL without its query and without
    /// parameters of path segments such as `;jsessionid=…`.
    public var description: String { summary }
}
