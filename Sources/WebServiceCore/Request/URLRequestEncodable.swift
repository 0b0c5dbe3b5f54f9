public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A type that can be sent: a ``Request``, a `URLRequest`, or a custom type.
///
/// A conforming type must be `Sendable`, because its values cross threads. Neither member should
/// perform I/O.
public protocol URLRequestEncodable: Sendable {
    /// The request as a `URLRequest`.
    ///
    /// The property never fails: if ``urlRequest()`` throws, this is a request for an unsupported
    /// URL, which no session sends.
    var urlRequestValue: URLRequest { get }

    /// Returns the request as a `URLRequest`.
    ///
    /// Defaults to ``urlRequestValue``.
    ///
    /// - Throws: An error if the request cannot be encoded.
    func urlRequest() throws -> URLRequest
}

extension URLRequestEncodable {
    /// Returns ``urlRequestValue``, for types whose encoding cannot fail.
    public func urlRequest() throws -> URLRequest {
        urlRequestValue
    }
}

extension URLRequest: URLRequestEncodable {
    /// The request itself.
    public var urlRequestValue: URLRequest { self }
}

/// A custom encoder of query parameters.
///
/// The encoder receives the request's URL and all parameters that belong in the URL, in order, and
/// returns the URL to which the request is sent. If the encoder returns `nil`, the request fails
/// with ``WebServiceError/Code/encoding``.
public typealias QueryParameterEncoder = @Sendable (_ url: URL?, _ parameters: Parameters) -> URL?
