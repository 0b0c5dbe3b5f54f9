/// What performs typed requests. A service has an ordered list of them (``WebService/endpoints``); the first one that supports a request serves it.
///
/// ``HTTPEndpoint`` sends over the service's session. One of your own need not use a network at all:
/// ```swift
/// struct DatabaseEndpoint: ServiceEndpoint {
///     let database: Database
///
///     func supports(_ request: any ServiceRequest) -> Bool { request is any DatabaseRequest }
///
///     func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
///         try await database.rows(for: request)
///     }
///
///     func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) async throws -> any Sendable {
///         …
///     }
/// }
/// ```
/// All members may be called from any thread, for several requests at a time.
public protocol ServiceEndpoint: Sendable {
    /// Whether its requests count as activity (``WebService/activity``). Left out, they do.
    var countsAsActivity: Bool { get }

    /// Whether the endpoint serves the request. Asked each time a request is performed.
    func supports(_ request: any ServiceRequest) -> Bool

    /// Fetches the raw data of a request.
    ///
    /// Runs in a Swift task that is cancelled when nobody waits for the answer any more; what it returns after that is dropped.
    ///
    /// - Throws: Whatever kept it from fetching; the error of the request.
    func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource

    /// Makes the value of raw data that this endpoint fetched, or that was kept of an earlier answer.
    ///
    /// - Parameters:
    ///   - rawData: What ``fetch(_:in:)`` returned; `Data` where a storage kept it.
    ///   - request: The request.
    ///   - isFromStorage: Whether a storage kept it.
    /// - Returns: A value of the request's `Output`; anything else fails the request with ``WebServiceError/Code/unexpectedOutput``.
    /// - Throws: Whatever is wrong with the data; the error of the request. Nothing of it is stored then.
    func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) async throws -> any Sendable

    /// What the endpoint does with raw data that a storage kept of the request. Left out, it processes what it supports.
    func storedData(of request: any ServiceRequest) -> StoredDataHandling
}

extension ServiceEndpoint {
    /// They do.
    public var countsAsActivity: Bool { true }

    /// Processes what the endpoint supports.
    public func storedData(of request: any ServiceRequest) -> StoredDataHandling {
        supports(request) ? .processes : .leaves
    }
}

/// What an endpoint does with stored raw data.
public enum StoredDataHandling: Sendable, Hashable {
    /// It makes the value of it.
    case processes
    /// It leaves it to the endpoints behind it.
    case leaves
    /// It hides it, as if nothing were stored.
    case hides
}
