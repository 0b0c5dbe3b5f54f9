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

@testable import WebServiceInspector

@Suite("The messages of a WebSocket in an inspector", .permit)
struct InspectedMessagesTests {
    /// Sends messages to a server that sends each of them back, until the server closes.
    private func converse(
        _ inspected: InspectedService, _ messages: [WebSocketMessage], _ code: WebSocketClosure.Code = .normalClosure,
        reason: String = ""
    ) async throws -> RecordedExchange {
        inspected.session.on(
            .GET, "/chat",
            .webSocket { socket in
                for _ in messages { if let message = try await socket.next() { try await socket.send(message) } }
                try await socket.close(code, reason: reason)
            })
        let socket = try await inspected.service.webSocket("/chat")
        for message in messages {
            switch message {
            case .text(let text): try await socket.send(text)
            case .data(let data): try await socket.send(data)
            }
        }
        do { for try await _ in socket.messages {} } catch {}  // the code may indicate an error
        await eventually { inspected.store.exchanges().last?.phase == .ended }
        return try #require(inspected.store.exchanges().last)
    }

    private func shown(_ exchange: RecordedExchange, showsBinary: Bool = false) throws -> [String: Any] {
        let json = ShownExchange(exchange, .standard, showsBinary: showsBinary).pageJSON
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        return try #require(object?["messages"] as? [String: Any])
    }

    private func rows(_ exchange: RecordedExchange, showsBinary: Bool = false) throws -> [[String: Any]] {
        try #require(try shown(exchange, showsBinary: showsBinary)["rows"] as? [[String: Any]])
    }

    private func body(_ row: [String: Any]) -> [String: Any] { row["body"] as? [String: Any] ?? [:] }

