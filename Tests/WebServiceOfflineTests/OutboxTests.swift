import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking

@testable import WebServiceOffline

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("The outbox sends its requests", .permit)
struct OutboxTests {
    private let fixture = OfflineFixture()
    private var mock: MockService { fixture.mock }
    private var clock: TestClock { fixture.clock }

    private func post(_ path: String) -> Request { mock.service.request(.POST, path: path) }

    @Test("A request is sent as it was submitted, with the fields of the service, and removed")
    func content() async throws {
        mock.service.headers["X-App"] = "1"
        mock.on(.POST, "/todos", .status(201))
        let outbox = try await fixture.open()
        var request = mock.service.request(.POST, path: "todos")
        request.queryParameters = ["draft": true]
        request.headers["X-Kind"] = "ale"
        request.content = .json(["name": "bock"])
        try await outbox.submit(request, entity: "todos")
        await clock.advance(by: .zero)
        let sent = try #require(mock.receivedRequests.first)
        #expect(sent.target == "/todos?draft=true")
        #expect(sent.headers["X-Kind"] == "ale")
        #expect(sent.headers["X-App"] == "1")
        #expect(sent.headers[.contentType] == "application/json")
        #expect(sent.body == Data(#"{"name":"bock"}"#.utf8))
        #expect(try fixture.entryFiles() == [])
        #expect(await outbox.entries == [])
    }

    @Test("Every attempt has the same key, and each entry has another one")
    func keys() async throws {
        mock.on(.POST, "/a", [.status(503), .error(URLError(.networkConnectionLost)), .status(200)])
        mock.on(.POST, "/b", .status(200))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        try await outbox.submit(post("/b"))
        await clock.advance(by: .seconds(60))
        let keys = mock.receivedRequests.filter { $0.path == "/a" }.map { $0.headers["Idempotency-Key"] }
        #expect(keys.count == 3)
        #expect(Set(keys).count == 1)
        let key = try #require(keys.first ?? nil)
        #expect(key.hasPrefix("\""))
        #expect(key.utf8.count == 38)
        #expect(mock.receivedRequests.first { $0.path == "/b" }?.headers["Idempotency-Key"] != key)
    }

    @Test("A key of the request is preserved")
    func ownKey() async throws {
        mock.on(.POST, "/a", .status(200))
        let outbox = try await fixture.open()
        var request = post("/a")
        request.headers["Idempotency-Key"] = "\"mine\""
        try await outbox.submit(request)
        await clock.advance(by: .zero)
        #expect(mock.receivedRequests.map { $0.headers["Idempotency-Key"] } == ["\"mine\""])
    }

    @Test("The requests of an entity are sent one after another, and others do not wait")
    func order() async throws {
        mock.on(.POST, "/a/{n}") { request in
            request.pathParameters["n"] == "0" ? .status(200).after(.seconds(10)) : .status(200)
        }
        mock.on(.POST, "/b", .status(200))
        mock.on(.POST, "/c", .status(200))
        let outbox = try await fixture.open()
        for number in 0..<3 { try await outbox.submit(post("/a/\(number)"), entity: "a") }
        try await outbox.submit(post("/b"), entity: "b")
        try await outbox.submit(post("/c"))
        await clock.advance(by: .seconds(9))
        #expect(fixture.paths.first == "/a/0")
        #expect(Set(fixture.paths) == ["/a/0", "/b", "/c"])
        await clock.advance(by: .seconds(2))
        #expect(fixture.paths.filter { $0.hasPrefix("/a/") } == ["/a/0", "/a/1", "/a/2"])
    }

    @Test("A failed request delays only later ones of its entity")
    func failureInOrder() async throws {
        mock.on(.POST, "/a/0", [.status(503), .status(200)])
        mock.on(.POST, "/a/1", .status(200))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a/0"), entity: "a")
        try await outbox.submit(post("/a/1"), entity: "a")
        await clock.advance(by: .seconds(10))
        #expect(fixture.paths == ["/a/0", "/a/0", "/a/1"])
    }

    @Test("At most the limit of requests is in flight", arguments: [1, 3])
    func limit(_ limit: Int) async throws {
        mock.on(.POST, "/{n}", .status(200).after(.seconds(10)))
        var options = Outbox.Options()
        options.maximumConcurrentRequests = limit
        let outbox = try await fixture.open(options)
        for number in 0..<7 { try await outbox.submit(post("/\(number)")) }
        await clock.advance(by: .seconds(5))
        #expect(mock.receivedRequests.count == limit)
        await clock.advance(by: .seconds(10))
        #expect(mock.receivedRequests.count == 2 * limit)
    }

