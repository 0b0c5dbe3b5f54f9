import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@Suite(.permit) struct RequestRecordingSessionTests {
    private let mock = MockSession()

    private final class Counter: Sendable {
        let count = Mutex(0)
    }

    @Test("A resumed request is recorded once and in order, unless it was cancelled before or cannot be encoded")
    func recording() async {
        mock.addStub(MockResponse(statusCode: 200))
        let session = RequestRecordingSession(mock)
        let tasks = ["http://a.test/1", "http://a.test/2", "http://a.test/3", "no url"].map { url in
            session.dataTask(request: Request(.GET, url: url)) { _, _, _ in }
        }
        #expect(session.recordedRequests.isEmpty)
        tasks[2].resume()
        tasks[1].cancel()
        tasks[1].resume()
        tasks[0].resume()
        tasks[0].resume()
        tasks[3].resume()
        #expect(session.recordedRequests.map { $0.url?.path } == ["/3", "/1"])
        #expect(mock.recordedRequests.map { $0.url?.path } == ["/3", "/1"])
    }

    @Test("The result of the wrapped session is passed through")
    func passThrough() async {
        mock.addStub(URLError(.timedOut))
        let answer = await RequestRecordingSession(mock).response(to: Request(.GET, url: "http://a.test/"))
        #expect(answer.error as? URLError == URLError(.timedOut))
    }

    @Test("A stream of the inner session is recorded, and pauses with its reader")
    func streams() async throws {
        let produced = Counter()
        let mock = MockSession()
        mock.on(
            .GET, "/",
            MockResponse(statusCode: 200) { body in
                for _ in 0..<2_000 {
                    try body.write(Data(count: 1_000))
                    produced.count.withLock { $0 += 1 }
                }
            })
        let session = RequestRecordingSession(mock)
        let service = WebService("http://a.test", session: session)
        let body = try await service.GET("/").stream(bufferSize: 10_000).value.body
        await eventually { produced.count.withLock { $0 } >= 9 }
        #expect(produced.count.withLock { $0 } <= 12)
        #expect(session.recordedRequests.count == 1)
        #expect(try await body.collect(upTo: .max).count == 2_000_000)
    }
}
