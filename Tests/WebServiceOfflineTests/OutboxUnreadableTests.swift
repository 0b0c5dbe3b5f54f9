import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceOffline
#if WEBSERVICE_SQLITE
@testable import WebServiceSQLite
#endif

@Suite("Entries and folders that cannot be read", .permit)
struct OutboxUnreadableTests {
    /// A store that cannot read certain entries or the list of them, or cannot check whether an
    /// entry exists.
    private final class FaultyStore: OutboxStore {
        let store: any OutboxStore
        let unreadable = Mutex<Set<String>>([])
        let isUnlistable = Mutex(false)
        let isUncheckable = Mutex(false)

        init(_ store: any OutboxStore) { self.store = store }

        var queue: BlockingQueue { store.queue }
        var url: URL { store.url }
        var place: URL { store.place }
        var lockFile: URL { store.lockFile }
        var copies: OutboxCopies { store.copies }
        func takeLock() throws -> Bool { try store.takeLock() }
        func unlock() { store.unlock() }
        func names() throws -> OutboxNames {
            if isUnlistable.withLock({ $0 }) { throw SystemFailure(call: "openat", number: EACCES) }
            return try store.names()
        }
        func damagedNames() throws -> [String] { try store.damagedNames() }
        func file(of name: String) -> URL { store.file(of: name) }
        func add(
            _ bytes: Data, suffix: String, maximumCount: Int, replacing isReplaced: (Data) -> Bool
        ) throws -> OutboxAddition {
            try store.add(bytes, suffix: suffix, maximumCount: maximumCount, replacing: isReplaced)
        }
        func contains(_ name: String) throws -> Bool {
            if isUncheckable.withLock({ $0 }) { throw SystemFailure(call: "fstatat", number: EIO) }
            return try store.contains(name)
        }
        func replace(_ name: String, with bytes: Data) throws { try store.replace(name, with: bytes) }
        func replace(_ name: String, with bytes: Data, asResponse response: String) throws {
            try store.replace(name, with: bytes, asResponse: response)
        }
        func remove(_ name: String) throws { try store.remove(name) }
        func flush() throws { try store.flush() }
        func bytes(of name: String) throws -> Data? {
            if unreadable.withLock({ $0.contains(name) }) { throw SystemFailure(call: "openat", number: EACCES) }
            return try store.bytes(of: name)
        }
        func setAside(_ name: String) -> URL { store.setAside(name) }
        func removeTemporaryFiles(before date: Date) { store.removeTemporaryFiles(before: date) }
    }

    private func store(_ place: OutboxPlace, at url: URL) throws -> FaultyStore {
        #if WEBSERVICE_SQLITE
        if place == .database { return FaultyStore(try OutboxDatabase(url)) }
        #endif
        return FaultyStore(try OutboxFolder(url))
    }

    @Test(
        "An unreadable entry delays its entity alone, is reported, and is sent in order when it can be read",
        arguments: OutboxPlace.allCases)
    func entry(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        for (path, entity) in [("/a/0", "a"), ("/a/1", "a"), ("/b", "b")] {
            try await fixture.leave([path], entity: entity)
        }
        try await fixture.leave(["/c"])
        let store = try store(place, at: fixture.outbox)
        let name = try #require(try store.names().entries.first)
        store.unreadable.withLock { _ = $0.insert(name) }
        fixture.mock.on(.path("/**"), .status(200))
        let outbox = try fixture.service.outbox(Outbox.Options(), { _ in .keep }, in: { store })
        let updates = outbox.updates
        await fixture.clock.advance(by: .seconds(20))
        #expect(Set(fixture.paths) == ["/b", "/c"])
        let entries = await outbox.entries
        #expect(entries.map(\.entity) == [nil, "a"])
        #expect(entries.first?.lastFailure == .error(.storage))
        #expect(entries.first?.attempts == 0)
        store.unreadable.withLock { $0 = [] }
        await fixture.clock.advance(by: .seconds(60))
        #expect(fixture.paths.suffix(2) == ["/a/0", "/a/1"])
        #expect(await outbox.entries == [])
        await outbox.close()
        var reported: [URL] = []
        var last: Outbox.Entry?
        for await update in updates {
            switch update {
            case .unreadable(let file): reported.append(file)
            case .entry(let entry): if entry.id == entries.first?.id { last = entry }
            case .damagedFile: break
            }
        }
        #expect(reported == [store.file(of: name)])
        #expect(last?.entity == "a")
        #expect(last?.state == .sent)
        #expect(last?.attempts == 1)
    }

