#if WEBSERVICE_CURL
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

@Suite("Streamed uploads: real time", .permit)
struct StreamedUploadRealTimeTests {
    @Test("Without a response, the body is sent when the wait has elapsed", arguments: [true, false])
    func silence(isStream: Bool) async throws {
        let server = try MockServer.forTest { _ in MockResponse(statusCode: 200) }
        server.onHead(.POST, "/", nil)
        let content = Chunks([10, 50_000])
        let body = isStream ? Request.Body.stream(content) : .data(content.content)
        let start = ContinuousClock.now
        let task = WebService(server.baseURLString, session: try CurlSession()).POST("/").setBody(body)
            .configure { $0.options.expectsContinue = .milliseconds(300) }
        _ = try await task.data().value
        #expect(ContinuousClock.now - start >= .milliseconds(290))
        #expect(server.receivedRequests.map(\.body) == [content.content])
    }
}
#endif
