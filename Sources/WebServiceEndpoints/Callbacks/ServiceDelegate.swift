public import WebServiceCore

/// A delegate that receives the results of typed requests and of storage reads.
///
/// Services and providers hold it weakly.
public protocol ServiceDelegate: AnyObject, Sendable {
    /// Notifies the delegate of a result. Called at most once per request, on the main actor.
    ///
    /// - Parameters:
    ///   - response: The result. `ServiceResponse.convert(for:)` converts it to the output type of
    ///     the request.
    ///   - request: The request.
    ///   - key: The key of the request; `nil` if it has none.
    ///   - isFromStorage: Whether the result was read from a storage.
    @MainActor
    func serviceDidRespond(
        _ response: ServiceResponse<any Sendable>, to request: any ServiceRequest, key: (any Hashable & Sendable)?,
        isFromStorage: Bool
    )
}
