import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceResilience

@testable import WebServiceOffline

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Outages of the server or of the network pause the whole outbox", .permit)
struct OutboxOutageTests {
    private let fixture = OfflineFixture()
    private var mock: MockService { fixture.mock }
    private var clock: TestClock { fixture.clock }

    private func post(_ path: String) -> Request { mock.service.request(.POST, path: path) }

    /// Responds to each request, and returns the instants at which the requests arrived.
    private func respond(_ response: @escaping @Sendable () -> MockResponse) -> Collected<Duration> {
        let instants = Collected<Duration>()
        mock.on(.POST, "/{n}") { [clock] _ in
            instants.add(clock.elapsed)
            return response()
        }
        return instants
    }

    @Test(
        "A server that fails each of many entries receives one request at a time, after pauses",
        arguments: [
            (MockResponse.status(503), 4, 300), (.status(429), 4, 300), (.error(URLError(.cannotConnectToHost)), 4, 30),
            (.status(500), 13, 300), (.error(URLError(.timedOut)), 13, 300),
        ])
    func failingServer(response: MockResponse, first: Int, maximum: Int) async throws {
        let instants = respond { response }
        let outbox = try await fixture.open()
        for number in 0..<100 { try await outbox.submit(post("/\(number)")) }
        await clock.advance(by: .seconds(600))
        // The first nine pauses take 255 to 511 seconds, and each further one at least 150. Without
        // a connection, the first five take 15 to 31 seconds, and each further one 16 to 30.
        #expect(instants.values.count <= first + (maximum == 300 ? 12 : 41))
        #expect(instants.values.filter { $0 == .zero }.count <= first)
        let later = instants.values.filter { $0 > .zero }
        #expect(later.first.map { $0 <= .seconds(1) } == true)
        for (pause, number) in zip(zip(later.dropFirst(), later).map { $0 - $1 }, 1...) {
            #expect(pause >= min(.seconds(1 << min(number, 20)) / 2, .seconds(150), .seconds(maximum)))
        }
        await outbox.close()
    }

    @Test("After an outage, all entries are sent at once", arguments: [503, 500])
    func recovery(status: Int) async throws {
        let isFailing = Mutex(true)
        let instants = respond { isFailing.withLock(\.self) ? .status(status) : .status(200) }
        var options = Outbox.Options()
        options.maximumPause = .seconds(10)
        let outbox = try await fixture.open(options)
        for number in 0..<50 { try await outbox.submit(post("/\(number)")) }
        await clock.advance(by: .seconds(100))
        #expect(instants.values.count < 40)
        isFailing.withLock { $0 = false }
        await clock.advance(by: .seconds(11))
        #expect(await outbox.entries == [])
    }

    @Test(
        "An entry that fails alone does not delay the others, also after an outage",
        arguments: [[MockResponse.status(500)], [.error(URLError(.notConnectedToInternet)), .status(500)]])
    func oneEntry(responses: [MockResponse]) async throws {
        mock.on(.POST, "/bad", responses)
        mock.on(.POST, "/good", .status(200))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/bad"))
        await clock.advance(by: .seconds(3_600))
        try await outbox.submit(post("/good"))
        await clock.advance(by: .zero)
        #expect(fixture.paths.filter { $0 == "/good" }.count == 1)
        await outbox.close()
    }

    @Test("Requests from before an outage that hang do not delay the others")
    func hangingRequests() async throws {
        mock.on(.POST, "/slow/{n}", .status(200).after(.seconds(60)))
        mock.on(.POST, "/lost", [.error(URLError(.notConnectedToInternet)), .status(200)])
        mock.on(.POST, "/next", .status(200))
        let outbox = try await fixture.open()
        for number in 0..<3 { try await outbox.submit(post("/slow/\(number)")) }
        try await outbox.submit(post("/lost"))
        await clock.advance(by: .zero)
        try await outbox.submit(post("/next"))
        await clock.advance(by: .seconds(3))
        #expect(fixture.paths.filter { $0 == "/next" }.count == 1)
        await outbox.close()
    }

    @Test("An entry whose status is always 503 is sent ever more rarely while others succeed")
    func unavailableEntry() async throws {
        mock.on(.POST, "/bad", .status(503))
        mock.on(.POST, "/good", .status(200))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/bad"))
        for _ in 0..<120 {
            try await outbox.submit(post("/good"))
            await clock.advance(by: .seconds(1))
        }
        #expect(fixture.paths.filter { $0 == "/bad" }.count <= 10)
        await outbox.close()
    }

    @Test("A response to a request that was sent before the pause does not end it")
    func earlierRequest() async throws {
        mock.on(.POST, "/bad", .status(503))
        mock.on(.POST, "/good", .status(200).after(.seconds(1)))
        mock.on(.POST, "/next", .status(200))
        var options = Outbox.Options()
        options.firstPause = .seconds(100)
        let outbox = try await fixture.open(options)
        try await outbox.submit(post("/good"))
        try await outbox.submit(post("/bad"))
        await clock.advance(by: .zero)
        try await outbox.submit(post("/next"))
        await clock.advance(by: .seconds(49))
        #expect(Set(fixture.paths) == ["/good", "/bad"])
        await clock.advance(by: .seconds(51))
        #expect(fixture.paths.contains("/next"))
        await outbox.close()
    }

