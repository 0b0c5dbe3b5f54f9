import Foundation
import TestSupport
import Testing
import WebServiceConformance
import WebServiceCore
import WebServiceMocking

/// The conformance suite over mocks and over sessions that break the contract.
@Suite("The conformance suite", .permit)
struct SessionConformanceTests {
    @Test("Every scenario has a unique name")
    func names() {
        let names = Set(SessionScenario.all.map(\.name))
        #expect(names.count == SessionScenario.all.count)
        #expect(names.count > 100)
    }

    @Test("MockSession passes every scenario", arguments: SessionScenario.all)
    func mock(scenario: SessionScenario) async throws {
        try await scenario.run(over: MockSession(), limit: scenarioLimit)
    }

    @Test("RequestRecordingSession over a mock passes every scenario", arguments: SessionScenario.all)
    func recordedMock(scenario: SessionScenario) async throws {
        let mock = MockSession()
        try await scenario.run(over: RequestRecordingSession(mock), stubbedBy: mock, limit: scenarioLimit)
    }

    @Test("All scenarios run in one call, which returns the failures")
    func failures() async throws {
        #expect(try await SessionScenario.failures(over: MockSession(), limit: scenarioLimit) == [])
        let failures = try await SessionScenario.failures(over: Deaf(error: URLError(.badURL)), limit: .milliseconds(5))
        #expect(Set(failures.map(\.scenario)).count == failures.count)
        #expect(failures.contains { $0.received == "URLError -1000" })
    }

    @Test("The failure of a scenario contains its name, the expected result and the received one")
    func failure() async throws {
        let scenario = try #require(
            SessionScenario.all.first { $0.name == "a 404 is delivered as a response, and the next request succeeds" })
        let failure = await #expect(throws: SessionScenario.Failure.self) {
            try await scenario.run(over: Deaf(error: URLError(.badURL)))
        }
        #expect(failure?.expected == "status 404, 3 bytes that begin with \"ale\"")
        #expect(failure?.received == "URLError -1000")
        #expect(
            failure?.description.hasPrefix(
                "a 404 is delivered as a response, and the next request succeeds: expected status 404") == true)
    }

    @Test(
        "A session that never completes, or completes twice, fails the scenario and does not block it")
    func adversarial() async throws {
        for scenario in SessionScenario.all.prefix(20) {
            let failure = await #expect(throws: SessionScenario.Failure.self) {
                try await scenario.run(over: Deaf(error: nil), limit: .milliseconds(5))
            }
            #expect(failure?.received == "no completion within 0.005 seconds")
            await #expect(throws: SessionScenario.Failure.self) {
                try await scenario.run(over: Deaf(error: URLError(.unknown), calls: 2))
            }
        }
    }
}

/// A session that sends nothing. It completes with an error the given number of times, or never.
private struct Deaf: Session {
    let error: URLError?
    var calls = 1

    func dataTask(
        request: any URLRequestEncodable,
        completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> any DataTask {
        let task = Task(error: error, calls: calls, completion: completion)
        return task
    }

    private final class Task: DataTask {
        let error: URLError?
        let calls: Int
        let completion: @Sendable (Data?, URLResponse?, (any Error)?) -> Void

        init(error: URLError?, calls: Int, completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void)
        {
            (self.error, self.calls, self.completion) = (error, calls, completion)
        }

        var state: DataTaskState { .suspended }

        func resume() {
            guard let error else { return }
            for _ in 0..<calls { completion(nil, nil, error) }
        }

        func suspend() {}
        func cancel() {}
    }
}
