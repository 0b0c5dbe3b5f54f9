import Foundation
import Testing
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// H-48: what every session promises, asked of the mock and of the real ones with the same responses.
@Suite struct SessionContractTests {
    enum Kind: CaseIterable {
        case mock, recorded, urlSession, foundationSession
    }

    /// A session, where it sends to, and how many requests have arrived there.
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

    @Test("H-48: The status, the header fields and the body arrive", arguments: Kind.allCases)
    func answer(kind: Kind) async throws {
        var response = MockResponse(statusCode: 404, data: Data("no such beer".utf8))
        response.headers = ["X-Brew": "ale", "Content-Type": "text/plain"]
        let setting = try Setting(kind, response)
        let answer = await setting.session.answer(to: try get(setting.base + "/a?b=c"))
        #expect(answer.status == 404)
        #expect(answer.text == "no such beer")
        #expect(answer.error == nil)
        #expect(answer.response?.value(forHTTPHeaderField: "x-brew") == "ale")
        #expect(answer.response?.mimeType == "text/plain")
        #expect(answer.response?.url?.absoluteString == setting.base + "/a?b=c")
        #expect(!answer.wasOnMainThread)
        #expect(setting.arrived() == 1)
    }

    @Test("H-35, H-48: A response without a body has empty data, and the next request is fine", arguments: Kind.allCases, [200, 204, 205, 304])
    func emptyBody(kind: Kind, status: Int) async throws {
        let setting = try Setting(kind, MockResponse(statusCode: status, data: Data((status == 200 ? "" : "ignored").utf8)))
        for _ in 0..<2 {
            let answer = await setting.session.answer(to: try get(setting.base))
            #expect(answer.status == status && answer.data == Data() && answer.error == nil)
        }
    }

    @Test("H-35, H-48: HEAD has no body, and the next request is fine", arguments: Kind.allCases)
    func head(kind: Kind) async throws {
        let setting = try Setting(kind, MockResponse(statusCode: 200, data: Data("ignored".utf8)))
        let head = await setting.session.answer(to: try get(setting.base, method: "HEAD"))
        #expect(head.status == 200 && head.data == Data())
        #expect(await setting.session.answer(to: try get(setting.base)).text == "ignored")
    }

    @Test("H-48: Nothing is sent before resume, and twice resumed is once sent", arguments: Kind.allCases)
    func resumeTwice(kind: Kind) async throws {
        let setting = try Setting(kind, MockResponse(statusCode: 200))
        let completions = Counter()
        let task = setting.session.dataTask(request: try get(setting.base)) { _, _, _ in completions.add() }
        #expect(task.state == .suspended)
        task.suspend()
        #expect(setting.arrived() == 0 && completions.value == 0)
        task.resume()
        task.resume()
        await eventually("the task completes") { completions.value == 1 && task.state == .completed }
        task.resume()
        _ = await setting.session.answer(to: try get(setting.base))
        #expect(completions.value == 1 && setting.arrived() == 2)
    }

    @Test("H-48: Cancelled before resume is cancelled once, and nothing is sent", arguments: Kind.allCases)
    func cancelBeforeResume(kind: Kind) async throws {
        let setting = try Setting(kind, MockResponse(statusCode: 200))
        let errors = Mutex<[URLError.Code?]>([])
        let task = setting.session.dataTask(request: try get(setting.base)) { data, response, error in
            #expect(data == nil && response == nil)
            errors.withLock { $0.append((error as? URLError)?.code) }
        }
        task.cancel()
        task.resume()
        task.cancel()
        await eventually("the task completes") { errors.withLock { $0.count } == 1 && task.state == .completed }
        _ = await setting.session.answer(to: try get(setting.base))
        #expect(errors.withLock { $0 } == [.cancelled])
        #expect(setting.arrived() == 1)
    }

    @Test("H-48: A request that cannot be encoded fails with its own error", arguments: Kind.allCases)
    func unencodable(kind: Kind) async throws {
        let setting = try Setting(kind, MockResponse(statusCode: 200))
        let answer = await setting.session.answer(to: Request(.GET, url: "no url"))
        #expect((answer.error as? WebServiceError)?.code == .invalidURL)
        #expect(setting.arrived() == 0)
    }

    @Test("A mock never answers from inside resume or cancel")
    func asynchronous() async {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200))
        let completions = Counter()
        let lock = Mutex(())
        for number in 0..<200 {
            // Would deadlock, were the completion called inside.
            let task = session.dataTask(request: Request(.GET, url: "http://a.test/")) { _, _, _ in lock.withLock { _ in completions.add() } }
            lock.withLock { _ in number.isMultiple(of: 2) ? task.resume() : task.cancel() }
        }
        await eventually("all complete") { completions.value == 200 }
    }

    @Test("H-19: 10,000 tasks that are resumed and cancelled at the same time complete once each, with a result or as cancelled")
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
        await eventually("all complete") { tasks.allSatisfy { $0.state == .completed } }
        await eventually("all are counted") { outcomes.withLock { $0 }.allSatisfy { $0.reduce(0, +) >= 1 } }
        let all = outcomes.withLock { $0 }
        #expect(all.allSatisfy { $0.reduce(0, +) == 1 && $0[2] == 0 })
        #expect(session.recordedRequests.count >= all.count { $0[0] == 1 })
    }
}
