import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A request that was encoded once, to be recorded, matched and answered. What Core has encoded stays as it is, and becomes a
/// `URLRequest` only when somebody asks for one.
struct SentRequest: Sendable {
    /// An `EncodedRequest` or a `URLRequest`.
    let encodable: any URLRequestEncodable
    /// How long the answer may take.
    let timeout: Duration
    /// The longest body of the answer, in bytes; `nil` for any.
    let maximumResponseBytes: Int?

    /// Encodes a request.
    ///
    /// - Throws: The request's own error, or `URLError.unsupportedURL` for a URL that no session sends to.
    init(_ request: any URLRequestEncodable) throws {
        if let request = request as? EncodedRequest {
            encodable = request
            timeout = .seconds(request.timeout)
            maximumResponseBytes = request.maximumResponseBytes
            return
        }
        maximumResponseBytes = (request as? Request)?.maximumResponseBytes
        let request = try request.urlRequest()
        guard let scheme = request.url?.scheme?.asciiLowercased(), scheme == "http" || scheme == "https" else {
            throw URLError(.unsupportedURL)
        }
        encodable = request
        let seconds = request.timeoutInterval
        timeout = .seconds(seconds > 0 ? min(seconds, 1e9) : Request.defaultTimeout)  // a `URLRequest` may hold any number
    }
}

extension URLRequestEncodable {
    /// The URL on its own, without a `URLRequest` where that can be saved.
    var sentURL: URL? {
        (self as? EncodedRequest).map { URL(string: $0.url) } ?? urlRequestValue.url
    }

    /// The method on its own, without a `URLRequest` where that can be saved.
    var sentMethod: String {
        (self as? EncodedRequest)?.method.rawValue ?? urlRequestValue.httpMethod ?? "GET"
    }
}
