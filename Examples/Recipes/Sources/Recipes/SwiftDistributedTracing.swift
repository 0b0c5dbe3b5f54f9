import Tracing
import WebServiceCore

/// An interceptor that creates a client span for each exchange with swift-distributed-tracing.
///
/// The span is a child of the span of the Swift task that sends the request, and its context is
/// injected into the header fields. Without a tracer, `.traceContext()` of WebServiceCore sends
/// `traceparent` only.
public struct TracingInterceptor: Interceptor {
    private let tracer: any Tracer

    /// Creates an interceptor.
    ///
    /// - Parameter tracer: Defaults to the tracer of the process.
    public init(tracer: any Tracer = InstrumentationSystem.tracer) {
        self.tracer = tracer
    }

    /// Sends the request within a span, with the context of the span in its header fields.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        try await tracer.withAnySpan("\(request.method)", ofKind: .client) { span in
            var request = request
            tracer.inject(span.context, into: &request.headers, using: HeaderInjector())
            span.attributes["http.request.method"] = "\(request.method)"
            let response = try await next(request)
            span.attributes["http.response.status_code"] = response.status
            if response.status >= 400 { span.setStatus(SpanStatus(code: .error)) }
            return response
        }
    }
}

private struct HeaderInjector: Injector {
    func inject(_ value: String, forKey key: String, into headers: inout Headers) {
        headers[Headers.Name(key)] = value
    }
}
