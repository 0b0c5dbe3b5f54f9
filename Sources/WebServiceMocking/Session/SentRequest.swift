import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A request that is encoded once, then recorded, matched and responded to.
///
/// An `EncodedRequest` is converted to a `URLRequest` only on demand.
struct SentRequest: Sendable {
    /// An `EncodedRequest` or a `URLRequest`.
    let encodable: any URLRequestEncodable
    /// The idle timeout of the request, which ``MockDataTask`` measures from `resume()`.
    let timeout: Duration
    /// The maximum length of the response body in bytes; `nil` for no limit.
    let maximumResponseBytes: Int?

    /// Encodes a request.
    ///
    /// - Throws: The error of the request, or `URLError.unsupportedURL` if the scheme is not http
    ///   or https.
    init(_ request: any URLRequestEncodable) throws {
        if let request = request as? EncodedRequest {
            encodable = request
            timeout = request.timeout
            maximumResponseBytes = request.maximumResponseBytes
            return
        }
        maximumResponseBytes = (request as? Request)?.options.maximumResponseBytes
        let request = try request.urlRequest()
        guard let scheme = request.url?.scheme?.asciiLowercased(), scheme == "http" || scheme == "https" else {
            throw URLError(.unsupportedURL)
        }
        encodable = request
        let seconds = request.timeoutInterval
        // A `URLRequest` accepts any number.
        timeout = seconds > 0 ? Duration.clamping(seconds: seconds) : Request.Options().timeout
    }
}

extension URLRequestEncodable {
    /// The URL, without creating a `URLRequest` if possible.
    var sentURL: URL? {
        (self as? EncodedRequest).map { URL(string: $0.url) } ?? urlRequestValue.url
    }

    /// The method, without creating a `URLRequest` if possible.
    var sentMethod: String {
        (self as? EncodedRequest)?.method.rawValue ?? urlRequestValue.httpMethod ?? "GET"
    }
}
