import Foundation
import TestSupport
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

/// Recording and replay of the conversations of WebSocket connections.
@Suite("Cassettes of WebSocket conversations", .permit)
struct CassetteConversationTests {
    private let tape = Tape()

    @Test(
        "A conversation is recorded and replayed without a network",
        arguments: SocketTransport.allCases)
    func conversation(_ transport: SocketTransport) async throws {
        let data = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        let stub = MockResponse.webSocket(subprotocols: ["v1"]) { socket in
            try await socket.send("welcome")
            while let message = try await socket.next() { try await socket.send(message) }
        }
        let (recorded, replayed) = try await tape.run(transport, stub, recordsUnsearchedBodies: true) { service in
            let socket = try await service.webSocket("/chat?page=1", subprotocols: ["v2", "v1"])
            var messages = socket.messages.makeAsyncIterator()
            var received = [try await messages.next()]
            try await socket.send("grüße")
            received.append(try await messages.next())
            try await socket.send(data)
            received.append(try await messages.next())
            try await socket.send("")
            received.append(try await messages.next())
            try await socket.close()
            received.append(try await messages.next())
            return (received, socket.subprotocol, socket.response.status, socket.closure)
        }
        #expect(recorded.0 == [.text("welcome"), .text("grüße"), .data(data), .text(""), nil])
        #expect(replayed.0 == recorded.0)
        #expect(recorded.1 == "v1")
        #expect(replayed.1 == "v1")
        #expect(replayed.2 == 101)
        #expect(replayed.3 == recorded.3)
    }

