#if WEBSERVICE_SQLITE
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceOffline
@testable import WebServiceSQLite

@Suite("The database of an outbox", .permit)
struct OutboxDatabaseTests {
    private let fixture = OfflineFixture(.database)
    private var mock: MockService { fixture.mock }
    private var clock: TestClock { fixture.clock }

    private func post(_ path: String) -> Request { mock.service.request(.POST, path: path) }

    private func entries() throws -> [String] { try OutboxDatabase(fixture.outbox).names().entries }

    private func execute(_ sql: String) throws { try Database(path: fixture.outbox.path).execute(sql) }

    @Test("After a restart, requests are sent in their order with the same key and body")
    func restart() async throws {
        try await fixture.leave(["/a/0", "/a/1"], entity: "a")
        mock.on(.POST, "/a/{n}", [.status(503), .status(200), .status(200), .status(200)])
        let outbox = try await fixture.open()
        var request = post("/a/2")
        request.content = .data(Data([0, 10, 255]))
        try await outbox.submit(request, entity: "a")
        await clock.advance(by: .seconds(5))
        #expect(fixture.paths == ["/a/0", "/a/0", "/a/1", "/a/2"])
        #expect(Set(mock.receivedRequests.map { $0.headers["Idempotency-Key"] }).count == 3)
        #expect(mock.receivedRequests.last?.body == Data([0, 10, 255]))
        #expect(try entries() == [])
        #expect(await outbox.damagedFiles == [])
    }

    @Test("A replaced entry is sent in the same place after a restart, and a removed one is not")
    func replacedAndRemoved() async throws {
        mock.on(.POST, "/a/0", .status(400))
        mock.on(.POST, "/a/0b", [.error(URLError(.notConnectedToInternet)), .status(200)])
        mock.on(.POST, "/a/2", .status(200))
        let replacement = post("/a/0b")
        let first = try await fixture.open { _ in .replace(replacement) }
        var ids: [UUID] = []
        for number in 0..<3 { ids.append(try await first.submit(post("/a/\(number)"), entity: "a")) }
        await clock.advance(by: .zero)
        #expect(try await first.remove(ids[1]))
        await first.close()
        let second = try await fixture.open()
        #expect(fixture.paths == ["/a/0", "/a/0b", "/a/0b", "/a/2"])
        #expect(await second.entries == [])
    }

    @Test("One of several outboxes sends the entries of all, and another takes over when it ends")
    func takeOver() async throws {
        mock.on(.POST, "/a/{n}", .error(URLError(.notConnectedToInternet)))
        let other = MockService(clock: clock)
        other.on(.POST, "/a/{n}", .status(200))
        let first = try await fixture.open()
        let second = try other.service.outbox(inDatabase: fixture.outbox)
        for number in 0..<4 {
            let outbox = number % 2 == 0 ? first : second
            try await outbox.submit(post("/a/\(number)"), entity: "a")
        }
        await clock.advance(by: .seconds(30))
        #expect(Set(fixture.paths) == ["/a/0"])
        #expect(await first.entries.count == 4)
        await first.close()
        await clock.advance(by: .seconds(1))
        #expect(other.receivedRequests.map(\.path) == (0..<4).map { "/a/\($0)" })
        #expect(await second.entries == [])
        await second.close()
    }

    @Test(
        "A damaged entry becomes a file and is reported, and does not stop the others",
        arguments: ["data = zeroblob(9)", "data = x''", "checksum = checksum + 1", "form = 7"])
    func damagedEntry(_ change: String) async throws {
        try await fixture.leave(["/a/0", "/a/1", "/a/2"], entity: "a")
        let name = try entries()[1]
        try execute("UPDATE entries SET \(change) WHERE key = CAST('\(name)' AS BLOB)")
        mock.on(.POST, "/a/{n}", .status(200))
        let outbox = try await fixture.open()
        #expect(fixture.paths == ["/a/0", "/a/2"])
        #expect(await outbox.damagedFiles.map(\.lastPathComponent) == ["outbox.sqlite.\(name).damaged"])
        #expect(try entries() == [])
        await outbox.close()
        #expect(try names(in: fixture.folder).contains("outbox.sqlite.\(name).damaged"))
        #expect(await (try fixture.open()).damagedFiles.count == 1)
    }

    enum Damage: CaseIterable { case garbage, otherVersion, storage, truncated }

    @Test(
        "A damaged database, and one that is not of an outbox, is set aside and reported",
        arguments: Damage.allCases)
    func damagedDatabase(_ damage: Damage) async throws {
        try await fixture.leave(["/a/0"])
        switch damage {
        case .garbage: try Data((0..<9_000).map { UInt8(truncatingIfNeeded: $0 &* 37) }).write(to: fixture.outbox)
        case .otherVersion: try execute("PRAGMA user_version = 1002")
        case .storage:
            try FileManager.default.removeItem(at: fixture.outbox)
            let storage = try SQLiteStorage(file: fixture.outbox)
            try await storage.store(StorageEntry(.raw(Data()), date: nil), for: StorageKey(identifier: "a"))
            storage.close()
        case .truncated: try Data(contentsOf: fixture.outbox).prefix(5_000).write(to: fixture.outbox)
        }
        mock.on(.POST, "/a/{n}", .status(200))
        let outbox = try mock.service.outbox(inDatabase: fixture.outbox)
        let updates = outbox.updates
        try await outbox.submit(post("/a/1"))
        await clock.advance(by: .seconds(1))
        #expect(fixture.paths == ["/a/1"])
        let files = await outbox.damagedFiles
        #expect(files.count == 1)
        #expect(files.first?.lastPathComponent.hasPrefix("outbox.sqlite.") == true)
        #expect(try names(in: fixture.folder).filter { $0.hasSuffix(".damaged") } == files.map(\.lastPathComponent))
        await outbox.close()
        var reported: [URL] = []
        for await update in updates {
            if case .damagedFile(let file) = update { reported.append(file) }
        }
        #expect(reported == files)
    }

