import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceSockets

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

@Suite("WebSocket: the exchange of the handshake", .permit)
struct WebSocketExchangeTests {
    private struct Token: Interceptor {
        func intercept(_ request: Request, next: Next) async throws -> Response {
            var request = request
            request.headers["Authorization"] = "Bearer t"
            return try await next(request)
        }
    }

    @Test("Interceptors, cookies and observers see the handshake", .covers("W-01"), arguments: SocketTransport.allCases)
    func stages(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        service.cookieJar = CookieJar()
        service.interceptors = [Token()]
        let recorder = EventRecorder()
        service.observers = [recorder]
        var accepted = MockResponse.echo
        accepted.headers.add("seat=7; Path=/", for: "Set-Cookie")
        stubs.on(.GET, "/chat", accepted)
        for _ in 1...2 {
            let socket = try await service.webSocket("/chat")
            try await socket.send("hello")
            #expect(try await socket.messages.first { _ in true } == .text("hello"))
            try await socket.close()
        }
        let requests = stubs.receivedRequests
        #expect(requests.map { $0.headers["Authorization"] } == ["Bearer t", "Bearer t"])
        #expect(requests.map { $0.headers["Cookie"] } == [nil, "seat=7"])
        // The events of different exchanges have no common order.
        await eventually { (0...1).allSatisfy { recorder.lines($0).contains { $0.hasPrefix("body") } } }
        let lines = recorder.lines(0)
        #expect(lines.contains("head 101"))
        #expect(lines.contains("ended 101 \(transport == .memory ? "mock" : "network")"))
        #expect(lines.contains("message sent 5"))
        #expect(lines.contains("message received 5"))
        #expect(lines.contains("websocket: closed with the code 1000"))
    }

    #if WEBSERVICE_CURL
    @Test("The fields that a session adds can be switched off", .covers("W-01"), arguments: [true, false])
    func defaultFields(isOn: Bool) async throws {
        let server = try MockServer.forTest()
        server.on(.GET, "/chat", .echo)
        let service = WebService(baseURLString: server.baseURLString)
        var configuration = CurlSession.Configuration()
        if !isOn { (configuration.userAgent, configuration.acceptLanguage) = (nil, nil) }
        service.session = try CurlSession(configuration: configuration)
        try await service.webSocket("/chat").close()
        let headers = try #require(server.receivedRequests.first).headers
        #expect((headers["User-Agent"] != nil) == isOn)
        #expect(isOn || headers["Accept-Language"] == nil)
    }
    #endif

    @Test("A handshake is retried and redirected", .covers("W-01"), arguments: SocketTransport.allCases)
    func retried(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        service.interceptors = [RetryPolicy(baseDelay: .milliseconds(1))]
        var moved = MockResponse(statusCode: 307)
        moved.headers["Location"] = "/new"
        stubs.on(.GET, "/chat", [MockResponse(statusCode: 503), moved])
        stubs.on(.GET, "/new", .echo)
        let socket = try await service.webSocket("/chat")
        try await socket.send("hello")
        #expect(try await socket.messages.first { _ in true } == .text("hello"))
        #expect(socket.response.redirects.count == 1)
    }

    @Test("A session without byte connections is an error that names CurlSession", .covers("W-02"))
    func unsupported() async throws {
        #if canImport(Darwin)
        let session: any Session = URLSession.shared
        #else
        let session: any Session = FoundationSession.shared
        #endif
        let service = WebService("https://api.test", session: session)
        let error = await failure { _ = try await service.webSocket("/chat") }
        #expect(code(error) == .webSocketUnsupported)
        #expect((error as? WebServiceError)?.message.contains("CurlSession") == true)
    }

