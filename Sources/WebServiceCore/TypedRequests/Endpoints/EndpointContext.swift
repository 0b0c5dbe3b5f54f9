import Foundation

/// The environment of an endpoint while it fetches a request.
public struct EndpointContext: Sendable {
    /// The identifier of this execution, unique within the process.
    public let id: UInt64

    /// The service that executes the request, with its base URL, sessions and policies.
    ///
    /// Requests sent through it belong to the same service.
    public var service: WebService { WebService(borrowing: core) }

    let core: ServiceCore
    let flight: FlightRecorder

    /// Sends a request through the service's session and its pipeline.
    ///
    /// The pipeline applies interceptors, the delegate, cookies and timeouts.
    ///
    /// - Returns: The response, with any status.
    /// - Throws: `URLError` for transport errors, ``WebServiceError`` for errors of this library,
    ///   `URLError.cancelled` if the request is cancelled.
    public func send(_ request: Request) async throws -> Response {
        let exchange = SessionTask(core, request)
        exchange.context.log.setParent(id)
        flight.begin(exchange)
        return try await exchange.answer().value
    }

    /// Suspends the current task for a duration on the service's clock.
    ///
    /// - Throws: `CancellationError` as soon as the request is cancelled.
    public func sleep(for duration: Duration) async throws {
        try await core.clock.sleep(for: duration)
    }
}

/// Records the exchanges of a flight for the tasks that wait for it.
final class FlightRecorder: Sendable {
    private struct State {
        var exchange: SessionTask?
        var listener: (@Sendable (TransferProgress) -> Void)?
    }

    /// The context of the task that started the flight.
    let starter: ExchangeContext
    private let state = Mutex(State())

    /// - Parameter starter: The context of the task that started the flight. Its handlers receive
    ///   the progress of the exchanges.
    init(_ starter: ExchangeContext) {
        self.starter = starter
        let listener = starter.log.progress?.handler
        state.withLock { $0.listener = listener }
    }

    func begin(_ exchange: SessionTask) {
        let (listener, previous) = state.withLock { state in
            defer { state.exchange = exchange }
            return (state.listener, state.exchange)
        }
        withExtendedLifetime(previous) {}
        if let listener { exchange.onProgress(listener) }
    }

    /// The most recent exchange; `nil` if no request was sent.
    var exchange: SessionTask? { state.withLock { $0.exchange } }
}
