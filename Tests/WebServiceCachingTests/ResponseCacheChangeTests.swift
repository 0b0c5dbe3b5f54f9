import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("ResponseCache: Changes and invalidation", .permit)
struct ResponseCacheChangeTests {
    private let fixture = CacheFixture()

    @Test("A stored GET response is used for HEAD, and a HEAD response updates or invalidates it")
    func head() async throws {
        fixture.serve(["Cache-Control": "max-age=5", "X-A": "1"], "one", tag: "\"1\"")
        #expect(try await fixture.get(method: .HEAD).source == .network)
        #expect(try await fixture.get().source == .network)
        let head = try await fixture.get(method: .HEAD)
        #expect(head.source == .cache)
        #expect(head.data.isEmpty)
        #expect(head.header("X-A") == "1")
        #expect(head.header("Age") == "0")
        fixture.advance(by: 6)
        fixture.serve(["Cache-Control": "max-age=5", "X-A": "2", "ETag": "\"1\""])
        #expect(try await fixture.get(method: .HEAD).source == .network)
        let updated = try await fixture.get()
        #expect(updated.source == .cache)
        #expect(updated.data == Data("one".utf8))
        #expect(updated.header("X-A") == "2")
        fixture.advance(by: 6)
        fixture.serve(["ETag": "\"2\""], "two")
        #expect(try await fixture.get(method: .HEAD).source == .network)
        #expect(try await fixture.text("/a", ["Cache-Control": "max-stale"]) == "network two")
    }

    @Test(
        "A HEAD response with another length or date removes the stored response (RFC 9111, section 4.3.5)",
        arguments: [["Content-Length": "4"], ["Last-Modified": CachedResponseTests.text(-8)]] as [Headers])
    func headOfAnotherRepresentation(changed: Headers) async throws {
        var headers: Headers = [
            "Cache-Control": "max-age=5", "ETag": "\"1\"", "Content-Length": "3",
            "Last-Modified": CachedResponseTests.text(-9),
        ]
        fixture.serve(headers, "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        for field in changed { headers[Headers.Name(field.name)] = field.value }
        fixture.serve(headers)
        #expect(try await fixture.get(method: .HEAD).source == .network)
        await #expect(throws: URLError(.resourceUnavailable)) {
            try await fixture.get(policy: .returnCacheDataDontLoad)
        }
    }

