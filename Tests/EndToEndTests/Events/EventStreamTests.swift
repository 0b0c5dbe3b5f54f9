import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCore

@testable import WebServiceCore

/// Lines, values, parts and events of streamed responses, over a real server.
@Suite("Elements of streamed responses", .permit)
struct EventStreamTests {
    private struct Brew: Codable, Sendable, Equatable { var name: String }

    /// Returns a response whose body is sent in these pieces.
    private static func pieces(_ pieces: [String], type: String, cut: Bool = false) -> MockResponse {
        var response = MockResponse(statusCode: 200) { body in
            for piece in pieces {
                try body.write(Data(piece.utf8))
                body.pause(for: .milliseconds(1))
            }
            if cut { throw URLError(.unknown) }
        }
        response.headers[.contentType] = type
        return response
    }

    private static func all<Element: Sendable>(_ sequence: some AsyncSequence<Element, any Error>) async throws
        -> [Element]
    {
        var elements: [Element] = []
        for try await element in sequence { elements.append(element) }
        return elements
    }

    /// Records how streamed bodies end; an empty text is no error.
    private final class BodyEnds: Observer {
        let failures = Mutex<[String]>([])

        func observe(_ event: ExchangeEvent) {
            guard case .recorded(let event) = event.kind, event.kind == .body else { return }
            failures.withLock { $0.append(ExchangeLog.Attempt.kind(of: event.error)) }
        }
    }

    @Test("Lines do not depend on the chunks", arguments: RealSession.allCases)
    func lines(session: RealSession) async throws {
        let server = try MockServer.forTest { _ in
            Self.pieces(["one\r", "\n\ntw", "o\u{2028}x\nlast"], type: "text/plain")
        }
        let lines = try await Self.all(session.service(server).GET("/").lines())
        #expect(lines == ["one", "", "two\u{2028}x", "last"])
    }

