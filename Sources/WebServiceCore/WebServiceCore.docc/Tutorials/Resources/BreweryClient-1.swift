import WebServiceCore

/// A client of the brewery API.
struct BreweryClient: Sendable {
    private let service: WebService

    /// Creates a client.
    ///
    /// - Parameter service: The service, with the base URL and the session of the API.
    init(service: WebService) {
        self.service = service
    }
}
