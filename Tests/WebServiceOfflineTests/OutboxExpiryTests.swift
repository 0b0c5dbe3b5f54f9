import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOffline

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Entries of an outbox that expire", .permit)
struct OutboxExpiryTests {
    /// What `onFailure` receives: the path, the kind and the elapsed seconds.
    private let reports = Collected<String>()

    private func post(_ path: String, _ fixture: OfflineFixture) -> Request {
        fixture.service.request(.POST, path: path)
    }

    /// Returns a service with other dates.
    private func service(_ fixture: OfflineFixture, date: @escaping @Sendable () -> Date) -> WebService {
        let service = WebService(
            baseURLString: "https://mock.test", passthroughDelegate: nil,
            timekeeper: TestTimekeeper(fixture.clock, date: date))
        service.session = fixture.mock.session
        return service
    }

    private func open(
        _ fixture: OfflineFixture, _ decision: Outbox.Decision = .keep, _ service: WebService? = nil
    ) async throws -> Outbox {
        let clock = fixture.clock
        let outbox = try (service ?? fixture.service).outbox(in: fixture.outbox) { [reports] failure in
            #expect(failure.entry.lastFailure == failure.kind)
            if failure.kind == .error(.entryExpired) {
                #expect((failure.error as? WebServiceError)?.code == .entryExpired)
                #expect(failure.response == nil)
            }
            let kind = failure.kind == .error(.entryExpired) ? "expired" : "\(failure.kind)"
            let seconds = Int((clock.elapsed / .seconds(1)).rounded())
            reports.add("\(failure.request.url?.path ?? "") \(kind) \(seconds)")
            return decision
        }
        await fixture.clock.advance(by: .zero)
        return outbox
    }

    @Test("An entry without a connection is reported at its date, and blocks its entity")
    func offline() async throws {
        let fixture = OfflineFixture()
        fixture.mock.on(.path("/**"), .error(URLError(.notConnectedToInternet)))
        let outbox = try await open(fixture)
        let date = fixture.clock.date
        let id = try await outbox.submit(
            post("/a", fixture), entity: "a", expires: date.addingTimeInterval(100))
        try await outbox.submit(post("/b", fixture), entity: "a")
        try await outbox.submit(post("/c", fixture), expires: date.addingTimeInterval(50))
        #expect(await outbox.entries.map(\.expirationDate) == [date + 100, nil, date + 50])
        await fixture.clock.advance(by: .seconds(99))
        #expect(reports.values == ["/c expired 50"])
        let count = fixture.paths.filter { $0 == "/a" }.count
        #expect(count > 1)
        await fixture.clock.advance(by: .seconds(200))
        #expect(reports.values == ["/c expired 50", "/a expired 100"])
        #expect(fixture.paths.filter { $0 == "/a" }.count <= count + 1)
        #expect(!fixture.paths.contains("/b"))
        #expect(await outbox.entries.map(\.state) == [.blocked, .waiting, .blocked])
        outbox.retry(id)
        await fixture.clock.advance(by: .seconds(1))
        #expect(reports.values.last == "/a expired 299")
        #expect(await outbox.entries.first?.attempts == 0)
    }

    @Test("An entry expires during a pause of the whole outbox, and the next one of its entity is sent after it")
    func outage() async throws {
        let fixture = OfflineFixture()
        let isOpen = Mutex(false)
        fixture.mock.on(.POST, "/{n}") { _ in
            isOpen.withLock(\.self) ? .status(200) : MockResponse(statusCode: 503, headers: ["Retry-After": "200"])
        }
        let outbox = try await open(fixture, .drop)
        try await outbox.submit(post("/a", fixture), entity: "a", expires: fixture.clock.date + 20)
        try await outbox.submit(post("/b", fixture), entity: "a")
        await fixture.clock.advance(by: .seconds(21))
        #expect(reports.values == ["/a expired 20"])
        #expect(await outbox.entries.map(\.state) == [.waiting])
        isOpen.withLock { $0 = true }
        await fixture.clock.advance(by: .seconds(300))
        #expect(fixture.paths == ["/a", "/b"])
    }

    @Test("The result of a request that is in flight when its entry expires counts")
    func sending() async throws {
        let fixture = OfflineFixture()
        fixture.mock.on(.POST, "/success", .status(200).after(.seconds(10)))
        fixture.mock.on(.POST, "/refused", .status(422).after(.seconds(10)))
        fixture.mock.on(.POST, "/failure", [.status(500).after(.seconds(10))])
        let outbox = try await open(fixture)
        for path in ["/success", "/refused", "/failure"] {
            try await outbox.submit(post(path, fixture), expires: fixture.clock.date + 5)
        }
        await fixture.clock.advance(by: .seconds(9))
        #expect(reports.values == [])
        await fixture.clock.advance(by: .seconds(60))
        #expect(reports.values.sorted() == ["/failure expired 10", "/refused status(422) 10"])
        #expect(fixture.paths.sorted() == ["/failure", "/refused", "/success"])
        #expect(await outbox.entries.map(\.state) == [.blocked, .blocked])
    }

