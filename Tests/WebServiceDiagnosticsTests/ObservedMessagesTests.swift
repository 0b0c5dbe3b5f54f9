import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("The messages of a WebSocket in logs and archives", .permit)
struct ObservedMessagesTests {
    private let temporary = TemporaryFolder()
    private var file: URL { temporary.url.appendingPathComponent("session.har") }
    private let session = MockSession()
    private let service = WebService(baseURLString: "https://h/v1")

    /// Sends messages to a server that sends the first one back and closes.
    private func converse(_ messages: [WebSocketMessage]) async throws {
        service.session = session
        session.on(
            .GET, "/v1/chat",
            .webSocket { socket in
                var first: WebSocketMessage?
                for _ in messages {
                    let message = try await socket.next()
                    first = first ?? message
                }
                if let first { try await socket.send(first) }
            })
        let socket = try await service.webSocket("/chat")
        for message in messages {
            switch message {
            case .text(let text): try await socket.send(text)
            case .data(let data): try await socket.send(data)
            }
        }
        for try await _ in socket.messages {}
    }

    // MARK: Logs

    private func lines(
        _ level: LogEntry.Level, bodyLimit: Int = 4096, _ messages: [WebSocketMessage]
    ) async throws -> [String] {
        let entries = Collected<LogEntry>()
        service.observers = [.log(level, bodyLimit: bodyLimit) { entries.add($0) }]
        try await converse(messages)
        var lines: [String] {
            entries.values.map { $0.text.replacingOccurrences(of: "#\($0.exchange.id) ", with: "") }
                .filter { $0.contains(" message, ") }
        }
        // Observers receive events later.
        if level == .trace { await eventually("the messages are logged") { lines.count > messages.count } }
        return lines
    }

    @Test("The level trace logs each message with direction, kind, size and content")
    func trace() async throws {
        let lines = try await lines(
            .trace, [.text(#"{"password":"canary","beer":"Ale"}"#), .data(Data([1, 2, 255])), .text("a\u{1B}\nb")])
        #expect(
            lines == [
                """
                --> text message, 34 bytes
                    {"password":"[redacted]","beer":"Ale"}
                """,
                "--> binary message, 3 bytes",
                """
                --> text message, 4 bytes
                    a\\u{1B}\\nb
                """,
                """
                <-- text message, 34 bytes
                    {"password":"[redacted]","beer":"Ale"}
                """,
            ])
    }

    @Test("The content of a logged message is limited like a body")
    func bodyLimit() async throws {
        let message = WebSocketMessage.text("0123456789")
        #expect(
            try await lines(.trace, bodyLimit: 4, [message]) == [
                "--> text message, 10 bytes\n    0123… (10 bytes in total)",
                "<-- text message, 10 bytes\n    0123… (10 bytes in total)",
            ])
        #expect(
            try await lines(.trace, bodyLimit: 0, [message]) == [
                "--> text message, 10 bytes", "<-- text message, 10 bytes",
            ])
    }

    @Test("The level debug does not log messages")
    func debug() async throws {
        #expect(try await lines(.debug, [.text("hello")]) == [])
    }

    // MARK: Archives

    private func entries() throws -> [[String: Any]] {
        let json = try JSONSerialization.jsonObject(with: try Data(contentsOf: file)) as? [String: Any]
        return try #require((json?["log"] as? [String: Any])?["entries"] as? [[String: Any]])
    }

    private func messages(_ entry: [String: Any]?) throws -> [[String: Any]] {
        try #require(entry?["_webSocketMessages"] as? [[String: Any]])
    }

    @Test("The entry of a WebSocket has its messages in the form of Chromium, without secrets")
    func archive() async throws {
        let archive = try ArchiveObserver(file: file, bodyLimit: 1_000)
        service.observers = [archive]
        try await converse([
            .text(#"{"password":"canary","beer":"Ale"}"#), .data(Data("canary".utf8)), .data(Data("[1]".utf8)),
        ])
        try await eventually {
            await archive.finish()
            return try entries().count == 1
        }
        let entry = try #require(try entries().first)
        #expect(entry["_resourceType"] as? String == "websocket")
        #expect((entry["request"] as? [String: Any])?["url"] as? String == "wss://h/v1/chat")
        #expect((entry["response"] as? [String: Any])?["status"] as? Int == 101)
        let messages = try messages(entry)
        #expect(messages.map { $0["type"] as? String } == ["send", "send", "send", "receive"])
        #expect(messages.map { $0["opcode"] as? Int } == [1, 2, 2, 1])
        let text = #"{"password":"[redacted]","beer":"Ale"}"#
        #expect(messages.map { $0["data"] as? String } == [text, "", "WzFd", text])
        #expect(messages.map { $0["_size"] as? Int } == [nil, 6, nil, nil])
        let times = messages.compactMap { $0["time"] as? Double }
        #expect(times.count == 4)
        #expect(times == times.sorted())
        #expect(!String(decoding: try Data(contentsOf: file), as: UTF8.self).contains("canary"))
    }

    @Test("Without bodies, the archive has the sizes of the messages")
    func sizes() async throws {
        let archive = try ArchiveObserver(file: file)
        service.observers = [archive]
        try await converse([.text("hello")])
        try await eventually {
            await archive.finish()
            return try entries().count == 1
        }
        let messages = try messages(try entries().first)
        #expect(messages.map { $0["data"] as? String } == ["", ""])
        #expect(messages.map { $0["_size"] as? Int } == [5, 5])
    }

    @Test("The messages of an archive are limited, and their number is that of the omitted ones")
    func limits() async throws {
        let archive = try ArchiveObserver(file: file, bodyLimit: 10)
        service.observers = [archive]
        try await converse([.text("first"), .text("second"), .text("third")])
        try await eventually {
            await archive.finish()
            return try entries().count == 1
        }
        let entry = try entries().first
        #expect(try messages(entry).map { $0["data"] as? String } == ["third", "first"])
        #expect(entry?["_webSocketMessagesOmitted"] as? Int == 2)
    }

    @Test("The entry of a connection that is lost has the messages, and that of an earlier attempt none")
    func lostConnection() async throws {
        let archive = try ArchiveObserver(file: file, bodyLimit: 1_000)
        service.session = session
        service.interceptors = [RetryPolicy(baseDelay: .zero)]
        service.observers = [archive]
        session.on(
            .GET, "/v1/chat",
            [
                503,
                .webSocket { socket in
                    _ = try await socket.next()
                    socket.disconnect()
                },
            ])
        let socket = try await service.webSocket("/chat")
        try await socket.send("hello")
        await #expect(throws: URLError.self) { for try await _ in socket.messages {} }
        try await eventually {
            await archive.finish()
            return try entries().count == 2
        }
        let all = try entries()
        #expect(all.first?["_webSocketMessages"] == nil)
        #expect(try messages(all.last).map { $0["data"] as? String } == ["hello"])
    }

    @Test("A refused handshake is an entry without messages")
    func refused() async throws {
        let archive = try ArchiveObserver(file: file)
        service.session = session
        service.observers = [archive]
        session.on(.GET, "/v1/chat", 403)
        _ = try? await service.webSocket("/chat")  // the status is 403
        try await eventually {
            await archive.finish()
            return try entries().count == 1
        }
        let entry = try #require(try entries().first)
        #expect((entry["response"] as? [String: Any])?["status"] as? Int == 403)
        #expect(entry["_webSocketMessages"] == nil)
    }
}
