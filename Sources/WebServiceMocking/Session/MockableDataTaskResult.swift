public import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// What can stand as the answer of a ``MockSession``: a ``MockResponse``, a `URLResponse`, a `URLError`, an `NSError`, or a type of your own.
///
/// ```swift
/// struct Teapot: MockableDataTaskResult {
///     func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
///         (Data("short and stout".utf8), MockResponse(statusCode: 418).dataTaskResult(request: request).1, nil)
///     }
/// }
/// ```
public protocol MockableDataTaskResult: Sendable {
    /// What the completion of the data task gets. Called once for each request that is answered, on a background queue, for several
    /// requests at the same time.
    ///
    /// - Parameter request: The request as it was sent; its `urlRequestValue` is the recorded `URLRequest`.
    func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?)
}

extension URLResponse: MockableDataTaskResult {
    /// The response itself, with an empty body.
    public func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
        (Data(), self, nil)
    }
}

extension NSError: MockableDataTaskResult {
    /// The error itself, without response and body.
    public func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
        (nil, nil, self)
    }
}

extension URLError: MockableDataTaskResult {
    /// The error itself, without response and body.
    public func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
        (nil, nil, self)
    }
}

/// An answer that is worked out from the request.
struct ComputedResult: MockableDataTaskResult {
    let compute: @Sendable (any URLRequestEncodable) throws -> any MockableDataTaskResult

    func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
        do {
            return try compute(request).dataTaskResult(request: request)
        } catch {
            return (nil, nil, error)
        }
    }
}