    @Test(
        "A submission succeeds and is sent once, even if the check for its entry fails",
        arguments: OutboxPlace.allCases)
    func uncheckedEntry(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        fixture.mock.on(.PUT, "/a", .status(200))
        let store = try store(place, at: fixture.outbox)
        let outbox = try fixture.service.outbox(Outbox.Options(), { _ in .keep }, in: { store })
        let file = TemporaryFolder.forTest().url.appendingPathComponent("photo")
        try Data("photo".utf8).write(to: file)
        var request = fixture.service.request(.PUT, path: "/a")
        request.content = .file(file)
        store.isUncheckable.withLock { $0 = true }
        try await outbox.submit(request)
        await fixture.clock.advance(by: .zero)
        #expect(fixture.mock.receivedRequests.map(\.body) == [Data("photo".utf8)])
        #expect(await outbox.entries == [])
    }

    @Test(
        "An entry that becomes unreadable before it is sent delays its entity alone",
        arguments: OutboxPlace.allCases)
    func later(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        fixture.mock.on(.POST, "/a", [.status(503).header("Retry-After", "5"), .status(200)])
        fixture.mock.on(.POST, "/b", .status(200))
        let store = try store(place, at: fixture.outbox)
        let outbox = try fixture.service.outbox(Outbox.Options(), { _ in .keep }, in: { store })
        let updates = outbox.updates
        try await outbox.submit(fixture.service.request(.POST, path: "/a"), entity: "a")
        await fixture.clock.advance(by: .zero)
        let name = try #require(try store.names().entries.first)
        store.unreadable.withLock { _ = $0.insert(name) }
        try await outbox.submit(fixture.service.request(.POST, path: "/b"), entity: "b")
        await fixture.clock.advance(by: .seconds(30))
        #expect(fixture.paths == ["/a", "/b"])
        #expect(await outbox.entries.map(\.lastFailure) == [.error(.storage)])
        #expect(await outbox.entries.map(\.attempts) == [1])
        store.unreadable.withLock { $0 = [] }
        outbox.retry()
        await fixture.clock.advance(by: .zero)
        #expect(fixture.paths == ["/a", "/b", "/a"])
        await outbox.close()
        var reported: [URL] = []
        for await case .unreadable(let file) in updates { reported.append(file) }
        #expect(reported == [store.file(of: name)])
    }

    @Test(
        "A folder that cannot be listed is reported once, and read when it can be",
        arguments: OutboxPlace.allCases)
    func folder(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        try await fixture.leave(["/a"])
        fixture.mock.on(.POST, "/a", .status(200))
        let store = try store(place, at: fixture.outbox)
        store.isUnlistable.withLock { $0 = true }
        let outbox = try fixture.service.outbox(Outbox.Options(), { _ in .keep }, in: { store })
        let updates = outbox.updates
        await fixture.clock.advance(by: .seconds(10))
        #expect(fixture.paths == [])
        store.isUnlistable.withLock { $0 = false }
        await fixture.clock.advance(by: .seconds(2))
        #expect(fixture.paths == ["/a"])
        await outbox.close()
        var reported: [URL] = []
        for await update in updates {
            if case .unreadable(let file) = update { reported.append(file) }
        }
        #expect(reported == [store.place])
    }

    #if os(Linux)
    @Test(
        "A file without the permission to read it does not stop the others",
        .enabled(if: AccountFolderTests.canChangeUser, "requires root and setpriv"))
    func permission() async throws {
        let fixture = OfflineFixture()
        try await fixture.leave(["/a/0", "/a/1"], entity: "a")
        try await fixture.leave(["/b"], entity: "b")
        let unreadable = try #require(try fixture.entryFiles().first)
        for path in try names(in: fixture.folder).filter({ $0 != unreadable }) + ["."] {
            try #require(chown(fixture.folder.appendingPathComponent(path).path, 65_534, 65_534) == 0)
        }
        let server = try MockServer.forTest { _ in .status(200) }
        let input = Pipe()
        let process = ChildProcess(
            "/usr/bin/setpriv",
            ["--reuid=65534", "--regid=65534", "--clear-groups", programPath("outbox-probe")]
                + [fixture.folder.path, server.baseURLString, "c", "0", "1"],
            environment: ["SWIFT_BACKTRACE": "enable=no", "HOME": "/nonexistent"], input: .pipe(input), output: .null,
            errors: .null)
        try process.run()
        await eventually { server.receivedRequests.count == 2 }
        await eventually("the sent entries are removed") { (try? fixture.entryFiles().count) == 2 }
        try input.fileHandleForWriting.close()
        _ = try await blocking { process.waitUntilExit() }
        #expect(Set(server.receivedRequests.map(\.path)) == ["/b", "/effects/c/0/0"])
        #expect(try fixture.entryFiles().count == 2)
    }

