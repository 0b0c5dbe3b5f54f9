import Foundation
import TestSupport
import Testing
import WebServiceCaching
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceInspector

@Suite("The content of the page of an inspector", .permit)
struct InspectorContentTests {
    @Test("Secrets of requests and responses are in no row, detail, command and archive")
    func secrets() async throws {
        let inspected = InspectedService()
        let body: JSONValue = [
            "access_token": "canary", "url": "https://u:canary@h/?token=canary", "log": "{\"pin\":\"canary\"}",
            "code": "missing_field",
        ]
        inspected.session.on(
            .POST, "/login",
            .json(body).header("Set-Cookie", "sid=canary").header("Link", "<https://h/?api_key=canary>; rel=next"))
        var request = Request(.POST, url: "https://h.example.com/login?token=canary")
        request.headers = ["Authorization": "Bearer canary", "Cookie": "sid=canary", "X-Api-Key": "canary"]
        request.formParameters = ["password": "canary", "user": "ann"]
        let exchange = try await inspected.send(request)
        #expect(exchange.status == 200)
        let detail = ShownExchange(exchange, .standard).pageJSON
        let refused = try await inspected.send(Request(url: "https://ann:canary@h.example.com/login#canary"))
        #expect(!ShownExchange(refused, .standard).pageJSON.contains("canary"))
        let archive = String(decoding: InspectorArchive([exchange], .standard).data, as: UTF8.self)
        let changes = ExchangeChanges(inspected.store.changes(after: ChangeFeed.Position()), .standard).pageJSON
        for text in [detail, archive, changes] { #expect(!text.contains("canary"), "\(text)") }
        #expect(detail.contains("user=ann"))
        #expect(detail.contains("missing_field"))
        #expect(archive.contains("missing_field"))
        #expect(try #require(ShownExchange(exchange, .standard).attempts.last).curl.hasPrefix("curl --disable"))
    }

    @Test("Hostile bytes result in valid JSON on one line")
    func hostileValues() async throws {
        let inspected = InspectedService()
        let attack = "</script>\u{0}\u{1B}\u{2028}\"\\ \u{202E}"
        let response = MockResponse(
            statusCode: 200, headers: ["Content-Type": "text/plain", "X-A": "</script><b>\"\\"], data: Data(attack.utf8)
        )
        let exchange = try await inspected.send("/x", response)
        let json = ShownExchange(exchange, .standard).pageJSON
        #expect(!json.utf8.contains { $0 < 0x20 })
        let object = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
        let attempts = try #require(object["attempts"] as? [[String: Any]])
        let shown = try #require(attempts.first?["response"] as? [String: Any])
        let fields = try #require(shown["headers"] as? [[String]])
        #expect(fields.contains(["X-A", "</script><b>\"\\"]))
    }

    @Test(
        "Only complete images of safe types are shown as images",
        arguments: [
            ("image/png", [0x89, 0x50, 0x4E, 0x47, 1], true), ("IMAGE/PNG; a=b", [0x89, 0x50, 0x4E, 0x47], true),
            ("image/jpeg", [0xFF, 0xD8, 0xFF, 0xE0], true), ("image/gif", Array("GIF89a".utf8), true),
            ("image/png", Array("<svg onload=x>".utf8), false), ("image/svg+xml", Array("<svg/>".utf8), false),
            ("text/html", [0x89, 0x50, 0x4E, 0x47], false),
            ("image/png", [UInt8](repeating: 0x89, count: 2_000), false),
        ] as [(String, [UInt8], Bool)])
    func images(type: String, bytes: [UInt8], isImage: Bool) {
        let body = ShownBody(RecordedBody(Data(bytes), limit: 1_000), ["Content-Type": type], .standard)
        #expect((body.image != nil) == isImage)
        #expect(body.image == nil || body.image == Data(bytes).base64EncodedString())
        // The source of an SVG is text.
        let isText = type == "image/svg+xml"
        #expect((body.note != nil) == (!isImage && !isText))
        #expect((body.text != nil) == isText)
    }

    @Test("A body that cannot be checked for secrets is not shown")
    func otherBodies() {
        for type in ["application/octet-stream", "application/pdf", nil] {
            let body = ShownBody(
                RecordedBody(Data("canary".utf8), limit: 100), type.map { ["Content-Type": $0] } ?? [:], .standard)
            #expect(body.text == nil)
            #expect(body.size == 6)
            #expect(body.note?.contains("not shown") == true)
        }
        let empty = ShownBody(RecordedBody(Data(), limit: 100), ["Content-Type": "text/plain"], .standard)
        #expect(empty.text == nil)
        #expect(empty.note == nil)
        #expect(empty.size == 0)
        let json = ShownBody(RecordedBody(Data("  [1]".utf8), limit: 100), ["Content-Type": "text/plain"], .standard)
        #expect(json.text == "  [1]")
        #expect(json.json == true)
    }

    @Test("The archive is HAR 1.2 with one entry for each attempt")
    func archive() async throws {
        let inspected = InspectedService()
        inspected.session.on(.GET, "/x", [503, .json(["a": 1])])
        var request = Request(url: "https://h.example.com/x?q=a%20b&token=canary")
        request.options.interceptors = [RetryPolicy(baseDelay: .zero)]
        let exchange = try await inspected.send(request)
        let data = Data(String(decoding: InspectorArchive([exchange], .standard).data, as: UTF8.self).utf8)
        let log = try #require(
            (try JSONSerialization.jsonObject(with: data) as? [String: Any])?["log"] as? [String: Any])
        #expect(log["version"] as? String == "1.2")
        let entries = try #require(log["entries"] as? [[String: Any]])
        #expect(entries.count == 2)
        let response = try #require(entries.last?["response"] as? [String: Any])
        #expect(response["status"] as? Int == 200)
        #expect((response["content"] as? [String: Any])?["text"] as? String == #"{"a":1}"#)
        let sent = try #require(entries.last?["request"] as? [String: Any])
        #expect(sent["url"] as? String == "https://h.example.com/x?q=a%20b&token=[redacted]")
        #expect((sent["queryString"] as? [[String: String]])?.first == ["name": "q", "value": "a b"])
    }

