import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceMocking
@testable import WebServiceServer

/// The number of connections of event streams, and the delays between them, on a test clock.
@Suite("Delays and attempts of event streams", .permit)
struct EventDelayTests {
    private let mock: MockSession
    private let clock: TestClock
    private let service: WebService

    init() {
        let clock = TestClock()
        self.clock = clock
        mock = MockSession(clock: clock)
        service = WebService(baseURLString: "https://brewery.example.com", clock: clock)
        service.session = mock
    }

    private static func stream(_ text: String) -> MockResponse {
        var response = MockResponse(statusCode: 200, data: Data(text.utf8))
        response.headers[.contentType] = "text/event-stream"
        return response
    }

    /// Reads a stream until its end in another task.
    private func read(_ events: ServerSentEvent.Stream<ServerSentEvent>, _ clock: TestClock? = nil) -> Task<
        [String], any Error
    > {
        Task(executorPreference: (clock ?? self.clock).executor) {
            var data: [String] = []
            for try await event in events { data.append(event.data) }
            return data
        }
    }

    @Test(
        "A server that closes every connection gets few of them, whatever reconnection time it sends",
        arguments: [
            ("retry: 0\n\n", 4), ("retry: 1\n\n", 4), ("retry: 999\n\n", 4), ("retry:00\n", 4), ("", 4),
            (": comment\n\n", 4), ("id: 1\n\n", 4), ("retry: 0\ndata: x\n\n", 10), ("data: x\n\n", 10),
        ])
    func floor(text: String, maximum: Int) async throws {
        mock.on(.GET, "/events", Array(repeating: Self.stream(text), count: 100) + [MockResponse(statusCode: 204)])
        let reader = read(service.GET("/events").events(.reconnecting()))
        await clock.advance(by: .seconds(10))
        #expect(mock.receivedRequests.count >= 3)
        #expect(mock.receivedRequests.count <= maximum)
        reader.cancel()
        await #expect(throws: URLError.self) { try await reader.value }
    }

    @Test("A transient status and a transport error do not shorten the minimum delay")
    func failures() async throws {
        let numbers = Mutex(0)
        mock.addStub { _ in
            let number = numbers.withLock { number in
                number += 1
                return number
            }
            guard number.isMultiple(of: 2) else { throw URLError(.networkConnectionLost) }
            return MockResponse(statusCode: 503, headers: ["Retry-After": "0"])
        }
        let reader = read(service.GET("/events").events(.reconnecting()))
        await clock.advance(by: .seconds(10))
        #expect(mock.receivedRequests.count >= 3)
        #expect(mock.receivedRequests.count <= 4)
        reader.cancel()
        await #expect(throws: URLError.self) { try await reader.value }
    }

