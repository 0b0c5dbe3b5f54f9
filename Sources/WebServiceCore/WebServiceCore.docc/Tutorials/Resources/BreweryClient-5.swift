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

    /// Returns the brewers of a state.
    func brewers(in state: String) async throws -> [Brewer] {
        try await service.GET("/brewers")
            .withBreweryRules()
            .setQueryParameters(["state": state]).decode([Brewer].self).value
    }

    /// Adds a brewer.
    ///
    /// - Returns: The brewer with the id that the server assigned.
    func add(name: String, state: String) async throws -> Brewer {
        try await service.POST("/brewers")
            .withBreweryRules()
            .setJSON(["name": name, "state": state]).decode(Brewer.self).value
    }

    /// Orders beer.
    ///
    /// - Throws: ``BreweryProblem`` if the order cannot be accepted.
    func order(_ order: Order) async throws {
        _ = try await service.POST("/orders")
            .withBreweryRules()
            .setJSON(order).empty().value
    }
}

extension SessionTask {
    /// Adds the rules of the API to the request. The service is not changed, because other code may
    /// use it.
    fileprivate func withBreweryRules() -> Self {
        configure { request in
            request.options.errorMapper = .decoding(BreweryProblem.self, statuses: 400...499)
        }
    }
}
