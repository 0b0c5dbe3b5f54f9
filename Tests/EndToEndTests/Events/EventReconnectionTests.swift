import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceMocking
@testable import WebServiceServer

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

/// Event streams whose connections end, over a real server.
@Suite("Event streams that reconnect", .permit)
struct EventReconnectionTests {
    /// A server that responds to the connections in order, and then with the status 204.
    private func server(_ responses: [MockResponse]) throws -> MockServer {
        let server = try MockServer()
        for method in [Request.Method.GET, .POST] {
            server.on(method, "/", responses + [MockResponse(statusCode: 204)])
        }
        return server
    }

    private func stream(_ text: String, then ending: MockResponse.Wire = .untilClose) -> MockResponse {
        var response = MockResponse(statusCode: 200, data: Data(text.utf8))
        response.headers[.contentType] = "text/event-stream"
        response.wire = ending
        return response
    }

    private let quick = ServerSentEvent.Reconnection.reconnecting(
        baseDelay: .milliseconds(1), maximumDelay: .milliseconds(5))

    private func service(_ server: MockServer) -> WebService {
        let service = RealSession.best
        do { return try service.service(server) } catch { return WebService(baseURLString: server.baseURLString) }
    }

    private func all(_ events: ServerSentEvent.Stream<ServerSentEvent>) async throws -> [String] {
        var data: [String] = []
        for try await event in events { data.append(event.data) }
        return data
    }

