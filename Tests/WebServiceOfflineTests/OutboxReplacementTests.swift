import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOffline

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Entries of an outbox that others replace", .permit)
struct OutboxReplacementTests {
    private func post(_ path: String, _ fixture: OfflineFixture) -> Request {
        fixture.service.request(.POST, path: path)
    }

    @Test(
        "A submission replaces those with the same key and entity that wait, and takes its own place",
        arguments: OutboxPlace.allCases)
    func waiting(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        let isOnline = Mutex(false)
        fixture.mock.on(.POST, "/{n}") { _ in
            isOnline.withLock(\.self) ? .status(200) : .error(URLError(.notConnectedToInternet))
        }
        let first = try await fixture.open()
        let updates = first.updates
        let old = try await first.submit(post("/0", fixture), entity: "a", replacing: "title")
        try await first.submit(post("/1", fixture), entity: "a")
        try await first.submit(post("/2", fixture), entity: "a", replacing: "note")
        try await first.submit(post("/3", fixture), entity: "b", replacing: "title")
        try await first.submit(post("/4", fixture), replacing: "title")
        await fixture.clock.advance(by: .seconds(1))
        #expect(await first.entries.map(\.key) == ["title", nil, "note", "title", "title"])
        try await first.submit(post("/5", fixture), entity: "a", replacing: "title")
        try await first.submit(post("/6", fixture), replacing: "title")
        #expect(await first.entries.map(\.entity) == ["a", "a", "b", "a", nil])
        await first.close()
        var last: Outbox.Entry.State?
        for await case .entry(let entry) in updates where entry.id == old { last = entry.state }
        #expect(last == .removed)

        let sent = fixture.paths.count
        isOnline.withLock { $0 = true }
        let second = try await fixture.open()
        #expect(await second.entries == [])
        let paths = fixture.paths.dropFirst(sent)
        #expect(paths.filter { ["/0", "/1", "/2", "/5"].contains($0) } == ["/1", "/2", "/5"])
        #expect(paths.sorted() == ["/1", "/2", "/3", "/5", "/6"])
    }

    @Test("An entry that is being sent is not replaced, and the new one is sent after it", arguments: ["a", nil])
    func sending(_ entity: String?) async throws {
        let fixture = OfflineFixture()
        fixture.mock.on(.POST, "/0", .status(200).after(.seconds(10)))
        fixture.mock.on(.POST, "/2", .status(200))
        let outbox = try await fixture.open()
        let id = try await outbox.submit(
            post("/0", fixture), entity: entity, replacing: "k", storesResponse: true)
        await fixture.clock.advance(by: .seconds(1))
        try await outbox.submit(post("/1", fixture), entity: entity, replacing: "k")
        try await outbox.submit(post("/2", fixture), entity: entity, replacing: "k")
        await fixture.clock.advance(by: .seconds(8))
        #expect(fixture.paths == ["/0"])
        #expect(await outbox.entries.map(\.state) == [.sending, .waiting])
        await fixture.clock.advance(by: .seconds(2))
        #expect(fixture.paths == ["/0", "/2"])
        #expect(await outbox.entries == [])
        #expect(try await outbox.response(of: id) != nil)
    }

    @Test("An entry that fails after it was replaced is not sent again, and delays the new one no longer")
    func failing() async throws {
        let fixture = OfflineFixture()
        fixture.mock.on(.POST, "/0", .status(500).after(.seconds(10)))
        fixture.mock.on(.POST, "/1", .status(200))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/0", fixture), entity: "a", replacing: "k")
        await fixture.clock.advance(by: .seconds(1))
        try await outbox.submit(post("/1", fixture), entity: "a", replacing: "k")
        await fixture.clock.advance(by: .seconds(9))
        #expect(fixture.paths == ["/0", "/1"])
        #expect(await outbox.entries == [])
    }

    @Test(
        "A refused entry that was replaced is reported, and neither blocks nor replaces another",
        arguments: OutboxPlace.allCases)
    func refused(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        fixture.mock.on(.POST, "/0", .status(422).after(.seconds(10)))
        fixture.mock.on(.POST, "/1", .status(422).after(.seconds(10)))
        fixture.mock.on(.POST, "/2", .status(200))
        let kinds = Collected<Outbox.Failure.Kind>()
        let replacement = post("/3", fixture)
        let outbox = try await fixture.open { failure in
            kinds.add(failure.kind)
            return kinds.values.count == 1 ? .keep : .replace(replacement)
        }
        for path in ["/0", "/1", "/2"] {
            try await outbox.submit(post(path, fixture), entity: "a", replacing: "k")
            await fixture.clock.advance(by: .seconds(9))
        }
        await fixture.clock.advance(by: .seconds(60))
        #expect(fixture.paths == ["/0", "/1", "/2"])
        #expect(kinds.values == [.status(422), .status(422)])
        #expect(await outbox.entries == [])
    }

    @Test("A blocked entry is replaced")
    func blocked() async throws {
        let fixture = OfflineFixture()
        fixture.mock.on(.POST, "/0", .status(422))
        fixture.mock.on(.POST, "/1", .status(200))
        let outbox = try await fixture.open()
        for path in ["/0", "/1"] {
            try await outbox.submit(post(path, fixture), entity: "a", replacing: "k")
            await fixture.clock.advance(by: .zero)
        }
        #expect(fixture.paths == ["/0", "/1"])
        #expect(await outbox.entries == [])
    }

