import Foundation
import TestSupport
import Testing
import WebServiceDiagnostics
import WebServiceEndpoints
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore

/// Groups of cached responses (RFC 9875).
@Suite("ResponseCache: Groups", .permit)
struct CacheGroupsTests {
    private let fixture = CacheFixture()

    /// Serves responses to GET that belong to groups, and responses to other methods that invalidate
    /// groups.
    private func serve(
        _ groups: String?, invalidating: String? = nil, status: Int = 200, on fixture: CacheFixture? = nil
    ) {
        (fixture ?? self.fixture).serve { request in
            var headers: Headers = ["Cache-Control": "max-age=60"]
            if request.method == .GET {
                headers["Cache-Groups"] = groups
                return CacheFixture.Reply(headers: headers, body: "x")
            }
            headers["Cache-Group-Invalidation"] = invalidating
            return CacheFixture.Reply(status: status, headers: headers)
        }
    }

    /// Fills the cache, sends an unsafe request to another URL, and returns the sources of requests
    /// for the paths.
    private func sources(
        of paths: [String] = ["/a"], after method: Request.Method = .POST, _ path: String = "/other"
    ) async throws -> [Response.Source] {
        for path in paths { _ = try await fixture.get(path) }
        _ = try await fixture.get(path, method: method)
        var sources: [Response.Source] = []
        for path in paths { sources.append(try await fixture.get(path).source) }
        return sources
    }

    @Test("The groups of the examples of RFC 9875 are read")
    func examples() {
        #expect(CacheGroups.names(in: #""scripts""#) == ["scripts"])
        #expect(CacheGroups.names(in: #""eurovision-results", "australia""#) == ["eurovision-results", "australia"])
    }