    @Test("An entry that expires while an earlier one of its entity is sent is reported after that")
    func order() async throws {
        let fixture = OfflineFixture()
        fixture.mock.on(.POST, "/0", .status(200).after(.seconds(10)))
        fixture.mock.on(.POST, "/2", .status(200))
        let outbox = try await open(fixture, .drop)
        try await outbox.submit(post("/0", fixture), entity: "a")
        try await outbox.submit(post("/1", fixture), entity: "a", expires: fixture.clock.date + 5)
        try await outbox.submit(post("/2", fixture), entity: "a")
        await fixture.clock.advance(by: .seconds(60))
        #expect(reports.values == ["/1 expired 10"])
        #expect(fixture.paths == ["/0", "/2"])
        #expect(await outbox.entries == [])
    }

    @Test("A replacement of an expired entry has no date, and one of a refused entry has the same")
    func replacement() async throws {
        let fixture = OfflineFixture()
        fixture.mock.on(.POST, "/b", [.status(503), .status(503), .status(503), .status(503), .status(200)])
        let outbox = try await open(fixture, .replace(post("/b", fixture)))
        try await outbox.submit(post("/a", fixture), expires: fixture.clock.date)
        await fixture.clock.advance(by: .seconds(60))
        #expect(reports.values == ["/a expired 0"])
        #expect(fixture.paths == Array(repeating: "/b", count: 5))
        fixture.mock.on(.POST, "/c", .status(422))
        fixture.mock.on(.POST, "/b", .status(503)).optional()
        try await outbox.submit(post("/c", fixture), expires: fixture.clock.date + 1_000)
        await fixture.clock.advance(by: .seconds(1))
        #expect(await outbox.entries.map(\.expirationDate) == [fixture.clock.date + 999])
    }

    @Test("An entry that has expired while no process sent is reported and not sent", arguments: OutboxPlace.allCases)
    func restart(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        let offline = MockService(clock: fixture.clock)
        offline.on(.path("/**"), .error(URLError(.notConnectedToInternet))).optional()
        let first = try place.outbox(of: offline.service, at: fixture.outbox)
        try await first.submit(post("/a", fixture), expires: fixture.clock.date + 5)
        try await first.submit(post("/b", fixture), expires: fixture.clock.date + 500)
        await first.close()
        await fixture.clock.advance(by: .seconds(60))
        fixture.mock.on(.POST, "/b", .status(200))
        let kinds = Collected<Outbox.Failure.Kind>()
        let second = try await fixture.open { failure in
            kinds.add(failure.kind)
            return .drop
        }
        #expect(kinds.values == [.error(.entryExpired)])
        #expect(fixture.paths == ["/b"])
        #expect(await second.entries == [])
    }

    @Test("After the clock of the device was set forward, an expired entry is not sent")
    func forward() async throws {
        let fixture = OfflineFixture()
        let offset = Mutex(0.0)
        let clock = fixture.clock
        let service = service(fixture) { clock.date + offset.withLock(\.self) }
        fixture.mock.on(.POST, "/a", .status(500))
        let outbox = try await open(fixture, .drop, service)
        try await outbox.submit(post("/a", fixture), expires: clock.date + 10_000)
        await clock.advance(by: .milliseconds(1))
        offset.withLock { $0 = 20_000 }
        await clock.advance(by: .seconds(30))
        #expect(fixture.paths == ["/a"])
        #expect(reports.values.count == 1)
        #expect(await outbox.entries == [])
    }

    @Test("After the clock of the device was set back, an entry expires at its date")
    func back() async throws {
        let fixture = OfflineFixture()
        let offset = Mutex(0.0)
        let clock = fixture.clock
        let service = service(fixture) { clock.date + offset.withLock(\.self) }
        fixture.mock.on(.POST, "/a", .error(URLError(.notConnectedToInternet)))
        let outbox = try await open(fixture, .drop, service)
        try await outbox.submit(post("/a", fixture), expires: clock.date + 100)
        await clock.advance(by: .seconds(50))
        offset.withLock { $0 = -500 }
        await clock.advance(by: .seconds(500))
        #expect(reports.values == [])
        let count = fixture.paths.count
        #expect(count > 5)
        await clock.advance(by: .seconds(101))
        #expect(reports.values == ["/a expired 600"])
        // An entry that was reported remains so.
        offset.withLock { $0 = -5_000 }
        await clock.advance(by: .seconds(500))
        #expect(await outbox.entries == [])
    }
}