    @Test("A second damaged database does not replace the first one, which is not reported again")
    func secondDamage() async throws {
        for _ in 0..<2 {
            try await fixture.leave(["/a"])
            try Data(count: 5_000).write(to: fixture.outbox)
        }
        let earlier = try names(in: fixture.folder).filter { $0.hasSuffix(".damaged") }
        #expect(earlier.count == 1)
        let outbox = try mock.service.outbox(inDatabase: fixture.outbox)
        let updates = outbox.updates
        await clock.advance(by: .seconds(2))
        let files = await outbox.damagedFiles
        #expect(files.count == 2)
        await outbox.close()
        var reported: [Outbox.Update] = []
        for await update in updates { reported.append(update) }
        #expect(reported == files.filter { !earlier.contains($0.lastPathComponent) }.map(Outbox.Update.damagedFile))
    }

    @Test("Too many entries are refused, and the next submission succeeds when one is removed")
    func limits() async throws {
        mock.on(.POST, "/a", .status(503))
        var options = Outbox.Options()
        options.maximumCount = 2
        let outbox = try await fixture.open(options)
        let id = try await outbox.submit(post("/a"))
        try await outbox.submit(post("/a"))
        let error = await #expect(throws: WebServiceError.self) { try await outbox.submit(post("/a")) }
        #expect(error?.code == .outboxFull)
        #expect(try entries().count == 2)
        #expect(try await outbox.remove(id))
        try await outbox.submit(post("/a"))
        #expect(try entries().count == 2)
    }

    @Test("A disk without space is an error of the submission", .enabled(if: SmallDisk.canMount))
    func fullDisk() async throws {
        try await SmallDisk.with(kilobytes: 256) { disk in
            mock.on(.POST, "/small", .status(503))
            let outbox = try mock.service.outbox(inDatabase: disk.appendingPathComponent("outbox.sqlite"))
            var large = post("/large")
            large.content = .data(Data(count: 500_000))
            let error = await #expect(throws: WebServiceError.self) { try await outbox.submit(large) }
            #expect(error?.code == .storage)
            #expect((error?.underlying as? SQLiteError)?.code == 13)
            #expect(await outbox.entries == [])
            try await outbox.submit(post("/small"))
            #expect(await outbox.entries.count == 1)
            await outbox.close()
        }
    }

    @Test(
        "On a full disk, a sent entry is removed, also for the next process",
        .enabled(if: SmallDisk.canMount))
    func removalOnFullDisk() async throws {
        try await SmallDisk.with(kilobytes: 512) { disk in
            let file = disk.appendingPathComponent("outbox.sqlite")
            mock.on(.POST, "/a", .status(200).after(.seconds(10)))
            mock.on(.POST, "/b", .status(503))
            let outbox = try mock.service.outbox(inDatabase: file)
            try await outbox.submit(post("/a"))
            let id = try await outbox.submit(post("/b"))
            await clock.advance(by: .seconds(1))
            try Data().write(to: disk.appendingPathComponent("filler"))
            let filler = try FileHandle(forWritingTo: disk.appendingPathComponent("filler"))
            while (try? filler.write(contentsOf: Data(count: 512))) != nil {}
            try filler.close()
            await clock.advance(by: .seconds(20))
            #expect(await outbox.entries.map(\.id) == [id])
            #expect(try await outbox.remove(id))
            let count = mock.receivedRequests.count
            await outbox.close()
            #expect(try names(in: disk).filter { $0.hasSuffix(".removed") }.count == 2)
            let second = try mock.service.outbox(inDatabase: file)
            await clock.advance(by: .seconds(20))
            #expect(await second.entries == [])
            #expect(mock.receivedRequests.count == count)
            let error = await #expect(throws: WebServiceError.self) { try await second.submit(post("/a")) }
            #expect(error?.message.contains("'\(file.path)'") == true)
            #expect(error?.message.contains("free up disk space") == true)
            try FileManager.default.removeItem(at: disk.appendingPathComponent("filler"))
            await clock.advance(by: .seconds(2))
            #expect(try names(in: disk).filter { $0.hasSuffix(".removed") } == [])
            await second.close()
            #expect(try OutboxDatabase(file).names().entries == [])
        }
    }

    @Test("A folder in the place of the database is an error of the submission, and a URL without a file of opening")
    func noDatabase() async throws {
        let outbox = try mock.service.outbox(inDatabase: fixture.folder.deletingLastPathComponent())
        let error = await #expect(throws: WebServiceError.self) { try await outbox.submit(post("/a")) }
        #expect(error?.code == .storage)
        for url in ["https://a.test/x", "file:///"] {
            let url = try #require(URL(string: url))
            let error = #expect(throws: WebServiceError.self) { try mock.service.outbox(inDatabase: url) }
            #expect(error?.code == .storage)
        }
    }

    @Test("Only the user can read the files")
    func permissions() async throws {
        try await fixture.leave(["/a"])
        #expect(try names(in: fixture.folder) == ["outbox.sqlite", "outbox.sqlite.lock", "outbox.sqlite.sending"])
        #expect(try mode(of: fixture.outbox) == 0o600)
        #expect(try mode(of: fixture.folder) == 0o700)
    }
}
#endif
