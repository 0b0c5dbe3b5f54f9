import Foundation
import TestSupport
import Testing
import WebServiceMocking

@testable import WebServiceCore

@Suite("Status of a task", .permit)
struct SessionTaskStatusTests {
    @Test("A typed task forwards the state, metrics, progress, request, timeline and archive of its task")
    func snapshot() async throws {
        let session = MockSession()
        session.addStub(MockResponse(statusCode: 200, data: Data("four".utf8)), requestMatcher: { _ in true })
        let service = WebService.make(session)
        let typed = service.GET("/x").setHeaderValue("1", forName: "X-A").onProgress { _ in }.string()
        #expect(typed.status.state == .suspended)
        #expect(typed.status.progress == nil)
        #expect(typed.status.metrics.fetchStart == nil)
        #expect(typed.status.request.headers["X-A"] == "1")
        #expect(try await typed.value == "four")
        let status = typed.status
        #expect(status.state == .completed)
        #expect(status.progress?.bytesReceived == 4)
        #expect(status.metrics.responseEnd == typed.metrics.responseEnd)
        #expect(status.metrics.responseEnd != nil)
        #expect(status.request.url == typed.request.url)
        #expect(typed.request.headers["X-A"] == "1")
        #expect(typed.timeline.events.map(\.kind) == [.attempt])
    }

    @Test("A task that was cancelled before it was resumed keeps its request")
    func cancelledRequest() {
        let task = WebService.make().GET("/x").setHeaderValue("1", forName: "X-A")
        task.cancel()
        #expect(task.request.headers["X-A"] == "1")
    }

    @Test("A response decodes its body, and an empty or unexpected body is an error that names the reason")
    func decoding() throws {
        let url = try #require(URL(string: "https://h/"))
        let response = try #require(
            Response(
                status: 200, headers: ["Content-Type": "application/json"], data: Data(#"{"n":1}"#.utf8), url: url,
                source: .mock))
        #expect(try response.decode([String: Int].self) == ["n": 1])
        #expect(try response.json()["n"]?.int == 1)
        #expect(try response.text() == #"{"n":1}"#)
        let page = try #require(
            Response(
                status: 200, headers: ["Content-Type": "text/html; charset=utf-8"], data: Data("<html>".utf8), url: url,
                source: .mock))
        #expect { try page.decode([Int].self) } throws: { error in
            (error as? WebServiceError)?.message.contains("the body is an HTML page") == true
        }
        var empty = response
        empty.data = Data()
        #expect(try empty.decode([String: Int]?.self) == nil)
        #expect { try empty.decode([String: Int].self) } throws: { ($0 as? WebServiceError)?.code == .emptyResponse }
        #expect { try response.decode([Int].self) } throws: { error in
            (error as? WebServiceError)?.code == .decoding && (error as? WebServiceError)?.underlying is DecodingError
        }
    }
}