    @Test("The file contains the messages in order, without pings, and the handshake as a request")
    func format() async throws {
        let stub = MockResponse.webSocket { socket in
            _ = try await socket.next()
            try await socket.send(raw: Data([0x89, 0x01, 0x61]))
            try await socket.send(Data([0, 1]))
            _ = try await socket.next()
        }
        _ = try await tape.run(.memory, stub, recordsUnsearchedBodies: true) { service in
            let socket = try await service.webSocket("/chat") { $0.headers["X-Room"] = "7" }
            try await socket.send(#"{"op":"join"}"#)
            _ = try await socket.messages.first { _ in true }
            try await socket.close(.normalClosure, reason: "done")
        }
        #expect(
            try tape.text() == #"""
                {
                  "exchanges" : [
                    {
                      "messages" : [
                        {
                          "from" : "client",
                          "text" : "{\"op\":\"join\"}"
                        },
                        {
                          "base64" : "AAE=",
                          "from" : "server"
                        },
                        {
                          "close" : 1000,
                          "from" : "client",
                          "text" : "done"
                        },
                        {
                          "close" : 1000,
                          "from" : "server"
                        }
                      ],
                      "request" : {
                        "headers" : [
                          "X-Room: 7"
                        ],
                        "method" : "GET",
                        "upgrade" : "websocket",
                        "url" : "https://api.test/chat"
                      },
                      "response" : {
                        "headers" : [
                          "Upgrade: websocket",
                          "Connection: Upgrade"
                        ],
                        "status" : 101
                      }
                    }
                  ],
                  "version" : 3
                }

                """#)
    }

    @Test(
        "A recorded message arrives after the sent ones that preceded it",
        arguments: SocketTransport.allCases)
    func order(_ transport: SocketTransport) async throws {
        let stub = MockResponse.webSocket { socket in
            for number in 1...3 {
                try await socket.send("question \(number)")
                _ = try await socket.next()
            }
            try await socket.send("result")
        }
        let (recorded, replayed) = try await tape.run(transport, stub) { service in
            let recorder = EventRecorder()
            service.observers = [recorder]
            let socket = try await service.webSocket("/quiz")
            for try await message in socket.messages where message != .text("result") {
                // Without the message that is sent next, the next one must not arrive.
                for _ in 0..<100 { await Task.yield() }
                try await socket.send("yes")
            }
            await eventually { recorder.lines(0).contains("message received 6") }
            return recorder.lines(0).filter { $0.hasPrefix("message") }
        }
        let turn = ["message received 10", "message sent 3"]
        #expect(recorded == turn + turn + turn + ["message received 6"])
        #expect(replayed == recorded)
    }

    // MARK: Ends

    @Test(
        "The code and the reason of the server are replayed",
        arguments: SocketTransport.allCases)
    func closedByServer(_ transport: SocketTransport) async throws {
        let stub = MockResponse.webSocket { socket in
            try await socket.send("last")
            try await socket.close(.policyViolation, reason: "too loud")
        }
        let (recorded, replayed) = try await tape.run(transport, stub) { service in
            let socket = try await service.webSocket("/chat")
            let error = await failure { for try await _ in socket.messages {} }
            return (code(error), socket.closure)
        }
        #expect(recorded.0 == .webSocketClosed)
        #expect(recorded.1 == WebSocketClosure(.policyViolation, reason: "too loud"))
        #expect(replayed.0 == recorded.0)
        #expect(replayed.1 == recorded.1)
        #expect(try tape.text().contains(#""close" : 1008"#))
    }

    @Test("The response of the server to a Close frame has the recorded code and reason")
    func responseToClose() async throws {
        try await tape.record(.memory, .echo) { try await $0.webSocket("/chat").close() }
        let (before, after) = (#""from" : "server""#, #""from" : "server", "text" : "bye""#)
        let parts = try tape.text().components(separatedBy: before)
        let text = try #require(parts.first).replacingOccurrences(of: "1000", with: "4001")
        try tape.write(text + after + #require(parts.last))
        let cassette = try CassetteSession(file: tape.file, mode: .replay)
        let socket = try await WebService("https://api.test", session: cassette).webSocket("/chat")
        try await socket.close()
        #expect(socket.closure == WebSocketClosure(.init(rawValue: 4001), reason: "bye"))
    }

    @Test("A Close frame without a code is replayed without a code")
    func closeWithoutCode() async throws {
        let stub = MockResponse.webSocket { socket in
            try await socket.send(raw: Data([0x88, 0x00]))
            _ = try await socket.next()
        }
        let (recorded, replayed) = try await tape.run(.memory, stub) { service in
            let socket = try await service.webSocket("/chat")
            for try await _ in socket.messages {}
            return socket.closure
        }
        #expect(recorded == nil)
        #expect(replayed == nil)
        #expect(try tape.text().contains(#""close" : 1005"#))
    }

    @Test(
        "The loss of a connection is replayed after its messages", arguments: SocketTransport.allCases)
    func lost(_ transport: SocketTransport) async throws {
        let stub = MockResponse.webSocket { socket in
            try await socket.send("last")
            _ = try await socket.next()
            socket.disconnect()
        }
        let (recorded, replayed) = try await tape.run(transport, stub) { service in
            let socket = try await service.webSocket("/chat")
            var messages = socket.messages.makeAsyncIterator()
            let first = try await messages.next()
            let error = await failure {
                try await socket.send("go")  // may already report the loss
                _ = try await messages.next()
            }
            return (first, urlCode(error))
        }
        #expect(recorded.0 == .text("last"))
        #expect(recorded.1 == .networkConnectionLost)
        #expect(replayed.0 == recorded.0)
        #expect(replayed.1 == recorded.1)
    }

    @Test("A test may leave a conversation early, with each way to end it", arguments: [true, false])
    func leftEarly(closes: Bool) async throws {
        let stub = MockResponse.webSocket { socket in
            for number in 1...3 {
                try await socket.send("\(number)")
                _ = try await socket.next()
            }
        }
        try await tape.record(.memory, stub) { service in
            let socket = try await service.webSocket("/chat")
            for try await _ in socket.messages { try await socket.send("next") }
        }
        let cassette = try CassetteSession(file: tape.file, mode: .replay)
        do {
            let socket = try await WebService("https://api.test", session: cassette).webSocket("/chat")
            #expect(try await socket.messages.first { _ in true } == .text("1"))
            if closes {
                try await socket.close()
                #expect(socket.closure == WebSocketClosure(.normalClosure))
            }
        }
        try cassette.finish()
    }

    @Test("A recording that is written while a connection is open contains its messages so far")
    func openConnection() async throws {
        let (service, stubs) = try SocketTransport.memory.make()
        stubs.on(.GET, "/chat", .echo)
        let cassette = try CassetteSession(file: tape.file, mode: .record, session: service.session)
        service.session = cassette
        let socket = try await service.webSocket("/chat")
        try await socket.send("one")
        #expect(try await socket.messages.first { _ in true } == .text("one"))
        try cassette.finish()
        try await socket.close()
        let replay = try CassetteSession(file: tape.file, mode: .replay)
        service.session = replay
        let second = try await service.webSocket("/chat")
        try await second.send("one")
        #expect(try await second.messages.first { _ in true } == .text("one"))
        try await second.close()
        try replay.finish()
    }
}