    @Test(
        "A successful change removes all variants of its URL and the same-origin URLs of Location fields")
    func invalidation() async throws {
        func fill() async throws {
            fixture.serve(["Cache-Control": "max-age=60", "Vary": "X-V"], "one")
            for path in ["/a", "/b", "/c"] { _ = try await fixture.get(path, policy: .reloadIgnoringLocalCacheData) }
            _ = try await fixture.get("/a", ["X-V": "2"])
            #expect(try await fixture.text("/a", ["X-V": "2"]) == "cache one")
        }
        for method in [Request.Method.POST, .PUT, .PATCH, .DELETE, "PURGE"] {
            try await fill()
            fixture.serve(["Location": "b", "Content-Location": "/v1/c"], "changed", status: 201)
            _ = try await fixture.get(method: method)
            fixture.serve([:], "new")
            for path in ["/a", "/b", "/c"] { #expect(try await fixture.text(path) == "network new") }
            #expect(try await fixture.text("/a", ["X-V": "2"]) == "network new")
        }
        try await fill()
        fixture.serve(["Location": "http://h/v1/b"], "", status: 500)
        _ = try await fixture.get(method: .POST)
        #expect(try await fixture.text() == "cache one")
        _ = try await fixture.get("/a", method: .OPTIONS)
        for path in ["/a", "/b"] { #expect(try await fixture.text(path) == "cache one") }
    }

    @Test(
        "A change whose body replaced its parameters removes only the URL without the parameters"
    )
    func parametersThenBody() async throws {
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        for query in [nil, ["x": 1]] as [Parameters?] { _ = try await fixture.get { $0.queryParameters = query } }
        fixture.serve([:], "changed")
        let response = try await fixture.get(method: .POST) {
            $0.parameters = ["x": 1]
            $0.content = .data(Data("body".utf8), contentType: "text/plain")
        }
        #expect(response.url?.absoluteString == "https://h/v1/a")
        #expect(try await fixture.text() == "network changed")
        #expect(try await fixture.get { $0.queryParameters = ["x": 1] }.source == .cache)
    }

    @Test("Location and Content-Location do not remove URLs of another origin")
    func otherOrigins() async throws {
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        let others = ["https://other/v1/b", "https://h:444/v1/b", "http://h/v1/b", "https://sub.h/v1/b"]
        func source(_ url: String) async throws -> Response.Source {
            try await fixture.service.sessionTask(request: Request(url: url)).data().validateNothing().response.source
        }
        for url in others + ["https://h/v1/b"] {
            #expect(try await source(url) == .network)
            #expect(try await source(url) == .cache)
        }
        for (location, contentLocation) in [(others[0], "//h:444/v1/b"), (others[2], others[3]), ("//h:443/v1/x", "b")]
        {
            fixture.serve(["Location": location, "Content-Location": contentLocation])
            _ = try await fixture.get("/x", method: .POST)
        }
        for url in others { #expect(try await source(url) == .cache, "\(url)") }
        #expect(try await source("https://h/v1/b") == .network)  // named by the last Content-Location
    }

    @Test(
        "A redirected change removes each URL of its redirects, even if the final response is an error"
    )
    func redirectedChange() async throws {
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        for path in ["/a", "/b", "/c"] { _ = try await fixture.get(path) }
        fixture.serve { request in
            request.method == .POST
                ? CacheFixture.Reply(status: 303, headers: ["Location": "b"]) : CacheFixture.Reply(status: 500)
        }
        #expect(try await fixture.get(method: .POST).status == 500)
        fixture.serve([:], "new")
        for path in ["/a", "/b"] { #expect(try await fixture.text(path) == "network new") }
        #expect(try await fixture.text("/c") == "cache one")
    }

    @Test("A response that was requested before a change and arrives after it is not stored")
    func overtaken() async throws {
        let gate = Once<Bool>()
        fixture.serve { request in
            if request.method == .GET { _ = await gate.value }
            return CacheFixture.Reply(headers: ["Cache-Control": "max-age=60"], body: "old")
        }
        async let early = fixture.text()
        await fixture.sent.wait(for: 1)
        _ = try await fixture.get(method: .POST)
        gate.set(true)
        #expect(try await early == "network old")
        fixture.serve(["Cache-Control": "max-age=60"], "new")
        #expect(try await fixture.text() == "network new")
        #expect(try await fixture.text() == "cache new")
    }

    @Test(
        "A response requested before a change is not stored, even if another request has ended before the change"
    )
    func overtakenAfterAnother() async throws {
        let gate = Once<Bool>()
        fixture.serve { request in
            if request.headers["X-A"] == "late" { _ = await gate.value }
            return CacheFixture.Reply(headers: ["Cache-Control": "max-age=60"], body: "old")
        }
        async let late = fixture.text("/a", ["X-A": "late"])
        await fixture.sent.wait(for: 1)
        #expect(try await fixture.text() == "network old")
        await fixture.cache.finishStoring()
        _ = try await fixture.get(method: .POST)
        gate.set(true)
        #expect(try await late == "network old")
        fixture.serve([:], "new")
        #expect(try await fixture.text() == "network new")
    }

    @Test("A response that waits for an earlier change of the storage is not stored after a removal")
    func overtakenWhileWaiting() async throws {
        let (answers, stores) = (Collected<Void>(), Once<Bool>())
        let storage = HandStorage(gate: stores)
        let fixture = CacheFixture(storage)
        fixture.serve { request in
            if request.method == .GET { await answers.wait() }
            return CacheFixture.Reply(headers: ["Cache-Control": "max-age=60"], body: "old")
        }
        async let first = fixture.text()
        async let second = fixture.text()
        await fixture.sent.wait(for: 2)
        answers.add(())
        #expect(try await [first, second] == ["network old", "network old"])
        await storage.calls.wait(for: 3)  // one read per request, and one of the change that stores
        _ = try await fixture.get(method: .POST)
        stores.set(true)
        await fixture.cache.finishStoring()
        let stored = storage.calls.values.filter { if case .store = $0 { true } else { false } }
        #expect(stored.count == 1)
        #expect(storage.calls.values.last == .remove)
    }

    @Test("A response requested after a change is stored, even while earlier requests are in flight")
    func notOvertaken() async throws {
        let gate = Once<Bool>()
        fixture.serve { _ in
            _ = await gate.value
            return CacheFixture.Reply(headers: ["Cache-Control": "max-age=60"], body: "old")
        }
        async let early = fixture.text()
        await fixture.sent.wait(for: 1)
        fixture.serve(["Cache-Control": "max-age=60"], "new")
        _ = try await fixture.get(method: .POST)
        #expect(try await fixture.text() == "network new")
        gate.set(true)
        #expect(try await early == "network old")
        #expect(try await fixture.text() == "cache new")
    }

    @Test("A late 304 does not restore a response that a newer one has replaced")
    func late304() async throws {
        fixture.serve(["Cache-Control": "max-age=5"], "one", tag: "\"1\"")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        let gate = Once<Bool>()
        fixture.serve { _ in
            _ = await gate.value
            return CacheFixture.Reply(status: 304)
        }
        async let late = fixture.text()
        await fixture.sent.wait(for: 2)
        fixture.serve(["Cache-Control": "max-age=5"], "two", tag: "\"2\"")
        #expect(try await fixture.text() == "network two")
        gate.set(true)
        #expect(try await late == "revalidated one")
        #expect(try await fixture.text() == "cache two")
    }

    @Test("A new response that must not be stored removes the old one, but a server error does not")
    func replaced() async throws {
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        _ = try await fixture.get()
        fixture.serve([:], "error", status: 500)
        #expect(try await fixture.text(policy: .reloadIgnoringLocalCacheData) == "network error")
        #expect(try await fixture.text() == "cache one")
        fixture.serve(["Cache-Control": "no-store"], "two")
        #expect(try await fixture.text(policy: .reloadIgnoringLocalCacheData) == "network two")
        #expect(try await fixture.text() == "network two")
        for status in [404, 410] {
            fixture.serve(["Cache-Control": "max-age=60"], "three")
            #expect(try await fixture.text() == "network three")
            fixture.serve(["Cache-Control": "no-store"], "gone", status: status)
            #expect(try await fixture.text(policy: .reloadIgnoringLocalCacheData) == "network gone")
            #expect(try await fixture.text() == "network gone")
        }
    }

    @Test(
        "An error that another attempt can resolve replaces no stored response",
        arguments: [401, 429, 500, 503])
    func transient(status: Int) async throws {
        fixture.serve(["Cache-Control": "max-age=5, stale-if-error=60"], "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        fixture.serve(["Cache-Control": "max-age=60"], "error", status: status)
        _ = try await fixture.get()
        #expect(try await fixture.text(policy: .returnCacheDataDontLoad) == "cache one")
    }

    @Test("An older response that arrives late does not replace a newer one (RFC 9111, section 4)")
    func late() async throws {
        let gate = Once<Bool>()
        fixture.serve { _ in
            _ = await gate.value
            return CacheFixture.Reply(
                headers: ["Cache-Control": "max-age=60", "Date": CachedResponseTests.text(0)], body: "old")
        }
        async let early = fixture.text()
        await fixture.sent.wait(for: 1)
        fixture.advance(by: 5)
        fixture.serve(["Cache-Control": "max-age=60", "Date": CachedResponseTests.text(5)], "new")
        #expect(try await fixture.text() == "network new")
        gate.set(true)
        #expect(try await early == "network old")
        #expect(try await fixture.text() == "cache new")
    }

    @Test("A response of a server whose clock was set back replaces the stored one")
    func earlierClock() async throws {
        fixture.serve(["Cache-Control": "max-age=60", "Date": CachedResponseTests.text(50)], "one")
        _ = try await fixture.get()
        fixture.advance(by: 1)
        fixture.serve(["Cache-Control": "max-age=60", "Date": CachedResponseTests.text(1)], "two")
        #expect(try await fixture.text(policy: .reloadIgnoringLocalCacheData) == "network two")
        #expect(try await fixture.text() == "cache two")
    }

    @Test("A change removes each URL once, even if Location names its own URL")
    func removedOnce() async throws {
        let storage = HandStorage()
        let fixture = CacheFixture(storage)
        fixture.serve(["Location": "/v1/a", "Content-Location": "b"], status: 201)
        _ = try await fixture.get(method: .POST)
        await fixture.cache.finishStoring()
        #expect(storage.calls.values == [.remove, .remove])  // of /v1/a and /v1/b
    }

    @Test(
        "A redirect stored for a request with a manual policy is not used for one that follows redirects")
    func redirects() async throws {
        fixture.serve { request in
            let headers: Headers = ["Cache-Control": "max-age=60", "Location": "b"]
            return request.url.hasSuffix("/a")
                ? CacheFixture.Reply(status: 301, headers: headers) : CacheFixture.Reply(headers: headers, body: "b")
        }
        for source in [Response.Source.network, .cache] {
            let response = try await fixture.get { $0.options.redirectPolicy = .manual }
            #expect(response.status == 301)
            #expect(response.source == source)
        }
        for _ in 0..<2 {
            let response = try await fixture.get()
            #expect(response.status == 200)
            #expect(response.source == .network)
            #expect(response.redirects.count == 1)
        }
        #expect(try await fixture.text("/b") == "network b")
    }
}
