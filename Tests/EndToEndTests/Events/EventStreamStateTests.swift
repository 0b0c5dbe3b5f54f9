import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceMocking
@testable import WebServiceServer

/// What others than the reader of an event stream see of it, over a real server.
@Suite("The state of an event stream", .permit)
struct EventStreamStateTests {
    private let server: MockServer
    private let service: WebService
    private static let quick = ServerSentEvent.Reconnection.reconnecting(
        baseDelay: .milliseconds(1), maximumDelay: .milliseconds(5))

    init() throws {
        server = try MockServer()
        service = try RealSession.best.service(server)
    }

    private func serve(_ responses: [MockResponse]) {
        server.on(.GET, "/", responses + [MockResponse(statusCode: 204)])
    }

    private func stream(_ text: String, number: Int = 1) -> MockResponse {
        var response = MockResponse(statusCode: 200, data: Data(text.utf8))
        response.headers[.contentType] = "text/event-stream"
        response.headers["X-Number"] = "\(number)"
        return response
    }

    private func all(_ events: ServerSentEvent.Stream<ServerSentEvent>) async throws -> [String] {
        var data: [String] = []
        for try await event in events { data.append(event.data) }
        return data
    }

    @Test("onOpen receives the response of every connection before its first event")
    func opens() async throws {
        defer { server.stop() }
        serve([stream("data: a\n\n", number: 1), stream("data: b\n\n", number: 2)])
        let log = Collected<String>()
        let events = service.GET("/").events(Self.quick).onOpen { log.add($0.header("X-Number") ?? "") }
        for try await event in events { log.add(event.data) }
        #expect(log.values == ["1", "a", "2", "b"])
    }

    @Test("Comments are delivered in order with the events")
    func comments() async throws {
        defer { server.stop() }
        serve([stream(": one\n:two\n\ndata: a\n: three\n\ndata: b\n\n:\n")])
        let log = Collected<String>()
        let events = service.GET("/").events().onComment { log.add("comment \($0)") }
        for try await event in events { log.add(event.data) }
        #expect(log.values == ["comment one", "comment two", "comment three", "a", "b", "comment "])
    }

    @Test("The states are connecting, open and waiting, in this order for every connection")
    func states() async throws {
        let clock = TestClock()
        let mock = MockSession(clock: clock)
        mock.on(.GET, "/", [stream("data: a\n\n"), MockResponse(statusCode: 503), MockResponse(statusCode: 204)])
        let service = WebService(baseURLString: "https://h", clock: clock)
        service.session = mock
        let events = service.GET("/").events(.reconnecting())
        let log = Collected<String>()
        let seen = Task(executorPreference: clock.executor) {
            for await state in events.states {
                switch state {
                case .connecting: log.add("connecting")
                case .open(let response): log.add("open \(response.status)")
                case .waiting(let delay, let error):
                    let status = (error as? WebServiceError)?.response?.status
                    log.add("waiting \(delay >= .seconds(1)) \(status.map(String.init) ?? "-")")
                }
            }
            log.add("end")
        }
        let reader = Task(executorPreference: clock.executor) { try await all(events) }
        await clock.advance(by: .seconds(60))
        #expect(try await reader.value == ["a"])
        await seen.value
        #expect(log.values.filter { $0.hasPrefix("waiting") } == ["waiting true -", "waiting true 503"])
        #expect(log.values.last == "end")
    }

    @Test("The sequence of states ends when nobody retains the event stream")
    func abandoned() async {
        var states: AsyncStream<ServerSentEvent.ConnectionState>?
        do {
            let events = service.GET("/").events()
            states = events.states
        }
        server.stop()
        var count = 0
        if let states { for await _ in states { count += 1 } }
        #expect(count == 0)
    }

    @Test("States that are read after the end are an empty sequence")
    func late() async throws {
        defer { server.stop() }
        serve([stream("data: a\n\n")])
        let events = service.GET("/").events()
        _ = try await all(events)
        var count = 0
        for await _ in events.states { count += 1 }
        #expect(count == 0)
    }

    @Test("The last event ID can be read, and another stream continues after it")
    func identifiers() async throws {
        defer { server.stop() }
        serve([stream("id: 7\ndata: a\n\nid: 8\n\n"), stream("data: b\n\n")])
        let first = service.GET("/").events()
        #expect(first.lastEventID.isEmpty)
        #expect(try await all(first) == ["a"])
        #expect(first.lastEventID == "8")

        let second = service.GET("/").events(lastEventID: first.lastEventID)
        var ids: [String] = []
        for try await event in second { ids.append(event.id) }
        #expect(ids == ["8"])
        #expect(server.receivedRequests.map { $0.headers["Last-Event-ID"] } == [nil, "8"])
    }

    @Test("A last event ID that no header field can contain is not sent")
    func invalidIdentifier() async throws {
        defer { server.stop() }
        serve([stream("data: a\n\n")])
        #expect(try await all(service.GET("/").events(lastEventID: "a\nb")) == ["a"])
        #expect(server.receivedRequests.first?.headers["Last-Event-ID"] == nil)
    }

    @Test("The predicate decides after which errors the stream reconnects")
    func predicate() async throws {
        defer { server.stop() }
        serve([MockResponse(statusCode: 404), stream("data: a\n\n"), MockResponse(statusCode: 503)])
        let log = Collected<String>()
        let policy = ServerSentEvent.Reconnection.reconnecting(baseDelay: .milliseconds(1)) { error, isTransient in
            let status = (error as? WebServiceError)?.response?.status
            log.add("\(status.map(String.init) ?? "closed") \(isTransient)")
            return status != 503
        }
        let error = await #expect(throws: WebServiceError.self) { try await all(service.GET("/").events(policy)) }
        #expect(error?.response?.status == 503)
        #expect(log.values == ["404 false", "closed true", "503 true"])
    }
}
