import Foundation

/// The environment of an endpoint while it fetches the raw data of a request.
public struct EndpointContext: Sendable {
    /// The identifier of this execution, unique within the process.
    public let id: UInt64

    /// The service that executes the request, with its base URL, sessions and policies.
    ///
    /// Requests sent through it belong to the same service.
    public var service: WebService { WebService(borrowing: core) }

    let core: ServiceCore
    let flight: FlightRecorder
    /// Changes the requests of one call of `perform`; `nil` for no change.
    let configure: (@Sendable (inout Request) -> Void)?

    /// Sends a request through the pipeline of the service, which applies interceptors, the
    /// delegate, cookies and timeouts.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - session: The session that sends it. Defaults to `nil`: the session of the service.
    /// - Returns: The response, with any status.
    /// - Throws: `URLError` for transport errors, ``WebServiceError`` for errors of this library,
    ///   `URLError.cancelled` if the request is cancelled.
    public func send(_ request: Request, over session: (any Session)? = nil) async throws -> Response {
        try await send(request, over: session, hasDeadline: true)
    }

    func send(_ request: Request, over session: (any Session)?, hasDeadline: Bool) async throws -> Response {
        var request = request
        configure?(&request)
        let task = SessionTask(
            core, request, over: substitution(by: session), isListed: false, hasDeadline: hasDeadline)
        task.setParent(id)
        task.forwardProgress { [starter = flight.starter] in starter.report($0) }
        let result = await task.outcome()
        flight.record(FlightRecorder.Sent(request: request, result: result, record: task.record))
        return try result.get()
    }

    /// Suspends the current Swift task for a duration on the service's clock.
    ///
    /// - Throws: `CancellationError` as soon as the request is cancelled.
    public func sleep(for duration: Duration) async throws {
        try await core.clock.sleep(for: duration)
    }
}

/// Records the exchanges of a flight for the tasks that wait for it.
final class FlightRecorder: Sendable {
    /// The task that started the flight.
    let starter: SessionTask
    private let last = Mutex<Sent?>(nil)

    /// An exchange that has ended.
    struct Sent: Sendable {
        let request: Request
        let result: Result<Response, any Error>
        let record: ExchangeLog.Record

        /// The groups of the response; see ``StorageEntry/groups``.
        var groups: (field: String, url: URL, date: Date)? {
            guard case .success(let response) = result, let field = response.header("Cache-Groups"),
                let url = response.url, let date = record.metrics.origin?.date
            else { return nil }
            return (field, url, date)
        }
    }

    /// - Parameter starter: The task that started the flight. Its handlers receive
    ///   the progress of the exchanges.
    init(_ starter: SessionTask) {
        self.starter = starter
    }

    func record(_ sent: Sent) {
        let previous = last.withLock { last in
            defer { last = sent }
            return last
        }
        withExtendedLifetime(previous) {}
    }

    /// The exchange that ended last; `nil` if no request was sent.
    var exchange: Sent? { last.withLock { $0 } }
}
