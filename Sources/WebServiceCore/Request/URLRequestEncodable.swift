public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// Anything that can be sent: a ``Request``, a plain `URLRequest`, or a type of your own that says its `URLRequest`.
///
/// Values cross threads, so a conforming type is `Sendable`. Neither member may do I/O.
public protocol URLRequestEncodable: Sendable {
    /// The request as Foundation knows it. Never fails: where ``urlRequest()`` throws, this is a request for an
    /// unsupported URL, which no session sends.
    var urlRequestValue: URLRequest { get }

    /// The request as Foundation knows it, or the reason why there is none. Left out, it is ``urlRequestValue``.
    func urlRequest() throws -> URLRequest
}

extension URLRequestEncodable {
    /// ``urlRequestValue``, for types that cannot fail.
    public func urlRequest() throws -> URLRequest {
        urlRequestValue
    }
}

extension URLRequest: URLRequestEncodable {
    /// The request itself.
    public var urlRequestValue: URLRequest { self }
}

/// Puts parameters into a URL in a way of your own. It gets the request's URL and all parameters that belong in the URL, in
/// order, and returns the URL to send to; `nil` fails the request with ``WebServiceError/Code/encoding``.
public typealias QueryParameterEncoder = @Sendable (_ url: URL?, _ parameters: Parameters) -> URL?
