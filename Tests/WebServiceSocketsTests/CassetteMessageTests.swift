import Foundation
import TestSupport
import Testing
import WebServiceCassettes
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

/// The comparison of messages, secrets, damaged files and limits.
@Suite("Cassettes of WebSocket messages", .permit)
struct CassetteMessageTests {
    private let tape = Tape()

    private func service(_ session: any Session) -> WebService {
        WebService("https://api.test", session: session)
    }

    /// Records one message and its echo.
    private func record(_ message: WebSocketMessage) async throws {
        try await tape.record(.memory, .echo, recordsUnsearchedBodies: true) { service in
            let socket = try await service.webSocket("/chat?api_key=canary-key")
            try await socket.send(message)
            _ = try await socket.messages.first { _ in true }
            try await socket.close()
        }
    }

    /// Replays another message, and returns the error of the socket and that of `finish()`.
    private func replay(_ messages: WebSocketMessage...) async throws -> (
        socket: WebServiceError?, end: WebServiceError?
    ) {
        let cassette = try CassetteSession(file: tape.file, mode: .replay)
        let socket = try await service(cassette).webSocket("/chat?api_key=other")
        let error = await failure {
            for message in messages {
                try await socket.send(message)
                _ = try await socket.messages.first { _ in true }
            }
        }
        try await socket.close()
        let end = await failure { try cassette.finish() }
        return (error as? WebServiceError, end as? WebServiceError)
    }

    // MARK: Comparison

