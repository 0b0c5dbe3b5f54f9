import Foundation
import TestSupport
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceMocking

@testable import WebServiceTesting

@Suite(.permit) struct CassetteTraitTests {
    private func body() async throws -> String {
        let service = WebService("https://h/v1", session: try CassetteSession.current)
        return try await service.GET("/brewers").string().value
    }

    @Test("A test with the trait replays the file next to its source", .cassette("brewers"))
    func replay() async throws {
        #expect(try CassetteSession.current.isRecording == false)
        #expect(try await body() == "ale")
    }

    @Test("A test without the trait has no cassette")
    func missing() {
        let error = #expect(throws: (any Error).self) { try CassetteSession.current }
        #expect(error.map { "\($0)" } == "the current test has no trait .cassette; add @Test(.cassette(…))")
    }

    @Test("An exchange that is not replayed is an issue at the test; after an error it is not")
    func unused() async throws {
        let test = try #require(Test.current)
        let testCase = try #require(Test.Case.current)
        let trait: CassetteTrait = .cassette("brewers", mode: .replay)
        let issues = Mutex<[String]>([])
        try await withKnownIssue {
            try await trait.provideScope(for: test, testCase: testCase) {}
        } matching: { issue in
            issues.withLock { $0.append((issue.error as? WebServiceError)?.message ?? "") }
            return true
        }
        #expect(
            issues.withLock { $0 }
                == [
                    "exchanges of brewers.json were not replayed: exchange 1, GET https://h/v1/brewers; record the "
                        + "cassette again or call finish(allowsUnused: true)"
                ])
        await #expect(throws: URLError.self) {
            try await trait.provideScope(for: test, testCase: testCase) { throw URLError(.unknown) }
        }
    }
}
