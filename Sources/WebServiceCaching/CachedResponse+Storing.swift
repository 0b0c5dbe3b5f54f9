import Foundation
import WebServiceCore

extension CachedResponse {
    /// Creates the stored form of a response to a GET or QUERY request (RFC 9111, section 3).
    ///
    /// - Throws: The reason why the response must not be stored or could not match any request.
    init(
        _ response: Response, to request: Request, account: String?, requestTime: Date, responseTime: Date
    ) throws(CacheRefusal) {
        let headers = response.headers
        let status = response.status
        // After a redirect, the response belongs to a different URL.
        guard response.isHTTP else { throw CacheRefusal("the response is not an HTTP response") }
        guard response.bodyFailure == nil else { throw CacheRefusal("the body is incomplete") }
        guard response.redirects.isEmpty else { throw CacheRefusal("the response came after a redirect") }
        guard Self.isStorable(status) else { throw CacheRefusal("status \(status)") }
        guard headers.allSatisfy(Self.canBeWritten) else { throw CacheRefusal("a header field is malformed") }
        let selection = try Self.selection(status, headers, to: request, account: account)
        self.init(
            status: status, headers: Self.stored(headers, responseTime), body: .data(response.data),
            requestTime: requestTime, responseTime: responseTime, selection: selection)
    }

    /// Returns the selection of the requests that a response with these header fields matches.
    ///
    /// - Throws: The reason why the response must not be stored or could not match any request.
    static func selection(
        _ status: Int, _ headers: Headers, to request: Request, account: String?
    ) throws(CacheRefusal) -> CacheSelection {
        let control = CacheControl(headers.values(for: .cacheControl))
        if control.has("must-understand") {
            guard understoodStatuses.contains(status) else {
                throw CacheRefusal("must-understand in the response, but status \(status) is unknown")
            }
        } else if control.has("no-store") {
            throw CacheRefusal("no-store in the response")
        }
        guard
            heuristicStatuses.contains(status) || ["max-age", "public", "private"].contains(where: control.has)
                || headers["Expires"] != nil
        else { throw CacheRefusal("status \(status) without explicit freshness") }
        guard CacheGroups.names(in: headers["Cache-Groups"]).count <= CacheGroups.maximumCount else {
            throw CacheRefusal("more than \(CacheGroups.maximumCount) cache groups")
        }
        return try CacheSelection(of: headers, to: request, account: account)
    }

    /// Returns the response updated by a 304 response or by the response to a HEAD request (RFC
    /// 9111, section 3.2).
    ///
    /// The received fields replace the stored fields. The exceptions are `Content-Encoding`,
    /// `Content-Range` and `Content-Length`, which remain unchanged because the body is stored
    /// decoded. The age and the date are those of the received response.
    func freshened(by response: Response, requestTime: Date, responseTime: Date) -> CachedResponse? {
        let news = response.headers
        guard news.allSatisfy(Self.canBeWritten) else { return nil }
        let kept: Set<Headers.Name> = ["Content-Length", "Content-Encoding", "Content-Range"]
        let added = Self.stored(news, responseTime).filtered { !kept.contains(Headers.Name($0.name)) }
        let replaced = Set(added.map { Headers.Name($0.name) }).union(["Age"])
        var updated = self
        // The received directives may name further fields that must not be stored.
        updated.headers = Self.stored(
            headers.filtered { !replaced.contains(Headers.Name($0.name)) }.adding(added), responseTime)
        updated.requestTime = requestTime
        updated.responseTime = responseTime
        return updated
    }

    /// Returns the fields that are stored (RFC 9111, section 3.1). A missing `Date` is added (RFC
    /// 9110, section 6.6.1).
    private static func stored(_ headers: Headers, _ responseTime: Date) -> Headers {
        let control = CacheControl(headers.values(for: .cacheControl))
        let named = headers.values(for: "Connection").flatMap(CacheControl.names) + control.fields("no-cache")
        let dropped = connectionFields.union(named.map { Headers.Name($0) })
        var stored = headers.filtered { !dropped.contains(Headers.Name($0.name)) }
        if stored["Date"] == nil { stored["Date"] = HTTPDate.text(responseTime) }
        return stored
    }

    /// Fields that apply only to one connection, one proxy or one exchange.
    private static let connectionFields: Set<Headers.Name> = [
        "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
        "Proxy-Connection", "TE", "Trailer",
        "Transfer-Encoding", "Upgrade", "Set-Cookie",
    ]

    /// The final status codes that RFC 9110, section 15, defines, except 206 and 304.
    private static let understoodStatuses = Set(200...205).union(300...303).union([305, 307, 308]).union(400...417)
        .union([421, 422, 426])
        .union(500...505)

    /// Returns whether a field can be written to a response head and parsed again.
    private static func canBeWritten(_ field: Headers.Field) -> Bool {
        ASCII.isToken(field.name.utf8) && ASCII.isFieldValue(field.value.utf8)
    }
}

extension CachedResponse {
    /// Returns the stored response as one from the cache (RFC 9111, section 5.1). A body that is in
    /// a file is not included.
    ///
    /// - Parameters:
    ///   - url: The request URL.
    ///   - hasBody: Whether the response includes the body.
    func response(url: String, hasBody: Bool = true, at now: Date) -> Response? {
        let age = age(at: now) ?? initialAge
        var headers = headers
        headers["Age"] = String(Int64(min(max(0, age), CacheControl.maximum)))
        return Self.response(
            status: status, headers: headers, body: hasBody ? body.data : Data(), url: url, source: .cache, age: age)
    }

    /// Returns the stored response after the server has validated it. A body that is in a file is
    /// not included.
    func revalidatedResponse(by validation: Response, url: String) -> Response? {
        var response = Self.response(
            status: status, headers: headers, body: body.data, url: url, source: .revalidated, age: initialAge)
        response?.attempts = validation.attempts
        response?.transport = validation.transport
        return response
    }

    /// Returns a 304 response for a request whose own condition the stored response meets, without
    /// the fields that describe a body (RFC 9110, section 15.4.5).
    func notModified(url: String, at now: Date) -> Response? {
        var response = self
        response.status = 304
        response.headers = headers.filtered { field in
            let name = field.name.asciiLowercased()
            return !name.hasPrefix("content-") || name == "content-location"
        }
        return response.response(url: url, hasBody: false, at: now)
    }

    static func response(
        status: Int, headers: Headers = [:], body: Data = Data(), url: String, source: Response.Source,
        age: TimeInterval? = nil
    ) -> Response? {
        var bytes = Array("HTTP/1.1 \(status)\r\n".utf8)
        for field in headers { bytes += Array("\(field.name): \(field.value)\r\n".utf8) }
        guard let head = ResponseHead(bytes: bytes, url: url) else { return nil }
        var response = Response(data: body, head: head, source: source)
        response.attempts = 0
        response.age = age.map(Duration.clamping(seconds:))
        return response
    }
}