    @Test(
        "An entry that another outbox has replaced is not sent, before and after it has sent a request",
        arguments: OutboxPlace.allCases)
    func others(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        fixture.mock.on(.POST, "/{n}", .status(200))
        fixture.mock.on(.POST, "/0", .status(500))
        fixture.mock.on(.POST, "/first", .status(200).after(.seconds(10)))
        let sender = try await fixture.open()
        let other = try await fixture.open()
        try await sender.submit(post("/first", fixture), entity: "b")
        try await sender.submit(post("/0", fixture), entity: "a", replacing: "k")
        try await sender.submit(post("/1", fixture), entity: "b", replacing: "k")
        await fixture.clock.advance(by: .milliseconds(1))
        // Before the sender reads the list of entries, or ends its pause.
        try await other.submit(post("/2", fixture), entity: "a", replacing: "k")
        try await other.submit(post("/3", fixture), entity: "b", replacing: "k")
        await fixture.clock.advance(by: .seconds(60))
        #expect(fixture.paths.sorted() == ["/0", "/2", "/3", "/first"])
        #expect(await sender.entries == [])
        #expect(await other.entries == [])
    }

    @Test("An entry that a killed process has replaced but not removed is not sent")
    func killed() async throws {
        let fixture = OfflineFixture()
        try await fixture.leave(["/other"])
        let offline = MockService(clock: fixture.clock)
        offline.on(.path("/**"), .error(URLError(.notConnectedToInternet))).optional()
        let first = try offline.service.outbox(in: fixture.folder)
        try await first.submit(post("/0", fixture), entity: "a", replacing: "k")
        let name = try #require(try fixture.entryFiles().last)
        let file = fixture.folder.appendingPathComponent(name)
        let content = try Data(contentsOf: file)
        try await first.submit(post("/1", fixture), entity: "a", replacing: "k")
        await first.close()
        #expect(try !fixture.entryFiles().contains(name))
        try content.write(to: file)
        fixture.mock.on(.POST, "/{n}", .status(200))
        let second = try await fixture.open()
        #expect(fixture.paths.sorted() == ["/1", "/other"])
        #expect(await second.entries == [])
        #expect(try fixture.entryFiles() == [])
    }

    @Test("An entry that a killed process has replaced is removed only after its replacement was flushed")
    func unflushed() async throws {
        let fixture = OfflineFixture()
        let folder = fixture.folder
        fixture.mock.on(.path("/**"), .error(URLError(.notConnectedToInternet))).optional()
        let first = try await fixture.open()
        try await first.submit(post("/0", fixture), entity: "a", replacing: "k")
        let file = folder.appendingPathComponent(try #require(try fixture.entryFiles().first))
        let content = try Data(contentsOf: file)
        try await first.submit(post("/1", fixture), entity: "a", replacing: "k")
        await first.close()
        try content.write(to: file)
        // The number of entries at each flush.
        let counts = Collected<Int>()
        let store = try OutboxFolder(folder) { () throws(SystemFailure) in
            counts.add((try? names(in: folder).count { $0.hasSuffix(".entry") }) ?? -1)  // is not expected below
        }
        let second = try fixture.service.outbox(Outbox.Options(), { _ in .keep }, in: { store })
        await fixture.clock.advance(by: .zero)
        #expect(counts.values == [2, 1])
        #expect(await second.entries.count == 1)
        await second.close()
    }

    @Test("A full outbox accepts a replacement", arguments: OutboxPlace.allCases)
    func full(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        fixture.mock.on(.path("/**"), .error(URLError(.notConnectedToInternet))).optional()
        var options = Outbox.Options()
        options.maximumCount = 2
        let outbox = try await fixture.open(options)
        // One entity, so that the later entries wait for the first one.
        try await outbox.submit(post("/0", fixture), entity: "a")
        try await outbox.submit(post("/1", fixture), entity: "a", replacing: "k")
        try await outbox.submit(post("/2", fixture), entity: "a", replacing: "k")
        let error = await #expect(throws: WebServiceError.self) {
            try await outbox.submit(post("/3", fixture), entity: "a", replacing: "l")
        }
        #expect(error?.code == .outboxFull)
        #expect(await outbox.entries.map(\.key) == [nil, "k"])
    }

    @Test("An entry with the hashes of another key is not replaced", arguments: OutboxPlace.allCases)
    func collision(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        fixture.mock.on(.POST, "/{n}", .status(200))
        let outbox = try await fixture.open()
        let entry = Outbox.Entry(id: UUID(), entity: "a", date: Date(), key: "other")
        let stored = try StoredRequest(post("/0", fixture), of: entry, fixture.service, Outbox.Options())
        _ = try await outbox.onQueue("") {
            try outbox.folder.add(
                try stored.encoded(), suffix: OutboxNames.suffix(entry.id, "a", "k"), maximumCount: 10
            ) { _ in true }
        }
        try await outbox.submit(post("/1", fixture), entity: "a", replacing: "k")
        await fixture.clock.advance(by: .seconds(60))
        #expect(fixture.paths == ["/0", "/1"])
    }
}
