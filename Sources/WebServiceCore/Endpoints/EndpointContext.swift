import Foundation

/// What an endpoint works with while it fetches.
public struct EndpointContext: Sendable {
    /// The number of this performance: no other has it in this process, whatever the service.
    public let id: UInt64

    /// The service that performs: its base URL, its sessions and its policies. Requests performed through it belong to the same service.
    public var service: WebService { WebService(borrowing: core) }

    let core: ServiceCore
    let flight: FlightRecorder

    /// Sends a request over the service's session, with everything that the service wraps around it: interceptors, delegate, cookies, time limits.
    ///
    /// - Returns: The answer, whatever its status.
    /// - Throws: `URLError` for transport errors, ``WebServiceError`` for what the framework found, `URLError.cancelled` when the request is cancelled.
    public func send(_ request: Request) async throws -> Response {
        let exchange = SessionTask(core, request)
        flight.begin(exchange)
        return try await exchange.answer().value
    }

    /// Waits by the service's clock.
    ///
    /// - Throws: `CancellationError` as soon as the request is cancelled.
    public func sleep(for duration: Duration) async throws {
        try await core.clock.sleep(for: duration)
    }
}

/// What is remembered of a flight's exchanges for the tasks that wait for it.
final class FlightRecorder: Sendable {
    private struct State {
        var exchange: SessionTask?
        var listener: (@Sendable (TransferProgress) -> Void)?
    }

    private let state = Mutex(State())

    /// - Parameter listener: Wants to know how far exchanges come; `nil` for nobody.
    init(listener: (@Sendable (TransferProgress) -> Void)?) {
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

    /// The last exchange; `nil` without any.
    var exchange: SessionTask? { state.withLock { $0.exchange } }
}
