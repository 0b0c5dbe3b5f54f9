import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

@testable import WebServiceOffline

@Suite("The files of an outbox", .permit)
struct OutboxFileTests {
    private let fixture = OfflineFixture()
    private var mock: MockService { fixture.mock }
    private var clock: TestClock { fixture.clock }

    private func post(_ path: String) -> Request { mock.service.request(.POST, path: path) }

    @Test("After a restart, requests are sent in their order, to the current base URL")
    func restart() async throws {
        try await fixture.leave(["/a/0", "/a/1", "/a/2"], entity: "a")
        let other = MockService(baseURLString: "https://other.test/v2", clock: clock)
        other.on(.POST, "/v2/a/{n}", .status(200))
        let outbox = try other.service.outbox(in: fixture.folder)
        try await outbox.submit(other.service.request(.POST, path: "/a/3"), entity: "a")
        await clock.advance(by: .zero)
        #expect(other.receivedRequests.map(\.path) == (0..<4).map { "/v2/a/\($0)" })
        #expect(other.receivedRequests.first?.url?.host == "other.test")
        #expect(try fixture.entryFiles() == [])
    }

    @Test("A restart preserves the key, the entity, the date and the body")
    func restartContent() async throws {
        mock.on(.POST, "/a", [.status(503), .status(200)])
        let first = try await fixture.open()
        var request = post("/a")
        request.content = .data(Data([0, 10, 255]), contentType: "a/b")
        let id = try await first.submit(request, entity: "e")
        await clock.advance(by: .zero)
        let entry = try #require(await first.entries.first)
        await first.close()
        let second = try await fixture.open()
        await clock.advance(by: .zero)
        #expect(entry.id == id)
        #expect(entry.entity == "e")
        #expect(mock.receivedRequests.count == 2)
        #expect(Set(mock.receivedRequests.map { $0.headers["Idempotency-Key"] }).count == 1)
        #expect(mock.receivedRequests.map(\.body) == [Data([0, 10, 255]), Data([0, 10, 255])])
        #expect(mock.receivedRequests.map { $0.headers[.contentType] } == ["a/b", "a/b"])
        #expect(await second.entries == [])
    }

    @Test("The request of an entry can be read until it is sent, also after a restart")
    func requestOfEntry() async throws {
        mock.on(.PUT, "/a/1", [.status(503), .status(503), .status(200)])
        let first = try await fixture.open()
        var request = mock.service.request(.PUT, path: "/a/1")
        request.content = .json(["name": "bock"])
        let id = try await first.submit(request)
        let isFound = try await first.request(of: id) != nil
        await first.close()
        let second = try await fixture.open()
        let stored = try #require(try await second.request(of: id))
        #expect(isFound)
        #expect(stored.method == .PUT)
        #expect(stored.url == request.url)
        #expect(stored.body == Data(#"{"name":"bock"}"#.utf8))
        #expect(stored.headers["Idempotency-Key"] != nil)
        await clock.advance(by: .seconds(60))
        #expect(try await second.request(of: id) == nil)
        #expect(try await second.request(of: UUID()) == nil)
    }

    @Test("A request whose file is damaged cannot be read")
    func requestOfDamagedEntry() async throws {
        mock.on(.PUT, "/a/1", .status(409))
        let outbox = try await fixture.open()
        let id = try await outbox.submit(mock.service.request(.PUT, path: "/a/1"))
        await clock.advance(by: .zero)
        let name = try #require(try fixture.entryFiles().first)
        try Data("damaged".utf8).write(to: fixture.folder.appendingPathComponent(name))
        #expect(try await outbox.request(of: id) == nil)
    }

    enum Damage: String, CaseIterable, Sendable {
        case empty, truncated, longer, garbage, otherVersion, flippedBit, folder, link
    }

