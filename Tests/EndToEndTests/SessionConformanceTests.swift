import Foundation
import Testing
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// H-48: every session keeps the same promises, apart from what Foundation is known to do wrong.
///
/// One after another, because scenarios measure time and share one connection pool.
@Suite("H-48, G20: the conformance suite", .serialized, .timeLimit(.minutes(2)))
struct SessionConformanceTests {
    @Test("every scenario has a name of its own, and those that are listed as known defects exist")
    func names() {
        let names = Set(SessionScenario.all.map(\.name))
        #expect(names.count == SessionScenario.all.count && names.count > 100)
        for defect in KnownDefect.all { #expect(names.contains(defect.scenario)) }
    }

    @Test("MockSession", arguments: SessionScenario.all)
    func mock(scenario: SessionScenario) async throws {
        try await scenario.run(over: MockSession())
    }

    @Test("RequestRecordingSession over a mock", arguments: SessionScenario.all)
    func recordedMock(scenario: SessionScenario) async throws {
        let mock = MockSession()
        try await scenario.run(over: RequestRecordingSession(mock), answeredBy: mock)
    }

    @Test("C-44…C-49, H-01, H-02, H-12, H-19…H-21, H-33…H-35: Foundation", arguments: FoundationBacked.allCases, SessionScenario.all)
    func foundation(kind: FoundationBacked, scenario: SessionScenario) async throws {
        if KnownDefect.all.contains(where: { $0.kind == kind && $0.scenario == scenario.name }) { return }
        try await scenario.run(over: kind.session)
    }

    @Test("G23, F1, F5, F9, F11, F13, F14, F16: what Foundation is known to do wrong is still so", arguments: KnownDefect.all)
    func knownDefect(_ defect: KnownDefect) async throws {
        let run = try await probe(defect)
        switch defect.effect {
        case .breaks: #expect(run.reason == .exit && run.status == 1, "\(run.reason == .exit && run.status == 0 ? gone : run.output)")
        case .kills: #expect(run.reason == .uncaughtSignal, "\(run.status == 0 ? gone : run.output)")
        case .varies: #expect(run.reason == .exit && run.status <= 1, "\(run.output)")
        }
    }

    @Test("a scenario that fails names itself, what was expected and what came")
    func failure() async throws {
        let scenario = try #require(SessionScenario.all.first { $0.name == "a 404 is an answer, and the next request is fine" })
        let failure = await #expect(throws: SessionScenario.Failure.self) { try await scenario.run(over: Deaf(error: URLError(.badURL))) }
        #expect(failure?.expected == "status 404, 3 bytes that begin with \"ale\"" && failure?.received == "URLError -1000")
        #expect(failure?.description.hasPrefix("a 404 is an answer, and the next request is fine: expected status 404") == true)
    }

    @Test("C-41, C-43: a session that never completes, or twice, fails every scenario that looks, and holds up none")
    func adversarial() async throws {
        for scenario in SessionScenario.all.prefix(20) {
            let start = ContinuousClock.now
            let failure = await #expect(throws: SessionScenario.Failure.self) {
                try await scenario.run(over: Deaf(error: nil), limit: .milliseconds(5))
            }
            #expect(failure?.received == "no completion within 0.005 seconds")
            #expect(start.duration(to: .now) < .seconds(5))
            await #expect(throws: SessionScenario.Failure.self) { try await scenario.run(over: Deaf(error: URLError(.unknown), calls: 2)) }
        }
    }

    private let gone = "it has disappeared: take it off the list"

    private struct Run {
        let reason: Process.TerminationReason
        let status: Int32
        let output: String
    }

    /// Runs the scenario in a process of its own: some do not survive it, and others disturb what comes after them.
    private func probe(_ defect: KnownDefect) async throws -> Run {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("session-probe")
        process.arguments = [defect.kind.rawValue, defect.scenario, "1"]
        process.environment = ["SWIFT_BACKTRACE": "enable=no"]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                do {
                    try process.run()
                    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
                    process.waitUntilExit()
                    continuation.resume(returning: Run(reason: process.terminationReason, status: process.terminationStatus, output: text))
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }
}

/// A session that sends nothing: it completes so many times with an error, or never.
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

        init(error: URLError?, calls: Int, completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void) {
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
