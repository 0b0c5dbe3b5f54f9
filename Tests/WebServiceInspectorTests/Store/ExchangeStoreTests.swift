import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceDiagnostics
import WebServiceMocking

@testable import WebServiceInspector

@Suite("The exchanges that an inspector records", .permit)
struct ExchangeStoreTests {
    @Test("An exchange contains its request, response, attempts, events and durations")
    func content() async throws {
        let inspected = InspectedService()
        inspected.session.on(.POST, "/beers", [503, .json(["id": 7], status: 201).header("ETag", "\"1\"")])
        var request = Request(.POST, url: "https://h.example.com/beers?page=2")
        request.content = .json(["name": "Ale"])
        request.options.interceptors = [RetryPolicy(baseDelay: .milliseconds(1), retriesAnyMethod: true)]
        let exchange = try await inspected.send(request)
        #expect(exchange.number == 1)
        #expect(exchange.parent == nil)
        #expect(exchange.status == 201)
        #expect(exchange.failure == nil)
        #expect(exchange.attempts.map(\.number) == [1, 2])
        #expect(exchange.attempts.map { $0.response?.head.status } == [503, 201])
        #expect(exchange.attempts.allSatisfy { $0.method == .POST })
        #expect(exchange.attempts.allSatisfy { $0.url == "https://h.example.com/beers?page=2" })
        #expect(exchange.attempts.last?.body?.data == Data(#"{"name":"Ale"}"#.utf8))
        #expect(exchange.lastResponse?.body.data == Data(#"{"id":7}"#.utf8))
        #expect(exchange.lastResponse?.head.headers["ETag"] == "\"1\"")
        #expect(exchange.events.contains { $0.kind == .retry })
        #expect(exchange.events.contains { $0.kind == .wait })
        let ends = exchange.attempts.map { $0.end ?? .zero }
        #expect(zip(exchange.attempts, ends).allSatisfy { $0.start <= $1 })
        #expect(try #require(exchange.duration) >= ends[1])
    }

