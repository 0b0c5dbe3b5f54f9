public import Foundation
public import WebServiceCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A result that a ``MockSession`` can return for a request.
///
/// Conforming types are ``MockResponse``, `URLResponse`, `URLError` and `NSError`. A custom type
/// can also conform:
///
/// ```swift
/// struct Teapot: MockableDataTaskResult {
///     typealias Result = (Data?, URLResponse?, (any Error)?)
///
///     func dataTaskResult(request: any URLRequestEncodable) -> Result {
///         MockResponse(statusCode: 418, data: Data("short and stout".utf8))
///             .dataTaskResult(request: request)
///     }
/// }
/// ```
public protocol MockableDataTaskResult: Sendable {
    /// Returns the arguments for the completion of the data task.
    ///
    /// This method is called once for each request, on a background queue, concurrently for
    /// different requests.
    ///
    /// - Parameter request: The request as sent. Its `urlRequestValue` is the recorded
    ///   `URLRequest`.
    func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?)
}

extension URLResponse: MockableDataTaskResult {
    /// Returns the response with an empty body.
    public func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
        (Data(), self, nil)
    }
}

extension NSError: MockableDataTaskResult {
    /// Returns the error without a response or a body.
    public func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
        (nil, nil, self)
    }
}

extension URLError: MockableDataTaskResult {
    /// Returns the error without a response or a body.
    public func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
        (nil, nil, self)
    }
}

/// A result that a closure determines from the request.
package struct ComputedResult: MockableDataTaskResult {
    let compute: @Sendable (any URLRequestEncodable) throws -> any MockableDataTaskResult

    package init(compute: @escaping @Sendable (any URLRequestEncodable) throws -> any MockableDataTaskResult) {
        self.compute = compute
    }

    package func dataTaskResult(request: any URLRequestEncodable) -> (Data?, URLResponse?, (any Error)?) {
        do {
            return try compute(request).dataTaskResult(request: request)
        } catch {
            return (nil, nil, error)
        }
    }
}