    @Test(
        "A copy of a body without the permission to read it delays its entry until it can be read",
        .enabled(if: AccountFolderTests.canChangeUser, "requires root and setpriv"))
    func copyPermission() async throws {
        let fixture = OfflineFixture()
        let offline = MockService(clock: fixture.clock)
        offline.on(.path("/**"), .error(URLError(.notConnectedToInternet))).optional()
        let outbox = try offline.service.outbox(in: fixture.folder)
        var request = offline.service.request(.PUT, path: "/photo")
        request.content = .file(try TemporaryFolder.forTest().file("photo", Data("photo".utf8)))
        try await outbox.submit(request)
        await outbox.close()
        try await fixture.leave(["/b"])
        let copy = try #require(try names(in: fixture.folder).first { $0.hasSuffix(".body") })
        func release(_ name: String) throws {
            try #require(chown(fixture.folder.appendingPathComponent(name).path, 65_534, 65_534) == 0)
        }
        for name in try names(in: fixture.folder).filter({ $0 != copy }) + ["."] { try release(name) }
        let server = try MockServer.forTest { _ in .status(200) }
        let input = Pipe()
        let process = ChildProcess(
            "/usr/bin/setpriv",
            ["--reuid=65534", "--regid=65534", "--clear-groups", programPath("outbox-probe")]
                + [fixture.folder.path, server.baseURLString, "c", "0", "0"],
            environment: ["SWIFT_BACKTRACE": "enable=no", "HOME": "/nonexistent"], input: .pipe(input), output: .null,
            errors: .null)
        try process.run()
        await eventually { server.receivedRequests.map(\.path) == ["/b"] }
        #expect(try fixture.entryFiles().count >= 1)
        try release(copy)
        await eventually { server.receivedRequests.map(\.path) == ["/b", "/photo"] }
        #expect(server.receivedRequests.last?.body == Data("photo".utf8))
        await eventually { (try? names(in: fixture.folder)) == ["outbox.lock"] }
        try input.fileHandleForWriting.close()
        _ = try await blocking { process.waitUntilExit() }
    }
    #endif

    @Test("The name of an entry contains a hash of its entity, and one without it is read")
    func entryNames() throws {
        let id = UUID()
        let name = try OutboxNames.new(OutboxNames.suffix(id, "todo/7", nil), after: nil, count: 0, maximumCount: 1)
        let independent = try OutboxNames.new(OutboxNames.suffix(id, nil, nil), after: name, count: 0, maximumCount: 1)
        #expect(OutboxNames.number(of: name) == 1)
        #expect(OutboxNames.number(of: independent) == 2)
        #expect(OutboxNames.id(of: name) == id)
        #expect(OutboxNames.id(of: independent) == id)
        #expect(OutboxNames.lane(of: name) == OutboxState.hash("todo/7"))
        #expect(OutboxNames.lane(of: independent) == nil)
        #expect(!name.contains("todo"))
        for wrong in ["x" + name, name + "x", String(name.dropFirst()), name.replacingOccurrences(of: "-", with: "+")] {
            #expect(OutboxNames.number(of: wrong) == nil)
        }
    }

    #if WEBSERVICE_SQLITE
    @Test("A row on a damaged page delays its entity alone, and the database remains")
    func damagedPage() async throws {
        let fixture = OfflineFixture(.database)
        var request = fixture.service.request(.POST, path: "/large")
        request.content = .data(Data("the large body ".utf8) + Data(repeating: 0xAB, count: 40_000))
        let offline = MockService(clock: fixture.clock)
        offline.on(.path("/**"), .error(URLError(.notConnectedToInternet))).optional()
        let first = try offline.service.outbox(inDatabase: fixture.outbox)
        try await first.submit(request, entity: "a")
        try await first.submit(fixture.service.request(.POST, path: "/a"), entity: "a")
        try await first.submit(fixture.service.request(.POST, path: "/b"), entity: "b")
        await first.close()
        // Each page of a long row begins with the number of the next one.
        var bytes = try Data(contentsOf: fixture.outbox)
        let middle = try #require(bytes.range(of: Data(repeating: 0xAB, count: 3_000))).lowerBound + 16_000
        let page = middle / 4_096 * 4_096
        bytes.replaceSubrange(page..<(page + 4), with: Data(repeating: 0xFF, count: 4))
        try bytes.write(to: fixture.outbox)
        fixture.mock.on(.path("/**"), .status(200))
        let outbox = try fixture.service.outbox(inDatabase: fixture.outbox)
        let updates = outbox.updates
        await fixture.clock.advance(by: .seconds(5))
        #expect(fixture.paths == ["/b"])
        #expect(await outbox.damagedFiles == [])
        #expect(await outbox.entries.first?.lastFailure == .error(.storage))
        let id = try #require(await outbox.entries.first?.id)
        let error = await #expect(throws: WebServiceError.self) { try await outbox.request(of: id) }
        #expect(error?.message.contains("'\(fixture.outbox.path)'") == true)
        await outbox.close()
        var reported: [URL] = []
        for await update in updates {
            if case .unreadable(let file) = update { reported.append(file) }
        }
        #expect(reported == [fixture.outbox])
    }
    #endif
}