    @Test(
        "A damaged entry is renamed and reported, and does not stop the others",
        arguments: Damage.allCases)
    func damage(_ damage: Damage) async throws {
        try await fixture.leave(["/a/0", "/a/1", "/a/2"], entity: "a")
        let name = try fixture.entryFiles()[1]
        let file = fixture.folder.appendingPathComponent(name)
        let bytes = try Data(contentsOf: file)
        switch damage {
        case .empty: try Data().write(to: file)
        case .truncated: try bytes.dropLast().write(to: file)
        case .longer: try (bytes + [0]).write(to: file)
        case .garbage: try Data((0..<bytes.count).map { UInt8(truncatingIfNeeded: $0 &* 37) }).write(to: file)
        case .otherVersion:
            try Data(String(decoding: bytes, as: UTF8.self).replacing("outbox 1", with: "outbox 3").utf8).write(
                to: file)
        case .flippedBit:
            var bytes = bytes
            bytes[bytes.count / 2] ^= 4
            try bytes.write(to: file)
        case .folder, .link:
            try FileManager.default.removeItem(at: file)
            if damage == .folder {
                try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
            } else {
                try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: "/dev/zero")
            }
        }
        mock.on(.POST, "/a/{n}", .status(200))
        let outbox = try mock.service.outbox(in: fixture.folder)
        await clock.advance(by: .zero)
        #expect(fixture.paths == ["/a/0", "/a/2"])
        #expect(await outbox.damagedFiles.map(\.lastPathComponent) == [name + ".damaged"])
        #expect(try fixture.entryFiles() == [])
        await outbox.close()
        #expect(await (try fixture.open()).damagedFiles.count == 1)
    }

    @Test("A file that is truncated at any length, or has a changed byte, is not an entry")
    func everyByte() async throws {
        try await fixture.leave(["/a"])
        let bytes = try Data(contentsOf: fixture.folder.appendingPathComponent(try fixture.entryFiles()[0]))
        #expect(StoredRequest(encoded: bytes) != nil)
        for count in 0..<bytes.count { #expect(StoredRequest(encoded: bytes.prefix(count)) == nil) }
        for index in bytes.indices {
            var bytes = bytes
            bytes[index] ^= 1
            #expect(StoredRequest(encoded: bytes) == nil)
        }
    }

    @Test("An entry that is damaged after it was read is renamed when it is due")
    func lateDamage() async throws {
        mock.on(.POST, "/a", .status(503))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        let name = try fixture.entryFiles()[0]
        let updates = outbox.updates
        try Data("x".utf8).write(to: fixture.folder.appendingPathComponent(name))
        await clock.advance(by: .seconds(10))
        #expect(await outbox.entries == [])
        #expect(await outbox.damagedFiles.map(\.lastPathComponent) == [name + ".damaged"])
        await outbox.close()
        var reported: [String] = []
        for await update in updates {
            if case .damagedFile(let file) = update { reported.append(file.lastPathComponent) }
        }
        #expect(reported == [name + ".damaged"])
    }

    @Test("A name in the folder that is not an entry is ignored")
    func otherNames() async throws {
        mock.on(.POST, "/a", .status(200))
        try FileManager.default.createDirectory(at: fixture.folder, withIntermediateDirectories: true)
        for name in ["notes.txt", "ffffffffffffffff.entry", ".entry", "zz-x.entry"] {
            try Data("x".utf8).write(to: fixture.folder.appendingPathComponent(name))
        }
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        await clock.advance(by: .zero)
        #expect(fixture.paths == ["/a"])
        #expect(await outbox.damagedFiles == [])
    }

    @Test(
        "A disk without space is an error of the submission, and no entry remains",
        .enabled(if: SmallDisk.canMount))
    func fullDisk() async throws {
        try await SmallDisk.with(kilobytes: 64) { disk in
            mock.on(.POST, "/small", .status(503))
            let outbox = try mock.service.outbox(in: disk.appendingPathComponent("outbox"))
            var large = post("/large")
            large.content = .data(Data(count: 200_000))
            let error = await #expect(throws: WebServiceError.self) { try await outbox.submit(large) }
            #expect(error?.code == .storage)
            #expect((error?.underlying as? POSIXError)?.code == .ENOSPC)
            #expect(await outbox.entries == [])
            #expect(try names(in: disk.appendingPathComponent("outbox")) == ["outbox.lock"])
            try await outbox.submit(post("/small"))
            #expect(await outbox.entries.count == 1)
        }
    }

    @Test(
        "If a flush fails, one entry remains: the old one if the submission fails, otherwise its replacement",
        arguments: [1, 2])
    func failedFlush(_ number: Int) async throws {
        mock.on(.path("/**"), .error(URLError(.notConnectedToInternet))).optional()
        let countdown = Mutex(0)
        let store = try OutboxFolder(fixture.folder) { () throws(SystemFailure) in
            let fails = countdown.withLock { count in
                count -= 1
                return count == 0
            }
            if fails { throw SystemFailure(call: "fsync", number: EIO) }
        }
        let outbox = try mock.service.outbox(Outbox.Options(), { _ in .keep }, in: { store })
        try await outbox.submit(post("/a/0"), entity: "a", replacing: "k")
        countdown.withLock { $0 = number }
        var remaining = "/a/1"
        do { try await outbox.submit(post("/a/1"), entity: "a", replacing: "k") } catch {
            #expect((error as? WebServiceError)?.code == .storage)
            remaining = "/a/0"
        }
        #expect(remaining == (number == 1 ? "/a/0" : "/a/1"))
        let paths = try fixture.entryFiles().map { name in
            StoredRequest(encoded: try Data(contentsOf: fixture.folder.appendingPathComponent(name)))?.head.url
        }
        #expect(paths == [remaining])
    }

    #if os(Linux)
    @Test("A read-only folder is an error", .enabled(if: SmallDisk.canMount))
    func readOnly() async throws {
        try await SmallDisk.with { disk in
            try await mock.service.outbox(in: disk).close()
            await eventually("the last file is closed") {
                mount("tmpfs", disk.path, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), "size=512k") == 0
            }
            let error = #expect(throws: WebServiceError.self) { try mock.service.outbox(in: disk) }
            #expect(error?.code == .storage)
            #expect((error?.underlying as? POSIXError)?.code == .EROFS)
        }
    }
    #endif

    @Test("A folder that was removed is an error of the submission")
    func removedFolder() async throws {
        let outbox = try await fixture.open()
        try FileManager.default.removeItem(at: fixture.folder)
        let error = await #expect(throws: WebServiceError.self) { try await outbox.submit(post("/a")) }
        #expect(error?.code == .storage)
        #expect((error?.underlying as? POSIXError)?.code == .ENOENT)
        #expect(
            error?.message.contains(
                "the folder '\(fixture.folder.path)' of the outbox was removed; close the outbox and open it again")
                == true)
        #expect(await outbox.entries == [])
    }

    @Test("A request whose file cannot be removed is not sent again")
    func failingRemoval() async throws {
        let folder = fixture.folder
        mock.on(.POST, "/a/0") { _ in
            // A folder cannot be removed as a file can.
            for name in try names(in: folder) where name.hasSuffix(".entry") {
                let file = folder.appendingPathComponent(name)
                try FileManager.default.moveItem(at: file, to: folder.appendingPathComponent(name + "-moved"))
                try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
            }
            return .status(200)
        }
        mock.on(.POST, "/a/1", .status(200))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a/0"), entity: "a")
        await clock.advance(by: .seconds(60))
        #expect(await outbox.entries.count == 1)
        for name in try fixture.entryFiles() {
            try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        }
        try await outbox.submit(post("/a/1"), entity: "a")
        await clock.advance(by: .seconds(300))
        #expect(fixture.paths == ["/a/0", "/a/1"])
        #expect(await outbox.entries == [])
    }

    @Test("A folder that cannot be opened is an error")
    func noFolder() throws {
        let file = try TemporaryFolder.forTest().file("file")
        for folder in [file, file.appendingPathComponent("x"), try #require(URL(string: "https://a.test/x"))] {
            let error = #expect(throws: WebServiceError.self) { try mock.service.outbox(in: folder) }
            #expect(error?.code == .storage)
        }
    }

    @Test("Too many entries and too large bodies are refused")
    func limits() async throws {
        mock.on(.POST, "/a", .status(503))
        var options = Outbox.Options()
        options.maximumCount = 2
        options.maximumBodyBytes = 10
        let outbox = try await fixture.open(options)
        var request = post("/a")
        request.content = .data(Data(count: 11))
        let tooLarge = await #expect(throws: WebServiceError.self) { try await outbox.submit(request) }
        #expect(tooLarge?.code == .entryTooLarge)
        request.content = .data(Data(count: 10))
        try await outbox.submit(request)
        try await outbox.submit(request)
        let full = await #expect(throws: WebServiceError.self) { try await outbox.submit(request) }
        #expect(full?.code == .outboxFull)
    }

    @Test(
        "Credentials are refused, and those of the service are not stored",
        arguments: ["Authorization", "Cookie", "X-Api-Key", "Proxy-Authorization"])
    func credentials(_ name: String) async throws {
        mock.service.headers["X-Access-Token"] = "canary-1"
        mock.on(.POST, "/a", .status(503))
        let outbox = try await fixture.open()
        try await outbox.submit(post("/a"))
        var request = post("/a")
        request.headers[name] = "canary-2"
        let error = await #expect(throws: WebServiceError.self) { try await outbox.submit(request) }
        #expect(error?.code == .invalidHeader)
        #expect(error.map { "\($0)".contains("canary") } == false)
        await clock.advance(by: .zero)
        #expect(mock.receivedRequests.map { $0.headers["X-Access-Token"] } == ["canary-1"])
        for name in try names(in: fixture.folder) {
            let bytes = try Data(contentsOf: fixture.folder.appendingPathComponent(name))
            #expect(!String(decoding: bytes, as: UTF8.self).contains("canary"))
        }
    }

    @Test("Bodies of streams and providers are refused, as are requests that cannot be encoded")
    func bodies() async throws {
        let outbox = try await fixture.open()
        var stream = post("/a")
        stream.content = .stream(AsyncStream<Data> { $0.finish() })
        var provider = post("/a")
        provider.setBodyProvider { Data() }
        for request in [stream, provider] {
            let error = await #expect(throws: WebServiceError.self) { try await outbox.submit(request) }
            #expect(error?.code == .encoding)
        }
        let error = await #expect(throws: WebServiceError.self) { try await outbox.submit(post("/{id}")) }
        #expect(error?.code == .invalidURL)
        #expect(try fixture.entryFiles() == [])
    }

    @Test("Temporary files of killed processes are removed after an hour")
    func temporaryFiles() async throws {
        try FileManager.default.createDirectory(at: fixture.folder, withIntermediateDirectories: true)
        for (name, age) in [("old.temporary", 3_700.0), ("new.temporary", 3_500)] {
            let file = fixture.folder.appendingPathComponent(name)
            try Data().write(to: file)
            try FileManager.default.setAttributes(
                [.modificationDate: clock.date.addingTimeInterval(-age)], ofItemAtPath: file.path)
        }
        _ = try await fixture.open()
        #expect(try names(in: fixture.folder) == ["new.temporary", "outbox.lock"])
    }

    @Test("Only one outbox of a folder sends, and another takes over when it ends")
    func takeOver() async throws {
        mock.on(.POST, "/a/0", .error(URLError(.notConnectedToInternet)))
        let other = MockService(clock: clock)
        other.on(.POST, "/a/{n}", .status(200))
        let first = try await fixture.open()
        let second = try other.service.outbox(in: fixture.folder)
        try await first.submit(post("/a/0"), entity: "a")
        try await second.submit(other.service.request(.POST, path: "/a/1"), entity: "a")
        await clock.advance(by: .seconds(30))
        #expect(Set(fixture.paths) == ["/a/0"])
        #expect(other.receivedRequests.isEmpty)
        #expect(await first.entries.count == 2)
        #expect(await second.entries.count == 2)
        await first.close()
        await clock.advance(by: .seconds(1))
        #expect(other.receivedRequests.map(\.path) == ["/a/0", "/a/1"])
        #expect(await second.entries == [])
    }

    @Test("The entries of another outbox are sent within a second, in their order")
    func others() async throws {
        mock.on(.POST, "/a/{n}", .status(200))
        let first = try await fixture.open()
        let second = try mock.service.outbox(in: fixture.folder)
        try await second.submit(post("/a/0"), entity: "a")
        try await first.submit(post("/a/1"), entity: "a")
        await clock.advance(by: .zero)
        #expect(fixture.paths == ["/a/0", "/a/1"])
        try await second.submit(post("/a/2"), entity: "a")
        await clock.advance(by: .seconds(1))
        #expect(fixture.paths == ["/a/0", "/a/1", "/a/2"])
        await clock.advance(by: .seconds(1))
        #expect(await second.entries == [])
    }
}
