import ServiceLifecycle
import WebServiceCore

/// A service of swift-service-lifecycle that ends the exchanges of a client when the program is
/// asked to stop, for example by SIGTERM.
///
/// Add it to the `ServiceGroup` before the services that use the client: a group stops its services
/// in reverse order, so that these have stopped first.
public struct ClientLifecycle: Service {
    private let client: WebService
    private let limit: Duration

    /// Creates a service.
    ///
    /// - Parameter limit: The maximum duration for the exchanges in flight. Choose it shorter than
    ///   the time after which the system kills the program.
    public init(_ client: WebService, limit: Duration = .seconds(20)) {
        self.client = client
        self.limit = limit
    }

    /// Waits for the shutdown, and lets the exchanges in flight end.
    public func run() async throws {
        try? await gracefulShutdown()  // an error is the cancellation, after which nothing is waited for
        await client.finish(within: limit)
    }
}
