import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceOffline

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("The stored responses of an outbox", .permit)
struct OutboxResponseTests {
    private struct Created: Codable, Equatable {
        var id: Int
    }

    private func created(_ id: Int, headers: [String: String] = [:]) -> MockResponse {
        MockResponse(statusCode: 201, headers: headers, data: Data(#"{"id":\#(id)}"#.utf8))
    }

    @Test("A response is stored until it is removed, even after a restart", arguments: OutboxPlace.allCases)
    func restart(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        let response = created(7, headers: ["Location": "/todos/7", "Set-Cookie": "sid=1"])
        fixture.mock.on(.POST, "/todos", response.after(.seconds(1)))
        let first = try await fixture.open()
        let id = try await first.submit(
            fixture.service.request(.POST, path: "/todos"), entity: "todo", storesResponse: true)
        #expect(await first.entries.map(\.storesResponse) == [true])
        await fixture.clock.advance(by: .seconds(1))
        #expect(await first.entries == [])
        await first.close()

        let second = try await fixture.open()
        var responses = second.responses.makeAsyncIterator()
        let stored = try #require(try await responses.next())
        #expect(stored.id == id)
        #expect(stored.entity == "todo")
        #expect(stored.date == fixture.clock.date)
        #expect(stored.response.status == 201)
        #expect(stored.response.header("Location") == "/todos/7")
        #expect(stored.response.header("Set-Cookie") == nil)
        #expect(stored.response.url == fixture.service.request(.POST, path: "/todos").url)
        #expect(try stored.response.decode(Created.self) == Created(id: 7))
        #expect(!stored.isTruncated)
        #expect(try await second.response(of: id)?.response.data == stored.response.data)
        await second.close()
        #expect(try await responses.next() == nil)

        let third = try await fixture.open()
        #expect(try await third.removeResponse(of: id))
        #expect(try await third.response(of: id) == nil)
        #expect(try await !third.removeResponse(of: id))
        await third.close()
        let fourth = try await fixture.open()
        #expect(try await fourth.response(of: id) == nil)
        #expect(fixture.mock.receivedRequests.count == 1)
        #expect(await fourth.damagedFiles == [])
    }

    @Test("By default, and after a refusal, no response is stored", arguments: OutboxPlace.allCases)
    func none(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        fixture.mock.on(.POST, "/a", created(1))
        fixture.mock.on(.POST, "/b", MockResponse(statusCode: 422, data: Data("no".utf8)))
        fixture.mock.on(
            .POST, "/c", MockResponse(statusCode: 200, headers: ["Content-Type": "text/html"], data: Data("<p>".utf8)))
        let refused = Collected<String>()
        let outbox = try await fixture.open { failure in
            refused.add("\(failure.kind) \(String(decoding: failure.response?.data ?? Data(), as: UTF8.self))")
            return .drop
        }
        let first = try await outbox.submit(fixture.service.request(.POST, path: "/a"))
        let second = try await outbox.submit(fixture.service.request(.POST, path: "/b"), storesResponse: true)
        let third = try await outbox.submit(fixture.service.request(.POST, path: "/c"), storesResponse: true)
        await fixture.clock.advance(by: .zero)
        #expect(await outbox.entries == [])
        #expect(refused.values.sorted() == ["status(200) <p>", "status(422) no"])
        for id in [first, second, third] { #expect(try await outbox.response(of: id) == nil) }
    }

    @Test("An incomplete response is not stored, and the request is sent again")
    func broken() async throws {
        let fixture = OfflineFixture()
        var broken = created(7)
        broken.wire = .invalidChunk
        fixture.mock.on(.POST, "/a", [broken, .status(503), .error(URLError(.networkConnectionLost)), created(7)])
        let outbox = try await fixture.open()
        let id = try await outbox.submit(fixture.service.request(.POST, path: "/a"), storesResponse: true)
        await fixture.clock.advance(by: .zero)
        #expect(try await outbox.response(of: id) == nil)
        await fixture.clock.advance(by: .seconds(60))
        #expect(fixture.paths.count == 4)
        #expect(try await outbox.response(of: id)?.response.decode(Created.self) == Created(id: 7))
    }

    @Test("A body is stored up to the limit", arguments: [0, 1, 10, 11, 12])
    func limit(_ limit: Int) async throws {
        let fixture = OfflineFixture()
        fixture.mock.on(.POST, "/a", MockResponse(statusCode: 200, data: Data("hello world".utf8)))
        fixture.mock.on(
            .POST, "/page",
            MockResponse(statusCode: 200, headers: ["Content-Type": "text/html"], data: Data("<p>".utf8)))
        var options = Outbox.Options()
        options.maximumResponseBytes = limit
        let outbox = try await fixture.open(options)
        let id = try await outbox.submit(fixture.service.request(.POST, path: "/a"), storesResponse: true)
        let page = try await outbox.submit(fixture.service.request(.POST, path: "/page"), storesResponse: true)
        await fixture.clock.advance(by: .zero)
        let stored = try #require(try await outbox.response(of: id))
        #expect(stored.response.data == Data("hello world".utf8.prefix(limit)))
        #expect(stored.isTruncated == (limit < 11))
        #expect(await outbox.entries.map(\.id) == [page])
    }

    @Test("Only the limit of a response of 100 MB is received and stored", arguments: OutboxPlace.allCases)
    func large(_ place: OutboxPlace) async throws {
        let server = try MockServer.forTest()
        let written = Collected<Int>()
        var response = MockResponse(statusCode: 200)
        response.writer = { body in
            for _ in 0..<100 {
                try body.write(Data(repeating: 120, count: 1_000_000))
                written.add(1_000_000)
            }
        }
        server.on(.POST, "/a", response)
        let service = WebService(baseURLString: server.baseURLString)
        let folder = TemporaryFolder.forTest().url
        let outbox = try place.outbox(of: service, at: place.url(in: folder))
        let id = try await outbox.submit(service.request(.POST, path: "/a"), storesResponse: true)
        var responses = outbox.responses.makeAsyncIterator()
        let stored = try #require(try await responses.next())
        #expect(stored.id == id)
        #expect(stored.isTruncated)
        #expect(stored.response.data == Data(repeating: 120, count: 64 << 10))
        await outbox.close()
        #expect(written.values.reduce(0, +) < 50_000_000)
        let stores = try FileManager.default.subpathsOfDirectory(atPath: folder.path).map { name in
            try FileManager.default.attributesOfItem(atPath: folder.appendingPathComponent(name).path)[.size] as? Int
                ?? 0
        }
        #expect(stores.reduce(0, +) < 1_000_000)
    }

    @Test(
        "A request whose response a killed process has stored is not sent again, and the response is delivered",
        arguments: [true, false])
    func killed(_ isKnown: Bool) async throws {
        let fixture = OfflineFixture()
        let folder = fixture.folder
        let copies = Collected<(URL, Data)>()
        fixture.mock.on(.POST, "/a") { _ in
            for name in try names(in: folder) where name.hasSuffix(".entry") {
                let file = folder.appendingPathComponent(name)
                copies.add((file, try Data(contentsOf: file)))
            }
            return MockResponse(statusCode: 200, data: Data("a".utf8))
        }
        fixture.mock.on(.POST, "/b", .status(200))
        let first = try await fixture.open()
        // Another outbox that knows the entry, and takes over.
        let second = isKnown ? try await fixture.open() : nil
        let id = try await first.submit(fixture.service.request(.POST, path: "/a"), storesResponse: true)
        await fixture.clock.advance(by: .zero)
        await first.close()
        // As if the process had ended before it removed the entry.
        for (file, data) in copies.values { try data.write(to: file) }
        let outbox = if let second { second } else { try await fixture.open() }
        try await outbox.submit(fixture.service.request(.POST, path: "/b"))
        await fixture.clock.advance(by: .seconds(60))
        #expect(fixture.paths == ["/a", "/b"])
        #expect(copies.values.count == 1)
        #expect(try fixture.entryFiles() == [])
        #expect(await outbox.entries == [])
        #expect(try await outbox.response(of: id)?.response.data == Data("a".utf8))
    }

    @Test(
        "An entry whose response a killed process has stored is removed only after the response was flushed",
        arguments: [true, false])
    func unflushed(_ isKnown: Bool) async throws {
        let fixture = OfflineFixture()
        let folder = fixture.folder
        fixture.mock.on(.POST, "/a", .status(503))
        // The number of entries at each flush.
        let counts = Collected<Int>()
        func open() throws -> Outbox {
            let store = try OutboxFolder(folder) { () throws(SystemFailure) in
                counts.add((try? names(in: folder).count { $0.hasSuffix(".entry") }) ?? -1)  // is not expected below
            }
            return try fixture.service.outbox(Outbox.Options(), { _ in .keep }, in: { store })
        }
        let first = try open()
        try await first.submit(fixture.service.request(.POST, path: "/a"), storesResponse: true)
        await fixture.clock.advance(by: .zero)
        if !isKnown { await first.close() }
        let name = try #require(try fixture.entryFiles().first)
        try Data("a".utf8).write(to: folder.appendingPathComponent(OutboxNames.response(to: name)))
        let outbox = isKnown ? first : try open()
        outbox.retry()
        await fixture.clock.advance(by: .zero)
        #expect(fixture.paths == ["/a"])
        #expect(try fixture.entryFiles() == [])
        #expect(counts.values == [1, 1, 0])
        await outbox.close()
    }

    @Test("An entry whose response cannot be stored is not sent again until it can", arguments: [true, false])
    func notStored(_ isClosed: Bool) async throws {
        let fixture = OfflineFixture()
        let folder = fixture.folder
        let isFirst = OnceFlag()
        fixture.mock.on(.POST, "/a") { _ in
            // A file cannot replace a folder.
            for name in try names(in: folder) where name.hasSuffix(".entry") && isFirst.set() {
                try FileManager.default.createDirectory(
                    at: folder.appendingPathComponent(OutboxNames.response(to: name)),
                    withIntermediateDirectories: false)
            }
            return MockResponse(statusCode: 200, data: Data("a".utf8))
        }
        let outbox = try await fixture.open()
        let id = try await outbox.submit(fixture.service.request(.POST, path: "/a"), storesResponse: true)
        await fixture.clock.advance(by: .zero)
        #expect(await outbox.entries.count == 1)
        for name in try names(in: folder) where name.hasSuffix(".response") {
            try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        }
        #expect(try fixture.entryFiles().count == 1)
        if isClosed { await outbox.close() }
        let next = isClosed ? try await fixture.open() : outbox
        await fixture.clock.advance(by: .seconds(60))
        // A process that ends before it has stored the response sends the request again.
        #expect(fixture.paths.count == (isClosed ? 2 : 1))
        #expect(await next.entries == [])
        #expect(try await next.response(of: id)?.response.data == Data("a".utf8))
    }

    @Test(
        "A sequence delivers each response once, whichever outbox has stored it", arguments: OutboxPlace.allCases)
    func sequences(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        fixture.mock.on(.POST, "/{n}") { MockResponse(statusCode: 200, data: Data($0.path.utf8)) }
        let sender = try await fixture.open()
        let reader = try await fixture.open()
        var ids: [UUID] = []
        func submit(_ path: String) async throws {
            let request = fixture.service.request(.POST, path: path)
            ids.append(try await reader.submit(request, entity: "a", storesResponse: true))
            await fixture.clock.advance(by: .seconds(2))
        }
        try await submit("/0")
        try await submit("/1")
        var responses = reader.responses.makeAsyncIterator()
        for id in ids { #expect(try await responses.next()?.id == id) }
        try await submit("/2")
        #expect(try await responses.next()?.id == ids[2])
        var others = sender.responses.makeAsyncIterator()
        #expect(try await reader.removeResponse(of: ids[0]))
        for id in ids.dropFirst() { #expect(try await others.next()?.id == id) }
        await reader.close()
        await sender.close()
        #expect(try await responses.next() == nil)
        #expect(try await others.next() == nil)
        var closed = sender.responses.makeAsyncIterator()
        #expect(try await closed.next() == nil)
    }

    @Test("A sequence ends when its outbox is deallocated")
    func deallocation() async throws {
        let fixture = OfflineFixture()
        var outbox: Outbox? = try await fixture.open()
        var responses = outbox?.responses.makeAsyncIterator()
        weak let reference = outbox
        outbox = nil
        await eventually { reference == nil }
        #expect(try await responses?.next() == nil)
    }

    @Test("A damaged response is set aside and reported", arguments: OutboxPlace.allCases)
    func damage(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        fixture.mock.on(.POST, "/a", created(7))
        let outbox = try await fixture.open()
        let id = try await outbox.submit(fixture.service.request(.POST, path: "/a"), storesResponse: true)
        await fixture.clock.advance(by: .zero)
        let name = try #require(outbox.state.withLock { $0.responses.first })
        try await outbox.onQueue("") { try outbox.folder.replace(name, with: Data("x".utf8)) }
        #expect(try await outbox.response(of: id) == nil)
        #expect(await outbox.damagedFiles.map { $0.lastPathComponent.hasSuffix("\(name).damaged") } == [true])
        await outbox.close()
        #expect(try await fixture.open().response(of: id) == nil)
    }

    @Test("Stored responses count as entries", arguments: OutboxPlace.allCases)
    func count(_ place: OutboxPlace) async throws {
        let fixture = OfflineFixture(place)
        fixture.mock.on(.POST, "/{n}", created(7))
        var options = Outbox.Options()
        options.maximumCount = 2
        let outbox = try await fixture.open(options)
        let request = fixture.service.request(.POST, path: "/a")
        let id = try await outbox.submit(request, storesResponse: true)
        try await outbox.submit(request, storesResponse: true)
        await fixture.clock.advance(by: .zero)
        let error = await #expect(throws: WebServiceError.self) { try await outbox.submit(request) }
        #expect(error?.code == .outboxFull)
        #expect(try await outbox.removeResponse(of: id))
        try await outbox.submit(request)
    }

    @Test("An entry of an earlier version is sent, and its response is not stored")
    func earlierVersion() async throws {
        let fixture = OfflineFixture()
        fixture.mock.on(.POST, "/a", created(7))
        let id = UUID()
        let head = """
            {"date":0,"fields":[],"hasBody":false,"id":"\(id.uuidString)","method":"POST","url":"/a"}

            """
        try FileManager.default.createDirectory(at: fixture.folder, withIntermediateDirectories: true)
        try CheckedContent.encode(Data(head.utf8), mark: "webservice-outbox 1 ").write(
            to: fixture.folder.appendingPathComponent("0000000000000001" + OutboxNames.suffix(id, nil, nil)))
        let outbox = try await fixture.open()
        #expect(fixture.paths == ["/a"])
        #expect(await outbox.entries == [])
        #expect(try await outbox.response(of: id) == nil)
        #expect(await outbox.damagedFiles == [])
    }
}