    @Test(
        "The ID of the last complete event is sent in UTF-8; an empty one, and one with a control character, is not")
    func identifiers() async throws {
        let server = try server([
            stream("id: a\u{2026}\ndata: 1\n\nid: lost\ndata: x"), stream("id:\ndata: 2\n\n"),
            stream("id: \u{1}\ndata: 3\n\n"), stream("id: b\n\n"),
        ])
        defer { server.stop() }
        #expect(try await all(service(server).GET("/").events(quick)) == ["1", "2", "3"])
        #expect(
            server.receivedRequests.map { $0.headers["Last-Event-ID"] } == [nil, "a\u{2026}", nil, nil, "b"])
    }

    @Test("After an event, the delay is the base delay again")
    func reset() async throws {
        let failing = MockResponse(statusCode: 503)
        let server = try server([failing, failing, stream("data: 1\n\n"), failing, failing, stream("data: 2\n\n")])
        defer { server.stop() }
        // Two consecutive failures are permitted, and a third is not.
        let policy = ServerSentEvent.Reconnection.reconnecting(
            baseDelay: .milliseconds(1), maximumDelay: .milliseconds(5), maximumAttempts: 3)
        #expect(try await all(service(server).GET("/").events(policy)) == ["1", "2"])
        let other = try self.server([failing, failing, failing, failing])
        defer { other.stop() }
        let error = await #expect(throws: WebServiceError.self) {
            try await all(service(other).GET("/").events(policy))
        }
        #expect(error?.code == .unacceptableStatus)
        #expect(other.receivedRequests.count == 3)
    }

    private struct Busy: Error {}

    @Test("A status that an error mapper maps reconnects like any other, and its error is thrown at the end")
    func mapped() async throws {
        let clock = TestClock()
        var failing = MockResponse(statusCode: 503)
        failing.headers[.retryAfter] = "70"
        let mock = MockService(clock: clock)
        mock.service.errorMapper = .closure { _ in Busy() }
        mock.on(.GET, "/", [failing, stream("data: 1\n\n"), MockResponse(statusCode: 401)])
        let errors = Collected<any Error>()
        let events = mock.service.GET("/").events(
            .reconnecting(when: { error, isTransient in
                if let error { errors.add(error) }
                return isTransient
            }))
        let run = Task(executorPreference: clock.executor) { try await all(events) }
        await clock.advance(by: .seconds(60))
        #expect(mock.receivedRequests.count == 1)
        await clock.advance(by: .seconds(60))
        await #expect(throws: Busy.self) { try await run.value }
        #expect(mock.receivedRequests.count == 3)
        #expect(errors.values.count { $0 is Busy } == 2)
    }

    @Test("After a refused connection, an element that is too large is still an error")
    func tooLarge() async throws {
        let long = String(repeating: "x", count: 99)
        let server = try server([MockResponse(statusCode: 503), stream("data: \(long)\n\n")])
        defer { server.stop() }
        await #expect {
            try await all(service(server).GET("/").events(quick, maximumSize: 50))
        } throws: {
            ($0 as? WebServiceError)?.code == .elementTooLarge
        }
    }

    @Test("Retry-After delays the next connection")
    func retryAfter() async throws {
        var busy = MockResponse(statusCode: 503)
        busy.headers[.retryAfter] = "1"
        let server = try server([busy, stream("data: 1\n\n")])
        defer { server.stop() }
        let clock = TestClock()
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = self.service(server).session
        let events = service.GET("/").events(quick)
        let first = Task(executorPreference: clock.executor) { try await events.first { _ in true }?.data }
        // The deadline of the request is due later.
        await eventually { clock.timeToNextAlarm.map { $0 < .seconds(60) } ?? false }
        #expect(clock.timeToNextAlarm == .seconds(1))
        await clock.advance(by: .seconds(1))
        #expect(try await first.value == "1")
    }

    @Test("Redirects are followed, and one without a location is an error without a reconnection")
    func redirects() async throws {
        let server = try MockServer.forTest()
        for (status, path, location) in [
            (301, "/a", "/b"), (307, "/b", "/c"), (302, "/none", nil), (302, "/empty", ""),
        ] {
            var response = MockResponse(statusCode: status)
            if let location { response.headers[.location] = location }
            server.on(.GET, path, response)
        }
        server.on(.GET, "/c", [stream("data: 1\n\n"), MockResponse(statusCode: 204)])
        #expect(try await all(service(server).GET("/a").events(quick)) == ["1"])
        for path in ["/none", "/empty"] {
            let count = server.receivedRequests.count
            await #expect(throws: WebServiceError.self) { try await all(service(server).GET(path).events(quick)) }
            #expect(server.receivedRequests.count <= count + 21)
        }
    }

    @Test("A POST request reconnects only on request, and then with its body")
    func post() async throws {
        for (policy, count) in [(ServerSentEvent.Reconnection.never, 1), (quick, 3)] {
            let server = try server([stream("data: 1\n\n"), stream("data: 2\n\n")])
            defer { server.stop() }
            let events = service(server).POST("/").setBody(.data(Data("question".utf8))).events(policy)
            #expect(try await all(events) == (count == 1 ? ["1"] : ["1", "2"]))
            #expect(server.receivedRequests.map(\.body) == Array(repeating: Data("question".utf8), count: count))
        }
    }

    @Test("A body that can be read once cannot reconnect, which is an error before the request")
    func onceOnly() async throws {
        let server = try server([stream("data: 1\n\n")])
        defer { server.stop() }
        let error = await #expect(throws: WebServiceError.self) {
            try await all(service(server).POST("/").setBody(.stream(Chunks([10]))).events(quick))
        }
        #expect(error?.code == .bodyNotReplayable)
        #expect(server.receivedRequests.isEmpty)
        #expect(try await all(service(server).POST("/").setBody(.stream(Chunks([10]))).events()) == ["1"])
    }

    #if WEBSERVICE_CURL
    @Test("Comments count for the idle timeout, and silence leads to a reconnection")
    func comments() async throws {
        let (chunks, feed) = AsyncStream<Data>.makeStream()
        var lively = MockResponse(statusCode: 200, chunks: chunks)
        lively.headers[.contentType] = "text/event-stream"
        let server = try server([lively, stream("data: 2\n\n")])
        defer { server.stop() }
        let keeper = ManualTimekeeper()
        let session = try CurlSession(timekeeper: keeper)
        let received = Mutex<Int64>(0)
        let task = WebService(server.baseURLString, session: session).GET("/").setTimeout(.seconds(30))
            .onProgress { progress in received.withLock { $0 = progress.bytesReceived } }
        let events = Task { [quick] in try await all(task.events(quick)) }
        for (count, text) in zip(1..., [":\n", ":\n", ":\n", "data: 1\n\n"]) {
            feed.yield(Data(text.utf8))
            let total = Int64(2 * min(count, 3) + (count > 3 ? 9 : 0))
            await eventually("the bytes arrive") { received.withLock { $0 } == total }
            await session.settle()
            keeper.advance(by: .seconds(count > 3 ? 31 : 20))
        }
        #expect(try await events.value == ["1", "2"])
        #expect(server.receivedRequests.count == 3)
        feed.finish()
    }
    #else
    @Test("Comments count for the idle timeout, and silence leads to a reconnection")
    func comments() async throws {
        let lively = { () -> MockResponse in
            var response = MockResponse(statusCode: 200) { body in
                for _ in 0..<24 {
                    try body.write(Data(":\n".utf8))
                    body.pause(for: .milliseconds(200))
                }
                try body.write(Data("data: 1\n\n".utf8))
                body.pause(for: .seconds(60))
            }
            response.headers[.contentType] = "text/event-stream"
            return response
        }
        let server = try server([lively(), stream("data: 2\n\n")])
        defer { server.stop() }
        // A busy machine may delay a comment.
        let task = service(server).GET("/").setTimeout(.seconds(4))
        #expect(try await all(task.events(quick)) == ["1", "2"])
        #expect(server.receivedRequests.count == 3)
    }
    #endif

    @Test("A slow reader receives every event in order")
    func slowReader() async throws {
        let count = 50_000
        var response = MockResponse(statusCode: 200) { body in
            for number in 0..<count / 500 {
                let events = (0..<500).map { "data: \(number * 500 + $0)\n\n" }
                try body.write(Data(events.joined().utf8))
            }
        }
        response.headers[.contentType] = "text/event-stream"
        let server = try MockServer.forTest { [response] _ in response }
        var next = 0
        for try await event in service(server).GET("/").events() {
            if event.data != "\(next)" { break }
            next += 1
            if next.isMultiple(of: 5_000) { await Task.yield() }
        }
        #expect(next == count)
    }

    @Test("Cancelling while the stream waits to reconnect ends it without a further connection")
    func cancelling() async throws {
        let server = try server([stream("data: 1\n\n")])
        defer { server.stop() }
        let received = StreamTests.Count()
        let events = service(server).GET("/").events(
            .reconnecting(baseDelay: .seconds(600), maximumDelay: .seconds(600)))
        let reader = Task {
            do {
                for try await _ in events { received.add() }
                return nil as URLError.Code?
            } catch {
                return (error as? URLError)?.code
            }
        }
        await eventually("the event is received") { received.value == 1 && server.openConnectionCount == 0 }
        reader.cancel()
        #expect(await reader.value == .cancelled)
        #expect(server.receivedRequests.count == 1)
    }

    @Test("Events up to 16 MiB are delivered, and a longer one is an error")
    func sizes() async throws {
        let megabyte = String(repeating: "x", count: 1 << 20)
        let five = "data: " + String(repeating: megabyte, count: 5) + "\n\n"
        let server = try server([stream(five), stream(five + five)])
        defer { server.stop() }
        for count in 1...2 {
            var sizes: [Int] = []
            for try await event in service(server).GET("/").events() { sizes.append(event.data.utf8.count) }
            #expect(sizes == Array(repeating: 5 << 20, count: count))
        }
        let long = try self.server([stream("data: " + String(repeating: megabyte, count: 17) + "\n\n")])
        defer { long.stop() }
        let error = await #expect(throws: WebServiceError.self) { try await all(service(long).GET("/").events()) }
        #expect(error?.code == .elementTooLarge)
    }
}
