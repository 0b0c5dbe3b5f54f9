#if WEBSERVICE_CURL
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

/// The receiving tasks of connections may run on the event loop, but code of the program does not.
@Suite("WebSocket: code that blocks", .permit)
struct WebSocketBlockingTests {
    private let server: MockServer
    private let session: CurlSession
    private let release = ThreadSignal()
    /// Whether a thread that was blocked has been released in time.
    private let released = Collected<Bool>()

    init() throws {
        server = try MockServer.forTest()
        server.on(.GET, "/echo", .echo)
        server.on(.GET, "/other", .text("other"))
        var configuration = CurlSession.Configuration()
        configuration.proxy = .none
        session = try CurlSession(configuration: configuration)
    }

    private func service(_ observers: [any Observer] = []) -> WebService {
        let service = WebService(baseURLString: server.baseURLString)
        service.session = session
        service.observers = observers
        return service
    }

    /// Sends a request while a thread is blocked, then releases the thread.
    private func expectProgress() async throws {
        #expect(try await service().GET("/other").string().value == "other")
        release.signal()
        #expect(await released.wait() == [true])
    }

    @Test("An observer that blocks at a received message stops no other request")
    func observer() async throws {
        let blocked = Collected<Void>()
        let observer = EventRecorder { [release, released] event in
            guard case .message(_, isReceived: true) = event.kind else { return }
            blocked.add(())
            released.add(release.wait(milliseconds: 60_000))
        }
        let socket = try await service([observer]).webSocket("/echo")
        try await socket.send("hello")
        await blocked.wait()
        try await expectProgress()
        #expect(try await socket.messages.first { _ in true } == .text("hello"))
    }

    @Test("A reader that blocks after a message stops no other request")
    func reader() async throws {
        let blocked = Collected<WebSocketMessage>()
        let socket = try await service().webSocket("/echo")
        // Swift's own threads must not block.
        let reading = Task(executorPreference: HandlerPool.shared) { [release, released] in
            for try await message in socket.messages {
                blocked.add(message)
                released.add(release.wait(milliseconds: 60_000))
                break
            }
        }
        try await socket.send("hello")
        #expect(await blocked.wait() == [.text("hello")])
        try await expectProgress()
        try await reading.value
    }
}
#endif