    @Test("Messages of concurrent calls arrive whole", .covers("W-03"), arguments: SocketTransport.allCases)
    func concurrentSends(_ transport: SocketTransport) async throws {
        let (service, stubs) = try transport.make()
        stubs.on(.GET, "/echo", .echo)
        let socket = try await service.webSocket("/echo")
        let sending = Task {
            await withTaskGroup { group in
                for sender in 0..<50 {
                    group.addTask {
                        for number in 0..<20 {
                            let text = "\(sender) \(number) " + String(repeating: "x", count: 1_000)
                            try? await socket.send(text)  // the reader counts the messages
                        }
                    }
                }
            }
        }
        var last = [Int](repeating: -1, count: 50)
        var isOrdered = true
        var count = 0
        for try await message in socket.messages {
            guard case .text(let text) = message else { continue }
            let parts = text.split(separator: " ")
            guard parts.count == 3, parts[2].count == 1_000, let sender = Int(parts[0]), let number = Int(parts[1])
            else {
                isOrdered = false
                break
            }
            isOrdered = isOrdered && last[sender] + 1 == number
            last[sender] = number
            count += 1
            if count == 1_000 { break }
        }
        await sending.value
        #expect(count == 1_000)
        #expect(isOrdered)
    }

    @Test("Two readers at the same time are an error", .covers("W-03"))
    func twoReaders() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/echo", .echo)
        let socket = try await service.webSocket("/echo")
        // One of them waits, and the other one fails.
        let errors = Collected<WebServiceError.Code?>()
        let readers = (0..<2).map { _ in
            Task { errors.add(code(await failure { _ = try await socket.messages.first { _ in true } })) }
        }
        await eventually { errors.values == [.streamConsumed] }
        for reader in readers { reader.cancel() }
    }

    @Test("A client that does not read holds the server back", .covers("W-04"))
    func backPressure() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        let sent = Collected<Void>()
        stubs.on(
            .GET, "/flood",
            .webSocket(compresses: false) { socket in
                while sent.values.count < 200 {
                    try await socket.send(Data(count: 64 << 10))
                    sent.add(())
                }
            })
        var options = WebSocket.Options()
        options.bufferSize = 128 << 10
        let socket = try await service.webSocket("/flood", options: options)
        await eventually { sent.values.count >= 4 }
        for _ in 0..<100 { await Task.yield() }
        #expect(sent.values.count <= 12)
        var count = 0
        for try await _ in socket.messages { count += 1 }
        #expect(count == 200)
    }

    // MARK: The clock of the service

    @Test("A peer that responds to pings stays connected; one that does not has failed", .covers("W-07"))
    func pings() async throws {
        let clock = TestClock()
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        let gate = Once<Bool>()
        Permit.atEnd { gate.set(true) }
        stubs.on(.GET, "/quiet", .webSocket { _ in _ = await gate.value })
        let socket = try await service.webSocket("/quiet")
        let reader = Task(executorPreference: clock.executor) {
            await failure { for try await _ in socket.messages {} }
        }
        await clock.advance(by: .seconds(3_600))
        #expect(service.exchanges.count == 1)
        // Fills the buffers, so that the peer does not see further pings.
        for _ in 0..<9 { try await socket.send(Data(repeating: 1, count: 64 << 10)) }
        await clock.advance(by: .seconds(60))
        #expect(urlCode(await reader.value) == .timedOut)
    }

    @Test("Messages continue over further connections, each of which subscribes again", .covers("W-08"))
    func reconnection() async throws {
        let clock = TestClock()
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        let subscriptions = Collected<WebSocketMessage?>()
        func script(_ text: String, _ end: @escaping @Sendable (MockWebSocket) async throws -> Void) -> MockResponse {
            .webSocket { socket in
                subscriptions.add(try await socket.next())
                try await socket.send(text)
                try await end(socket)
            }
        }
        stubs.on(
            .GET, "/prices",
            [
                script("1") { $0.disconnect() }, MockResponse(statusCode: 503),
                script("2") { try await $0.close(.policyViolation) }, script("3") { _ in },
                MockResponse(statusCode: 404),
            ])
        let messages = service.webSocketMessages("/prices") { try await $0.send("subscribe") }
        let received = Collected<WebSocketMessage>()
        let reader = Task(executorPreference: clock.executor) {
            await failure {
                for try await message in messages { received.add(message) }
            }
        }
        await clock.advance(by: .seconds(600))
        let error = await reader.value
        #expect(received.values == [.text("1"), .text("2"), .text("3")])
        #expect(code(error) == .unacceptableStatus)
        #expect(subscriptions.values == [.text("subscribe"), .text("subscribe"), .text("subscribe")])
    }
}