    @Test("Messages are rows with direction, time, kind, size and content, and the closure follows")
    func content() async throws {
        let inspected = InspectedService()
        let exchange = try await converse(
            inspected, [.text(#"{"beer":"Ale"}"#), .data(Data([1, 2, 255]))], .policyViolation, reason: "too many")
        let rows = try rows(exchange, showsBinary: true)
        #expect(rows.count == 4)
        #expect(rows.count { $0["isReceived"] as? Bool == true } == 2)
        let texts = rows.filter { $0["isText"] as? Bool == true }
        #expect(texts.map { body($0)["text"] as? String } == [#"{"beer":"Ale"}"#, #"{"beer":"Ale"}"#])
        #expect(texts.allSatisfy { body($0)["json"] as? Bool == true })
        #expect(texts.allSatisfy { body($0)["size"] as? Int == 14 })
        let data = rows.filter { $0["isText"] as? Bool == false }
        #expect(data.map { body($0)["bytes"] as? String } == ["AQL/", "AQL/"])
        let times = rows.compactMap { $0["time"] as? Double }
        #expect(times == times.sorted())
        #expect(times.allSatisfy { (0..<600_000).contains($0) })
        let closure = try #require(try shown(exchange)["closure"] as? [String: Any])
        #expect(closure["code"] as? Int == 1008)
        #expect(closure["reason"] as? String == "too many")
        let row = ListedExchange(exchange, .standard)
        #expect(row.error == "webSocketClosed: the server closed the connection with code 1008: too many")
        #expect(row.type == "websocket")
        #expect(row.size == 17)
    }

    @Test("Secrets in messages and in the reason are redacted, and binary data is not shown")
    func secrets() async throws {
        let inspected = InspectedService()
        let exchange = try await converse(
            inspected,
            [
                .text(#"{"password":"canary","beer":"Ale"}"#), .text("token=canary"), .data(Data("canary".utf8)),
                .data(Data(#"{"password":"canary"}"#.utf8)),
            ],
            reason: "token=canary")
        let json = ShownExchange(exchange, .standard).pageJSON
        #expect(!json.contains("canary"))
        let bodies = try rows(exchange).map { body($0) }
        #expect(bodies.contains { $0["text"] as? String == #"{"password":"[redacted]","beer":"Ale"}"# })
        #expect(bodies.contains { $0["text"] as? String == "token=[redacted]" })
        #expect(bodies.contains { ($0["note"] as? String)?.contains("showsBinaryBodies") == true })
        let archive = String(decoding: InspectorArchive([exchange], .standard).data, as: UTF8.self)
        #expect(!archive.contains("canary"))
        #expect(!archive.contains(Data("canary".utf8).base64EncodedString()))
        #expect(BodySearch("ALE", in: [exchange], .standard).numbers == [exchange.number])
        #expect(BodySearch("canary", in: [exchange], .standard).numbers == [])
    }

    @Test("The bytes of an exchange's messages are limited, and the number of dropped ones remains")
    func byteLimit() async throws {
        let inspected = InspectedService(bodyLimit: 100)
        let messages = (0..<50).map { WebSocketMessage.text(String($0 + 100_000_000)) }
        let exchange = try await converse(inspected, messages)
        let shown = try shown(exchange)
        let rows = try rows(exchange)
        #expect(rows.count == 11)
        #expect(shown["dropped"] as? Int == 89)
        #expect(exchange.size < 10_000)
        #expect(rows.last.map { body($0)["text"] as? String } == "100000049")
    }

    @Test("The number of messages is limited")
    func numberLimit() async throws {
        let inspected = InspectedService(bodyLimit: 1_000_000)
        let exchange = try await converse(inspected, Array(repeating: .text(""), count: 600))
        #expect(try rows(exchange).count == 1_000)
        #expect(try shown(exchange)["dropped"] as? Int == 200)
        #expect(exchange.size < 300_000)
    }

    @Test("A message over the limit is truncated, and its size remains")
    func largeMessage() async throws {
        let inspected = InspectedService(bodyLimit: 100)
        let exchange = try await converse(inspected, [.text(String(repeating: "a", count: 5_000))])
        let rows = try rows(exchange)
        #expect(rows.count == 1)
        let shown = try #require(rows.last.map { body($0) })
        #expect(shown["text"] as? String == String(repeating: "a", count: 100))
        #expect(shown["size"] as? Int == 5_000)
        #expect(shown["note"] as? String == "The first 100 of 5000 bytes.")
    }

    @Test("The messages of a connection that is lost remain, with its failure")
    func lostConnection() async throws {
        let inspected = InspectedService()
        inspected.session.on(
            .GET, "/chat",
            .webSocket { socket in
                _ = try await socket.next()
                socket.disconnect()
            })
        let socket = try await inspected.service.webSocket("/chat")
        try await socket.send("hello")
        await #expect(throws: URLError.self) { for try await _ in socket.messages {} }
        await eventually { inspected.store.exchanges().last?.phase == .ended }
        let exchange = try #require(inspected.store.exchanges().last)
        #expect(try rows(exchange).map { body($0)["text"] as? String } == ["hello"])
        #expect(try shown(exchange)["closure"] == nil)
        #expect(ListedExchange(exchange, .standard).error?.contains("networkConnectionLost") == true)
    }

    @Test("The archive has the messages in the form of Chromium, also while the connection is open")
    func archive() async throws {
        let inspected = InspectedService()
        inspected.session.on(.GET, "/chat", .webSocket { socket in _ = try await socket.next() })
        let socket = try await inspected.service.webSocket("/chat")
        try await socket.send("hello")
        await eventually { inspected.store.exchanges().last?.messages?.messages.count == 1 }
        let exchange = try #require(inspected.store.exchanges().last)
        let log = try JSONSerialization.jsonObject(with: InspectorArchive([exchange], .standard).data)
        let entries = (log as? [String: [String: Any]])?["log"]?["entries"] as? [[String: Any]]
        let entry = try #require(entries?.last)
        #expect(entry["_resourceType"] as? String == "websocket")
        #expect((entry["request"] as? [String: Any])?["url"] as? String == "wss://h.example.com/chat")
        let message = try #require((entry["_webSocketMessages"] as? [[String: Any]])?.first)
        #expect(message["type"] as? String == "send")
        #expect(message["opcode"] as? Int == 1)
        #expect(message["data"] as? String == "hello")
        let time = try #require(message["time"] as? Double)
        #expect(abs(time - exchange.start.timeIntervalSince1970) < 600)
        try await socket.close()
    }
}
