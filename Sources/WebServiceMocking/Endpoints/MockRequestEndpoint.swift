public import WebServiceCore
public import WebServiceEndpoints
public import WebServiceStorage

/// An endpoint that returns the result of a closure for all requests of one type.
///
/// ```swift
/// let mock = MockRequestEndpoint { (request: PageRequest) in "<html>\(request.site)</html>" }
/// let service = WebService(endpoints: [mock])
/// ```
public struct MockRequestEndpoint<Request: ServiceRequest>: ServiceEndpoint {
    private let delay: Duration
    private let output: @Sendable (Request) async throws -> Request.Output

    /// Creates an endpoint that returns the results of a closure.
    ///
    /// - Parameters:
    ///   - delay: The delay before `output` is called, measured by the service's clock. Defaults to
    ///     zero.
    ///   - output: A closure that returns the output. It is called in the background. If it throws
    ///     an error, the request fails with that error.
    public init(
        delay: Duration = .zero, _ output: @escaping @Sendable (_ request: Request) async throws -> Request.Output
    ) {
        self.delay = delay
        self.output = output
    }

    /// Returns whether the request is of the type `Request`.
    public func supports(_ request: any ServiceRequest) -> Bool {
        request is Request
    }

    /// Waits for the delay and returns the result of the closure.
    public func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
        guard let request = request as? Request else {
            throw WebServiceError(
                .noEndpoint,
                "the mock endpoint supports \(Request.self), not \(type(of: request)); add an endpoint for that type")
        }
        if delay > .zero { try await context.sleep(for: delay) }
        return MockOutput(value: try await output(request))
    }

    /// Returns the output unchanged.
    public func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) throws
        -> any Sendable
    {
        try MockOutput.value(of: rawData)
    }

    /// Returns `.leaves`: other endpoints process stored data.
    public func storedData(of request: any ServiceRequest) -> StorageEntry.Handling { .leaves }
}
