import Foundation
import Logging
import WebServiceCore

/// An interceptor that logs each exchange with swift-log.
///
/// Install it before `.retry()` for one entry per exchange, or after it for one entry per attempt.
/// The query of a URL may contain secrets, so that only the path is logged.
public struct LoggingInterceptor: Interceptor {
    private let logger: Logger

    /// Creates an interceptor with a logger.
    public init(logger: Logger) {
        self.logger = logger
    }

    /// Sends the request, and logs its method, path, status and duration.
    public func intercept(_ request: Request, next: Next) async throws -> Response {
        var metadata: Logger.Metadata = [
            "method": "\(request.method)", "path": "\(request.url?.path ?? "")",
        ]
        let start = ContinuousClock.now
        do {
            let response = try await next(request)
            metadata["status"] = "\(response.status)"
            metadata["duration"] = "\(start.duration(to: .now))"
            logger.info("request completed", metadata: metadata)
            return response
        } catch {
            metadata["duration"] = "\(start.duration(to: .now))"
            metadata["error"] = "\(error)"
            logger.error("request failed", metadata: metadata)
            throw error
        }
    }
}