    @Test(
        "Parameters are ignored, and so is a field that is not a list of strings",
        arguments: [
            (#""a";x=1, "b""#, ["a", "b"]), ("a", []), (#""a", 1"#, []), (#"("a" "b")"#, []), (#""a"#, []), ("", []),
            (#""a", "a", "A""#, ["a", "A"]),
        ] as [(String, Set<String>)])
    func names(field: String, names: Set<String>) {
        #expect(CacheGroups.names(in: field) == names)
    }

    @Test("The response to an unsafe request invalidates the responses of the groups that it names")
    func invalidation() async throws {
        serve(#""eurovision-results""#, invalidating: #""eurovision-results", "australia""#)
        #expect(try await sources() == [.network])
        serve(#""scripts", "australia""#, invalidating: #""eurovision-results", "australia""#)
        fixture.advance(by: 61)
        #expect(try await sources() == [.network])
        serve(#""scripts""#, invalidating: #""eurovision-results", "australia""#)
        fixture.advance(by: 61)
        #expect(try await sources() == [.cache])
    }

    @Test("The new response of an invalidated group is stored")
    func renewal() async throws {
        serve(#""a""#, invalidating: #""a""#)
        #expect(try await sources() == [.network])
        fixture.advance(by: 1)
        #expect(try await fixture.get(policy: .reloadIgnoringLocalCacheData).source == .network)
        #expect(try await fixture.get().source == .cache)
    }

    @Test("Letter case distinguishes groups, and another origin has other groups")
    func identity() async throws {
        serve(#""a""#, invalidating: #""A""#)
        #expect(try await sources() == [.cache])
        serve(#""a""#, invalidating: #""a""#)
        #expect(try await sources(of: ["https://other/a", "https://h:444/a", "/a"]) == [.cache, .cache, .network])
    }

    @Test("Another account has other groups")
    func accounts() async throws {
        serve(#""a""#, invalidating: #""a""#)
        for account in ["ann", "bob"] {
            fixture.signIn(account)
            _ = try await fixture.get()
        }
        _ = try await fixture.get("/other", method: .POST)
        #expect(try await fixture.get().source == .network)
        fixture.signIn("ann")
        #expect(try await fixture.get().source == .cache)
    }

    @Test(
        "The field is ignored in the response to a safe request, and in a response that is not a success or redirect",
        arguments: [
            (.HEAD, 200), ("QUERY", 200), (.OPTIONS, 200), ("TRACE", 200), (.POST, 404), (.POST, 500), (.DELETE, 400),
        ] as [(Request.Method, Int)])
    func ignored(method: Request.Method, status: Int) async throws {
        serve(#""a""#, invalidating: #""a""#, status: status)
        #expect(try await sources(after: method) == [.cache])
    }

    @Test(
        "A redirect of an unsafe request invalidates, also if it is followed",
        arguments: [302, 303, 307])
    func redirects(status: Int) async throws {
        fixture.serve { request in
            if request.method == .GET {
                return .init(headers: ["Cache-Control": "max-age=60", "Cache-Groups": #""a""#], body: "x")
            }
            guard request.url.hasSuffix("/other") else { return .init() }
            let headers: Headers = ["Location": "/v1/b", "Cache-Group-Invalidation": #""a""#]
            return .init(status: status, headers: headers)
        }
        #expect(try await sources() == [.network])
    }

    @Test("The field in the response to the GET after a redirect is ignored")
    func redirectedToGET() async throws {
        fixture.serve { request in
            if request.method == .POST { return .init(status: 303, headers: ["Location": "/v1/b"]) }
            let headers: Headers = [
                "Cache-Control": "max-age=60", "Cache-Groups": #""a""#, "Cache-Group-Invalidation": #""a""#,
            ]
            return .init(headers: headers, body: "x")
        }
        #expect(try await sources() == [.cache])
    }

    @Test("The response to a streamed unsafe request invalidates")
    func streams() async throws {
        serve(#""a""#, invalidating: #""a""#)
        _ = try await fixture.get()
        let task = fixture.service.POST("/other").stream()
        _ = try await task.value
        #expect(try await fixture.get().source == .network)
    }

    @Test("A response that was requested before an invalidation and arrives after it is not used")
    func late() async throws {
        let gate = Once<Bool>()
        fixture.serve { request in
            guard request.method == .GET else { return .init(headers: ["Cache-Group-Invalidation": #""a""#]) }
            _ = await gate.value
            return .init(headers: ["Cache-Control": "max-age=60", "Cache-Groups": #""a""#], body: "old")
        }
        async let early = fixture.text()
        await fixture.sent.wait(for: 1)
        fixture.advance(by: 1)
        _ = try await fixture.get("/other", method: .POST)
        await fixture.cache.finishStoring()  // the date of the invalidation is that of its storing
        fixture.advance(by: 1)
        gate.set(true)
        #expect(try await early == "network old")
        serve(#""a""#)
        #expect(try await fixture.text() == "network x")
        #expect(try await fixture.text() == "cache x")
    }

    @Test("A 304 that was requested before an invalidation and arrives after it is not used")
    func late304() async throws {
        fixture.serve(["Cache-Control": "max-age=5", "Cache-Groups": #""a""#], "old", tag: #""1""#)
        _ = try await fixture.get()
        fixture.advance(by: 6)
        let gate = Once<Bool>()
        fixture.serve { request in
            guard request.method == .GET else { return .init(headers: ["Cache-Group-Invalidation": #""a""#]) }
            _ = await gate.value
            return .init(status: 304)
        }
        async let early = fixture.text()
        await fixture.sent.wait(for: 2)
        fixture.advance(by: 1)
        _ = try await fixture.get("/other", method: .POST)
        gate.set(true)
        #expect(try await early == "revalidated old")
        serve(#""a""#)
        #expect(try await fixture.text() == "network x")
    }

    @Test("An invalid response is not used offline, as a stale one or for HEAD")
    func offline() async throws {
        serve(#""a""#, invalidating: #""a""#)
        #expect(try await sources(of: ["/b"]) == [.network])
        _ = try await fixture.get()
        _ = try await fixture.get("/other", method: .POST)
        #expect(try await fixture.get(method: .HEAD).source == .network)
        await #expect(throws: URLError(.resourceUnavailable)) {
            try await fixture.get(policy: .returnCacheDataDontLoad)
        }
        fixture.serve { _ in .init(error: URLError(.networkConnectionLost)) }
        let error = await #expect(throws: URLError.self) {
            try await fixture.get("/a", ["Cache-Control": "stale-if-error=600"])
        }
        #expect(error?.code == .networkConnectionLost)
    }

    @Test("Code invalidates a group of an origin and of the current account")
    func byCode() async throws {
        serve(#""brewers", "b""#)
        let url = try #require(URL(string: "https://h/any"))
        _ = try await fixture.get()
        try await fixture.cache.invalidate(group: "c", for: url)
        try await fixture.cache.invalidate(group: "brewers", for: try #require(URL(string: "https://other")))
        try await fixture.cache.invalidate(group: "brewers", for: try #require(URL(string: "file:///x")))
        #expect(try await fixture.get().source == .cache)
        try await fixture.cache.invalidate(group: "brewers", for: url)
        #expect(try await fixture.get().source == .network)
    }

    @Test("Code that cannot invalidate a group receives the error of the storage")
    func byCodeWithoutStorage() async throws {
        let fixture = CacheFixture(HandStorage(failure: TestError(name: "full")))
        let url = try #require(URL(string: "https://h/any"))
        await #expect(throws: TestError(name: "full")) { try await fixture.cache.invalidate(group: "a", for: url) }
        #expect(fixture.failures.values.map(\.operation) == [.store])
    }

    @Test("The date of an invalidation by code is that of the service's clock")
    func clock() async throws {
        let date = CachedResponseTests.start
        let timekeeper = TestTimekeeper(ManualTimekeeper(), date: { date })
        let cache = ResponseCache(storage: MemoryStorage())
        let service = WebService.make(
            ScriptedSession([.status(200, headers: ["Cache-Control": "max-age=60", "Cache-Groups": #""a""#])]),
            timekeeper: timekeeper)
        service.interceptors = [cache]
        _ = try await service.GET("/a").data().value
        try await cache.invalidate(group: "b", for: try #require(URL(string: "https://h")))
        await cache.finishStoring()
        let dates = try await cache.storage.summaries(after: nil, limit: 9).map(\.date)
        #expect(dates == [date, date])
    }

    @Test("An invalidation survives the process and applies to all caches over one storage")
    func restart() async throws {
        let folder = TemporaryFolder.forTest().url.appendingPathComponent("http")
        let (first, second) = (
            CacheFixture(try FileStorage(folder: folder)), CacheFixture(try FileStorage(folder: folder))
        )
        serve(#""a""#, invalidating: #""a""#, on: first)
        serve(#""a""#, on: second)
        #expect(try await first.get().source == .network)
        await first.cache.finishStoring()
        #expect(try await second.get().source == .cache)
        _ = try await first.get("/other", method: .POST)
        await first.cache.finishStoring()
        #expect(try await second.get().source == .network)
        await second.cache.finishStoring()
        let third = CacheFixture(try FileStorage(folder: folder))
        serve(#""a""#, on: third)
        #expect(try await third.get().source == .network)
    }

    @Test("128 groups of 1,024 characters are supported; a response with more is not stored")
    func manyGroups() async throws {
        let names = (0..<128).map { "\($0)".padding(toLength: 1_024, withPad: "x", startingAt: 0) }
        func field(_ names: [String]) -> String { names.map { "\"\($0)\"" }.joined(separator: ", ") }
        serve(field(names), invalidating: field([names[127]]))
        #expect(try await sources() == [.network])
        serve(field(names + ["b"]))
        let task = fixture.service.GET("/b").data()
        _ = try await task.value
        #expect(task.timeline.events.map(\.detail).contains("not stored: more than 128 cache groups"))
    }

    @Test("A response that names more than 128 groups invalidates all groups of its origin")
    func manyInvalidations() async throws {
        let names = (0..<1_000).map { "\"\($0)\"" }.joined(separator: ", ")
        serve(#""a""#, invalidating: names)
        #expect(try await sources(of: ["/a", "https://other/a"]) == [.network, .cache])
        serve(nil, invalidating: names)
        #expect(try await sources(of: ["/b"]) == [.cache])
        let entries = try await fixture.cache.storage.summaries(after: nil, limit: 99)
        #expect(entries.filter { $0.key.identifier.hasPrefix("group") }.count == 1)
    }

    @Test("If an invalidation cannot be read, the response is not used and the failure is reported")
    func unreadable() async throws {
        struct Storage: ResponseStorage {
            let memory = MemoryStorage()

            func entry(for key: StorageKey) async throws -> StorageEntry? {
                if key.identifier.hasPrefix("group") { throw TestError(name: "unreadable") }
                return memory.entry(for: key)
            }
            func store(_ entry: StorageEntry, for key: StorageKey) async throws { try memory.store(entry, for: key) }
            func removeEntry(for key: StorageKey) async throws { memory.removeEntry(for: key) }
            func removeAll() async throws { memory.removeAll() }
        }
        let storage = Storage()
        let fixture = CacheFixture(storage)
        serve(nil, on: fixture)
        _ = try await fixture.get()
        await fixture.cache.finishStoring()
        #expect(try await fixture.get().source == .cache)
        serve(#""a""#, on: fixture)
        #expect(try await fixture.get("/b").source == .network)
        await fixture.cache.finishStoring()
        #expect(try await fixture.get("/b").source == .network)
        #expect(fixture.failures.values.first?.operation == .read)
    }

    @Test("A damaged invalidation applies to all responses of its group")
    func damaged() async throws {
        let storage = MemoryStorage()
        let fixture = CacheFixture(storage)
        serve(#""a""#, on: fixture)
        _ = try await fixture.get()
        await fixture.cache.finishStoring()
        let key = StorageKey(identifier: "group https://h a", classification: ResponseCache.classification)
        try storage.store(StorageEntry(.value(Data([1])), date: nil), for: key)
        #expect(try await fixture.get().source == .network)
    }

    @Test("An invalid response is not stored again with another one for its URL")
    func variants() async throws {
        let storage = MemoryStorage(maximumCount: 2)
        let fixture = CacheFixture(storage)
        fixture.serve { request in
            if request.method == .POST { return .init(headers: ["Cache-Group-Invalidation": #""a""#]) }
            let headers: Headers = ["Cache-Control": "max-age=600", "Vary": "X-V"]
            return .init(
                headers: request.headers["X-V"] == "1" ? headers + ["Cache-Groups": #""a""#] : headers, body: "x")
        }
        _ = try await fixture.get("/a", ["X-V": "1"])
        _ = try await fixture.get("/other", method: .POST)
        await fixture.cache.finishStoring()
        fixture.advance(by: 1)
        _ = try await fixture.get("/a", ["X-V": "2"])
        await fixture.cache.finishStoring()
        _ = try await fixture.get("/b")  // removes the invalidation from the storage
        await fixture.cache.finishStoring()
        #expect(try await fixture.get("/a", ["X-V": "2"]).source == .cache)
        #expect(try await fixture.get("/a", ["X-V": "1"]).source == .network)
    }

    @Test("The list of a cache has the groups of each response, and not the invalid ones")
    func entries() async throws {
        serve(#""b", "a""#, invalidating: #""b""#)
        _ = try await fixture.get()
        await fixture.cache.finishStoring()
        var groups: [[String]] = []
        for try await entry in fixture.cache.entries { groups.append(entry.groups) }
        #expect(groups == [["a", "b"]])
        _ = try await fixture.get("/other", method: .POST)
        await fixture.cache.finishStoring()
        for try await entry in fixture.cache.entries { Issue.record("\(entry.url) is listed") }
    }

    @Test("Invalid responses are not listed if the key of a URL has no origin")
    func entriesOfKeys() async throws {
        let cache = ResponseCache(storage: MemoryStorage(), urlKey: { $0.path })
        fixture.service.interceptors = [cache]
        serve(#""b", "a""#, invalidating: #""b""#)
        _ = try await fixture.get()
        await cache.finishStoring()
        var urls: [String] = []
        for try await entry in cache.entries { urls.append(entry.url) }
        #expect(urls == ["/v1/a"])
        _ = try await fixture.get("/other", method: .POST)
        await cache.finishStoring()
        for try await entry in cache.entries { Issue.record("\(entry.url) is listed") }
    }

    @Test("The timeline explains an invalidation and its effect")
    func timeline() async throws {
        serve(#""a""#, invalidating: #""a", "b""#)
        _ = try await fixture.get()
        await fixture.cache.finishStoring()
        let post = fixture.service.POST("/other").data()
        _ = try await post.value
        await fixture.cache.finishStoring()
        #expect(post.timeline.explain().contains("The response invalidated stored groups: 2."))
        let get = fixture.service.GET("/a").data()
        _ = try await get.value
        #expect(
            get.timeline.explain()
                .contains("The cache was not used: a group of the stored response was invalidated."))
    }
}

extension Headers {
    fileprivate static func + (first: Headers, second: Headers) -> Headers { first.adding(second) }
}
