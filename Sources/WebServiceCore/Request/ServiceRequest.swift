/// A type that describes a request to a service.
///
/// The properties of the type are the parameters, and its `Output` is the type of the result. The
/// module `WebServiceEndpoints` sends such requests.
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
/// The first endpoint of the service that supports the type executes the request. A `Hashable`
/// request in flight can be found, cancelled and compared with others by its value.
public protocol ServiceRequest: Sendable {
    /// The type of a successful request's value.
    associatedtype Output: Sendable
}
