import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// The outputs of a typed request that are not its value, over every session that uses the network.
@Suite("Streams, events and downloads of typed requests", .permit)
struct TypedOutputTests {
    struct LogRequest: ParameterizedRequest {
        typealias Output = String
        var path: String { "/log" }
        var headers: Headers { ["X-Log": "7"] }
    }

    private func setUp(_ session: RealSession) throws -> (WebService, MockServer) {
        let server = try MockServer.forTest()
        let service = WebService(baseURLString: server.baseURLString)
        service.session = MockSession()
        service.endpoints = [HTTPEndpoint(session: try session.session())]
        service.interceptors = [.bearer("token")]
        return (service, server)
    }

    private func expectHeaders(_ server: MockServer) {
        for request in server.receivedRequests {
            #expect(request.headers["X-Log"] == "7")
            #expect(request.headers[.authorization] == "Bearer token")
        }
        #expect(!server.receivedRequests.isEmpty)
    }

    @Test(
        "A typed request is streamed, and cancelling everything ends the stream",
        arguments: RealSession.streaming)
    func stream(session: RealSession) async throws {
        let (service, server) = try setUp(session)
        let (chunks, feed) = AsyncStream<Data>.makeStream()
        server.on(.GET, "/log", MockResponse(statusCode: 200, chunks: chunks))
        feed.yield(Data("one".utf8))
        let log = try await service.sessionTask(request: LogRequest()).stream().value
        var iterator = log.body.makeAsyncIterator()
        #expect(try await iterator.next() == Data("one".utf8))
        #expect(service.exchanges.map(\.kind) == [.stream])
        service.cancelAll()
        let error = await #expect(throws: URLError.self) { try await iterator.next() }
        #expect(error?.code == .cancelled)
        #expect(service.exchanges.isEmpty)
        feed.finish()
        expectHeaders(server)
    }

    @Test("The events of a typed request are received", arguments: RealSession.streaming)
    func events(session: RealSession) async throws {
        let (service, server) = try setUp(session)
        server.on(.GET, "/log", .events([ServerSentEvent(data: "one"), ServerSentEvent(data: "two")]))
        var events: [String] = []
        for try await event in service.sessionTask(request: LogRequest()).events() { events.append(event.data) }
        #expect(events == ["one", "two"])
        expectHeaders(server)
    }

    @Test("A typed request is downloaded to a file", arguments: RealSession.streaming)
    func download(session: RealSession) async throws {
        let (service, server) = try setUp(session)
        server.on(.GET, "/log", .text("content"))
        let file = TemporaryFolder.forTest().url.appendingPathComponent("log")
        let bytes = Mutex<Int64>(0)
        let task = service.sessionTask(request: LogRequest()).download(to: file)
            .onProgress { progress in bytes.withLock { $0 = progress.bytesReceived } }
        #expect(try await task.value.byteCount == 7)
        #expect(try String(contentsOf: file, encoding: .utf8) == "content")
        expectHeaders(server)
    }
}
