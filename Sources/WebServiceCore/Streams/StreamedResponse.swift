import Foundation

/// A response whose head has been accepted and whose body is read as it arrives.
///
/// ```swift
/// let log = try await service.GET("/log").stream().value
/// for try await chunk in log.body { try file.write(contentsOf: chunk) }
/// ```
public struct StreamedResponse: Sendable {
    /// The response. Its ``Response/data`` is empty if the body is streamed.
    public let response: Response

    /// The body, which is received while you read it.
    public let body: ResponseBody

    init(_ response: Response) {
        body = ResponseBody(response)
        var head = response
        head.stream = nil
        head.bodyFailure = nil
        if response.isStreamed { head.data = Data() }
        self.response = head
    }

    /// The status code (RFC 9110, section 15).
    public var status: Int { response.status }

    /// The header fields of the response.
    public var headers: Headers { response.headers }
}

extension SessionTask {
    /// Returns a typed task whose value is the head of the response, with the body as a stream.
    ///
    /// Interceptors, redirects and error mappers apply only until the head is accepted. An error
    /// while the body is read is not retried. A response whose status is not 200 to 299 is received
    /// completely, up to 1 MiB, and then treated as by any other typed task, even if the body is
    /// incomplete.
    ///
    /// The timeout (``Request/Options/timeout``) does not run while the transport is paused. The
    /// deadline and ``Request/Options/maximumResponseBytes`` apply to the body only if they are set
    /// on the request or the task; otherwise, the deadline applies only until the head is received.
    /// The deadline of a scope (``WebService/withDeadline(_:isolation:_:)``) also applies to the
    /// body. A `ResponseCache` stores the body only if the cache has a `BodyFolder`. Call this
    /// method before ``resume()``.
    ///
    /// - Parameter bufferSize: The number of bytes that may be buffered for the reader before the
    ///   transport pauses. Defaults to 256 KiB.
    public func stream(bufferSize: Int = 256 << 10) -> TypedTask<StreamedResponse> {
        streamBody(bufferSize: bufferSize)
        setting { $0.options.isStreamed = true }
        return typed { StreamedResponse($0) }
    }
}