    @Test("A streamed response is in progress until the end of its body")
    func streams() async throws {
        let inspected = InspectedService()
        let (chunks, writer) = AsyncStream<Data>.makeStream()
        inspected.session.on(.GET, "/stream", MockResponse(statusCode: 200, chunks: chunks))
        let stream = try await inspected.service.GET("/stream").stream().value
        await eventually { inspected.store.exchanges().first?.phase == .streaming }
        #expect(ListedExchange(try #require(inspected.store.exchanges().first), .standard).duration == nil)
        writer.yield(Data(count: 5_000))
        writer.finish()
        var count = 0
        for try await chunk in stream.body { count += chunk.count }
        #expect(count == 5_000)
        await eventually { inspected.store.exchanges().first?.phase == .ended }
        let detail = ShownExchange(try #require(inspected.store.exchanges().first), .standard)
        #expect(detail.summary.status == 200)
        #expect(detail.summary.duration != nil)
        #expect(detail.summary.size == 5_000)
    }

    @Test("A response of a cache is shown without a request, with its source")
    func cachedResponses() async throws {
        let inspected = InspectedService()
        inspected.service.interceptors = [ResponseCache(storage: MemoryStorage())]
        try await inspected.send("/x", .json(["a": 1]).header("Cache-Control", "max-age=60"))
        let exchange = try await inspected.send(Request(url: "https://h.example.com/x"))
        let detail = ShownExchange(exchange, .standard)
        #expect(detail.attempts.isEmpty)
        #expect(detail.summary.source == "cache")
        #expect(detail.summary.status == 200)
        #expect(detail.response?.body.text == #"{"a":1}"#)
        #expect(detail.explanation.last == "The exchange ended with status 200, source: cache.")
    }
}
