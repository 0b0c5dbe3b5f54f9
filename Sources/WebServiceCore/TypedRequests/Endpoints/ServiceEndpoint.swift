/// A type that executes typed requests.
///
/// A service has an ordered list of endpoints (``WebService/endpoints``); the first one that
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
    /// A Boolean value that indicates whether requests of this endpoint count as activity.
    ///
    /// Defaults to `true`. See ``WebService/activity``.
    var countsAsActivity: Bool { get }

    /// Returns whether the endpoint supports the request. Called once per execution.
    func supports(_ request: any ServiceRequest) -> Bool

    /// Fetches the raw data of a request.
    ///
    /// Runs in a Swift task that is cancelled when no task waits for the response any longer. A
    /// value that is returned after the cancellation is discarded.
    ///
    /// - Throws: Any error. It becomes the error of the request.
    func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource

    /// Converts raw data, new or from a storage, to the value of the request.
    ///
    /// - Parameters:
    ///   - rawData: The result of ``fetch(_:in:)``; `Data` if it comes from a storage.
    ///   - request: The request.
    ///   - isFromStorage: Whether the raw data comes from a storage.
    /// - Returns: A value of the request's `Output`. With a value of another type, the request
    ///   fails with ``WebServiceError/Code/unexpectedOutput``.
    /// - Throws: Any error. It becomes the error of the request, and nothing is stored.
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
    /// The handling of stored raw data by an endpoint.
    public enum Handling: Sendable, Hashable {
        /// The endpoint processes the data.
        case processes
        /// The endpoint leaves the data to the endpoints after it.
        case leaves
        /// The endpoint hides the data, as if nothing were stored.
        case hides
    }
}