    @Test(
        "Over a connection, a server that sends `retry: 0` and closes gets at most one connection per second",
        arguments: RealSession.streaming, ["retry: 0\n\n", "retry: 0\ndata: x\n\n"])
    func connections(session: RealSession, text: String) async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/events", Array(repeating: Self.stream(text), count: 100) + [MockResponse(statusCode: 204)])
        let service = WebService(baseURLString: server.baseURLString, clock: clock)
        service.session = try session.service(server).session
        let reader = read(service.GET("/events").events(.reconnecting()))
        // The deadline of a request is due later than its next connection.
        for count in 1...3 {
            await eventually {
                server.receivedRequests.count >= count && clock.timeToNextAlarm.map { $0 < .seconds(60) } ?? false
            }
            await clock.advance(by: clock.timeToNextAlarm ?? .zero)
        }
        #expect(server.receivedRequests.count <= 4)
        #expect(clock.elapsed >= .seconds(3))
        reader.cancel()
        await #expect(throws: URLError.self) { try await reader.value }
    }

    @Test("The reconnection time of the server is waited for, even if it is longer than the delays of the policy")
    func bounds() async throws {
        // The clock increases each delay at random by up to half.
        for (retry, range) in [
            ("0", 2.0...3), ("2999", 2.999...4.4985), ("60000", 60...90), ("7200000", 3_600...5_400),
        ] {
            let clock = TestClock()
            let mock = MockSession(clock: clock)
            mock.addStub { _ in Self.stream("retry: \(retry)\ndata: x\n\n") }
            let service = WebService(baseURLString: "https://brewery.example.com", clock: clock)
            service.session = mock
            let reader = read(
                service.GET("/").events(.reconnecting(baseDelay: .seconds(2), maximumDelay: .seconds(4))), clock)
            await clock.advance(by: .seconds(range.lowerBound) - .milliseconds(1))
            #expect(mock.receivedRequests.count == 1)
            await clock.advance(by: .seconds(range.upperBound - range.lowerBound) + .milliseconds(2))
            #expect(mock.receivedRequests.count == 2)
            reader.cancel()
            await #expect(throws: URLError.self) { try await reader.value }
        }
    }

    @Test("Delays that are zero or negative count as a millisecond, and the longest ones are possible")
    func extremeDelays() {
        for base in [Duration.zero, .seconds(-1)] {
            let delays = ServerSentEvent.Reconnection.Delays(
                base: base, maximum: .seconds(1), attempts: nil, random: { 0 })
            #expect(delays.delay(after: 0, .zero, .system) == .milliseconds(1))
            #expect(delays.delay(after: 5, nil, .system) == .milliseconds(16))
        }
        let long = ServerSentEvent.Reconnection.Delays(
            base: .seconds(Int64.max), maximum: .seconds(-1), attempts: nil, random: { 1 })
        #expect(long.delay(after: .max, .zero, .system) > .seconds(Int64.max))
    }

    @Test(
        "The maximum number of attempts is that of consecutive connections without an event",
        arguments: [(-1, 1), (0, 1), (1, 1), (2, 2), (3, 3)])
    func attempts(maximum: Int, expected: Int) async throws {
        let policy = ServerSentEvent.Reconnection.reconnecting(
            baseDelay: .zero, maximumDelay: .zero, maximumAttempts: maximum)
        for isEnd in [true, false] {
            let mock = MockSession()
            mock.addStub { _ in isEnd ? Self.stream(": comment\n\n") : MockResponse(statusCode: 503) }
            let service = WebService("https://brewery.example.com", session: mock)
            let reader = read(service.GET("/").events(policy))
            if isEnd {
                #expect(try await reader.value == [])
            } else {
                await fails(.unacceptableStatus) { try await reader.value }
            }
            #expect(mock.receivedRequests.count == expected)
        }
    }

    @Test("Connections with an event do not count as attempts")
    func attemptsAfterEvents() async throws {
        let service = WebService("https://brewery.example.com", session: mock)
        mock.on(.GET, "/", ["data: 1\n\n", "", "data: 2\n\n", "data: 3\n\n", "", ""].map(Self.stream))
        let reader = read(
            service.GET("/").events(
                .reconnecting(baseDelay: .zero, maximumDelay: .zero, maximumAttempts: 2)))
        #expect(try await reader.value == ["1", "2", "3"])
        #expect(mock.receivedRequests.count == 6)
    }

    @Test(
        "An ID that a header field cannot contain is not sent, and the last other one is sent instead",
        arguments: RealSession.streaming)
    func identifiers(session: RealSession) async throws {
        let longest = String(repeating: "i", count: Request.maximumHeaderValueLength)
        let rejected = [longest + "i", "a\u{1}b", "a\u{7F}", " a", "a ", "\ta"]
        let bodies =
            ["id: known\ndata: 0\n\n"] + rejected.map { "id: \($0)\ndata: x\n\n" }
            + ["id: a\tb\ndata: x\n\n", "id: more\n\nid: \(longest)i\n\n", "id:\ndata: x\n\n"]
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/", bodies.map(Self.stream) + [MockResponse(statusCode: 204)])
        let policy = ServerSentEvent.Reconnection.reconnecting(baseDelay: .zero, maximumDelay: .zero)
        var ids: [String] = []
        for try await event in try session.service(server).GET("/").events(policy) { ids.append(event.id) }
        #expect(ids == ["known"] + rejected + ["a\tb", ""])
        let sent = server.receivedRequests.map { $0.headers["Last-Event-ID"] }
        #expect(sent == [nil] + Array(repeating: "known", count: 1 + rejected.count) + ["a\tb", "more", nil])
    }

    @Test("The longest ID of a header field is sent")
    func longestIdentifier() async throws {
        let longest = String(repeating: "i", count: Request.maximumHeaderValueLength)
        let service = WebService("https://brewery.example.com", session: mock)
        mock.on(.GET, "/", [Self.stream("id: \(longest)\ndata: x\n\n"), MockResponse(statusCode: 204)])
        let reader = read(service.GET("/").events(.reconnecting(baseDelay: .zero)))
        #expect(try await reader.value == ["x"])
        #expect(mock.receivedRequests.last?.headers["Last-Event-ID"] == longest)
    }
}
