import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// Handshakes that a server refuses, with any body.
@Suite("WebSocket: refused handshakes", .permit)
struct WebSocketRefusalTests {
    private static let limit = 1 << 20

    private func refusal(_ status: Int, count: Int, _ wire: MockResponse.Wire = .fixedLength) -> MockResponse {
        var response = MockResponse(
            statusCode: status, headers: ["Content-Type": "text/plain"], data: Data(repeating: 0x61, count: count))
        response.wire = wire
        return response
    }

    @Test(
        "A refused handshake is an error with the status and the body",
        arguments: SocketTransport.allCases)
    func refused(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(.GET, "/chat", MockResponse(statusCode: 403, data: Data("not you".utf8)))
        let error = await failure { _ = try await service.webSocket("/chat") }
        #expect(code(error) == .unacceptableStatus)
        #expect((error as? WebServiceError)?.response?.status == 403)
        #expect((error as? WebServiceError)?.body == Data("not you".utf8))
    }

    @Test(
        "A body over 1 MiB is truncated, and the status is the error",
        arguments: SocketTransport.allCases,
        [.fixedLength, .chunked(size: 100_000), .untilClose] as [MockResponse.Wire])
    func large(_ transport: SocketTransport, _ wire: MockResponse.Wire) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(.GET, "/chat", refusal(403, count: 3 << 20, wire))
        let error = await failure { _ = try await service.webSocket("/chat") } as? WebServiceError
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.response?.status == 403)
        #expect(error?.body?.count == Self.limit)
    }

    @Test("A smaller limit of the request truncates the body as well")
    func limited() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/chat", refusal(403, count: 1_000))
        let error =
            await failure { _ = try await service.webSocket("/chat") { $0.options.maximumResponseBytes = 10 } }
            as? WebServiceError
        #expect(error?.response?.status == 403)
        #expect(error?.body?.count == 10)
    }

    @Test("A body that breaks off does not hide the status", arguments: SocketTransport.allCases)
    func cut(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(.GET, "/chat", refusal(403, count: 100_000, .cut(after: 50_000)))
        let error = await failure { _ = try await service.webSocket("/chat") } as? WebServiceError
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.response?.status == 403)
    }

    #if WEBSERVICE_CURL
    @Test("A body that never ends does not hide the status")
    func stalled() async throws {
        let clock = TestClock()
        let (service, stubs) = try SocketTransport.socket.make(clock: clock)
        let recorder = EventRecorder()
        service.observers = [recorder]
        stubs.on(.GET, "/chat", refusal(403, count: 100_000, .stall(after: 50_000)))
        let opening = Task { await failure { _ = try await service.webSocket("/chat") } as? WebServiceError }
        await eventually { recorder.lines(0).contains("head 403") }
        await clock.advance(by: .seconds(60))
        let error = await opening.value
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.response?.status == 403)
        #expect(error?.underlying == nil)
    }
    #endif

    @Test("The messages continue after a refusal with a large body")
    func transient() async throws {
        let clock = TestClock()
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        stubs.on(.GET, "/prices", [refusal(503, count: 2 << 20), .webSocket { try await $0.send("1") }])
        let reader = Task(executorPreference: clock.executor) {
            try await service.reconnectingWebSocket("/prices").messages.first { _ in true }
        }
        await clock.advance(by: .seconds(10))
        #expect(try await reader.value == .text("1"))
        #expect(stubs.receivedRequests.count == 2)
    }

    #if WEBSERVICE_CURL
    @Test("A connection to an address that the session refuses is an error, also for messages that reconnect")
    func destinations() async throws {
        let server = try MockServer.forTest()
        server.on(.GET, "/chat", .echo)
        var configuration = CurlSession.Configuration()
        configuration.proxy = .none
        configuration.destinations = .publicInternet
        let service = WebService(baseURLString: server.baseURLString)
        service.session = try CurlSession(configuration: configuration)
        #expect(code(await failure { _ = try await service.webSocket("/chat") }) == .destinationRefused)
        let messages = service.reconnectingWebSocket("/chat").messages
        #expect(code(await failure { for try await _ in messages {} }) == .destinationRefused)
        #expect(server.connectionCount == 0)
        configuration.destinations.exceptions = ["127.0.0.1"]
        service.session = try CurlSession(configuration: configuration)
        let socket = try await service.webSocket("/chat")
        try await socket.send("hello")
        #expect(try await socket.messages.first { _ in true } == .text("hello"))
    }
    #endif
}
