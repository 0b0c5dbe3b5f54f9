import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@Suite(.permit) struct VerificationTests {
    private let session = MockSession()

    private func violations(inOrder: Bool = false) -> [String] {
        do throws(VerificationError) {
            try session.verify(inOrder: inOrder)
            return []
        } catch {
            #expect(error.description == error.violations.map(\.description).joined(separator: "\n"))
            return error.violations.map(\.description)
        }
    }

    @Test("A verification reports unused stubs and wrong numbers of calls at their lines")
    func counts() async throws {
        let line = #line
        session.on(.GET, "/unused", 200)
        session.on(.GET, "/a", 200).times(2)
        session.addStub(MockResponse(statusCode: 200)) { _ in false }
        session.on(.GET, "/b", 200).times(1)
        session.on(.GET, "/optional", 200).optional()
        session.on(.GET, "/c", 200)
        for path in ["/a", "/b", "/c", "/c"] { _ = await session.response(to: try get("http://a.test" + path)) }
        #expect(
            violations() == [
                "VerificationTests.swift:\(line + 1): GET /unused was not used",
                "VerificationTests.swift:\(line + 2): GET /a was used 1 of 2 times",
                "VerificationTests.swift:\(line + 3): a stub with a closure was not used",
            ])
        session.removeAllStubs()
        #expect(violations() == [])
    }

    @Test("A verification reports a stub that was used after a later one, only if the order is required")
    func order() async throws {
        let line = #line
        session.on(.GET, "/a", 200)
        session.on(.GET, "/b", 200)
        session.on(.GET, "/c", 200)
        for path in ["/a", "/c", "/b", "/c"] { _ = await session.response(to: try get("http://a.test" + path)) }
        #expect(violations() == [])
        #expect(
            violations(inOrder: true) == [
                "VerificationTests.swift:\(line + 2): GET /b was used after GET /c (VerificationTests.swift:\(line + 3))"
            ])
    }

    @Test("A verification reports requests without a stub, with the differences and its own line")
    func unmatched() async throws {
        session.on(.GET, "/a", 200).optional()
        _ = await session.response(to: try get("http://a.test/a", method: "PUT"))
        let line = #line + 1
        let error = #expect(throws: VerificationError.self) { try session.verify() }
        let violation = try #require(error?.violations.first)
        #expect(violation.kind == .unmatchedRequest)
        #expect(violation.location.line == line)
        #expect(violation.location.filePath == #filePath)
        #expect(violation.location.fileID == #fileID)
        #expect(violation.message.hasPrefix("no stub matches PUT /a; the closest of 1 stub:\n  GET /a ("))
        #expect(violation.message.hasSuffix("method: expected GET, received PUT"))
    }

    @Test(
        "Two hundred parallel tests with stubs, services and verifications take at most two seconds of processor time",
        .exclusive)
    func parallel() async throws {
        struct User: Codable, Equatable, Sendable { var id: String, name: String }
        let start = processorTime(of: .process)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let session = MockSession()
                    let service = WebService("https://api.test", session: session)
                    let user = User(id: "\(number)", name: "Ann")
                    session.on(.GET, "/users/{id}") { request in
                        .json(User(id: request.pathParameters["id"] ?? "", name: "Ann"))
                    }
                    session.on(.method(.POST) && .path("/users") && .json(["name": "Ann"]), .status(201)).times(1)
                    session.on(.GET, "/flaky", [503, .json(user)])
                    _ = try await service.POST("/users").setJSON(["name": "Ann"]).empty().value
                    #expect(try await service.GET("/users/\(number)").decode(User.self).value == user)
                    await #expect(throws: WebServiceError.self) { try await service.GET("/flaky").data().value }
                    #expect(try await service.GET("/flaky").decode(User.self).value == user)
                    try session.verify()
                }
            }
            try await group.waitForAll()
        }
        let elapsed = processorTime(of: .process) - start
        print("200 tests with stubs: \(elapsed)")
        #expect(elapsed < 2)
    }
}