    @Test("Pauses double from one second to five minutes, and the outbox does not give up")
    func pauses() async throws {
        let dates = Collected<Duration>()
        mock.on(.POST, "/a") { [clock] _ in
            dates.add(clock.elapsed)
            return .status(500)
        }
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .seconds(2_400))
        let pauses = zip(dates.values.dropFirst(), dates.values).map { $0 - $1 }
        #expect(pauses.count > 12)
        for (number, pause) in pauses.enumerated() {
            let full = min(Duration.seconds(1 << min(number, 20)), .seconds(300))
            #expect(pause >= full / 2)
            #expect(pause <= full)
        }
        #expect(await outbox.entries.map(\.attempts) == [dates.values.count])
        #expect(await outbox.entries.map(\.lastFailure) == [.status(500)])
    }

    @Test("Retry-After determines the pause, even if the body is broken", arguments: [false, true])
    func retryAfter(isBroken: Bool) async throws {
        var response = MockResponse(statusCode: 429, headers: ["Retry-After": "1000"], data: Data("x".utf8))
        if isBroken { response.wire = .invalidChunk }
        mock.on(.POST, "/a", [response, .status(200)])
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .seconds(999))
        #expect(mock.receivedRequests.count == 1)
        await clock.advance(by: .seconds(2))
        #expect(mock.receivedRequests.count == 2)
    }

    @Test("Attempts without a connection are not counted")
    func connectivity() async throws {
        mock.on(
            .POST, "/a",
            Array(repeating: .error(URLError(.notConnectedToInternet)), count: 5) + [.status(503), .status(503)])
        let failures = Collected<Outbox.Failure.Kind>()
        var options = Outbox.Options()
        options.maximumAttempts = 2
        let outbox = try await fixture.open(options) { failure in
            failures.add(failure.kind)
            return .drop
        }
        try await outbox.submit(post("/a"))
        await clock.advance(by: .seconds(600))
        #expect(mock.receivedRequests.count == 7)
        #expect(failures.values == [.status(503)])
    }

    @Test("A token is refreshed when the request is sent")
    func refresh() async throws {
        let token = Mutex("old")
        mock.service.interceptors = [
            Authentication(
                TokenSource({ .bearer(token.withLock(\.self)) }) { _ in
                    token.withLock { $0 = "new" }
                    return .bearer("new")
                })
        ]
        mock.on(.POST, "/a") { $0.headers[.authorization] == "Bearer new" ? .status(200) : .status(401) }
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        #expect(mock.receivedRequests.map { $0.headers[.authorization] } == ["Bearer old", "Bearer new"])
        #expect(await outbox.entries == [])
    }

    @Test("The request of a typed request is sent")
    func typed() async throws {
        struct Tap: HTTPServiceRequest {
            typealias Output = Void
            func request(for service: WebService) -> Request { service.request(.PUT, path: "/taps/3") }
        }
        mock.on(.PUT, "/taps/3", .status(204))
        let outbox = try await fixture.open()
        try await outbox.submit(Tap(), entity: "tap")
        await clock.advance(by: .zero)
        #expect(fixture.paths == ["/taps/3"])
    }

    @Test("Requests are exchanges of the service")
    func observers() async throws {
        let ended = Collected<String>()
        mock.service.observers = [EndObserver { ended.add($0) }]
        mock.on(.POST, "/a", .status(200))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        #expect(ended.values == ["/a"])
    }

    @Test("Each exchange records the number of the attempt, the entry and its entity once")
    func notes() async throws {
        let details = Collected<String>()
        mock.service.observers = [NoteObserver(details: details)]
        mock.service.interceptors = [.retry()]
        mock.on(.PUT, "/a", Array(repeating: .status(503), count: 3) + [.status(200)])
        mock.on(.POST, "/b", .status(200))
        let outbox = try await fixture.open()
        let first = try await outbox.submit(mock.service.request(.PUT, path: "/a"), entity: "a\n")
        await clock.advance(by: .seconds(60))
        let second = try await outbox.submit(post("/b"))
        await clock.advance(by: .zero)
        #expect(mock.receivedRequests.count == 5)
        #expect(
            details.values == [
                "attempt 1 of entry \(first) for a\\n", "attempt 2 of entry \(first) for a\\n",
                "attempt 1 of entry \(second)",
            ])
    }
}

@Suite("Failures and states of the outbox", .permit)
struct OutboxDecisionTests {
    private let fixture = OfflineFixture()
    private var mock: MockService { fixture.mock }
    private var clock: TestClock { fixture.clock }

    private func post(_ path: String) -> Request { mock.service.request(.POST, path: path) }

