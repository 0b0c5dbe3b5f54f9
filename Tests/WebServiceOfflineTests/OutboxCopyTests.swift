import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCore
@testable import WebServiceOffline

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

@Suite("Bodies of an outbox from files", .permit)
struct OutboxCopyTests {
    /// A fixture with a file.
    private struct Files {
        let fixture: OfflineFixture
        let file: URL
        let bytes = Self.content

        private static let content = Data((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) })

        init(_ place: OutboxPlace) throws {
            fixture = OfflineFixture(place)
            file = TemporaryFolder.forTest().url.appendingPathComponent("photo")
            try bytes.write(to: file)
        }

        var mock: MockService { fixture.mock }
        var clock: TestClock { fixture.clock }

        func put(_ path: String = "/a", _ file: URL? = nil) -> Request {
            var request = fixture.service.request(.PUT, path: path)
            request.content = .file(file ?? self.file, contentType: "image/png")
            return request
        }

        /// The copies in the folder of the outbox.
        func copies() throws -> [URL] {
            try names(in: fixture.folder).filter { $0.hasSuffix(".body") }.sorted()
                .map { fixture.folder.appendingPathComponent($0) }
        }

        var bodies: [Data?] { mock.receivedRequests.map(\.body) }
    }

    private func error(_ work: () async throws -> Void) async -> WebServiceError? {
        await #expect(throws: WebServiceError.self) { try await work() }
    }

    // MARK: Sending

    @Test(
        "The file may be removed after its submission, and each attempt sends the same bytes",
        arguments: OutboxPlace.allCases)
    func attempts(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        files.mock.on(.PUT, "/a", [.status(503), .status(200)])
        let outbox = try await files.fixture.open()
        try await outbox.submit(files.put())
        try FileManager.default.removeItem(at: files.file)
        #expect(try files.copies().map { try Data(contentsOf: $0) } == [files.bytes])
        #expect(try files.copies().map { try mode(of: $0) } == [0o600])
        await files.clock.advance(by: .seconds(5))
        #expect(files.bodies == [files.bytes, files.bytes])
        #expect(files.mock.receivedRequests.map { $0.headers[.contentType] } == ["image/png", "image/png"])
        #expect(Set(files.mock.receivedRequests.map { $0.headers["Idempotency-Key"] }).count == 1)
        #expect(await outbox.entries == [])
        #expect(try files.copies() == [])
    }

    @Test("The next process sends the copy", arguments: OutboxPlace.allCases)
    func restart(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        files.mock.on(.PUT, "/a", [.status(503), .status(200)])
        let first = try await files.fixture.open()
        try await first.submit(files.put())
        await first.close()
        try Data("changed".utf8).write(to: files.file)
        let second = try await files.fixture.open()
        await files.clock.advance(by: .seconds(5))
        #expect(files.bodies.last == files.bytes)
        #expect(await second.entries == [])
        #expect(try files.copies() == [])
    }

    @Test("The request of an entry has the copy as its body, and can be submitted", arguments: OutboxPlace.allCases)
    func request(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        files.mock.on(.PUT, "/a", .status(503))
        let outbox = try await files.fixture.open()
        let id = try await outbox.submit(files.put())
        let request = try #require(try await outbox.request(of: id))
        let copy = try #require(try files.copies().first)
        guard case .file(let url, _) = request.content.content else { throw SystemFailure.shortRead }
        #expect(url.path == copy.path)
        #expect(request.headers[.contentType] == "image/png")
        try await outbox.submit(request)
        #expect(try files.copies().map { try Data(contentsOf: $0) } == [files.bytes, files.bytes])
    }

    @Test("The body is sent with its length, and without chunks", arguments: OutboxPlace.allCases, [false, true])
    func length(_ place: OutboxPlace, _ usesFoundation: Bool) async throws {
        let files = try Files(place)
        let fields = Collected<[String?]>()
        let bodies = Collected<Data?>()
        let server = try MockServer.forTest { request in
            fields.add([request.headers["Content-Length"], request.headers["Transfer-Encoding"]])
            bodies.add(request.body)
            return .status(200)
        }
        let service = WebService(baseURLString: server.baseURLString)
        #if WEBSERVICE_CURL
        if !usesFoundation { service.session = try CurlSession() }
        #endif
        let outbox = try place.outbox(of: service, at: files.fixture.outbox)
        try await outbox.submit(files.put(server.baseURLString + "/a"))
        await bodies.wait()
        #expect(fields.values == [["700000", nil]])
        #expect(bodies.values == [files.bytes])
        await eventually { await outbox.entries.isEmpty }
        await outbox.close()
    }

    @Test("Without a deadline of the service, a large file has time in proportion to its size")
    func deadline() async throws {
        let files = try Files(.folder)
        let large = files.file.deletingLastPathComponent().appendingPathComponent("large")
        try Data().write(to: large)
        try FileHandle(forWritingTo: large).truncate(atOffset: 4 << 20)  // 64 seconds more
        files.mock.service.options.timeout = .seconds(10_000)
        files.mock.on(.PUT, "/a", MockResponse(statusCode: 200).after(.seconds(640)))
        let outbox = try await files.fixture.open()
        try await outbox.submit(files.put("/a", large))
        await files.clock.advance(by: .seconds(640))
        #expect(files.mock.receivedRequests.count == 1)
        #expect(await outbox.entries == [])
    }

    @Test("A form of files and bytes is copied as a whole", arguments: OutboxPlace.allCases)
    func form(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        files.mock.on(.POST, "/a", .status(200))
        let outbox = try await files.fixture.open()
        var form = MultipartFormData()
        form.append("Bock", name: "name")
        form.append(file: files.file, name: "photo")
        var request = files.fixture.service.request(.POST, path: "/a")
        request.multipart = form
        let encoded = try #require(try request.encode().bodySource)
        let reader = BodyReader(encoded)
        var expected = Data(count: encoded.count)
        #expect(try expected.withUnsafeMutableBytes { try reader.read(into: $0) } == encoded.count)
        try await outbox.submit(request)
        await files.clock.advance(by: .zero)
        #expect(files.bodies == [expected])
        #expect(files.mock.receivedRequests.first?.headers[.contentType] == form.contentType)

        form.append(.stream(length: 1) { AsyncStream<Data> { $0.finish() } }, name: "log")
        request.multipart = form
        #expect(await error { try await outbox.submit(request) }?.code == .encoding)
        #expect(try files.copies() == [])
    }

    @Test("An empty file is an empty body, without a copy", arguments: OutboxPlace.allCases)
    func empty(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        try Data().write(to: files.file)
        files.mock.on(.PUT, "/a", .status(200))
        let outbox = try await files.fixture.open()
        try await outbox.submit(files.put())
        #expect(try files.copies() == [])
        await files.clock.advance(by: .zero)
        #expect(files.bodies.map { $0 ?? Data() } == [Data()])
        #expect(await outbox.entries == [])
    }

    // MARK: Refusals

    @Test("A missing file, a folder and a FIFO are refused, and nothing remains", arguments: OutboxPlace.allCases)
    func noFile(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        let folder = files.file.deletingLastPathComponent()
        let fifo = folder.appendingPathComponent("fifo")
        try #require(mkfifo(fifo.path, 0o600) == 0)
        let outbox = try await files.fixture.open()
        for file in [folder, fifo, folder.appendingPathComponent("missing")] {
            #expect(await error { try await outbox.submit(files.put("/a", file)) }?.code == .encoding)
        }
        #expect(await outbox.entries == [])
        #expect(try files.copies() == [])
    }

    @Test("Files have a limit of their own", arguments: OutboxPlace.allCases)
    func limit(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        files.mock.on(.PUT, "/a", .status(503))
        var options = Outbox.Options()
        #expect(options.maximumFileBytes == 1 << 30)
        options.maximumBodyBytes = 10
        options.maximumFileBytes = files.bytes.count
        let outbox = try await files.fixture.open(options)
        try await outbox.submit(files.put())
        try (files.bytes + Data([1])).write(to: files.file)
        let error = await error { try await outbox.submit(files.put()) }
        #expect(error?.code == .entryTooLarge)
        #expect(error?.message.contains("maximumFileBytes") == true)
        #expect(try files.copies().count == 1)
    }

    @Test("A submission that is refused leaves no copy", arguments: OutboxPlace.allCases)
    func refused(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        files.mock.on(.PUT, "/a", .status(503))
        var options = Outbox.Options()
        options.maximumCount = 1
        let outbox = try await files.fixture.open(options)
        try await outbox.submit(files.put())
        #expect(await error { try await outbox.submit(files.put()) }?.code == .outboxFull)
        try await eventually { try files.copies().count == 1 }
        await outbox.close()
        #expect(await error { try await outbox.submit(files.put()) }?.code == .outboxClosed)
        #expect(try files.copies().count == 1)
    }

    @Test("A full disk is an error, and no copy remains", .enabled(if: SmallDisk.canMount))
    func fullDisk() async throws {
        let files = try Files(.folder)
        try await SmallDisk.with(kilobytes: 512) { disk in
            let outbox = try files.mock.service.outbox(in: disk.appendingPathComponent("outbox"))
            let error = await error { try await outbox.submit(files.put()) }
            #expect(error?.code == .storage)
            #expect(error?.message.contains("the free disk space") == true)
            #expect(try names(in: disk.appendingPathComponent("outbox")) == ["outbox.lock"])
            await outbox.close()
        }
    }

    @Test("A file that changes while it is copied is an error, and no copy remains", arguments: ["grows", "shrinks"])
    func changes(_ kind: String) async throws {
        let files = try Files(.folder)
        let outbox = try await files.fixture.open()
        let body = try BodySource(file: files.file)
        let handle = try FileHandle(forWritingTo: files.file)
        var pieces = 0
        let error = #expect(throws: WebServiceError.self) {
            _ = try outbox.folder.copies.write(body, of: UUID(), slot: 0) {
                pieces += 1
                if pieces == 2 {
                    try? handle.truncate(atOffset: kind == "grows" ? 800_000 : 300_000)  // the error is expected below
                }
                return true
            }
        }
        #expect(error?.code == .encoding)
        #expect(error?.message.contains("changed") == true)
        #expect(try files.copies() == [])
    }

    @Test("A copy that is interrupted by close() does not remain")
    func interrupted() async throws {
        let files = try Files(.folder)
        let outbox = try await files.fixture.open()
        let body = try BodySource(file: files.file)
        var pieces = 0
        #expect(throws: CancellationError.self) {
            _ = try outbox.folder.copies.write(body, of: UUID(), slot: 0) {
                pieces += 1
                return pieces < 3
            }
        }
        #expect(try files.copies() == [])
    }

    @Test("A submission whose Swift task is cancelled is completed", arguments: OutboxPlace.allCases)
    func cancelled(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        files.mock.on(.PUT, "/a", .status(503))
        let outbox = try await files.fixture.open()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await outbox.submit(files.put())
        }
        let id = try await task.value
        #expect(await outbox.entries.map(\.id) == [id])
        #expect(try files.copies().count == 1)
    }

    // MARK: Removal

    @Test("The copy is removed with its entry", arguments: OutboxPlace.allCases, [0, 1, 2, 3, 4])
    func removal(_ place: OutboxPlace, _ way: Int) async throws {
        let files = try Files(place)
        files.mock.on(.PUT, "/a", .status(way == 2 ? 404 : way == 4 ? 200 : 503))
        files.mock.on(.PUT, "/b", .status(503)).optional()
        let outbox = try await files.fixture.open { _ in .drop }
        let id = try await outbox.submit(
            files.put(), replacing: "k", expires: way == 3 ? files.clock.date + 10 : nil, storesResponse: way == 4)
        if way != 2, way != 4 { #expect(try files.copies().count == 1) }
        await files.clock.advance(by: .zero)
        switch way {
        case 0: #expect(try await outbox.remove(id))
        case 1:
            var other = files.put("/b")
            other.content = .none
            try await outbox.submit(other, replacing: "k")
        default: await files.clock.advance(by: .seconds(20))
        }
        #expect(try files.copies() == [])
        #expect(try await (outbox.response(of: id) != nil) == (way == 4))
    }

    @Test("A replacement has its own copy, and the old one is removed", arguments: OutboxPlace.allCases, [0, 1, 2])
    func replacement(_ place: OutboxPlace, _ kind: Int) async throws {
        let files = try Files(place)
        let bytes = Data("other".utf8)
        files.mock.on(.PUT, "/a", [.status(409), .status(503), .status(503), .status(200)])
        let outbox = try await files.fixture.open { failure in
            var request = failure.request
            switch kind {
            case 0: request.headers["X-Kind"] = "same body"
            case 1:
                try? bytes.write(to: files.file)  // the expectation below fails
                request.content = .file(files.file)
            default: request.content = .data(bytes)
            }
            return .replace(request)
        }
        let id = try await outbox.submit(files.put())
        await files.clock.advance(by: .zero)
        let expected = kind == 0 ? files.bytes : bytes
        #expect(try files.copies().count == (kind == 2 ? 0 : 1))
        guard case .file(let url, _) = try await outbox.request(of: id)?.content.content else {
            #expect(kind == 2)
            return
        }
        #expect(url.lastPathComponent.hasSuffix("-1.body"))
        await files.clock.advance(by: .seconds(30))
        #expect(files.bodies == [files.bytes, expected, expected, expected])
        #expect(await outbox.entries == [])
        #expect(try files.copies() == [])
    }

    @Test("A replacement overwrites an older copy only after the entry without it was flushed")
    func unflushedReplacement() async throws {
        let files = try Files(.folder)
        files.mock.on(.PUT, "/a", [.status(409), .status(503), .status(409), .status(503)])
        let first = try await files.fixture.open { .replace($0.request) }
        let id = try await first.submit(files.put())
        await files.clock.advance(by: .zero)
        await first.close()
        let copy = { (slot: Int) in
            files.fixture.folder.appendingPathComponent("\(id.uuidString.lowercased())-\(slot).body")
        }
        #expect(try files.copies().map(\.lastPathComponent) == [copy(1).lastPathComponent])
        // As if the process had been killed after it replaced the entry and before it flushed the
        // folder.
        let older = copy(0)
        try Data("old".utf8).write(to: older)
        // The size of the older copy at each flush.
        let sizes = Collected<Int>()
        let store = try OutboxFolder(files.fixture.folder) { () throws(SystemFailure) in
            sizes.add((try? Data(contentsOf: older).count) ?? -1)  // is not expected below
        }
        let second = try files.mock.service.outbox(Outbox.Options(), { .replace($0.request) }, in: { store })
        await files.clock.advance(by: .zero)
        await second.close()
        #expect(sizes.values == [3, files.bytes.count])
        #expect(try files.copies().map(\.lastPathComponent) == [older.lastPathComponent])
        #expect(files.bodies == Array(repeating: files.bytes, count: 4))
    }

    @Test("An entry that is replaced while it is sent retains its copy until then", arguments: OutboxPlace.allCases)
    func replacedInFlight(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        files.mock.service.interceptors = [.retry()]
        files.mock.on(.PUT, "/a", [MockResponse(statusCode: 503).after(.seconds(10)), .status(200)])
        files.mock.on(.PUT, "/b", .status(200))
        let failures = Collected<Outbox.Failure.Kind>()
        let outbox = try await files.fixture.open {
            failures.add($0.kind)
            return .keep
        }
        try await outbox.submit(files.put(), entity: "a", replacing: "k")
        await files.clock.advance(by: .seconds(1))
        try await outbox.submit(files.put("/b"), entity: "a", replacing: "k")
        #expect(try files.copies().count == 2)
        await files.clock.advance(by: .seconds(60))
        #expect(files.fixture.paths == ["/a", "/a", "/b"])
        #expect(files.bodies == [files.bytes, files.bytes, files.bytes])
        #expect(failures.values == [])
        #expect(try files.copies() == [])
    }

    @Test("A log-out removes the copies")
    func logOut() async throws {
        let files = try Files(.folder)
        files.mock.on(.PUT, "/a", .status(503))
        let account = try Account(in: files.fixture.folder)
        let outbox = try account.service(like: files.mock.service).outbox(in: account.file("outbox"))
        try await outbox.submit(files.put())
        try await account.logOutAgain()
        #expect(!FileManager.default.fileExists(atPath: files.fixture.folder.path))
    }

    // MARK: Damage

    @Test(
        "A copy that is missing or has another size is a permanent failure, and nothing is sent",
        arguments: OutboxPlace.allCases, ["missing", "short", "long", "folder", "link"])
    func damage(_ place: OutboxPlace, _ kind: String) async throws {
        let files = try Files(place)
        files.mock.on(.PUT, "/a", .status(503))
        let first = try await files.fixture.open()
        try await first.submit(files.put())
        await files.clock.advance(by: .zero)
        await first.close()
        let copy = try #require(try files.copies().first)
        let handle = try FileHandle(forWritingTo: copy)
        switch kind {
        case "short": try handle.truncate(atOffset: 699_999)
        case "long": try handle.truncate(atOffset: 700_001)
        default:
            try FileManager.default.removeItem(at: copy)
            if kind == "folder" {
                try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: false)
            } else if kind == "link" {
                try FileManager.default.createSymbolicLink(at: copy, withDestinationURL: files.file)
            }
        }
        let count = files.mock.receivedRequests.count
        let failures = Collected<Outbox.Failure>()
        let second = try await files.fixture.open {
            failures.add($0)
            return .keep
        }
        await files.clock.advance(by: .seconds(10_000))
        #expect(files.mock.receivedRequests.count == count)
        #expect(failures.values.map(\.kind) == [.error(.encoding)])
        let message = (failures.values.first?.error as? WebServiceError)?.message
        #expect(message?.contains("is missing or has a different size") == true)
        #expect(await second.entries.map(\.state) == [.blocked])
        #expect(await second.entries.map(\.attempts) == [0])
        let id = try #require(await second.entries.first?.id)
        #expect(try await second.remove(id))
    }

    @Test("Copies without an entry are removed when the outbox is opened", arguments: OutboxPlace.allCases)
    func orphans(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        files.mock.on(.PUT, "/a", .status(503))
        let first = try await files.fixture.open()
        try await first.submit(files.put())
        let prefix = place == .folder ? "" : "outbox.sqlite."
        for _ in 0..<70 {
            let name = "\(prefix)\(UUID().uuidString.lowercased())-0.body"
            try Data([1]).write(to: files.fixture.folder.appendingPathComponent(name))
        }
        let foreign = files.fixture.folder.appendingPathComponent("\(prefix)x.body")
        try Data([1]).write(to: foreign)
        // Another process is just submitting.
        let pending = try first.folder.copies.write(BodySource(file: files.file), of: UUID(), slot: 0) { true }
        let second = try place.outbox(of: files.mock.service, at: files.fixture.outbox)
        await files.clock.advance(by: .zero)
        #expect(try files.copies().count == 3)
        pending.unlock()
        await second.close()
        let third = try place.outbox(of: files.mock.service, at: files.fixture.outbox)
        await files.clock.advance(by: .zero)
        #expect(try files.copies().count == 2)
        #expect(try files.copies().contains { $0.path == foreign.path })
        await third.close()
        await first.close()
    }

    @Test("A copy without an entry is removed only if the folder could be flushed before")
    func unflushed() async throws {
        let files = try Files(.folder)
        files.mock.on(.PUT, "/a", .status(503))
        let first = try await files.fixture.open()
        try await first.submit(files.put())
        await first.close()
        // Another process has removed the entry, and was killed before it flushed the folder.
        let folder = files.fixture.folder
        let name = try #require(try files.fixture.entryFiles().first)
        try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        let counts = Collected<Int>()
        for isBroken in [true, false] {
            let store = try OutboxFolder(folder) { () throws(SystemFailure) in
                counts.add((try? names(in: folder).count { $0.hasSuffix(".body") }) ?? -1)  // is not expected below
                if isBroken { throw SystemFailure(call: "fsync", number: EIO) }
            }
            let outbox = try files.mock.service.outbox(Outbox.Options(), { _ in .keep }, in: { store })
            await files.clock.advance(by: .zero)
            await outbox.close()
            #expect(try files.copies().count == (isBroken ? 1 : 0))
        }
        #expect(counts.values == [1, 1])
    }

    @Test("A damaged entry retains its copy until its file is removed", arguments: OutboxPlace.allCases)
    func damagedEntry(_ place: OutboxPlace) async throws {
        let files = try Files(place)
        files.mock.on(.PUT, "/a", .status(503))
        let first = try await files.fixture.open()
        try await first.submit(files.put())
        await files.clock.advance(by: .zero)
        let name = try #require(try first.folder.names().entries.first)
        await first.close()
        try first.folder.replace(name, with: Data("damaged".utf8))
        first.folder.unlock()
        let second = try await files.fixture.open()
        await files.clock.advance(by: .seconds(10))
        let damaged = try #require(await second.damagedFiles.first)
        await second.close()
        let third = try await files.fixture.open()
        #expect(try files.copies().count == 1)
        await third.close()
        try FileManager.default.removeItem(at: damaged)
        let fourth = try await files.fixture.open()
        #expect(try files.copies() == [])
        await fourth.close()
    }

    @Test("An earlier version does not send an entry without its body")
    func version() async throws {
        let files = try Files(.folder)
        files.mock.on(.PUT, "/a", .status(503))
        let outbox = try await files.fixture.open()
        try await outbox.submit(files.put())
        let name = try #require(try files.fixture.entryFiles().first)
        let bytes = try Data(contentsOf: files.fixture.folder.appendingPathComponent(name))
        #expect(bytes.starts(with: Data("webservice-outbox 2 ".utf8)))
    }
}
