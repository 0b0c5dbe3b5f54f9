public import Foundation
public import WebServiceCore
public import WebServiceStorage

/// A type that executes typed requests.
///
/// A service has an ordered list of endpoints (`WebService.endpoints`). The first endpoint that
/// supports a request executes it.
///
/// ``HTTPEndpoint`` sends requests through the service's session. A custom endpoint can use any
/// other source:
/// ```swift
/// struct DatabaseEndpoint: ServiceEndpoint {
///     let database: Database
///
///     func supports(_ request: any ServiceRequest) -> Bool { request is any DatabaseRequest }
///
///     func fetch(
///         _ request: any ServiceRequest, in context: EndpointContext
///     ) async throws -> any RawDataSource {
///         try await database.rows(for: request)
///     }
///
///     func process(
///         _ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool
///     ) async throws -> any Sendable {
///         …
///     }
/// }
/// ```
/// All members may be called from any thread, for several requests at the same time.
public protocol ServiceEndpoint: Sendable {
    /// Whether requests of this endpoint count as activity.
    ///
    /// Defaults to `true`. See `WebService.activity`.
    var countsAsActivity: Bool { get }

    /// Returns whether the endpoint supports the request. Called for each execution and, by
    /// default, for stored data.
    func supports(_ request: any ServiceRequest) -> Bool

    /// Fetches the raw data of a request.
    ///
    /// Runs in a Swift task that is cancelled when no task waits for the response any longer. A
    /// value that is returned after the cancellation is discarded.
    ///
    /// - Throws: Any error. It becomes the error of the request.
    func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource

    /// Converts raw data, which is new or comes from a storage, to the value of the request.
    ///
    /// - Parameters:
    ///   - rawData: The result of ``fetch(_:in:)``; `Data` if it comes from a storage.
    ///   - request: The request.
    ///   - isFromStorage: Whether the raw data comes from a storage.
    /// - Returns: A value of the request's `Output` type. If the value has another type, the
    ///   request fails with `WebServiceError.Code.unexpectedOutput`.
    /// - Throws: Any error. It becomes the error of the request, and nothing is stored. If the raw
    ///   data comes from a storage, the request fails with `WebServiceError.Code.noStoredData`,
    ///   whose underlying error is this one.
    func process(
        _ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool
    ) async throws -> any Sendable

    /// Returns how the endpoint handles stored raw data of the request.
    ///
    /// By default, the endpoint processes the data of the requests that it supports.
    func storedData(of request: any ServiceRequest) -> StorageEntry.Handling
}

extension ServiceEndpoint {
    /// `true`.
    public var countsAsActivity: Bool { true }

    /// Processes the data of supported requests.
    public func storedData(of request: any ServiceRequest) -> StorageEntry.Handling {
        supports(request) ? .processes : .leaves
    }
}

extension StorageEntry {
    /// How an endpoint handles stored raw data.
    public enum Handling: Sendable, Hashable {
        /// The endpoint processes the data.
        case processes
        /// The endpoint leaves the data to the endpoints that follow in the list.
        case leaves
        /// The endpoint hides the data, as if nothing were stored.
        case hides
    }
}

/// The unprocessed result of an endpoint: bytes, or a type that contains them.
///
/// `Data` conforms to this protocol. A custom type can contain additional values, such as a status.
/// Storages store only the ``rawData`` of a result and return it as `Data`.
public protocol RawDataSource: Sendable {
    /// The bytes to store; `nil` if there are none.
    var rawData: Data? { get }

    /// Whether the result may be stored, as raw data or as a value.
    ///
    /// Defaults to `true`.
    var isStorable: Bool { get }
}

extension RawDataSource {
    /// `true`.
    public var isStorable: Bool { true }
}

extension Data: RawDataSource {
    /// The bytes themselves.
    public var rawData: Data? { self }
}

/// The environment of an endpoint while it fetches the raw data of a request.
public struct EndpointContext: Sendable {
    /// The identifier of this execution, unique within the process.
    public let id: UInt64

    /// The service that executes the request, with its base URL, sessions and policies.
    ///
    /// Requests that are sent through this object belong to that service.
    public var service: WebService { WebService(borrowing: core) }

    let core: ServiceCore
    let flight: FlightRecorder
    /// Changes the requests that the endpoint sends for one call of `perform`; `nil` if there are
    /// no changes.
    let configure: (@Sendable (inout Request) -> Void)?

    /// Sends a request through the pipeline of the service, which applies interceptors, the
    /// delegate, cookies and timeouts.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - session: The session that sends the request. Defaults to `nil`, which means the session
    ///     of the service.
    /// - Returns: The response, regardless of its status.
    /// - Throws: `URLError` for transport errors, `URLError.cancelled` if the request is cancelled,
    ///   `WebServiceError` for errors of this library, or any error of an interceptor.
    public func send(_ request: Request, over session: (any Session)? = nil) async throws -> Response {
        try await send(request, over: session, hasDeadline: true)
    }

    func send(_ request: Request, over session: (any Session)?, hasDeadline: Bool) async throws -> Response {
        var request = request
        configure?(&request)
        let task = SessionTask(
            core, request, type: nil, over: session, isListed: false, hasDeadline: hasDeadline)
        task.setParent(id)
        task.forwardProgress { [starter = flight.starter] in starter.report($0) }
        let result = await task.outcome()
        flight.record(FlightRecorder.Sent(request: request, result: result, log: task.log))
        return try result.get()
    }

    /// Suspends the current Swift task for a duration on the service's clock.
    ///
    /// - Throws: `CancellationError` when the request is cancelled.
    public func sleep(for duration: Duration) async throws {
        try await core.clock.sleep(for: duration)
    }
}

/// A recorder of a flight's exchanges for the tasks that wait for the flight.
final class FlightRecorder: Sendable {
    /// The task that started the flight.
    let starter: SessionTask
    private let last = Mutex<Sent?>(nil)

    /// An exchange that has ended.
    struct Sent: Sendable {
        let request: Request
        let result: Result<Response, any Error>
        let log: ExchangeLog.Record

        /// The groups of the response; see `StorageEntry.groups`.
        var groups: (field: String, url: URL, date: Date)? {
            guard case .success(let response) = result, let field = response.header("Cache-Groups"),
                let url = response.url, let date = log.metrics.origin?.date
            else { return nil }
            return (field, url, date)
        }
    }

    /// - Parameter starter: The task that started the flight. Its handlers receive the progress of
    ///   the exchanges.
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