    @Test("By default, a permanent failure blocks its entity until it is retried")
    func keep() async throws {
        mock.on(.POST, "/a/0", [.status(409), .status(200)])
        mock.on(.POST, "/a/1", .status(200))
        mock.on(.POST, "/b", .status(200))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a/0"), entity: "a")
        try await outbox.submit(post("/a/1"), entity: "a")
        try await outbox.submit(post("/b"), entity: "b")
        await clock.advance(by: .seconds(10_000))
        #expect(Set(fixture.paths) == ["/a/0", "/b"])
        #expect(await outbox.entries.map(\.state) == [.blocked, .waiting])
        outbox.retry()
        await clock.advance(by: .zero)
        #expect(fixture.paths.filter { $0.hasPrefix("/a") } == ["/a/0", "/a/0", "/a/1"])
        #expect(await outbox.entries == [])
    }

    @Test("A request to an address that the session refuses is a permanent failure")
    func refusedDestination() async throws {
        let code = WebServiceError.Code("destinationRefused")
        mock.on(.POST, "/a", .error(WebServiceError(code, "refused")))
        let failures = Collected<Outbox.Failure.Kind>()
        let outbox = try await fixture.open { failure in
            failures.add(failure.kind)
            return .keep
        }
        try await outbox.submit(post("/a"), entity: "a")
        await clock.advance(by: .seconds(10_000))
        #expect(mock.receivedRequests.count == 1)
        #expect(failures.values == [.error(code)])
        #expect(await outbox.entries.map(\.state) == [.blocked])
    }

    @Test("A dropped entry is removed, and the next one is sent")
    func drop() async throws {
        mock.on(.POST, "/a/0", .status(400))
        mock.on(.POST, "/a/1", .status(200))
        let failures = Collected<Outbox.Failure>()
        let outbox = try await fixture.open {
            failures.add($0)
            return .drop
        }
        try await outbox.submit(post("/a/0"), entity: "a")
        try await outbox.submit(post("/a/1"), entity: "a")
        await clock.advance(by: .zero)
        #expect(fixture.paths == ["/a/0", "/a/1"])
        #expect(failures.values.map(\.response?.status) == [400])
        #expect(try fixture.entryFiles() == [])
    }

    @Test("A replacement is sent in the same place, with another key")
    func replace() async throws {
        mock.on(.POST, "/a/0", .status(400))
        mock.on(.POST, "/a/0b", .status(200))
        mock.on(.POST, "/a/1", .status(200))
        let replacement = post("/a/0b")
        let outbox = try await fixture.open { _ in .replace(replacement) }
        try await outbox.submit(post("/a/0"), entity: "a")
        try await outbox.submit(post("/a/1"), entity: "a")
        await clock.advance(by: .zero)
        #expect(fixture.paths == ["/a/0", "/a/0b", "/a/1"])
        #expect(Set(mock.receivedRequests.map { $0.headers["Idempotency-Key"] }).count == 3)
    }

    @Test("A replacement that was made from the failed request has another key")
    func replacedKey() async throws {
        mock.on(.POST, "/a", [.status(412), .status(200)])
        let outbox = try await fixture.open { failure in
            var request = failure.request
            request.headers["If-Match"] = "\"2\""
            return .replace(request)
        }
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        #expect(mock.receivedRequests.map { $0.headers["If-Match"] } == [nil, "\"2\""])
        #expect(Set(mock.receivedRequests.map { $0.headers["Idempotency-Key"] }).count == 2)
    }

