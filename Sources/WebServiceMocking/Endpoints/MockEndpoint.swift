import Foundation
public import WebServiceCore

/// Answers requests that carry their own mock (``MockableRequest``). Put it first among the endpoints of a service.
///
/// Its answers count as those of a real endpoint: they are processed, stored as values where the request asks for it, and can be cancelled and joined.
public final class MockEndpoint: ServiceEndpoint {
    /// Whether mocks count as activity.
    public let countsAsActivity: Bool
    private let hidesStoredData: Bool
    private let adapter: @Sendable (any ServiceRequest) -> (any MockableRequest)?
    private let helpers = Mutex<[String: Task<any Sendable, any Error>]>([:])

    /// - Parameters:
    ///   - hidesStoredData: Whether raw data that a storage kept of mocked requests counts as not there; else the endpoints behind this one process it.
    ///   - countsAsActivity: Whether mocks count as activity.
    ///   - adapter: Makes a mock for requests that carry none, so that their types need not know of it; `nil` for those that are not to be mocked. Its
    ///     output has to be of the original's output type, else the request fails with `WebServiceError.Code.unexpectedOutput`.
    public init(
        hidesStoredData: Bool = false, countsAsActivity: Bool = true,
        adapter: @escaping @Sendable (_ request: any ServiceRequest) -> (any MockableRequest)? = { $0 as? any MockableRequest }
    ) {
        self.hidesStoredData = hidesStoredData
        self.countsAsActivity = countsAsActivity
        self.adapter = adapter
    }

    /// Requests that are mocked.
    public func supports(_ request: any ServiceRequest) -> Bool {
        adapter(request)?.isMocked == true
    }

    /// Waits, and makes the answer.
    public func fetch(_ request: any ServiceRequest, in context: EndpointContext) async throws -> any RawDataSource {
        guard let mock = adapter(request) else { throw WebServiceError(.noEndpoint, "there is no mock for \(type(of: request))") }
        return try await output(of: mock, context)
    }

    /// Hands the answer on.
    public func process(_ rawData: any RawDataSource, of request: any ServiceRequest, isFromStorage: Bool) throws -> any Sendable {
        try MockOutput.value(of: rawData)
    }

    /// Leaves it to others, or hides it.
    public func storedData(of request: any ServiceRequest) -> StoredDataHandling {
        hidesStoredData && supports(request) ? .hides : .leaves
    }

    private func output<Mock: MockableRequest>(of mock: Mock, _ context: EndpointContext) async throws -> MockOutput {
        if mock.mockDelay > .zero { try await context.sleep(for: mock.mockDelay) }
        guard let helper = try await helper(for: mock) as? Mock.MockHelper else {
            throw WebServiceError(.unexpectedOutput, "the mock helper of that name is no \(Mock.MockHelper.self)")
        }
        return MockOutput(value: try mock.mockOutput(helper: helper))
    }

    /// Made by the first who needs it; the others wait. One that could not be made is tried again by the next.
    private func helper<Mock: MockableRequest>(for mock: Mock) async throws -> any Sendable {
        guard let identifier = mock.mockHelperIdentifier else { return try mock.makeMockHelper() }
        let helper = helpers.withLock { helpers in
            if let helper = helpers[identifier] { return helper }
            let helper = Task<any Sendable, any Error> { try mock.makeMockHelper() }
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

/// An answer that was made and not fetched.
struct MockOutput: RawDataSource {
    let value: any Sendable

    var rawData: Data? { nil }

    static func value(of rawData: any RawDataSource) throws -> any Sendable {
        guard let output = rawData as? MockOutput else { throw WebServiceError(.noEndpoint, "a mock endpoint processes only what it made") }
        return output.value
    }
}
