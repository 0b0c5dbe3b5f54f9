import Foundation
package import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A request that is encoded once, then recorded, matched and responded to.
///
/// An `EncodedRequest` is converted to a `URLRequest` only on demand.
package struct SentRequest: Sendable {
    /// An `EncodedRequest` or a `URLRequest`.
    package let request: any URLRequestEncodable
    /// The idle timeout of the request, which ``MockDataTask`` measures from `resume()`.
    package let timeout: Duration
    /// The maximum length of the response body in bytes; `nil` for no limit.
    package let maximumResponseBytes: Int?
    /// The bytes of a body with files; `nil` if the body has no files, or before ``readingBody()``.
    private var fileBody: Data?
    /// The request for matchers and handlers; `nil` before ``preparing()``.
    private var prepared: ReceivedRequest?

    /// Encodes a request.
    ///
    /// - Throws: The error of the request, or `URLError.unsupportedURL` if the scheme is not http
    ///   or https.
    package init(_ request: any URLRequestEncodable) throws {
        if let request = request as? EncodedRequest {
            self.request = request
            timeout = request.timeout
            maximumResponseBytes = request.maximumResponseBytes == .max ? nil : request.maximumResponseBytes
            return
        }
        // `urlRequest()` reports the error.
        maximumResponseBytes = (request as? Request).flatMap { try? $0.encode() }?.maximumResponseBytes  // see above
        let request = try request.urlRequest()
        guard let scheme = request.url?.scheme?.asciiLowercased(), scheme == "http" || scheme == "https" else {
            throw URLError(.unsupportedURL)
        }
        self.request = request
        let seconds = request.timeoutInterval
        // A `URLRequest` accepts any number.
        timeout = seconds > 0 ? Duration.clamping(seconds: seconds) : .seconds(60)
    }

    var hasFileBody: Bool { fileBody != nil }

    /// Returns the request with the bytes of the files in its body, as a transport would send them.
    ///
    /// - Throws: `WebServiceError.Code.encoding` if a file cannot be read.
    package func readingBody() throws -> SentRequest {
        guard prepared == nil, let source = (request as? EncodedRequest)?.bodySource else { return self }
        let reader = BodyReader(source)
        var body = Data()
        try withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { room in
            while reader.offset < source.count {
                let count = try reader.read(into: room)
                guard count > 0 else { return }
                body.append(contentsOf: UnsafeRawBufferPointer(rebasing: room[..<count]))
            }
        }
        var sent = self
        sent.fileBody = body
        return sent
    }

    /// Returns the request with the bytes of its body and with ``received``, if the bytes can be
    /// read.
    func preparing() -> SentRequest {
        guard var sent = try? readingBody() else { return self }  // `reply(to:_:)` reports the error
        sent.prepared = sent.received
        return sent
    }
}

extension SentRequest: IncomingRequest {
    package var encodable: (any URLRequestEncodable)? { request }

    package var received: ReceivedRequest {
        if let prepared { return prepared }
        if let request = request as? EncodedRequest {
            var headers = request.headers
            if let contentType = request.contentType { headers.add(contentType, for: .contentType) }
            return received(request.method, request.url, headers: headers, body: fileBody ?? request.body)
        }
        let request = request.urlRequestValue
        return received(
            Request.Method(rawValue: request.httpMethod ?? "GET"), request.url?.absoluteString ?? "",
            headers: request.headers, body: request.httpBody)
    }

    private func received(_ method: Request.Method, _ url: String, headers: Headers, body: Data?)
        -> ReceivedRequest
    {
        let (origin, target) = url.originAndTarget
        let head = RequestHead(method: method, target: target, headers: headers)
        return ReceivedRequest(head: head, body: body ?? Data(), origin: origin)
    }
}

extension URLRequestEncodable {
    /// The URL, without creating a `URLRequest` if possible.
    package var sentURL: String? {
        (self as? EncodedRequest)?.url ?? urlRequestValue.url?.absoluteString
    }

    /// The method, without creating a `URLRequest` if possible.
    var sentMethod: String {
        (self as? EncodedRequest)?.method.rawValue ?? urlRequestValue.httpMethod ?? "GET"
    }
}

extension String {
    /// The origin of a URL, and the path and the query after it. The path begins with a slash.
    package var originAndTarget: (origin: String, target: String) {
        // The slash, question mark or number sign that ends the origin (RFC 3986, section 3.2).
        let colon = utf8.firstIndex(of: UInt8(ascii: ":")) ?? endIndex
        let hasAuthority = utf8[colon...].starts(with: "://".utf8)
        let authority = hasAuthority ? utf8.index(colon, offsetBy: 3) : startIndex
        let end = utf8[authority...].firstIndex { "/?#".utf8.contains($0) } ?? endIndex
        let rest = self[end..<(utf8[end...].firstIndex(of: UInt8(ascii: "#")) ?? endIndex)]
        return (String(self[..<end]), rest.utf8.first == UInt8(ascii: "/") ? String(rest) : "/\(rest)")
    }
}
