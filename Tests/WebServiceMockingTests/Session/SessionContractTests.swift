import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// Promises that `SessionScenario` does not cover, because they concern suspension or only
/// the mock.
@Suite(.permit) struct SessionContractTests {
    enum Kind: CaseIterable {
        case mock, recorded, urlSession, foundationSession
    }

    /// A session, the base URL of its requests, and the number of requests that have arrived.
    struct Setting {
        let session: any Session
        let base: String
        let arrived: @Sendable () -> Int

        init(_ kind: Kind, _ response: MockResponse) throws {
            switch kind {
            case .mock, .recorded:
                let mock = MockSession()
                mock.addStub(response)
                session = kind == .mock ? mock : RequestRecordingSession(mock)
                base = "http://127.0.0.1:1"
                arrived = { mock.recordedRequests.count }
            case .urlSession, .foundationSession:
                let server = try MockServer { _ in response }
                session = kind == .urlSession ? plainSession : FoundationSession.shared
                base = server.baseURLString
                arrived = { server.receivedRequests.count }
            }
        }
    }

    @Test(
        "Nothing is sent before resume, and a task that is resumed twice is sent once",
        arguments: Kind.allCases)
    func resumeTwice(kind: Kind) async throws {
        let setting = try Setting(kind, MockResponse(statusCode: 200))
        let completions = Counter()
        let task = setting.session.dataTask(request: try get(setting.base)) { _, _, _ in completions.add() }
        #expect(task.state == .suspended)
        task.suspend()
        #expect(setting.arrived() == 0)
        #expect(completions.value == 0)
        task.resume()
        task.resume()
        await eventually("the task completes") { completions.value == 1 && task.state == .completed }
        task.resume()
        _ = await setting.session.response(to: try get(setting.base))
        #expect(completions.value == 1)
        #expect(setting.arrived() == 2)
    }

    @Test("A mock never calls a completion inside resume or cancel")
    func asynchronous() async {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200))
        let completions = Counter()
        let lock = Mutex(())
        for number in 0..<200 {
            // A completion that is called inside would deadlock.
            let task = session.dataTask(request: Request(.GET, url: "http://a.test/")) { _, _, _ in
                lock.withLock { _ in completions.add() }
            }
            lock.withLock { _ in number.isMultiple(of: 2) ? task.resume() : task.cancel() }
        }
        await eventually("all tasks complete") { completions.value == 200 }
    }

    @Test(
        "10,000 tasks resumed and cancelled concurrently complete once each, with a result or as cancelled"
    )
    func race() async {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200))
        let count = 10_000
        let outcomes = Mutex([[Int]](repeating: [0, 0, 0], count: count))
        let tasks = (0..<count).map { number in
            session.dataTask(request: Request(.GET, url: "http://a.test/")) { _, response, error in
                let kind = response != nil ? 0 : (error as? URLError)?.code == .cancelled ? 1 : 2
                outcomes.withLock { $0[number][kind] += 1 }
            }
        }
        DispatchQueue.concurrentPerform(iterations: 4) { lane in
            for (number, task) in tasks.enumerated() where lane != 3 || !number.isMultiple(of: 3) {
                lane.isMultiple(of: 2) || number % 5 == lane ? task.resume() : task.cancel()
            }
        }
        await eventually("all tasks complete") { tasks.allSatisfy { $0.state == .completed } }
        await eventually("all completions are counted") { outcomes.withLock { $0 }.allSatisfy { $0.reduce(0, +) >= 1 } }
        let all = outcomes.withLock { $0 }
        #expect(all.allSatisfy { $0.reduce(0, +) == 1 })
        #expect(all.allSatisfy { $0[2] == 0 })
        #expect(session.recordedRequests.count >= all.count { $0[0] == 1 })
    }
}
