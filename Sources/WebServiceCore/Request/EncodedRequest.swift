package import Foundation

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

/// A request that has been checked and encoded: what goes on the wire. A session that needs a `URLRequest` builds it from this;
/// one that does not, reads the fields and saves the work.
package final class EncodedRequest: URLRequestEncodable {
    /// The request that was encoded.
    package let source: Request
    /// The absolute URL, every byte legal by RFC 3986.
    package let url: String
    /// Checked fields in order, values trimmed, without those that frame the message.
    package let headers: Headers
    /// The body, `nil` for none and for one that is read while it is sent.
    package let body: Data?
    /// The body that is read while it is sent, because files belong to it; `nil` for none and for one in memory.
    package let bodySource: BodySource?
    /// The media type of the body, where the header fields do not say it.
    package let contentType: String?

    init(_ source: Request, url: String, headers: Headers, body: Data?, bodySource: BodySource?, contentType: String?) {
        self.source = source
        self.url = url
        self.headers = headers
        self.body = body
        self.bodySource = bodySource
        self.contentType = contentType
    }

    /// A token.
    package var method: Request.Method { source.method }
    /// Seconds the transport may wait for the next bytes.
    package var timeout: TimeInterval { min(source.timeout, 1e9) }  // 30 years; Foundation on Linux traps on what does not fit its integers
    /// The longest body that is wanted, in bytes; `nil` for any.
    package var maximumResponseBytes: Int? { source.maximumResponseBytes }

    /// Encodes whatever can be sent, for a session that does not need a `URLRequest`. The limits of a ``Request`` come along; a `URLRequest` has none.
    package static func encoding(_ encodable: any URLRequestEncodable) throws -> EncodedRequest {
        if let encoded = encodable as? EncodedRequest { return encoded }
        if let request = encodable as? Request { return try request.encode() }
        return try Request(try encodable.urlRequest()).encode()
    }

    /// How long the body is, in bytes; 0 for one that comes from a stream of Foundation's.
    package var bodyCount: Int { bodySource?.count ?? body?.count ?? 0 }

    /// Whether the body comes from a stream of Foundation's.
    package var hasBodyStream: Bool { source.template?.httpBodyStream != nil }

    /// The same with one more header field, whose value is known to be legal.
    func adding(_ name: String, _ value: String) -> EncodedRequest {
        var headers = headers
        headers.add(value, for: Headers.Name(name))
        return EncodedRequest(source, url: url, headers: headers, body: body, bodySource: bodySource, contentType: contentType)
    }

    /// Method and URL without its query: safe to log.
    var summary: String { "\(method) \(url.prefix { $0 != "?" })" }

    /// What stands for a request that cannot be encoded: its scheme is one that no session sends to.
    static let unsendable = URLRequest(url: URL(string: "invalid:") ?? URL(fileURLWithPath: "/"))

    package var urlRequestValue: URLRequest {
        guard let url = URL(string: url, encodingInvalidCharacters: false) else { return Self.unsendable }
        // Setters of `URLRequest` are slow on Linux: what has its value already is left alone, and one assignment of all header fields
        // costs a tenth of what `setValue` costs for each.
        let template = source.template
        var request = template ?? URLRequest(url: url, cachePolicy: source.cachePolicy, timeoutInterval: timeout)
        if template != nil {
            request.url = url
            request.cachePolicy = source.cachePolicy
            request.timeoutInterval = timeout
        }
        if method != .GET || template != nil { request.httpMethod = method.rawValue }
        if let body { request.httpBody = body }
        if let bodySource, let form = source.multipart { request.httpBodyStream = BodyStream(form, bodySource) }
        if !headers.isEmpty || contentType != nil || template != nil { request.allHTTPHeaderFields = combinedHeaders() }
        if !source.shouldHandleCookies || template != nil { request.httpShouldHandleCookies = source.shouldHandleCookies }
        return request
    }

    /// The fields of the commonest requests, made once.
    private static let jsonHeaders = ["Content-Type": ContentType.json]
    private static let formHeaders = ["Content-Type": ContentType.formEncoded]

    /// One value for each name, as `URLRequest` needs it.
    private func combinedHeaders() -> [String: String] {
        if headers.isEmpty {
            if contentType == ContentType.json { return Self.jsonHeaders }
            if contentType == ContentType.formEncoded { return Self.formHeaders }
        }
        return Headers((contentType.map { [("Content-Type", $0)] } ?? []) + headers.map { ($0.name, $0.value) }).combined()
    }
}

extension EncodedRequest: CustomStringConvertible, CustomReflectable {
    package var description: String { summary }
    package var customMirror: Mirror { Mirror(self, children: ["request": summary], displayStyle: .class) }
}