    @Test(
        "JSON Lines are decoded one by one, and the error of a malformed line has its number",
        arguments: RealSession.streaming)
    func jsonLines(session: RealSession) async throws {
        let server = try MockServer.forTest { _ in
            Self.pieces(["{\"name\":\"ale\"}\n\n{\"na", "me\":\"porter\"}\n{\"name\":"], type: "application/jsonl")
        }
        var names: [String] = []
        let error = await #expect(throws: WebServiceError.self) {
            for try await brew in try session.service(server).GET("/").jsonLines(Brew.self) { names.append(brew.name) }
        }
        #expect(names == ["ale", "porter"])
        #expect(error?.code == .decoding)
        #expect(error?.message.contains("4") == true)
    }

    @Test(
        "Parts whose delimiter is split between two chunks are read, with their header fields",
        arguments: RealSession.streaming)
    func parts(session: RealSession) async throws {
        let server = try MockServer.forTest { _ in
            Self.pieces(
                ["--x\r\nContent-Type: text/plain\r\n\r\nfirst\r\n-", "-x\r\n\r\nsecond\r\n--x--\r\n"],
                type: "multipart/mixed; boundary=x")
        }
        let parts = try await Self.all(session.service(server).GET("/").parts())
        #expect(parts.map { String(decoding: $0.data, as: UTF8.self) } == ["first", "second"])
        #expect(parts.first?.headers[.contentType] == "text/plain")
    }

    @Test(
        "Events are delivered, and the request accepts an event stream",
        arguments: RealSession.streaming)
    func events(session: RealSession) async throws {
        let server = try MockServer.forTest { _ in
            Self.pieces(
                ["event: error\ndata: {\"a\"", ":1}\n\nid: 7\r\ndata: x\r\n\r\ndata: cut"], type: "text/event-stream")
        }
        let events = try await Self.all(session.service(server).GET("/").events())
        #expect(events == [.init(type: "error", data: "{\"a\":1}"), .init(data: "x", id: "7")])
        let request = try #require(server.receivedRequests.first)
        #expect(request.headers[.accept] == "text/event-stream")
        #expect(request.headers[.cacheControl] == "no-store")
        #expect(request.headers["Last-Event-ID"] == nil)
    }

    @Test("The events of a mock arrive unchanged")
    func mockEvents() async throws {
        let events: [ServerSentEvent] = [
            .init(data: "a\nb\u{2028}c\n"), .init(type: "error", data: "{}", id: "7", retry: .milliseconds(1_500)),
            .init(data: "", id: "7"), .init(type: "x", data: " d", id: "7"),
        ]
        let session = MockSession()
        session.on(.GET, "/", .events(events))
        let service = WebService("http://h", session: session)
        #expect(try await Self.all(service.GET("/").events()) == events)
    }

    @Test(
        "A default Accept field for another media type does not apply to events",
        arguments: [("application/json", "text/event-stream"), ("text/event-stream, */*", "text/event-stream, */*")])
    func acceptedType(field: String, expected: String) async throws {
        let session = MockSession()
        session.on(.GET, "/", .stream(AsyncStream { $0.finish() }, contentType: "text/event-stream"))
        let service = WebService("http://h", session: session)
        service.headers[.accept] = field
        for try await _ in service.GET("/").events() {}
        #expect(session.receivedRequests.first?.headers[.accept] == expected)
    }

    @Test(
        "A stream reconnects with the last ID and new credentials until the status 204"
    )
    func reconnecting() async throws {
        let server = try MockServer.forTest()
        let numbers = Mutex(0)
        server.on(.GET, "/events") { _ in
            let number = numbers.withLock { number in
                number += 1
                return number
            }
            switch number {
            case 1: return Self.pieces(["retry: 1\nid: a\ndata: 1\n\nid: lost\ndata: 2\n"], type: "text/event-stream")
            case 2: return MockResponse(statusCode: 503)
            case 3: return Self.pieces(["data: 3\n\n"], type: "text/event-stream; charset=utf-8", cut: true)
            default: return MockResponse(statusCode: 204)
            }
        }
        let service = WebService(baseURLString: server.baseURLString)
        let tokens = Mutex(0)
        service.interceptors = [
            .closure { request, next in
                var request = request
                request.headers[.authorization] = tokens.withLock { token in
                    token += 1
                    return "Bearer \(token)"
                }
                return try await next(request)
            }
        ]
        let events = try await Self.all(
            service.GET("/events").events(.reconnecting(baseDelay: .milliseconds(1), maximumDelay: .milliseconds(5))))
        #expect(events.map(\.data) == ["1", "3"])
        #expect(events.map(\.id) == ["a", "a"])
        let requests = server.receivedRequests
        #expect(requests.map { $0.headers["Last-Event-ID"] } == [nil, "a", "a", "a"])
        #expect(requests.map { $0.headers[.authorization] } == (1...4).map { "Bearer \($0)" })
    }

    @Test("An event resets the number of connections without an event")
    func attempts() async throws {
        let mock = MockSession()
        let connections = StreamTests.Count()
        mock.addStub { _ in
            connections.add()
            guard connections.value < 4 else { return MockResponse(statusCode: 204) }
            var response = MockResponse(statusCode: 200, data: Data("data: \(connections.value)\n\n".utf8))
            response.headers[.contentType] = "text/event-stream"
            return response
        }
        let service = WebService("https://brewery.example.com", session: mock)
        let events = try await Self.all(
            service.GET("/events").events(.reconnecting(baseDelay: .zero, maximumAttempts: 1)))
        #expect(events.map(\.data) == ["1", "2", "3"])
    }

    @Test("Other statuses and media types are errors without a reconnection")
    func errors() async throws {
        let server = try MockServer.forTest { request in
            request.target == "/type"
                ? Self.pieces(["data: 1\n\n"], type: "text/x-bogus") : MockResponse(statusCode: 404)
        }
        let service = WebService(baseURLString: server.baseURLString)
        for (path, code) in [("/type", WebServiceError.Code.unexpectedContentType), ("/status", .unacceptableStatus)] {
            let error = await #expect(throws: WebServiceError.self) {
                try await Self.all(service.GET(path).events(.reconnecting(baseDelay: .zero)))
            }
            #expect(error?.code == code)
        }
        #expect(server.receivedRequests.count == 2)
    }

    @Test(
        "A terminating event ends the sequence and closes the connection",
        arguments: RealSession.streaming)
    func terminator(session: RealSession) async throws {
        let closed = StreamTests.Count()
        let server = try MockServer.forTest { _ in
            var response = MockResponse(statusCode: 200) { body in
                defer { closed.add() }
                try body.write(Data("data: {\"name\":\"ale\"}\n\ndata: [DONE]\n\n".utf8))
                while true {
                    try body.write(Data(": comment\n".utf8))
                    body.pause(for: .milliseconds(1))  // Foundation cancels only when a peer pauses
                }
            }
            response.headers[.contentType] = "text/event-stream"
            return response
        }
        let service = try session.service(server)
        let ends = BodyEnds()
        service.observers = [ends]
        let events = try await Self.all(service.POST("/chat").events { $0.data == "[DONE]" })
        #expect(events.map(\.data) == ["{\"name\":\"ale\"}", "[DONE]"])
        let values = try await Self.all(service.POST("/chat").events(Brew.self) { $0.data == "[DONE]" })
        #expect(values == [Brew(name: "ale")])
        await eventually("the server sees the end of both connections") { closed.value == 2 }
        let byData = try await Self.all(service.POST("/chat").events(until: "[DONE]"))
        #expect(byData.map(\.data) == ["{\"name\":\"ale\"}", "[DONE]"])
        #expect(try await Self.all(service.POST("/chat").events(Brew.self, until: "[DONE]")) == [Brew(name: "ale")])
        await eventually("the server sees the end of all connections") { closed.value == 4 }
        await eventually("the bodies end, and not with a cancellation") {
            ends.failures.withLock { $0 } == ["", "", "", ""]
        }
    }

    @Test("A stream that status 204 ends before its terminating event is an error")
    func terminatorAnd204() async throws {
        for session in RealSession.streaming {
            let requests = Mutex(0)
            let server = try MockServer { _ in
                let isFirst = requests.withLock { count in
                    count += 1
                    return count == 1
                }
                return isFirst ? Self.pieces(["data: 1\n\n"], type: "text/event-stream", cut: true) : .status(204)
            }
            defer { server.stop() }
            let events = try session.service(server).GET("/chat").events(
                .reconnecting(baseDelay: .milliseconds(1)), until: "[DONE]")
            let error = await #expect(throws: WebServiceError.self) { for try await _ in events {} }
            #expect(error?.code == .streamEndedEarly)
            // A response without content is complete.
            #expect(try await Self.all(session.service(server).GET("/chat").events(until: "[DONE]")).isEmpty)
        }
    }

    @Test("A stream with a terminating event that was never opened has the error of the connection")
    func neverOpened() async throws {
        for session in RealSession.streaming {
            let server = try MockServer()
            let service = try session.service(server)
            server.stop()
            let error = await #expect(throws: URLError.self) {
                for try await _ in service.POST("/chat").events(until: "[DONE]") {}
            }
            #expect(error?.isConnectionFailure == true)
            let later = await #expect(throws: URLError.self) {
                let reconnection = ServerSentEvent.Reconnection.reconnecting(
                    baseDelay: .milliseconds(1), maximumAttempts: 2)
                for try await _ in service.GET("/chat").events(reconnection, until: "[DONE]") {}
            }
            #expect(later?.isConnectionFailure == true)
        }
    }

    @Test(
        "A stream that ends before its terminating event is an error",
        arguments: [true, false])
    func endedEarly(isCut: Bool) async throws {
        for session in RealSession.streaming {
            let server = try MockServer { _ in Self.pieces(["data: 1\n\n"], type: "text/event-stream", cut: isCut) }
            defer { server.stop() }
            var count = 0
            let service = try session.service(server)
            let error = await #expect(throws: WebServiceError.self) {
                for try await _ in service.POST("/chat").events(until: { $0.data == "[DONE]" }) { count += 1 }
            }
            #expect(error?.code == .streamEndedEarly)
            #expect(count == 1)
            #expect((error?.underlying as? URLError)?.code == (isCut ? .networkConnectionLost : nil))
        }
    }

    @Test("Delays are doubled up to the maximum and increased by a random amount")
    func delays() {
        let delays = ServerSentEvent.Reconnection.Delays(
            base: .seconds(1), maximum: .seconds(30), attempts: nil, random: { 0 })
        let expected = [1, 1, 2, 4, 8, 16, 30, 30].map { Duration.seconds($0) }
        #expect((0...7).map { delays.delay(after: $0, nil, .system) } == expected)
        let increased = ServerSentEvent.Reconnection.Delays(
            base: .milliseconds(100), maximum: .seconds(30), attempts: nil, random: { 1 })
        #expect(increased.delay(after: 0, .milliseconds(200), .system) == .milliseconds(300))
        #expect(increased.delay(after: .max, .milliseconds(200), .system) == .seconds(45))
        // A longer time of the stream is neither doubled nor reduced.
        #expect(increased.delay(after: .max, .seconds(3600), .system) == .seconds(5_400))
    }
}