    @Test(
        "A server that requests no pause, or a shorter one, does not shorten the pauses",
        arguments: [500, 503], ["0", "1", "Wed, 21 Oct 2015 07:28:00 GMT", "-1", "x", ""])
    func noPause(status: Int, value: String) async throws {
        mock.on(.POST, "/a", MockResponse(statusCode: status, headers: ["Retry-After": value]))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .seconds(2_400))
        // 1, 2, 4, … and 300 seconds, each reduced by up to half.
        #expect((13...27).contains(mock.receivedRequests.count))
        await outbox.close()
    }

    @Test(
        "An attempt is counted while it is in flight and after its success, and not without a connection")
    func attempts() async throws {
        mock.on(
            .POST, "/a", [.error(URLError(.notConnectedToInternet)), .status(503), .status(200).after(.seconds(1))])
        let outbox = try await fixture.open()
        let updates = outbox.updates
        try await outbox.submit(post("/a"))
        await clock.advance(by: .seconds(100))
        await outbox.close()
        var attempts: [Int] = []
        for await case .entry(let entry) in updates { attempts.append(entry.attempts) }
        // waiting, sending, pausing, for each attempt, and sent.
        #expect(attempts == [0, 1, 0, 0, 1, 1, 1, 2, 2])
    }

    @Test("Decisions in progress do not delay the requests of other entities")
    func pendingDecisions() async throws {
        mock.on(.POST, "/a/{n}", .status(401))
        mock.on(.POST, "/b", .status(200))
        let gate = Once<Void>()
        var options = Outbox.Options()
        options.maximumConcurrentRequests = 1
        let outbox = try await fixture.open(options) { _ in
            await gate.value
            return .drop
        }
        try await outbox.submit(post("/a/0"), entity: "a")
        await clock.advance(by: .zero)
        for path in ["/b", "/b", "/b", "/b", "/b"] { try await outbox.submit(post(path)) }
        await clock.advance(by: .zero)
        #expect(fixture.paths == ["/a/0", "/b", "/b", "/b", "/b", "/b"])
        gate.set(())
        await outbox.close()
    }

    @Test("A value that a request adds to a field of the service is stored with those of the service")
    func addedValue() async throws {
        mock.service.headers["X-Tag"] = "a"
        mock.on(.POST, "/a", .status(200))
        let outbox = try await fixture.open()
        var request = post("/a")
        request.headers.add("b", for: "X-Tag")
        try await outbox.submit(request)
        await clock.advance(by: .zero)
        #expect(mock.receivedRequests.first?.headers.values(for: "X-Tag") == ["a", "b"])
    }

    @Test("Replacements that fail are sent after pauses")
    func failingReplacement() async throws {
        mock.on(.POST, "/a", .status(400))
        let replacement = post("/a")
        let outbox = try await fixture.open { _ in .replace(replacement) }
        try await outbox.submit(post("/a"))
        await clock.advance(by: .seconds(100))
        #expect(mock.receivedRequests.count > 5)
        #expect(mock.receivedRequests.count < 15)
        #expect(await outbox.entries.count == 1)
    }

    @Test("The states of an entry are delivered in order")
    func updates() async throws {
        mock.on(.POST, "/a", [.status(503), .status(200)])
        let outbox = try await fixture.open()
        let updates = outbox.updates
        let id = try await outbox.submit(post("/a"), entity: "a")
        await clock.advance(by: .seconds(5))
        await outbox.close()
        var states: [String] = []
        for await case .entry(let entry) in updates {
            #expect(entry.id == id)
            states.append("\(entry.state)".prefix { $0 != "(" }.description)
        }
        #expect(states == ["waiting", "sending", "pausing", "waiting", "sending", "sent"])
    }

    @Test("A removed entry is not sent, and the next one is")
    func removal() async throws {
        mock.on(.POST, "/a/0", .status(200).after(.seconds(10)))
        mock.on(.POST, "/a/1", .status(200))
        mock.on(.POST, "/a/2", .status(200))
        let outbox = try await fixture.open()
        var ids: [UUID] = []
        for number in 0..<3 { ids.append(try await outbox.submit(post("/a/\(number)"), entity: "a")) }
        await clock.advance(by: .seconds(1))
        #expect(try await outbox.remove(ids[1]))
        #expect(try await outbox.remove(ids[0]))
        await clock.advance(by: .zero)
        #expect(fixture.paths == ["/a/0", "/a/2"])
        #expect(try await !outbox.remove(ids[0]))
        #expect(try fixture.entryFiles() == [])
    }

    @Test("A closed outbox sends and stores nothing, and its entries remain")
    func close() async throws {
        mock.on(.POST, "/{n}", .status(200).after(.seconds(10)))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/0"), entity: "a")
        try await outbox.submit(post("/1"), entity: "a")
        await clock.advance(by: .seconds(1))
        await outbox.close()
        await clock.advance(by: .seconds(1_000))
        #expect(fixture.paths == ["/0"])
        let error = await #expect(throws: WebServiceError.self) { try await outbox.submit(post("/2")) }
        #expect(error?.code == .outboxClosed)
        #expect(try fixture.entryFiles().count == 2)
    }
}

/// An observer that collects the events of outboxes.
private struct NoteObserver: Observer {
    let details: Collected<String>

    func observe(_ event: ExchangeEvent) {
        if case .recorded(let recorded) = event.kind, recorded.kind == .outbox { details.add(recorded.detail) }
    }
}

/// An observer that calls a closure with the path of each exchange that has ended.
private struct EndObserver: Observer {
    let body: @Sendable (String) -> Void

    func observe(_ event: ExchangeEvent) {
        if case .ended = event.kind { body(event.exchange.request?.url?.path ?? "") }
    }
}
