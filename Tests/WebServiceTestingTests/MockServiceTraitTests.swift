import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceTesting

@Suite(.permit) struct MockServiceTraitTests {
    @Test("A test with the trait has its own service with a base URL", .mockService("https://a.test/v1"))
    func service() async throws {
        let mock = try MockService.current
        mock.on(.GET, "/v1/users/{id}") { request in .text(request.pathParameters["id"] ?? "") }
        #expect(try await mock.service.GET("/users/7").string().value == "7")
        #expect(mock.receivedRequests.map { $0.url?.absoluteString } == ["https://a.test/v1/users/7"])
    }

    @Test("Each test has its own clock", .mockService(clock: TestClock()), arguments: 0..<2)
    func clock(number: Int) async throws {
        let mock = try MockService.current
        let clock = try #require(mock.clock)
        mock.on(.GET, "/", .text("ale").after(.seconds(60)))
        let text = Task(executorPreference: clock.executor) {
            try await mock.service.GET("/").setTimeout(.seconds(90)).string().value
        }
        await clock.advance(by: .seconds(60))
        #expect(try await text.value == "ale")
        #expect(clock.elapsed == .seconds(60))
    }

    @Test("Each case of a parameterized test has its own service", .mockService, arguments: 0..<20)
    func cases(number: Int) async throws {
        let mock = try MockService.current
        mock.on(.GET, "/", .text("\(number)")).times(1)
        #expect(mock.receivedRequests.isEmpty)
        #expect(try await mock.service.GET("/").string().value == "\(number)")
    }

    @Test("A test without the trait has no service")
    func missing() {
        let error = #expect(throws: (any Error).self) { try MockService.current }
        #expect(error.map { "\($0)" } == "the current test has no trait .mockService; add @Test(.mockService)")
    }

    /// Runs a test body in a scope of the trait, and returns the recorded issues as lines and texts.
    private func issues(
        _ trait: MockServiceTrait = .mockService, _ body: @escaping @Sendable (MockService) async throws -> Void
    ) async throws -> [String] {
        let test = try #require(Test.current)
        let testCase = try #require(Test.Case.current)
        let issues = Mutex<[String]>([])
        try await withKnownIssue {
            try await trait.provideScope(for: test, testCase: testCase) { try await body(try MockService.current) }
        } matching: { issue in
            let line = issue.sourceLocation.map { "\($0.fileID.split(separator: "/").last ?? ""):\($0.line)" } ?? ""
            let text = issue.error.map { "\($0)" } ?? issue.comments.map(\.rawValue).joined()
            issues.withLock { $0.append(issue.error == nil ? "\(line): \(text)" : text) }
            return true
        }
        return issues.withLock { $0 }
    }

    @Test("Unused stubs and wrong numbers of calls are issues at the lines of the stubs")
    func unused() async throws {
        let line = #line
        let issues = try await issues { mock in
            mock.on(.GET, "/a", 204)
            mock.on(.GET, "/b", 204).times(2)
            mock.on(.GET, "/c", 204)
            _ = try await mock.service.GET("/b").empty().value
            _ = try await mock.service.GET("/c").empty().value
        }
        #expect(
            issues == [
                "MockServiceTraitTests.swift:\(line + 2): GET /a was not used",
                "MockServiceTraitTests.swift:\(line + 3): GET /b was used 1 of 2 times",
            ])
    }

    @Test("A wrong order is an issue at the line of the stub, only if the trait requires the order")
    func order() async throws {
        let line = #line + 2
        let body: @Sendable (MockService) async throws -> Void = { mock in
            mock.on(.GET, "/a", 204)
            mock.on(.GET, "/b", 204)
            _ = try await mock.service.GET("/b").empty().value
            _ = try await mock.service.GET("/a").empty().value
        }
        let file = "MockServiceTraitTests.swift"
        #expect(
            try await issues(.mockService(inOrder: true), body)
                == ["\(file):\(line): GET /a was used after GET /b (\(file):\(line + 1))"])
        try await MockServiceTrait.mockService().provideScope(
            for: try #require(Test.current), testCase: Test.Case.current
        ) { try await body(try MockService.current) }
    }

    @Test("After an error of the test, only requests without a stub are issues")
    func failed() async throws {
        let issues = try await issues { mock in
            mock.on(.GET, "/never", 204)
            _ = try await mock.service.GET("/missing").empty().value
        }
        try #require(issues.count == 2)
        let line = try #require(Test.current).sourceLocation.line
        #expect(issues[0].hasPrefix("MockServiceTraitTests.swift:\(line): no stub matches GET /missing; the closest"))
        #expect(issues[1].hasPrefix("noStub: no stub matches GET /missing"))
    }
}

@Suite(.mockService("https://suite.test"), .permit) struct MockServiceSuiteTraitTests {
    @Test("A trait of a suite applies to each of its tests", arguments: ["/a", "/b"])
    func suite(path: String) async throws {
        let mock = try MockService.current
        mock.on(.GET, path, .text(path)).times(1)
        #expect(try await mock.service.GET(path).string().value == path)
        #expect(mock.receivedRequests.first?.url?.host == "suite.test")
    }
}
