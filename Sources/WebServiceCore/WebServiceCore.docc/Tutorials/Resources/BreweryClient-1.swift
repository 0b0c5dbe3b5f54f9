public import WebServiceCore

/// A client of the brewery API.
public struct BreweryClient: Sendable {
    private let service: WebService

    /// Creates a client.
    ///
    /// - Parameter service: The service, with the base URL and the session of the API.
    public init(service: WebService) {
        self.service = service
    }
}
