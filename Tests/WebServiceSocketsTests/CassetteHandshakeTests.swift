import Foundation
import TestSupport
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

/// Handshakes of a cassette: several at once, refused ones, and the modes.
@Suite("Cassettes of WebSocket handshakes", .permit)
struct CassetteHandshakeTests {
    private let tape = Tape()

    @Test("Several sockets are recorded and replayed at once", arguments: SocketTransport.allCases)
    func several(_ transport: SocketTransport) async throws {
        let (recorded, replayed) = try await tape.run(transport, .echo) { service in
            try await withThrowingTaskGroup(of: (Int, [WebSocketMessage]).self) { group in
                for room in 0..<4 {
                    group.addTask {
                        let socket = try await service.webSocket("/rooms/\(room)")
                        var messages = socket.messages.makeAsyncIterator()
                        var received: [WebSocketMessage] = []
                        for number in 0..<20 {
                            try await socket.send("\(room): \(number)")
                            if let message = try await messages.next() { received.append(message) }
                        }
                        try await socket.close()
                        return (room, received)
                    }
                }
                return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
        }
        #expect(recorded.count == 4)
        #expect(recorded[3]?.last == .text("3: 19"))
        #expect(replayed == recorded)
    }

    @Test("Two sockets with one URL are replayed in the order of their handshakes")
    func sameURL() async throws {
        let count = Mutex(0)
        let stub = MockResponse.webSocket { socket in
            try await socket.send("\(count.withLock { $0 += 1; return $0 })")
            _ = try await socket.next()
        }
        let (recorded, replayed) = try await tape.run(.memory, stub) { service in
            let (first, second) = (try await service.webSocket("/chat"), try await service.webSocket("/chat"))
            let messages = [
                try await first.messages.first { _ in true }, try await second.messages.first { _ in true },
            ]
            try await first.close()
            try await second.close()
            return messages
        }
        #expect(recorded == [.text("1"), .text("2")])
        #expect(replayed == recorded)
    }

    @Test("A recording offers no compression", arguments: SocketTransport.allCases)
    func compression(_ transport: SocketTransport) async throws {
        let stub = MockResponse.webSocket { socket in
            try await socket.send(socket.request.headers["Sec-WebSocket-Extensions"] ?? "none")
            _ = try await socket.next()
        }
        let (recorded, replayed) = try await tape.run(transport, stub) { service in
            let socket = try await service.webSocket("/chat")
            let message = try await socket.messages.first { _ in true }
            try await socket.close()
            return message
        }
        #expect(recorded == .text("none"))
        #expect(replayed == recorded)
    }

    @Test("A refused handshake is replayed with its body", arguments: SocketTransport.allCases)
    func refused(_ transport: SocketTransport) async throws {
        let stub = MockResponse(
            statusCode: 403, headers: ["X-Reason": "7", "Content-Type": "text/plain"], data: Data("not you".utf8))
        let (recorded, replayed) = try await tape.run(transport, stub) { service in
            let error = await failure { _ = try await service.webSocket("/chat") }
            return error as? WebServiceError
        }
        #expect(recorded?.response?.status == 403)
        #expect(replayed?.code == .unacceptableStatus)
        #expect(replayed?.response?.header("X-Reason") == "7")
        #expect(replayed?.body == Data("not you".utf8))
    }

    @Test(
        "A response that breaks off or does not correspond to the request is replayed",
        arguments: [true, false])
    func invalidResponse(breaksOff: Bool) async throws {
        var stub = MockResponse(
            statusCode: 101,
            headers: ["Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": "AAAA"])
        if breaksOff {
            stub = MockResponse(
                statusCode: 403, headers: ["Content-Type": "text/plain"], data: Data(repeating: 0x61, count: 1_000))
            stub.wire = .cut(after: 500)
        }
        let (recorded, replayed) = try await tape.run(.memory, stub) { service in
            let error = await failure { _ = try await service.webSocket("/chat") }
            return (code(error), urlCode(error), (error as? WebServiceError)?.message)
        }
        #expect(breaksOff || recorded.0 == .webSocketHandshake)
        #expect(replayed.0 == recorded.0)
        #expect(replayed.1 == recorded.1)
        #expect(replayed.2 == recorded.2)
        #expect(try tape.text().contains(#""error" : -1005"#) == breaksOff)
    }

    @Test("If the body of a refusal breaks off, it also breaks off in a replay")
    func interruptedRefusal() async throws {
        var stub = MockResponse(
            statusCode: 403, headers: ["Content-Type": "text/plain"], data: Data(repeating: 0x61, count: 1_000))
        stub.wire = .cut(after: 500)
        let (_, service) = try await tape.record(.memory, stub) { service in
            _ = await failure { _ = try await service.webSocket("/chat") }
        }
        // The client does not report the interruption, so the replay itself is recorded.
        let copy = Tape()
        let replay = try CassetteSession(file: tape.file, mode: .replay)
        let recording = try CassetteSession(file: copy.file, mode: .record, session: replay)
        service.session = recording
        let error = await failure { _ = try await service.webSocket("/chat") } as? WebServiceError
        #expect(error?.response?.status == 403)
        #expect(error?.body?.isEmpty == false)
        try replay.finish()
        try recording.finish()
        #expect(try copy.text().contains(#""error" : -1005"#))
    }

    @Test("A replay selects the recorded subprotocol, which has to be offered")
    func otherSubprotocol() async throws {
        try await tape.record(.memory, .webSocket(subprotocols: ["v1"]) { _ in }) { service in
            try await service.webSocket("/chat", subprotocols: ["v1"]).close()
        }
        let cassette = try CassetteSession(file: tape.file, mode: .replay)
        let error = await failure {
            _ = try await WebService("https://api.test", session: cassette).webSocket("/chat", subprotocols: ["v2"])
        }
        #expect(code(error) == .webSocketHandshake)
    }

    @Test("A redirect, a retry and cookies of a handshake are replayed")
    func redirected() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/old", .status(307).header(.location, "/chat").header(.setCookie, "seat=7"))
        stubs.on(.GET, "/chat", [.status(503), .echo])
        let mock = service.session
        for mode in [CassetteSession.Mode.record, .replay] {
            let cassette = try CassetteSession(file: tape.file, mode: mode, session: mock)
            service.session = cassette
            service.cookieJar = CookieJar()
            service.interceptors = [RetryPolicy(maximumAttempts: 2, baseDelay: .zero)]
            let socket = try await service.webSocket("/old")
            try await socket.send("hello")
            #expect(try await socket.messages.first { _ in true } == .text("hello"))
            try await socket.close()
            #expect(service.cookieJar?.cookies.map(\.name) == ["seat"])
            try cassette.finish()
        }
        #expect(stubs.receivedRequests.count == 4)
    }

