import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

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

    @Test("Interceptors, cookies and observers see the handshake", arguments: SocketTransport.allCases)
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
        #expect(lines.contains("websocket: closed with code 1000"))
    }

    #if WEBSERVICE_CURL
    @Test("The fields that a session adds can be switched off", arguments: [true, false])
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

    @Test("A handshake is retried and redirected", arguments: SocketTransport.allCases)
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

    @Test("A session without byte connections is an error that names CurlSession")
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

    @Test("Messages of concurrent calls arrive whole", arguments: SocketTransport.allCases)
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

    @Test("A client that does not read holds the server back")
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

    @Test("A peer that responds to pings stays connected; one that does not has failed")
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

    /// The places that set a deadline of 5 seconds.
    enum Deadline: CaseIterable, Sendable {
        case request, service, scope
    }

    @Test("A deadline ends with the handshake", arguments: Deadline.allCases)
    func deadline(_ deadline: Deadline) async throws {
        let clock = TestClock()
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        stubs.on(.GET, "/echo", .echo)
        stubs.on(.GET, "/late", MockResponse.echo.after(.seconds(10)))
        if deadline == .service { service.options.deadline = .seconds(5) }
        func open(_ path: String) async throws -> WebSocket {
            try await service.webSocket(path) { if deadline == .request { $0.options.deadline = .seconds(5) } }
        }
        func openInScope(_ path: String) async throws -> WebSocket {
            guard deadline == .scope else { return try await open(path) }
            return try await service.withDeadline(.seconds(5)) { try await open(path) }
        }
        let socket = try await openInScope("/echo")
        await clock.advance(by: .seconds(60))
        try await socket.send("hello")
        #expect(try await socket.messages.first { _ in true } == .text("hello"))
        let late = Task(executorPreference: clock.executor) { await failure { _ = try await openInScope("/late") } }
        await clock.advance(by: .seconds(5))
        #expect(code(await late.value) == .deadline)
    }

    @Test("The connections of a sequence outlive the deadline of their handshakes")
    func deadlineOfMessages() async throws {
        let clock = TestClock()
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        stubs.on(
            .GET, "/prices",
            .webSocket { socket in
                for number in 1...3 {
                    try await clock.sleep(until: clock.now.advanced(by: .seconds(20)))
                    try await socket.send("\(number)")
                }
                _ = try await socket.next()
            })
        let prices = service.reconnectingWebSocket("/prices", configuring: { $0.options.deadline = .seconds(5) })
        let reader = Task(executorPreference: clock.executor) {
            try await service.withDeadline(.seconds(30)) {
                var texts: [WebSocketMessage] = []
                for try await message in prices.messages {
                    texts.append(message)
                    if texts.count == 3 { break }
                }
                return texts
            }
        }
        await clock.advance(by: .seconds(60))
        #expect(try await reader.value == [.text("1"), .text("2"), .text("3")])
        #expect(stubs.receivedRequests.count == 1)
    }

    // MARK: The timeout of the handshake

    /// A session that records whether a request waits for other connections, and can report such a
    /// wait before it connects.
    private struct WaitingSession: ConnectingSession {
        let base: any ConnectingSession
        let waitsFirst: Bool
        let waits = Collected<Bool>()

        var defaultHeaders: Headers { base.defaultHeaders }

        func dataTask(
            request: any URLRequestEncodable,
            completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        ) -> any DataTask {
            base.dataTask(request: request, completion: completion)
        }

        func connect(
            _ request: EncodedRequest, waitDidChange: @escaping @Sendable (Bool) -> Void
        ) async throws -> any ByteConnection {
            if waitsFirst {
                waitDidChange(true)
                waitDidChange(false)
            }
            return try await base.connect(request) { [waits] isWaiting in
                waitDidChange(isWaiting)
                waits.add(isWaiting)
            }
        }
    }

    @Test(
        "A handshake that exceeds its timeout names what it waited for", arguments: [false, true])
    func timeout(hasWaited: Bool) async throws {
        let clock = TestClock()
        let (service, stubs) = try SocketTransport.memory.make(clock: clock)
        if hasWaited { service.session = WaitingSession(base: try #require(stubs as? MockSession), waitsFirst: true) }
        stubs.on(.GET, "/late", MockResponse.echo.after(.seconds(10)))
        let opening = Task(executorPreference: clock.executor) {
            await failure { _ = try await service.webSocket("/late") { $0.options.timeout = .seconds(5) } }
        }
        await clock.advance(by: .seconds(5))
        let error = await opening.value
        #expect(urlCode(error) == .timedOut)
        #expect(
            error?.localizedDescription
                == "the handshake exceeded its timeout of 5.0 seconds: no connection was established; "
                + "check the address, or set a longer timeout")
    }

    #if WEBSERVICE_CURL
    /// Returns the description of the error of a handshake that exceeds its timeout after it has
    /// begun to wait.
    private func timeout(
        _ service: WebService, _ path: String, _ clock: TestClock, when isWaiting: () -> Bool
    ) async -> String? {
        let opening = Task {
            await failure { _ = try await service.webSocket(path) { $0.options.timeout = .seconds(5) } }
        }
        await eventually("the handshake waits") { isWaiting() }
        await clock.advance(by: .seconds(5))
        let error = await opening.value
        #expect(urlCode(error) == .timedOut)
        return error?.localizedDescription
    }

    @Test("A handshake without a response names what it waited for")
    func noResponse() async throws {
        let clock = TestClock()
        let (service, stubs) = try SocketTransport.socket.make(clock: clock)
        var silence = MockResponse(statusCode: 200)
        silence.wire = .noResponse
        stubs.on(.GET, "/chat", silence)
        #expect(
            await timeout(service, "/chat", clock) { stubs.receivedRequests.count == 1 }
                == "the handshake exceeded its timeout of 5.0 seconds: the server did not respond; "
                + "set a longer timeout if it needs more time")
    }

    @Test("A handshake that waits for other connections names the option")
    func maximumConnections() async throws {
        let clock = TestClock()
        let (service, stubs) = try SocketTransport.socket.make(clock: clock)
        stubs.on(.GET, "/echo", .echo)
        var configuration = CurlSession.Configuration()
        configuration.maximumWebSocketConnections = 1
        let session = WaitingSession(base: try CurlSession(configuration: configuration), waitsFirst: false)
        service.session = session
        let socket = try await service.webSocket("/echo")
        #expect(
            await timeout(service, "/echo", clock) { session.waits.values.last == true }
                == "the handshake exceeded its timeout of 5.0 seconds: other connections of the session did not end; "
                + "close them, or increase maximumWebSocketConnections")
        try await socket.close()
        try await service.webSocket("/echo").close()
    }
    #endif
}
