public import Testing
public import WebServiceMocking

/// A trait that creates a ``WebServiceMocking/MockService`` for each test and verifies it at the
/// end.
///
/// ```swift
/// @Test(.mockService) func brewers() async throws {
///     let mock = try MockService.current
///     mock.on(.GET, "/brewers", .json([Brewer(name: "Long Trail")]))
///     #expect(try await BreweryClient(service: mock.service).brewers().count == 1)
/// }
/// ```
/// Each violation of a stub is an issue at the line of the stub. A request that matches no stub is
/// an issue at the line of the test. If the test throws an error, only requests that match no stub
/// are reported, because the test may not have sent all its requests. Each case of a parameterized
/// test has its own service.
public struct MockServiceTrait: TestTrait, SuiteTrait, TestScoping {
    let baseURLString: String
    let inOrder: Bool
    let clock: @Sendable () -> TestClock?

    /// `true`, because the trait of a suite applies to each of its tests.
    public var isRecursive: Bool { true }

    /// Runs a test with a new service, then records the violations.
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        let place = test.sourceLocation
        let mock = MockService(baseURLString: baseURLString, clock: clock())
        try await mock.verifying(
            inOrder: inOrder,
            at: (place.fileID, place.filePath, place.line, place.column),
            { try await MockService.$scoped.withValue(mock) { try await function() } },
            report: { violation in
                let place = violation.location
                Issue.record(
                    Comment(rawValue: violation.message),
                    sourceLocation: SourceLocation(
                        fileID: place.fileID, filePath: place.filePath, line: place.line, column: place.column))
            })
    }
}

extension Trait where Self == MockServiceTrait {
    /// Creates a ``WebServiceMocking/MockService`` for each test and verifies it at the end.
    public static var mockService: Self { mockService() }

    /// Creates a ``WebServiceMocking/MockService`` for each test and verifies it at the end.
    ///
    /// - Parameters:
    ///   - baseURLString: The base URL of the service.
    ///   - inOrder: Whether the stubs must be used in the order in which they were declared.
    ///     Defaults to `false`.
    ///   - clock: The clock of the service and the session, evaluated for each test. Defaults to
    ///     `nil`: the system clock.
    public static func mockService(
        _ baseURLString: String = "https://mock.test", inOrder: Bool = false,
        clock: @autoclosure @escaping @Sendable () -> TestClock? = nil
    ) -> Self {
        MockServiceTrait(baseURLString: baseURLString, inOrder: inOrder, clock: clock)
    }
}
