import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking
import WebServiceServer
import WebServiceSockets

@testable import WebServiceInspector

@Suite("The failures that an inspector shows", .permit)
struct InspectedFailureTests {
    private let inspected = InspectedService()

    private var last: RecordedExchange {
        get throws { try #require(inspected.store.exchanges().last) }
    }

    private var row: ListedExchange {
        get throws { ListedExchange(try last, .standard) }
    }

    /// Waits until the last exchange has ended and has a property.
    private func wait(until condition: @escaping @Sendable (RecordedExchange) -> Bool = { _ in true }) async {
        let store = inspected.store
        await eventually { store.exchanges().last.map { $0.phase == .ended && condition($0) } ?? false }
    }

    @Test("A truncated body is a failure with its status, its error and the bytes that were received")
    func truncatedBody() async throws {
        let server = try MockServer.forTest { _ in
            var response = MockResponse.text("abcdef")
            response.wire = .raw(
                Data("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nabcdef".utf8))
            return response
        }
        inspected.service.session = FoundationSession()
        let task = inspected.service.GET("\(server.baseURLString)/").data()
        await #expect(throws: URLError.self) { try await task.value }
        await wait()
        #expect(try row.status == 200)
        #expect(try row.error?.hasPrefix("URLError networkConnectionLost (-1005)") == true)
        #expect(try row.cancelled == nil)
        let attempt = try #require(ShownExchange(try last, .standard).attempts.last)
        #expect(attempt.error?.contains("-1005") == true)
        #expect(attempt.response?.body.text == "abcdef")
        #expect(attempt.response?.body.note == "The body is incomplete: 6 bytes were received before the error.")
        #expect(try row.size == 6)
        let archive = String(decoding: InspectorArchive([try last], .standard).data, as: UTF8.self)
        #expect(archive.contains(#""text":"abcdef""#))
    }

    @Test("The text of an error contains its description without secrets")
    func texts() async throws {
        for (error, text) in [
            (URLError(.timedOut), "URLError timedOut (-1001)"),
            (
                URLError(.cannotFindHost, userInfo: [NSLocalizedDescriptionKey: "no such host: h.example.com"]),
                "URLError cannotFindHost (-1003): no such host: h.example.com"
            ),
            (
                URLError(
                    .cannotConnectToHost, userInfo: [NSLocalizedDescriptionKey: "https://h/?token=canary failed"]),
                "URLError cannotConnectToHost (-1004): https://h/?token="
            ),
        ] {
            try await inspected.send("/\(error.code.rawValue)", .error(error))
            let shown = ShownExchange(try last, .standard)
            #expect(shown.summary.error?.hasPrefix(text) == true)
            #expect(shown.attempts.last?.error?.hasPrefix(text) == true)
            #expect(!shown.pageJSON.contains("canary"))
        }
    }

    @Test("A response that a typed task cannot decode is a failure with the message")
    func decoding() async throws {
        inspected.session.on(.GET, "/x", .json(["a": 1]))
        _ = await inspected.service.GET("/x").decode([String].self).result
        await wait { $0.failure != nil }
        #expect(try row.status == 200)
        #expect(try row.error?.hasPrefix("decoding: ") == true)
        #expect(try last.attempts.last?.failure == nil)
        #expect(try last.explanation.contains("A handler, a step or the validation failed: decoding."))
        #expect(try last.events.allSatisfy { $0.error == nil })
    }

    @Test("A refused status is a failure of the exchange")
    func refusedStatus() async throws {
        inspected.session.on(.GET, "/x", 404)
        _ = await inspected.service.GET("/x").string().result
        await wait { $0.failure != nil }
        #expect(try row.status == 404)
        #expect(try row.error?.hasPrefix("unacceptableStatus: ") == true)
    }

    @Test("A cancelled request is no error")
    func cancelled() async throws {
        inspected.session.on(.GET, "/waits", MockResponse(statusCode: 200).after(.seconds(3600)))
        let task = inspected.service.GET("/waits").resume()
        await eventually { inspected.store.exchanges().last?.attempts.count == 1 }
        task.cancel()
        await wait()
        #expect(try row.cancelled == true)
        #expect(try row.error == nil)
        let shown = ShownExchange(try last, .standard)
        #expect(shown.attempts.last?.cancelled == true)
        #expect(shown.attempts.last?.error == nil)
        #expect(shown.explanation.last == "The exchange was cancelled.")
    }

    @Test("A failed attempt that a retry replaces does not make the exchange a failure")
    func retried() async throws {
        inspected.session.on(.GET, "/x", [.error(URLError(.networkConnectionLost)), .text("ok")])
        var request = Request(url: "https://h.example.com/x")
        request.options.interceptors = [RetryPolicy(baseDelay: .milliseconds(1))]
        try await inspected.send(request)
        #expect(try row.error == nil)
        #expect(try row.status == 200)
        #expect(try last.attempts.map { $0.failure != nil } == [true, false])
    }

    // MARK: Streams

    private func stream(_ chunks: [String], failing error: URLError? = nil) -> MockResponse {
        var response = MockResponse(statusCode: 200) { body in
            for chunk in chunks { try body.write(Data(chunk.utf8)) }
            if let error { throw error }
        }
        response.headers[.contentType] = "text/plain"
        return response
    }

    @Test("A streamed body that fails is a failure with its bytes, and the explanation ends with it")
    func failedStream() async throws {
        inspected.session.on(.GET, "/x", stream(["abc", "def"], failing: URLError(.networkConnectionLost)))
        let body = try await inspected.service.GET("/x").stream().value.body
        await #expect(throws: URLError.self) { for try await _ in body {} }
        await wait { $0.failure != nil && $0.lastResponse?.body.size == 6 }
        #expect(try row.status == 200)
        #expect(try row.error?.hasPrefix("URLError networkConnectionLost (-1005)") == true)
        #expect(try row.size == 6)
        let shown = ShownExchange(try last, .standard)
        #expect(shown.explanation.last == "The exchange failed: URLError -1005.")
        #expect(shown.attempts.last?.response?.body.text == "abcdef")
        #expect(shown.attempts.last?.error?.contains("-1005") == true)
    }

    @Test("A stream that its reader leaves is cancelled and no failure")
    func leftStream() async throws {
        let (chunks, writer) = AsyncStream<Data>.makeStream()
        inspected.session.on(.GET, "/x", MockResponse(statusCode: 200, chunks: chunks))
        do {
            let body = try await inspected.service.GET("/x").stream().value.body
            writer.yield(Data("abc".utf8))
            for try await _ in body { break }
        }
        await wait()
        #expect(try row.error == nil)
        #expect(try row.cancelled == true)
        #expect(try row.status == 200)
    }

    @Test(
        "The first bytes of a streamed body are retained up to the limit, and its size is that of the body")
    func streamedBytes() async throws {
        let inspected = InspectedService(bodyLimit: 10)
        inspected.session.on(.GET, "/x", stream(["0123456", "789abcdef"]))
        let body = try await inspected.service.GET("/x").stream().value.body
        var count = 0
        for try await bytes in body { count += bytes.count }
        await eventually {
            inspected.store.exchanges().last.map { $0.phase == .ended && $0.lastResponse?.body.size == 10 } ?? false
        }
        #expect(count == 16)
        let exchange = try #require(inspected.store.exchanges().last)
        let shown = ShownExchange(exchange, .standard)
        #expect(shown.summary.size == 16)
        #expect(shown.attempts.last?.response?.body.text == "0123456789")
        #expect(
            shown.attempts.last?.response?.body.note
                == "The first 10 bytes that were read from the streamed body.")
        #expect(shown.explanation.last == "The exchange ended with status 200, source: mock.")
    }

