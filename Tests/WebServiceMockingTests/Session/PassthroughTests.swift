import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@Suite("Requests of a mock session that another session sends", .permit) struct PassthroughTests {
    private let server: MockServer
    private let session = MockSession()
    private let service: WebService

    init() throws {
        server = try MockServer.forTest()
        service = WebService(server.baseURLString, session: session)
        session.passthrough = FoundationSession.shared
    }

    @Test("A request without a stub is sent, and one with a stub is not")
    func passes() async throws {
        server.on(.GET, "/real", .text("real"))
        session.on(.GET, "/mock", .text("mock"))
        #expect(try await service.GET("/real").string().value == "real")
        #expect(try await service.GET("/mock").string().value == "mock")
        #expect(server.receivedRequests.map(\.path) == ["/real"])
        #expect(session.receivedRequests.map(\.path) == ["/real", "/mock"])
        #expect(throws: Never.self) { try session.verify() }
        session.passthrough = nil
        let error = await service.GET("/real").string().result.failure as? WebServiceError
        #expect(error?.code == .noStub)
    }

    @Test("A stub that has reached its limit lets further requests pass")
    func limit() async throws {
        server.on(.GET, "/a", .text("real"))
        session.on(.GET, "/a", .text("mock")).times(1)
        #expect(try await service.GET("/a").string().value == "mock")
        #expect(try await service.GET("/a").string().value == "real")
        #expect(throws: Never.self) { try session.verify() }
    }

    @Test("A stream passes, also while its reader is slow")
    func stream() async throws {
        let size = 3 << 20
        server.on(.GET, "/log", MockResponse(statusCode: 200, data: Data(repeating: 7, count: size)))
        var received = 0
        for try await chunk in try await service.GET("/log").stream().value.body {
            received += chunk.count
            await Task.yield()
        }
        #expect(received == size)
    }

    @Test("An upload of a file and one of a closure pass with their bytes")
    func uploads() async throws {
        server.on(.POST, "/a") { .text("\($0.body.count)") }
        let folder = TemporaryFolder()
        let file = folder.url.appendingPathComponent("a")
        try Data(repeating: 1, count: 200_000).write(to: file)
        #expect(try await service.POST("/a").setBody(file: file).string().value == "200000")
        #expect(try await service.POST("/a").setBody { Data(count: 3_000) }.string().value == "3000")
    }

    @Test("A completion of a session is called once, and a passed request can be cancelled")
    func cancellation() async throws {
        var slow = MockResponse(statusCode: 200)
        slow.wire = .noResponse
        server.on(.GET, "/slow", slow)
        let task = service.GET("/slow").data().resume()
        await eventually { server.receivedRequests.count == 1 }
        task.cancel()
        #expect((await task.result.failure as? URLError)?.code == .cancelled)
        let plain = await session.response(to: try get(server.baseURLString + "/none"))
        #expect(plain.status == 404)
    }

    @Test("The error of the other session is the error of the request")
    func errors() async throws {
        server.on(.GET, "/a", .error(URLError(.unknown)))
        #expect((await service.GET("/a").data().result.failure as? URLError)?.code == .networkConnectionLost)
    }
}