    @Test("An exchange in progress has no duration, and a failed one has an error without values")
    func failures() async throws {
        let inspected = InspectedService()
        inspected.session.on(.GET, "/waits", MockResponse(statusCode: 200).after(.seconds(3600)))
        let task = inspected.service.GET("/waits").resume()
        await eventually { inspected.store.exchanges().first?.attempts.count == 1 }
        let active = try #require(inspected.store.exchanges().first)
        #expect(active.phase == .active)
        #expect(active.duration == nil)
        #expect(active.status == nil)
        task.cancel()
        await eventually { inspected.store.exchanges().first?.phase == .ended }
        let row = ListedExchange(try #require(inspected.store.exchanges().first), .standard)
        #expect(row.error == nil)
        #expect(row.cancelled == true)
        let error = URLError(.badURL, userInfo: ["NSErrorFailingURLStringKey": "https://h/?token=canary"])
        let failed = try await inspected.send("/fails", .error(error))
        #expect(!ShownExchange(failed, .standard).pageJSON.contains("canary"))
        #expect(failed.failure != nil)
    }

    @Test("Exchanges have the name with which their service is observed")
    func serviceName() async throws {
        let inspected = InspectedService()
        #expect(try await inspected.send("/a").service == nil)
        inspected.service.observers = [NamedObserver(name: "Payments", store: inspected.store)]
        let exchange = try await inspected.send("/b")
        #expect(exchange.service == "Payments")
        #expect(ListedExchange(exchange, .standard).pageJSON.contains(#""service":"Payments""#))
    }

    @Test("The oldest exchanges are removed at the limits of number and memory")
    func limits() async throws {
        let inspected = InspectedService(maximumExchanges: 3, bodyLimit: 10_000, memoryLimit: 30_000)
        for number in 1...5 { try await inspected.send("/\(number)") }
        #expect(inspected.store.exchanges().map(\.number) == [3, 4, 5])
        #expect(inspected.store.exchange(2) == nil)
        #expect(inspected.store.changes(after: ChangeFeed.Position()).oldest == 3)
        let large = MockResponse(statusCode: 200, data: Data(count: 9_000))
        for number in 6...8 { try await inspected.send("/\(number)", large) }
        #expect(inspected.store.exchanges().map(\.number) == [6, 7, 8])
        try await inspected.send("/9", MockResponse(statusCode: 200, data: Data(count: 10_000)))
        try await inspected.send("/10", MockResponse(statusCode: 200, data: Data(count: 10_000)))
        #expect(inspected.store.exchanges().map(\.number) == [9, 10])
    }

    @Test("The last exchange is retained even if it exceeds the limit of the memory")
    func lastExchange() async throws {
        let inspected = InspectedService(maximumExchanges: 0, bodyLimit: 100, memoryLimit: 0)
        try await inspected.send("/1")
        try await inspected.send("/2")
        #expect(inspected.store.exchanges().map(\.number) == [2])
    }

    @Test("Bodies are truncated, and their sizes remain")
    func bodies() async throws {
        let inspected = InspectedService(bodyLimit: 100)
        var request = Request(.POST, url: "https://h.example.com/x")
        request.content = .data(Data(repeating: 0x61, count: 5_000), contentType: "text/plain")
        inspected.session.on(.POST, "/x", .text(String(repeating: "b", count: 3_000)))
        let exchange = try await inspected.send(request)
        let attempt = try #require(exchange.attempts.last)
        #expect(attempt.body?.data.count == 100)
        #expect(attempt.body?.size == 5_000)
        #expect(attempt.response?.body.data.count == 100)
        #expect(attempt.response?.body.size == 3_000)
        let shown = ShownAttempt(attempt, .standard)
        #expect(shown.response?.body.note == "The first 100 of 3000 bytes.")
        #expect(shown.response?.body.text == String(repeating: "b", count: 100))
        #expect(shown.curl.contains("[body of 5000 bytes]"))
        #expect(shown.requestBody.size == 5_000)
    }

    @Test("The fields as sent are shown beside those of the request, without secrets")
    func sentHeaders() async throws {
        let inspected = InspectedService()
        inspected.session.on(.GET, "/x", 200)
        let exchange = try await inspected.send(Request(url: "https://h.example.com/x"))
        var attempt = try #require(exchange.attempts.last)
        #expect(ShownAttempt(attempt, .standard).sentHeaders == nil)
        var metrics = TransportMetrics(total: .zero)
        metrics.requestHeaders = ["Host": "h.example.com", "Authorization": "Bearer canary"]
        attempt.metrics = metrics
        let shown = ShownAttempt(attempt, .standard)
        #expect(shown.sentHeaders == [["Host", "h.example.com"], ["Authorization", "[redacted]"]])
        #expect(shown.requestHeaders.isEmpty)
    }

    @Test("The last 100 events of one exchange are retained")
    func manyEvents() async throws {
        let inspected = InspectedService()
        inspected.session.on(.GET, "/x", 503)
        var request = Request(url: "https://h.example.com/x")
        let policy = RetryPolicy(maximumAttempts: 20, baseDelay: .zero, budget: .seconds(3600))
        request.options.interceptors = [Repeating(), policy]
        let exchange = try await inspected.send(request)
        #expect(exchange.attempts.count == 100)
        #expect(exchange.attempts.last?.number == 100)
        #expect(exchange.events.count == 100)
        #expect(exchange.events.contains { $0.kind == .wait })
    }

    @Test("A closed store records nothing and ends its feeds")
    func closing() async throws {
        let inspected = InspectedService()
        try await inspected.send("/1")
        let feed = ChangeFeed(store: inspected.store, position: ChangeFeed.Position())
        let events = Task {
            try await feed.reduce(into: [String]()) { $0.append(String(decoding: $1, as: UTF8.self)) }
        }
        await eventually { inspected.store.hasWaiters }
        inspected.store.close(timeout: .milliseconds(1))
        #expect(try await events.value.last == "event: end\ndata:\n\n")
        _ = await inspected.service.GET("/2").data().result
        #expect(inspected.store.exchanges().isEmpty)
        #expect(inspected.store.changes(after: ChangeFeed.Position()).isLast)
    }

    @Test("A store that closes delivers the last changes, and waits until the feeds are cancelled")
    func delivery() async throws {
        let inspected = InspectedService()
        var feed = ChangeFeed(store: inspected.store, position: ChangeFeed.Position()).makeAsyncIterator() as Optional
        _ = try await feed?.next()
        try await inspected.send("/1", .text("the last response"))
        let closing = Task.detached { inspected.store.close(timeout: .seconds(60)) }
        var text = ""
        while !text.hasSuffix("event: end\ndata:\n\n") {
            text += String(decoding: try #require(try await feed?.next()), as: UTF8.self)
        }
        #expect(text.contains("event: details\ndata: 1\ndata: {"))
        #expect(text.contains("the last response"))
        #expect(inspected.store.exchanges().count == 1)
        feed = nil
        await closing.value
        #expect(inspected.store.exchanges().isEmpty)
    }

    @Test("A feed delivers the details of each exchange once, in pieces")
    func details() async throws {
        let inspected = InspectedService(maximumExchanges: 1000, bodyLimit: 100_000, memoryLimit: 100_000_000)
        let body = String(repeating: "a", count: 30_000)
        for number in 1...20 { try await inspected.send("/\(number)", .text(body)) }
        var feed = ChangeFeed(store: inspected.store, position: ChangeFeed.Position()).makeAsyncIterator()
        var numbers: [Int] = []
        var pieces = 0
        while numbers.count < 20 {
            let text = String(decoding: try #require(try await feed.next()), as: UTF8.self)
            let lines = text.split(separator: "\n")
            let found = lines.indices.filter { lines[$0] == "event: details" }
            numbers += found.compactMap { Int(lines[$0 + 1].dropFirst(6)) }
            pieces += found.isEmpty ? 0 : 1
        }
        #expect(numbers == Array(1...20))
        #expect(pieces > 5)
        #expect(feed.position.details == inspected.store.changes(after: ChangeFeed.Position()).version)
    }

    @Test("A position is read from its description, and any other text is the start")
    func positions() {
        let position = ChangeFeed.Position("7.5")
        #expect(position.rows == 7)
        #expect(position.details == 5)
        #expect(ChangeFeed.Position(position.description) == position)
        for text in [nil, "", "7", "a.b", "1.2.3"] { #expect(ChangeFeed.Position(text) == ChangeFeed.Position()) }
    }

    @Test("Empty lines are counted across parts, with each kind of line break")
    func emptyLines() {
        for (parts, count) in [
            (["a\n", "\nb\n\n"], 2), (["a\r", "\n\r", "\nb"], 1), (["a\r\r", "b"], 1), (["\n"], 1), (["a\nb\n"], 0),
        ] {
            var lines = EmptyLineCount()
            for part in parts { lines.add(Data(part.utf8)) }
            #expect(lines.count == count, "\(parts)")
        }
    }

    @Test("A feed delivers all changes since a version, one event for several changes")
    func feed() async throws {
        let inspected = InspectedService()
        try await inspected.send("/1")
        var feed = ChangeFeed(store: inspected.store, position: ChangeFeed.Position()).makeAsyncIterator()
        let first = String(decoding: try #require(try await feed.next()), as: UTF8.self)
        let version = inspected.store.changes(after: ChangeFeed.Position()).version
        #expect(first.hasPrefix("id: \(version).0\ndata: {"))
        #expect(first.hasSuffix("}\n\n"))
        #expect(first.utf8.count { $0 == 0x0A } == 3)
        #expect(first.contains("\"number\":1"))
        try await inspected.send("/2")
        try await inspected.send("/3")
        _ = try await feed.next()  // the details of the first exchange
        let second = String(decoding: try #require(try await feed.next()), as: UTF8.self)
        #expect(!second.contains("\"number\":1,"))
        #expect(second.contains("\"number\":2"))
        #expect(second.contains("\"number\":3"))
        var later = ChangeFeed(store: inspected.store, position: ChangeFeed.Position("1000000.0")).makeAsyncIterator()
        let all = String(decoding: try #require(try await later.next()), as: UTF8.self)
        #expect(all.contains("\"number\":1"))
        #expect(all.contains("\"number\":3"))
    }

    @Test("A feed ends with the cancellation of its Swift task")
    func cancellation() async throws {
        let inspected = InspectedService()
        let feed = ChangeFeed(store: inspected.store, position: ChangeFeed.Position())
        let events = Task { try await feed.reduce(0) { count, _ in count + 1 } }
        await eventually { inspected.store.hasWaiters }
        events.cancel()
        #expect(try await events.value == 1)
        #expect(!inspected.store.hasWaiters)
    }

    @Test("Exchanges of many threads are recorded completely")
    func concurrency() async throws {
        let inspected = InspectedService(maximumExchanges: 50)
        inspected.session.on(.path("/{name}"), 200)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask { _ = await inspected.service.GET("/\(number)").data().result }
            }
        }
        await eventually { inspected.store.exchanges().allSatisfy { $0.phase == .ended } }
        let numbers = inspected.store.exchanges().map(\.number)
        #expect(numbers == Array(151...200))
    }
}

/// Sends each request 20 times.
private struct Repeating: Interceptor {
    func intercept(_ request: Request, next: Next) async throws -> Response {
        for _ in 1..<20 { _ = try await next(request) }
        return try await next(request)
    }
}
