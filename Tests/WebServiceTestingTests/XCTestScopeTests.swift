#if canImport(XCTest)
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTesting
import XCTest

/// Test cases of XCTest that ``XCTestScopeTests`` runs in a child process.
final class MockServiceCases: XCTestCase {
    func testPasses() async throws {
        let text = try await withMockService("https://a.test") { mock in
            mock.on(.GET, "/users/{id}") { request in .text(request.pathParameters["id"] ?? "") }
            return try await mock.service.GET("/users/7").string().value
        }
        XCTAssertEqual(text, "7")
    }

    func testFails() async throws {
        guard ProcessInfo.processInfo.environment["WEBSERVICE_XCTEST_CHILD"] == "1" else { return }
        try await withMockService { mock in
            mock.on(.GET, "/unused", 204)
            mock.on(.GET, "/once", 204).times(2)
            _ = try await mock.service.GET("/once").empty().value
        }
    }

    static let failingLine = #line - 6
}

@Suite(.permit) struct XCTestScopeTests {
    #if os(Linux)
    @Test("A scope of XCTest records unused stubs and wrong numbers of calls as failures at the lines of the stubs")
    func failures() async throws {
        let output = Pipe()
        let process = ChildProcess(
            URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path,
            ["WebServiceTestingTests.MockServiceCases"],
            environment: ProcessInfo.processInfo.environment.merging(["WEBSERVICE_XCTEST_CHILD": "1"]) { $1 },
            output: .pipe(output), errors: .pipe(output))
        let (_, text) = try await process.finish(reading: output)
        let line = MockServiceCases.failingLine
        let failures = ["GET /unused was not used", "GET /once was used 1 of 2 times"]
        for (place, failure) in failures.enumerated() {
            let start = "XCTestScopeTests.swift:\(line + place): error: MockServiceCases.testFails : "
            #expect(text.contains(start + failure))
        }
        #expect(text.contains("Test Case 'MockServiceCases.testPasses' passed"))
        #expect(text.contains("Executed 2 tests, with 2 failures"), "\(text)")
    }
    #endif
}
#endif