    @Test("After a pause, a response to a request that was sent before it does not end the outage")
    func earlierRequestAfterPause() async throws {
        mock.on(.POST, "/bad", [.status(503), .status(200)])
        mock.on(.POST, "/slow", .status(200).after(.seconds(20)))
        mock.on(.POST, "/next/{n}", .status(200).after(.seconds(30)))
        var options = Outbox.Options()
        options.firstPause = .seconds(10)
        let outbox = try await fixture.open(options)
        try await outbox.submit(post("/slow"))
        try await outbox.submit(post("/bad"))
        await clock.advance(by: .zero)
        for number in 0..<2 { try await outbox.submit(post("/next/\(number)")) }
        // The pause takes 5 to 10 seconds, so the first request after it ends after 35 to 40.
        await clock.advance(by: .seconds(34))
        #expect(await outbox.entries.count == 3)
        #expect(fixture.paths.filter { $0.hasPrefix("/next/") }.count == 1)
        await clock.advance(by: .seconds(7))
        #expect(fixture.paths.filter { $0.hasPrefix("/next/") }.count == 2)
        await outbox.close()
    }

    @Test(
        "Retry-After determines the pause of the whole outbox, up to the maximum",
        arguments: [(100, 100), (3_600, 300)])
    func retryAfter(requested: Int, pause: Int) async throws {
        mock.on(.POST, "/a", .status(503).header("Retry-After", "\(requested)"))
        mock.on(.POST, "/b", .status(200))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        try await outbox.submit(post("/b"))
        await clock.advance(by: .seconds(pause) - .milliseconds(1))
        #expect(fixture.paths == ["/a"])
        await clock.advance(by: .milliseconds(1))
        #expect(fixture.paths.filter { $0 == "/b" }.count == 1)
        await outbox.close()
    }

    @Test("Without a network, the pause is at most 30 seconds")
    func maximumPause() async throws {
        let instants = respond { .error(URLError(.notConnectedToInternet)) }
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .seconds(1_000))
        let pauses = zip(instants.values.dropFirst(), instants.values).map { $0 - $1 }
        #expect(pauses.count >= 33)
        #expect(pauses.allSatisfy { $0 <= .seconds(30) })
        await outbox.close()
    }

    @Test("When the device has a network again, the entries are sent within a second")
    func network() async throws {
        let isConnected = Mutex(false)
        let hosts = Collected<String>()
        mock.service.interceptors = [
            .waitForConnectivity(within: .zero) { host in
                hosts.add(host)
                return isConnected.withLock(\.self)
            }
        ]
        let instants = respond {
            isConnected.withLock(\.self) ? .status(200) : .error(URLError(.notConnectedToInternet))
        }
        let outbox = try await fixture.open()
        for number in 0..<10 { try await outbox.submit(post("/\(number)")) }
        while instants.values.count < 12 { await clock.advance(by: .seconds(1)) }
        await clock.advance(by: .seconds(2))
        let count = instants.values.count
        isConnected.withLock { $0 = true }
        await clock.advance(by: .seconds(1))
        #expect(instants.values.count == count + 10)
        #expect(await outbox.entries == [])
        #expect(Set(hosts.values) == ["mock.test"])
    }

    @Test("A retry ends the pause of the whole outbox")
    func retry() async throws {
        let isConnected = Mutex(false)
        let instants = respond {
            isConnected.withLock(\.self) ? .status(200) : .error(URLError(.cannotFindHost))
        }
        var options = Outbox.Options()
        options.firstPause = .seconds(20)
        let outbox = try await fixture.open(options)
        for number in 0..<10 { try await outbox.submit(post("/\(number)")) }
        await clock.advance(by: .seconds(1))
        let count = instants.values.count
        #expect(count <= 4)
        outbox.retry()
        await clock.advance(by: .zero)
        #expect(instants.values.count == count + 1)
        // The end of the first pause does not end the second one.
        await clock.advance(by: .seconds(19))
        #expect(instants.values.count == count + 1)
        isConnected.withLock { $0 = true }
        outbox.retry()
        await clock.advance(by: .zero)
        #expect(await outbox.entries == [])
    }

    @Test("A retry without an outage does not limit the requests in flight")
    func retryWithoutOutage() async throws {
        mock.on(.POST, "/{n}", .status(200).after(.seconds(10)))
        let outbox = try await fixture.open()
        outbox.retry()
        for number in 0..<4 { try await outbox.submit(post("/\(number)")) }
        await clock.advance(by: .zero)
        #expect(fixture.paths.count == 4)
        await outbox.close()
    }
}