    @Test("A connection that cannot be opened fails again")
    func failedConnection() async throws {
        let (recorded, replayed) = try await tape.run(.memory, .error(URLError(.cannotConnectToHost))) { service in
            urlCode(await failure { _ = try await service.webSocket("/chat") })
        }
        #expect(recorded == .cannotConnectToHost)
        #expect(replayed == recorded)
    }

    @Test("Missing conversations are recorded, and the others are replayed")
    func recordMissing() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.any, .echo)
        let mock = service.session
        for paths in [["/a"], ["/a", "/b"]] {
            let cassette = try CassetteSession(file: tape.file, mode: .recordMissing, session: mock)
            service.session = cassette
            for path in paths {
                let socket = try await service.webSocket(path)
                try await socket.send(path)
                #expect(try await socket.messages.first { _ in true } == .text(path))
                try await socket.close()
            }
            try cassette.finish()
        }
        #expect(stubs.receivedRequests.map(\.path) == ["/a", "/b"])
    }

    @Test("A mismatch prevents that missing conversations are added")
    func mismatchWhileRecording() async throws {
        let (_, service) = try await tape.record(.memory, .echo) { service in
            let socket = try await service.webSocket("/a")
            try await socket.send("one")
            try await socket.close()
        }
        let (text, mock) = (try tape.text(), MockSession())
        mock.on(.any, .echo)
        let cassette = try CassetteSession(file: tape.file, mode: .recordMissing, session: mock)
        service.session = cassette
        let socket = try await service.webSocket("/a")
        let error = await failure {
            try await socket.send("two")
            for try await _ in socket.messages {}
        }
        #expect(code(error) == .cassetteMismatch)
        try await service.webSocket("/b").close()
        #expect(code(await failure { try cassette.finish() }) == .cassetteMismatch)
        #expect(try tape.text() == text)
    }

    @Test("A recorded session that cannot open connections is an error of its own")
    func unsupported() async throws {
        for mode in [CassetteSession.Mode.record, .passthrough] {
            let cassette = try CassetteSession(file: tape.file, mode: mode, session: FoundationSession.shared)
            let error = await failure {
                _ = try await WebService("https://api.test", session: cassette).webSocket("/chat")
            }
            #expect(code(error) == .webSocketUnsupported)
            #expect((error as? WebServiceError)?.message.contains("FoundationSession") == true)
        }
    }

    @Test("A replay follows the test clock of its service, and responds to pings")
    func clock() async throws {
        try await tape.record(.memory, .echo) { service in
            let socket = try await service.webSocket("/chat")
            for _ in 0..<3 {
                try await socket.send("tick")
                _ = try await socket.messages.first { _ in true }
            }
            try await socket.close()
        }
        let clock = TestClock()
        let cassette = try CassetteSession(file: tape.file, mode: .replay, clock: clock)
        let service = WebService(baseURLString: "https://api.test", clock: clock)
        service.session = cassette
        var options = WebSocket.Options()
        options.pingInterval = .seconds(10)
        let socket = try await service.webSocket("/chat", options: options)
        // A connection whose pings have no response would fail.
        for _ in 0..<3 { await clock.advance(by: .seconds(10)) }
        for _ in 0..<3 {
            try await socket.send("tick")
            #expect(try await socket.messages.first { _ in true } == .text("tick"))
        }
        try await socket.close()
        try cassette.finish()
    }
}
