import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// Delays of responses without a test clock.
@Suite("Stubs: real time", .permit) struct StubRealTimeTests {
    @Test("A delayed response arrives after its delay, blocks no thread, and can be cancelled or time out")
    func delay() async throws {
        let session = MockSession()
        session.on(.GET, "/slow", .text("slow").after(.seconds(60)))
        session.on(.GET, "/soon", .text("soon").after(.milliseconds(50)))
        let service = WebService("http://a.test", session: session)
        let waiting = (0..<200).map { _ in service.GET("/slow").string().resume() }
        let start = ContinuousClock.now
        #expect(try await service.GET("/soon").string().value == "soon")
        #expect(start.duration(to: .now) >= .milliseconds(50))
        for task in waiting { task.cancel() }
        for task in waiting { await #expect(throws: URLError(.cancelled)) { try await task.value } }
        let error = await #expect(throws: URLError.self) {
            try await service.GET("/slow").setTimeout(.milliseconds(20)).string().value
        }
        #expect(error?.code == .timedOut)
        let server = try MockServer()
        server.on(.GET, "/", .text("ale").after(.milliseconds(50)))
        let begin = ContinuousClock.now
        #expect(await plainSession.response(to: try get(server.baseURLString)).text == "ale")
        #expect(begin.duration(to: .now) >= .milliseconds(50))
    }
}
