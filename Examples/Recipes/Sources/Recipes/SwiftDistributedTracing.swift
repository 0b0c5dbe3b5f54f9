import Foundation
import Tracing
import WebServiceCore
import WebServiceDiagnostics

/// An interceptor that creates a client span for each request with swift-distributed-tracing.
///
/// Install it after `.retry()`, so that each attempt has a span. The span is a child of the span of
/// the Swift task that sends the request, and its context is injected into the header fields.
/// Without a tracer, `.traceContext()` of WebServiceCore sends `traceparent` only.
///
/// The name and the attributes are those of the OpenTelemetry semantic conventions for HTTP client
/// spans, version 1.44. The URL has no user information, and secret values of its query are
/// redacted.
public struct TracingInterceptor: Interceptor {
    private let tracer: any Tracer
    private let redaction: Redaction

    /// Creates an interceptor.
    ///
    /// - Parameters:
    ///   - tracer: Defaults to the tracer of the process.
    ///   - redaction: The rules for secrets in URLs. Defaults to the standard rules.
    public init(tracer: any Tracer = InstrumentationSystem.tracer, redaction: Redaction = .standard) {
        self.tracer = tracer
        self.redaction = redaction
    }

    /// Sends the request within a span, with the context of the span in its header fields.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let name = [request.method.rawValue, request.pathTemplate].compactMap(\.self).joined(separator: " ")
        return try await tracer.withAnySpan(name, ofKind: .client) { span in
            var request = request
            tracer.inject(span.context, into: &request.headers, using: HeaderInjector())
            span.updateAttributes { $0.describe(request, redaction) }
            do {
                let response = try await next(request)
                span.updateAttributes { $0.describe(response) }
                if response.status >= 400 { span.setStatus(SpanStatus(code: .error)) }
                return response
            } catch {
                span.attributes["error.type"] = "\(type(of: error))"
                throw error  // the tracer records the error and sets the status
            }
        }
    }
}

extension SpanAttributes {
    fileprivate mutating func describe(_ request: Request, _ redaction: Redaction) {
        self["http.request.method"] = request.method.rawValue
        self["url.template"] = request.pathTemplate
        guard let url = request.url else { return }
        self["url.full"] = redaction.url(url.absoluteString)
        self["server.address"] = url.host()
        self["server.port"] = url.port ?? (url.scheme == "http" ? 80 : 443)
    }

    fileprivate mutating func describe(_ response: Response) {
        self["http.response.status_code"] = response.status
        if response.status >= 400 { self["error.type"] = String(response.status) }
    }
}

private struct HeaderInjector: Injector {
    func inject(_ value: String, forKey key: String, into headers: inout Headers) {
        headers[Headers.Name(key)] = value
    }
}
