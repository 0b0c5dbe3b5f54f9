import Metrics
import WebServiceCore

/// An interceptor that records the duration of each exchange with swift-metrics.
///
/// The timer `http_client_request_duration` has the dimensions `method` and `status`; the status of
/// an exchange without a response is `error`.
public struct MetricsInterceptor: Interceptor {
    private let factory: any MetricsFactory

    /// Creates an interceptor.
    ///
    /// - Parameter factory: Defaults to the factory of the process.
    public init(factory: any MetricsFactory = MetricsSystem.factory) {
        self.factory = factory
    }

    /// Sends the request and records its duration in nanoseconds.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        let start = ContinuousClock.now
        do {
            let response = try await next(request)
            record(start, request, status: String(response.status))
            return response
        } catch {
            record(start, request, status: "error")
            throw error
        }
    }

    private func record(_ start: ContinuousClock.Instant, _ request: Request, status: String) {
        let dimensions = [("method", "\(request.method)"), ("status", status)]
        Timer(label: "http_client_request_duration", dimensions: dimensions, factory: factory)
            .record(duration: start.duration(to: .now))
    }
}
