import Foundation
public import WebServiceCore
public import WebServiceEndpoints
public import WebServiceStorage

/// An endpoint for requests that define their own mock output (``MockableRequest``).
///
/// Make this endpoint the first one of a service. Mocked requests are handled like all others.
/// Their output is processed, and stored as a value if the request requires it, and the requests
/// can be cancelled and joined.
public final class MockEndpoint: ServiceEndpoint {
    /// Whether mocked requests count as activity.
    public let countsAsActivity: Bool
    private let hidesStoredData: Bool
    private let mocksEveryRequest: Bool
    private let adapter: @Sendable (any ServiceRequest) -> (any MockableRequest)?
    private let helpers = Mutex<[String: Task<any Sendable, any Error>]>([:])

    /// Creates an endpoint for mocked requests.
    ///
    /// - Parameters:
    ///   - hidesStoredData: Whether stored raw data of mocked requests is ignored. Defaults to
    ///     `false`: the endpoints after this one process it.
    ///   - countsAsActivity: Whether mocked requests count as activity. Defaults to `true`.
    ///   - mocksEveryRequest: Whether every request that has a mock is mocked, regardless of
    ///     ``MockableRequest/isMocked``. Defaults to `false`.
    ///   - adapter: A closure that returns the mock for a request, or `nil` if the request is not
    ///     mocked. The closure allows mocks for types that do not conform to ``MockableRequest``.
    ///     The mock's output must have the output type of the original request; otherwise, the
    ///     request fails with `WebServiceError.Code.unexpectedOutput`. Defaults to the request
    ///     itself, if it conforms.
    public init(
        hidesStoredData: Bool = false, countsAsActivity: Bool = true, mocksEveryRequest: Bool = false,
        adapter: @escaping @Sendable (_ request: any ServiceRequest) -> (any MockableRequest)? = {
            $0 as? any MockableRequest
        }
    ) {
        self.hidesStoredData = hidesStoredData
        self.countsAsActivity = countsAsActivity
        self.mocksEveryRequest = mocksEveryRequest
        self.adapter = adapter
    }

    /// Returns whether the request is mocked.
    public func supports(_ request: any ServiceRequest) -> Bool {
        adapter(request).map { mocksEveryRequest || $0.isMocked } ?? false
    }

    /// Waits for the delay of the mock and returns its output.
    public func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
        guard let mock = adapter(request) else {
            throw WebServiceError(
                .noEndpoint, "the request type \(type(of: request)) has no mock; conform it to MockableRequest")
        }
        return try await output(of: mock, context)
    }

    /// Returns the output of the mock unchanged.
    public func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) throws
        -> any Sendable
    {
        try MockOutput.value(of: rawData)
    }

    /// Returns whether stored data is hidden, or left to the other endpoints.
    public func storedData(of request: any ServiceRequest) -> StorageEntry.Handling {
        hidesStoredData && supports(request) ? .hides : .leaves
    }

    private func output<Mock: MockableRequest>(of mock: Mock, _ context: EndpointContext) async throws -> MockOutput {
        if mock.mockDelay > .zero { try await context.sleep(for: mock.mockDelay) }
        guard let helper = try await helper(for: mock) as? Mock.MockHelper else {
            throw WebServiceError(
                .unexpectedOutput,
                "the mock helper of \(Mock.self) is not of type \(Mock.MockHelper.self); return another "
                    + "mockHelperIdentifier")
        }
        return MockOutput(value: try mock.mockOutput(helper: helper))
    }

    /// Returns the helper of a mock.
    ///
    /// Concurrent requests with the same identifier wait for the same helper. If its creation
    /// fails, the next request creates the helper again.
    private func helper<Mock: MockableRequest>(for mock: Mock) async throws -> any Sendable {
        guard let identifier = mock.mockHelperIdentifier else { return try mock.makeMockHelper() }
        let helper = helpers.withLock { helpers in
            if let helper = helpers[identifier] { return helper }
            let helper = Task<any Sendable, any Error>(executorPreference: WorkCount.current) {
                try mock.makeMockHelper()
            }
            helpers[identifier] = helper
            return helper
        }
        do {
            return try await helper.value
        } catch {
            helpers.withLock { helpers in
                if helpers[identifier] == helper { helpers[identifier] = nil }
            }
            throw error
        }
    }
}

/// Output that was created by a mock.
struct MockOutput: RawDataSource {
    let value: any Sendable

    var rawData: Data? { nil }

    static func value(of rawData: any RawDataSource) throws -> any Sendable {
        guard let output = rawData as? MockOutput else {
            throw WebServiceError(
                .noEndpoint,
                "a mock endpoint processes only the output of its own mocks; add an HTTPEndpoint for other data")
        }
        return output.value
    }
}
