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
    /// The request that was encoded.
    package let source: Request

    init(method: Request.Method, url: String, headers: Headers, body: Data?, contentType: String?, source: Request) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.contentType = headers[.contentType] == nil ? contentType : nil
        self.source = source
    }

    /// What stands for a request that cannot be encoded: its scheme is one that no session sends to.
    static let unsendable = URLRequest(url: URL(string: "invalid:") ?? URL(fileURLWithPath: "/"))

    package var urlRequestValue: URLRequest {
        guard let url = URL(string: url) else { return Self.unsendable }
        var request = source.template ?? URLRequest(url: url)
        if source.template != nil { request.url = url }
        if method != .GET || source.template != nil { request.httpMethod = method.rawValue }
        if let body { request.httpBody = body }
        if !headers.isEmpty || contentType != nil || source.template != nil { request.allHTTPHeaderFields = combinedHeaders() }
        if source.timeout != request.timeoutInterval { request.timeoutInterval = source.timeout }
        if source.cachePolicy != request.cachePolicy { request.cachePolicy = source.cachePolicy }
        if source.shouldHandleCookies != request.httpShouldHandleCookies { request.httpShouldHandleCookies = source.shouldHandleCookies }
        return request
    }

    /// One value for each name, as `URLRequest` needs it. Repeated fields are joined: `Cookie` with a semicolon (RFC 6265,
    /// section 5.4), all others with a comma (RFC 9110, section 5.3).
    private func combinedHeaders() -> [String: String] {
        var combined: [String: String] = [:]
        if let contentType { combined["Content-Type"] = contentType }
        for field in headers {
            let name = combined.keys.first { $0.equalsIgnoringASCIICase(field.name) } ?? field.name
            let separator = name.equalsIgnoringASCIICase("Cookie") ? "; " : ", "
            combined[name] = combined[name].map { $0 + separator + field.value } ?? field.value
        }
        return combined
    }
}