    @Test("A stream in progress is not explained as ended")
    func streamInProgress() async throws {
        let (chunks, writer) = AsyncStream<Data>.makeStream()
        inspected.session.on(.GET, "/x", MockResponse(statusCode: 200, chunks: chunks))
        let stream = try await inspected.service.GET("/x").stream().value
        await eventually { inspected.store.exchanges().last?.phase == .streaming }
        #expect(
            try last.explanation.hasSuffix("The response had status 200, and its body is being received."))
        writer.finish()
        for try await _ in stream.body {}
        await wait()
        #expect(try last.explanation.hasSuffix("The exchange ended with status 200, source: mock."))
    }

    @Test("An event stream that was read up to its last event is complete, and its events have times")
    func completeEvents() async throws {
        let chunks = AsyncStream<Data> { events in
            events.yield(Data("data: a\n\ndata: b\n".utf8))
            events.yield(Data("\ndata: end\n\ndata: late\n\n".utf8))  // the connection remains open
        }
        inspected.session.on(
            .GET, "/x", MockResponse(statusCode: 200, chunks: chunks).header("Content-Type", "text/event-stream"))
        var data: [String] = []
        for try await event in inspected.service.GET("/x").events(until: "end") { data.append(event.data) }
        #expect(data == ["a", "b", "end"])
        await wait()
        #expect(try row.cancelled == nil)
        #expect(try row.error == nil)
        #expect(try last.attempts.last?.failure == nil)
        let shown = ShownExchange(try last, .standard)
        #expect(shown.explanation.last == "The exchange ended with status 200, source: mock.")
        let arrivals = try #require(shown.attempts.last?.response?.body.arrivals)
        #expect(arrivals.map(\.first).last == 4)
        #expect(arrivals.allSatisfy { $0.count == 2 })
    }

    @Test(
        "A connection that the server closes with an error is a failure with the reason", arguments: [1000, 1001, 1011])
    func closedSocket(code: UInt16) async throws {
        inspected.session.on(
            .GET, "/chat",
            .webSocket { socket in
                try await socket.close(WebSocketClosure.Code(rawValue: code), reason: "token=canary of the house")
            })
        let socket = try await inspected.service.webSocket("/chat")
        do { for try await _ in socket.messages {} } catch {}  // as the row shows
        await wait { $0.closure != nil }
        let error = try row.error
        #expect((error != nil) == (code == 1011))
        #expect(error?.hasPrefix("webSocketClosed: the server closed the connection with code 1011: token=") != false)
        #expect(error?.contains("canary") != true)
        #expect(try row.cancelled == nil)
    }

    @Test("A redirected exchange is listed with its first URL, and with the secrets that were sent")
    func redirected() async throws {
        inspected.session.on(.GET, "/a", MockResponse(statusCode: 302, headers: ["Location": "/b?token=canary"]))
        inspected.session.on(.GET, "/b", .text("b"))
        var request = Request(url: "https://h.example.com/a")
        request.headers = ["Authorization": "Bearer canary", "Accept": "text/plain"]
        try await inspected.send(request)
        #expect(try row.url == "https://h.example.com/a")
        #expect(try row.tries?.map(\.url).last?.hasPrefix("https://h.example.com/b?token=") == true)
        #expect(try row.secrets == ["Authorization", "URL"])
        #expect(try row.tries?.map(\.kind) == [nil, "redirect"])
        try await inspected.send("/c")
        #expect(try row.secrets == nil)
        #expect(try row.composite == nil)
    }
}
