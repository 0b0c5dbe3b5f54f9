#if canImport(XCTest)
public import WebServiceMocking
public import XCTest

extension XCTestCase {
    /// Runs a part of a test with a new ``WebServiceMocking/MockService`` and verifies it at the
    /// end.
    ///
    /// ```swift
    /// func testBrewers() async throws {
    ///     try await withMockService { mock in
    ///         mock.on(.GET, "/brewers", .json([Brewer(name: "Long Trail")]))
    ///         let brewers = try await BreweryClient(service: mock.service).brewers()
    ///         XCTAssertEqual(brewers.count, 1)
    ///     }
    /// }
    /// ```
    /// The method records the same violations as ``MockServiceTrait``, but as failures of the test
    /// case.
    ///
    /// - Parameters:
    ///   - baseURLString: The base URL of the service.
    ///   - inOrder: Whether the stubs must be used in the order in which they were declared.
    ///     Defaults to `false`.
    ///   - clock: The clock of the service and the session. Defaults to `nil`: the system clock.
    ///   - isolation: The actor of the caller, on which the closure runs.
    ///   - fileID: The module and file of the call.
    ///   - filePath: The path of that file.
    ///   - line: The line in that file.
    ///   - column: The column in that line.
    ///   - body: The part of the test.
    public func withMockService<Value>(
        _ baseURLString: String = "https://mock.test", inOrder: Bool = false, clock: TestClock? = nil,
        isolation: isolated (any Actor)? = #isolation, fileID: String = #fileID, filePath: String = #filePath,
        line: Int = #line, column: Int = #column, _ body: (_ mock: MockService) async throws -> Value
    ) async rethrows -> Value {
        let mock = MockService(baseURLString: baseURLString, clock: clock)
        return try await mock.verifying(
            inOrder: inOrder, at: (fileID, filePath, line, column), { try await body(mock) }, report: record)
    }

    private func record(_ violation: VerificationError.Violation) {
        let place = violation.location
        #if canImport(ObjectiveC)
        let location = XCTSourceCodeLocation(filePath: place.filePath, lineNumber: place.line)
        record(
            XCTIssue(
                type: .assertionFailure, compactDescription: violation.message,
                sourceCodeContext: XCTSourceCodeContext(location: location)))
        #else
        recordFailure(withDescription: violation.message, inFile: place.filePath, atLine: place.line, expected: true)
        #endif
    }
}
#endif
