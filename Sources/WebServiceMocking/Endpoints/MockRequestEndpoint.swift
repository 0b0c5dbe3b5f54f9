public import WebServiceCore

/// Answers all requests of one type by a closure.
///
/// ```swift
/// let service = WebService(endpoints: [MockRequestEndpoint { (request: PageRequest) in "<html>\(request.site)</html>" }])
/// ```
public struct MockRequestEndpoint<Request: ServiceRequest>: ServiceEndpoint {
    private let delay: Duration
    private let output: @Sendable (Request) async throws -> Request.Output

    /// - Parameters:
    ///   - delay: How long an answer takes, by the service's clock.
    ///   - output: Makes the answer, in the background; what it throws is the error of the request.
    public init(delay: Duration = .zero, _ output: @escaping @Sendable (_ request: Request) async throws -> Request.Output) {
        self.delay = delay
        self.output = output
    }

    /// Requests of the type.
    public func supports(_ request: any ServiceRequest) -> Bool {
        request is Request
    }

    /// Waits, and makes the answer.
    public func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
        guard let request = request as? Request else {
            throw WebServiceError(.noEndpoint, "a mock for \(Request.self), not for \(type(of: request))")
        }
        if delay > .zero { try await context.sleep(for: delay) }
        return MockOutput(value: try await output(request))
    }

    /// Hands the answer on.
    public func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) throws -> any Sendable {
        try MockOutput.value(of: rawData)
    }

    /// Leaves it to others.
    public func storedData(of request: any ServiceRequest) -> StoredDataHandling { .leaves }
}
