import Foundation
import HTTPTypes
import Hummingbird
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Limits the duration of a handler's requests together.
///
/// The client of this server specifies how long it waits, in milliseconds, in the header field
/// `X-Request-Timeout`. After that time, further requests would be wasted.
struct DeadlineMiddleware: RouterMiddleware {
    let service: WebService
    let maximum: Duration

    func handle(
        _ request: Hummingbird.Request, context: BasicRequestContext,
        next: (Hummingbird.Request, BasicRequestContext) async throws -> Hummingbird.Response
    ) async throws -> Hummingbird.Response {
        let requested = request.headers["X-Request-Timeout"].flatMap { Int($0) }.map { Duration.milliseconds($0) }
        return try await service.withDeadline(min(requested ?? maximum, maximum)) {
            try await next(request, context)
        }
    }
}

/// The trace context of the incoming request (W3C Trace Context).
struct TraceContext: Sendable {
    @TaskLocal static var current: TraceContext?

    var parent: String
    var state: String?
}

/// Makes the trace context of the incoming request available to its handler.
struct TraceContextMiddleware: RouterMiddleware {
    func handle(
        _ request: Hummingbird.Request, context: BasicRequestContext,
        next: (Hummingbird.Request, BasicRequestContext) async throws -> Hummingbird.Response
    ) async throws -> Hummingbird.Response {
        let trace = request.headers["traceparent"].map {
            TraceContext(parent: $0, state: request.headers["tracestate"])
        }
        return try await TraceContext.$current.withValue(trace) { try await next(request, context) }
    }
}

/// Adds the trace context of the incoming request to the requests of its handler.
///
/// `.traceContext()`, which follows it, replaces the span identifier.
struct ForwardedTraceContext: Interceptor {
    func intercept(_ request: WebServiceCore.Request, next: Next) async throws -> WebServiceCore.Response {
        guard let trace = TraceContext.current else { return try await next(request) }
        var request = request
        request.headers["traceparent"] = trace.parent
        request.headers["tracestate"] = trace.state
        return try await next(request)
    }
}

/// Converts errors of the brewery API to responses of this server.
struct UpstreamErrorMiddleware: RouterMiddleware {
    func handle(
        _ request: Hummingbird.Request, context: BasicRequestContext,
        next: (Hummingbird.Request, BasicRequestContext) async throws -> Hummingbird.Response
    ) async throws -> Hummingbird.Response {
        do {
            return try await next(request, context)
        } catch let error as WebServiceError where error.status == 404 {
            throw HTTPError(.notFound)
        } catch let error as WebServiceError {
            context.logger.error("the brewery API failed: \(error)")
            throw HTTPError(error.code == .deadline ? .gatewayTimeout : .badGateway)
        } catch let error as URLError where error.code != .cancelled {
            context.logger.error("the brewery API cannot be reached: \(error.localizedDescription)")
            throw HTTPError(error.code == .timedOut ? .gatewayTimeout : .badGateway)
        }
    }
}

extension HTTPFields {
    /// Returns the value of a field whose name has no constant in HTTPTypes.
    subscript(name: String) -> String? {
        get { HTTPField.Name(name).flatMap { self[$0] } }
        set { if let name = HTTPField.Name(name) { self[name] = newValue } }
    }
}