    @Test("A sent message that differs fails the socket and names both messages and the file")
    func mismatch() async throws {
        try await record(.text(#"{"channel":"gold","op":"subscribe","token":"canary-token"}"#))
        let (error, end) = try await replay(.text(#"{"channel":"silver","op":"subscribe","token":"canary-other"}"#))
        let message = try #require(error).message
        #expect(error?.code == .cassetteMismatch)
        #expect(message.contains("message 1 of GET https://api.test/chat"))
        #expect(message.contains("chat.json"))
        #expect(message.contains(#"at channel: expected "gold", received "silver""#))
        #expect(message.contains("expected 56 bytes of text"))
        #expect(!message.contains("canary"))
        #expect(end?.code == .cassetteMismatch)
    }

    @Test("The error of a long message is bounded")
    func longMismatch() async throws {
        try await record(.text(String(repeating: "ale ", count: 50_000)))
        let (error, _) = try await replay(.text(String(repeating: "beer ", count: 50_000)))
        #expect(try #require(error).message.utf8.count < 500)
    }

    @Test("JSON is compared as values and without secrets")
    func equalJSON() async throws {
        try await record(.text(#"{"id": 1, "token": "canary-token", "tags": []}"#))
        let (error, end) = try await replay(.text(#"{"tags":[],"token":"canary-other","id":1}"#))
        #expect(error == nil)
        #expect(end == nil)
    }

    @Test(
        "Other text, other bytes and the other kind of message are differences",
        arguments: [
            (WebSocketMessage.text("ale"), WebSocketMessage.text("ale ")),
            (.data(Data([0, 1])), .data(Data([0, 2]))),
            (.text("1"), .data(Data("1".utf8))),
        ])
    func otherMessages(recorded: WebSocketMessage, sent: WebSocketMessage) async throws {
        try await record(recorded)
        #expect(try await replay(recorded).socket == nil)
        #expect(try await replay(sent).socket?.code == .cassetteMismatch)
    }

    @Test("A message after the end of the recording is a difference")
    func furtherMessage() async throws {
        try await record(.text("ale"))
        let (error, end) = try await replay(.text("ale"), .text("beer"))
        #expect(error?.code == .cassetteMismatch)
        #expect(error?.message.contains("no further message") == true)
        #expect(end?.code == .cassetteMismatch)
    }

    @Test("Without the criterion `body`, messages are not compared")
    func withoutBody() async throws {
        try await record(.text("ale"))
        let cassette = try CassetteSession(file: tape.file, mode: .replay, matching: [.method, .path])
        let socket = try await service(cassette).webSocket("/chat")
        try await socket.send("beer")
        #expect(try await socket.messages.first { _ in true } == .text("ale"))
        try await socket.close()
        try cassette.finish()
    }

    @Test("A handshake matches no request of HTTP, and a new one fails")
    func handshake() async throws {
        try await record(.text("ale"))
        let cassette = try CassetteSession(file: tape.file, mode: .replay, matching: [.path])
        let request = await failure { _ = try await service(cassette).GET("/chat").data().value }
        #expect(code(request) == .cassetteMismatch)
        #expect((request as? WebServiceError)?.message.contains("upgrade: expected websocket, received none") == true)
        let other = await failure { _ = try await service(cassette).webSocket("/other") }
        #expect(code(other) == .cassetteMismatch)
        #expect(code(await failure { try cassette.finish() }) == .cassette)
    }

    // MARK: Secrets

    @Test("No secret of a handshake or a message is in the file", arguments: SocketTransport.allCases)
    func secrets(_ transport: SocketTransport) async throws {
        let stub = MockResponse.webSocket { socket in
            _ = try await socket.next()
            try await socket.send(#"{"access_token":"canary-token","user":"canary-user"}"#)
            try await socket.send(Data(#"{"password":"canary-password"}"#.utf8))
            _ = try await socket.next()
            try await socket.close(.normalClosure, reason: "canary-user left")
        }
        let (_, replayed) = try await tape.run(transport, stub, secrets: ["canary-user"]) { service in
            let socket = try await service.webSocket("/chat?api_key=canary-key") {
                $0.headers["Authorization"] = "Bearer canary-bearer"
            }
            var messages = socket.messages.makeAsyncIterator()
            try await socket.send(#"{"password":"canary-password"}"#)
            let login = try await messages.next()
            let token = try login?.decode(JSONValue.self)["access_token"]?.string ?? ""
            try await socket.send(#"{"access_token":"\#(token)"}"#)
            while try await messages.next() != nil {}
            return [token, socket.closure?.reason ?? ""]
        }
        let text = try tape.text()
        #expect(!text.contains("canary"))
        #expect(replayed.first?.hasPrefix("redacted-") == true)
        #expect(replayed.last?.hasSuffix(" left") == true)
        #expect(text.contains(#"{\"access_token\":\"\#(replayed.first ?? "")\"}"#))
    }

    @Test(
        "A secret that remains in a message, and bytes that cannot be searched, write no file",
        arguments: [
            WebSocketMessage.text("note glpat-canary-canary-canary"), .data(Data([0, 255])),
            .data(Data("glpat-canary-canary-canary".utf8)),
        ])
    func remainingSecret(message: WebSocketMessage) async throws {
        let error = await failure {
            try await tape.record(.memory, .echo) { service in
                let socket = try await service.webSocket("/chat")
                try await socket.send(message)
                try await socket.close()
            }
        }
        #expect(code(error) == .cassetteSecret)
        #expect((error as? WebServiceError)?.message.contains("canary") == false)
        #expect(!FileManager.default.fileExists(atPath: tape.file.path))
    }

    @Test("A closure sees, changes and removes messages before they are recorded")
    func change() async throws {
        let stub = MockResponse.webSocket { socket in
            try await socket.send("noise")
            try await socket.send("at 12:30")
            _ = try await socket.next()
            try await socket.close(.init(rawValue: 4000), reason: "at 12:31")
        }
        let seen = Collected<CassetteSession.Exchange.Message>()
        try await tape.record(
            .memory, stub,
            willRecord: { exchange in
                var exchange = exchange
                for message in exchange.messages { seen.add(message) }
                exchange.requestHeaders = [:]
                exchange.messages.removeAll { $0.content == .message(.text("noise")) }
                for place in exchange.messages.indices {
                    switch exchange.messages[place].content {
                    case .message(.text): exchange.messages[place].content = .message(.text("at noon"))
                    case .message(.data): break
                    case .close(let closure): exchange.messages[place].content = .close(closure.map { .init($0.code) })
                    }
                }
                return exchange
            }
        ) { service in
            let socket = try await service.webSocket("/chat")
            try await socket.send(Data("{}".utf8))
            _ = await failure { for try await _ in socket.messages {} }
        }
        #expect(seen.values.map(\.isReceived).filter { $0 }.count == 3)
        #expect(seen.values.contains { $0.content == .message(.data(Data("{}".utf8))) })
        let cassette = try CassetteSession(file: tape.file, mode: .replay)
        let socket = try await service(cassette).webSocket("/chat")
        try await socket.send(Data("{}".utf8))
        var messages = socket.messages.makeAsyncIterator()
        #expect(try await messages.next() == .text("at noon"))
        #expect(code(await failure { _ = try await messages.next() }) == .webSocketClosed)
        #expect(socket.closure == WebSocketClosure(.init(rawValue: 4000)))
        try cassette.finish()
    }

    // MARK: Files

    @Test("A damaged conversation is a typed error that names the file")
    func damage() async throws {
        try await record(.text("ale"))
        let whole = try tape.text()
        let damaged = [
            String(whole.dropLast(60)),
            whole.replacingOccurrences(of: #""close" : 1000"#, with: #""close" : 1006"#),
            whole.replacingOccurrences(of: #""close" : 1000,"#, with: #""close" : 1005, "text" : "a","#),
            whole.replacingOccurrences(of: #""from" : "server""#, with: #""from" : "proxy""#),
            whole.replacingOccurrences(of: #""text" : "ale""#, with: #""text" : "ale", "base64" : """#),
            whole.replacingOccurrences(of: #""text" : "ale""#, with: #""base64" : "%""#),
            whole.replacingOccurrences(of: #""status" : 101"#, with: #""status" : 200"#),
        ]
        for text in damaged {
            #expect(text != whole)
            try tape.write(text)
            let error = await failure { _ = try CassetteSession(file: tape.file) }
            #expect(code(error) == .cassette, "\(text)")
            #expect((error as? WebServiceError)?.message.contains("chat.json is damaged") == true)
        }
    }

    @Test("A newer file is refused, and a file without conversations has the version before")
    func versions() async throws {
        try await record(.text("ale"))
        try tape.write(tape.text().replacingOccurrences(of: #""version" : 3"#, with: #""version" : 4"#))
        let error = await failure { _ = try CassetteSession(file: tape.file) }
        #expect((error as? WebServiceError)?.message.contains("has version 4, but this library reads") == true)
        try await tape.record(.memory, .text("ale")) { _ = try await $0.GET("/").data().value }
        #expect(try tape.text().contains(#""version" : 2"#))
        _ = try CassetteSession(file: tape.file, mode: .replay)
    }

    @Test("A conversation over a limit is not written", arguments: [true, false])
    func limits(hasManyMessages: Bool) async throws {
        let (count, size) = hasManyMessages ? (10_001, 0) : (17, 1 << 20)
        let stub = MockResponse.webSocket { socket in
            for _ in 0..<count { try await socket.send(String(repeating: "a", count: size)) }
        }
        let error = await failure {
            try await tape.record(.memory, stub) { service in
                let socket = try await service.webSocket("/feed")
                var received = 0
                for try await _ in socket.messages { received += 1 }
                #expect(received == count)
            }
        }
        #expect(code(error) == .cassette)
        let limit = hasManyMessages ? "10000 messages" : "16777216 bytes"
        #expect((error as? WebServiceError)?.message.contains("more than \(limit)") == true)
        #expect(!FileManager.default.fileExists(atPath: tape.file.path))
    }
}

extension WebSocket {
    fileprivate func send(_ message: WebSocketMessage) async throws {
        switch message {
        case .text(let text): try await send(text)
        case .data(let data): try await send(data)
        }
    }
}
