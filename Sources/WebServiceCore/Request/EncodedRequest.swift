package import Foundation

#if canImport(FoundationNetworking)
package import FoundationNetworking
#endif

/// A request that has been checked and encoded: what goes on the wire. A session that needs a `URLRequest` builds it from this;
/// one that does not, reads the fields and saves the work.
package final class EncodedRequest: URLRequestEncodable {
    /// A token.
    package let method: Request.Method
    /// The absolute URL, every byte legal by RFC 3986.
    package let url: String
    /// Checked fields in order, values trimmed, without those that frame the message.
    package let headers: Headers
    /// The body, `nil` for none.
    package let body: Data?
    /// The media type of the body, where the header fields do not say it.
    package let contentType: String?
    /// Seconds the transport may wait for the next bytes.
    package let timeout: TimeInterval
    /// The longest body that is wanted, in bytes; `nil` for any.
    package let maximumResponseBytes: Int?
    private let cachePolicy: URLRequest.CachePolicy
    private let shouldHandleCookies: Bool
    private let template: URLRequest?

    init(_ request: Request, url: String, headers: Headers, body: Data?) {
        method = request.method
        self.url = url
        self.headers = headers
        self.body = body
        contentType = body == nil || headers[.contentType] != nil ? nil : request.contentType
        timeout = request.timeout
        cachePolicy = request.cachePolicy
        shouldHandleCookies = request.shouldHandleCookies
        template = request.template
        maximumResponseBytes = request.maximumResponseBytes
    }

    /// The same with one more header field, whose value is known to be legal.
    func adding(_ name: String, _ value: String) -> EncodedRequest {
        var headers = headers
        headers.add(value, for: Headers.Name(name))
        return EncodedRequest(self, headers: headers)
    }

    private init(_ other: EncodedRequest, headers: Headers) {
        method = other.method
        url = other.url
        self.headers = headers
        body = other.body
        contentType = other.contentType
        timeout = other.timeout
        maximumResponseBytes = other.maximumResponseBytes
        cachePolicy = other.cachePolicy
        shouldHandleCookies = other.shouldHandleCookies
        template = other.template
    }

    /// Method and URL without its query: safe to log.
    var summary: String { "\(method) \(url.prefix { $0 != "?" })" }

    /// What stands for a request that cannot be encoded: its scheme is one that no session sends to.
    static let unsendable = URLRequest(url: URL(string: "invalid:") ?? URL(fileURLWithPath: "/"))

    package var urlRequestValue: URLRequest {
        guard let url = URL(string: url, encodingInvalidCharacters: false) else { return Self.unsendable }
        // Setters of `URLRequest` are slow on Linux: what has its value already is left alone, and one assignment of all header fields
        // costs a tenth of what `setValue` costs for each.
        var request = template ?? URLRequest(url: url, cachePolicy: cachePolicy, timeoutInterval: timeout)
        if template != nil {
            request.url = url
            request.cachePolicy = cachePolicy
            request.timeoutInterval = timeout
        }
        if method != .GET || template != nil { request.httpMethod = method.rawValue }
        if let body { request.httpBody = body }
        if !headers.isEmpty || contentType != nil || template != nil { request.allHTTPHeaderFields = combinedHeaders() }
        if !shouldHandleCookies || template != nil { request.httpShouldHandleCookies = shouldHandleCookies }
        return request
    }

    /// One value for each name, as `URLRequest` needs it. Repeated fields are joined: `Cookie` with a semicolon (RFC 6265,
    /// section 5.4), all others with a comma (RFC 9110, section 5.3).
    private func combinedHeaders() -> [String: String] {
        var combined: [String: String] = contentType.map { ["Content-Type": $0] } ?? [:]
        for field in headers {
            let name = combined.keys.first { $0.equalsIgnoringASCIICase(field.name) } ?? field.name
            let separator = name.equalsIgnoringASCIICase("Cookie") ? "; " : ", "
            combined[name] = combined[name].map { $0 + separator + field.value } ?? field.value
        }
        return combined
    }
}

extension EncodedRequest: CustomStringConvertible, CustomReflectable {
    package var description: String { summary }
    package var customMirror: Mirror { Mirror(self, children: ["request": summary], displayStyle: .class) }
}
