/// One thing that a service can be asked for, as a type: its properties are the parameters, its ``Output`` is what comes of it.
///
/// ```swift
/// struct BrewersRequest: HTTPServiceRequest, Hashable {
///     var state: String
///     typealias Output = [Brewer]
///
///     func request(for service: WebService) -> Request {
///         var request = service.request(.GET, path: "/brewers")
///         request.queryParameters = ["state": state]
///         return request
///     }
/// }
/// let brewers = try await service.perform(BrewersRequest(state: "ny")).value
/// ```
/// How it is done is the business of the first ``ServiceEndpoint`` that supports the type. A `Hashable` request can be found, cancelled and compared with
/// others under way (``DuplicateMode``) by its value.
public protocol ServiceRequest: Sendable {
    /// What comes of the request when it succeeds.
    associatedtype Output: Sendable
}

/// A request without parameters, so that nobody has to make one.
public protocol EmptyServiceRequest: ServiceRequest {
    /// Makes the request.
    init()
}
