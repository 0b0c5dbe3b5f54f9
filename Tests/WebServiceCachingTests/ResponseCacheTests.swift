import Foundation
import TestSupport
import Testing
import WebServiceStorage

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("ResponseCache", .permit)
struct ResponseCacheTests {
    private let fixture = CacheFixture()

    @Test("A fresh response is returned from the cache with its age, and nothing is sent")
    func fresh() async throws {
        fixture.serve(["Cache-Control": "max-age=60", "X-A": "1"], "one")
        #expect(try await fixture.text() == "network one")
        fixture.advance(by: 59)
        fixture.serve([:], "two")
        let response = try await fixture.get()
        #expect(response.source == .cache)
        #expect(response.attempts == 0)
        #expect(response.age == .seconds(59))
        #expect(response.header("Age") == "59")
        #expect(response.data == Data("one".utf8))
        #expect(response.status == 200)
        #expect(response.header("X-A") == "1")
        #expect(response.url?.absoluteString == "https://h/v1/a")
        #expect(response.redirects.isEmpty)
        #expect(fixture.sent.values.count == 1)
        fixture.advance(by: 1)
        let next = try await fixture.get()
        #expect(next.source == .network)
        #expect(next.age == nil)
        #expect(next.data == Data("two".utf8))
        #expect(fixture.failures.values.isEmpty)
    }

    @Test("A custom key determines which URLs share stored responses and entity tags")
    func customKeys() async throws {
        let session = ScriptedSession([
            .status(200, headers: ["ETag": #""a""#, "Cache-Control": "no-cache"], body: "one"), .status(304),
            .status(200, body: "two"), .status(200, body: "three"),
        ])
        let cache = ResponseCache(
            storage: MemoryStorage(), urlKey: { $0.absoluteString.components(separatedBy: "?utm")[0] })
        let service = WebService.make(session, timekeeper: nil)
        service.interceptors = [cache]
        #expect(try await service.GET("/a?utm=1").string().value == "one")
        let second = try await service.GET("/a?utm=2").data().response
        #expect(second.source == .revalidated)
        #expect(second.data == Data("one".utf8))
        #expect(second.url?.query == "utm=2")
        #expect(session.sent.map { $0.value(forHTTPHeaderField: "If-None-Match") } == [nil, #""a""#])
        #expect(try await service.GET("/b?utm=2").string().value == "two")
        try await cache.remove(try #require(URL(string: "https://h/v1/a?utm=3")))
        #expect(try await service.GET("/a?utm=1").string().value == "three")
        #expect(session.sent.last?.value(forHTTPHeaderField: "If-None-Match") == nil)
    }

    @Test(
        "Equivalent spellings of a URL share a response, and URLs with another path, query or origin do not")
    func keys() async throws {
        fixture.serve { CacheFixture.Reply(headers: ["Cache-Control": "max-age=60"], body: $0.url) }
        func source(_ url: String, _ parameters: Parameters? = nil) async throws -> Response.Source {
            var request = Request(url: url)
            request.queryParameters = parameters
            return try await fixture.service.sessionTask(request: request).data().response.source
        }
        #expect(try await source("https://h/a?x=1") == .network)
        for (url, parameters) in [
            ("https://H/a?x=1", nil), ("HTTPS://h:443/a?x=1#part", nil), ("https://h/a", ["x": 1]),
        ] as [(String, Parameters?)] {
            #expect(try await source(url, parameters) == .cache, "\(url)")
        }
        for url in [
            "https://h/a", "https://h/a?x=2", "https://h/A?x=1", "http://h/a?x=1", "https://h:444/a?x=1",
            "https://h2/a?x=1", "https://h/a/?x=1",
        ] {
            #expect(try await source(url) == .network, "\(url)")
        }
        #expect(try await source("https://h") == .network)
        #expect(try await source("https://h/") == .cache)
        // The parameters of GET and HEAD requests are also part of the URL.
        for (value, source) in [(1, Response.Source.cache), (3, .network), (3, .cache)] {
            var request = Request(url: "https://h/a")
            request.parameters = ["x": value]
            #expect(try await fixture.service.sessionTask(request: request).data().response.source == source)
        }
    }

    @Test("A stale response is validated, and a 304 returns the stored body and makes it fresh again")
    func validation() async throws {
        fixture.serve(
            ["Cache-Control": "max-age=5", "Last-Modified": CachedResponseTests.text(-9)], "one", tag: "\"1\"")
        #expect(try await fixture.text() == "network one")
        fixture.advance(by: 6)
        let response = try await fixture.get()
        #expect(response.source == .revalidated)
        #expect(response.data == Data("one".utf8))
        #expect(response.status == 200)
        #expect(response.age == .zero)
        #expect(response.attempts == 1)
        let sent = try #require(fixture.sent.values.last)
        #expect(sent.headers[.ifNoneMatch] == "\"1\"")
        #expect(sent.headers["If-Modified-Since"] == CachedResponseTests.text(-9))
        #expect(try await fixture.text() == "cache one")
        fixture.advance(by: 6)
        fixture.serve(["Cache-Control": "max-age=5"], "two", tag: "\"2\"")
        #expect(try await fixture.text() == "network two")
        #expect(try await fixture.text() == "cache two")
    }

    @Test("A 304 with another entity tag or after a redirect is not used")
    func wrong304() async throws {
        fixture.serve(["ETag": "\"1\""], "one")
        _ = try await fixture.text()
        fixture.serve { request in
            request.headers[.ifNoneMatch] == nil
                ? CacheFixture.Reply(headers: ["ETag": "\"2\""], body: "two")
                : CacheFixture.Reply(status: 304, headers: ["ETag": "\"2\""])
        }
        #expect(try await fixture.text() == "network two")
        fixture.serve { request in
            if request.headers[.ifNoneMatch] == nil {
                return CacheFixture.Reply(headers: ["ETag": "\"3\""], body: "three")
            }
            return request.url.hasSuffix("/b")
                ? CacheFixture.Reply(status: 304) : CacheFixture.Reply(status: 302, headers: ["Location": "b"])
        }
        #expect(try await fixture.text() == "network three")
    }

    @Test("A partial response is not stored, and range requests and If-Match bypass the cache")
    func parts() async throws {
        fixture.serve(["Cache-Control": "max-age=60", "Content-Range": "bytes 0-1/9"], "pa", status: 206)
        #expect(try await fixture.text("/a", ["Range": "bytes=0-1"]) == "network pa")
        #expect(try await fixture.text() == "network pa")
        fixture.serve(["Cache-Control": "max-age=60"], "whole")
        #expect(try await fixture.text() == "network whole")
        fixture.serve([:], "new")
        for name in ["Range", "If-Range", "If-Match", "If-Unmodified-Since"] {
            #expect(try await fixture.text("/a", Headers([(name, "x")])) == "network new")
        }
        #expect(try await fixture.text() == "cache whole")
        fixture.serve([:], "", status: 416)
        #expect(try await fixture.get("/a", ["Range": "bytes=90-"]).status == 416)
        #expect(try await fixture.text() == "cache whole")
        fixture.serve([:], "", status: 304)
        #expect(try await fixture.get("/never", ["If-None-Match": "\"1\""]).status == 304)
    }

    @Test("A condition of the caller is evaluated against a fresh response, otherwise by the server")
    func ownCondition() async throws {
        let headers: Headers = [
            "Cache-Control": "max-age=60", "Content-Type": "a/b", "Content-Location": "/v1/a.txt",
            "Last-Modified": CachedResponseTests.text(-9),
        ]
        fixture.serve(headers, "one", tag: "\"1\"")
        _ = try await fixture.get()
        let same = try await fixture.get(
            "/a", ["If-None-Match": "\"0\", W/\"1\"", "If-Modified-Since": CachedResponseTests.text(-99)])
        #expect(same.status == 304)
        #expect(same.source == .cache)
        #expect(same.data.isEmpty)
        #expect(same.header(.eTag) == "\"1\"")
        #expect(same.header(.contentType) == nil)
        #expect(same.header("Content-Location") == "/v1/a.txt")  // RFC 9110, section 15.4.5
        #expect(try await fixture.text("/a", ["If-None-Match": "\"0\""]) == "cache one")
        #expect(try await fixture.get("/a", ["If-Modified-Since": CachedResponseTests.text(-9)]).status == 304)
        #expect(try await fixture.get("/a", ["If-Modified-Since": CachedResponseTests.text(-10)]).status == 200)
        #expect(fixture.sent.values.count == 1)
        fixture.advance(by: 61)
        #expect(try await fixture.get("/a", ["If-None-Match": "\"1\""]).status == 304)
        #expect(fixture.sent.values.last?.headers["If-Modified-Since"] == nil)
        #expect(try await fixture.text() == "cache one")  // the 304 has validated the stored response
    }

    @Test(
        "A condition of the caller never turns a stored error status into a 304 (RFC 9110, section 13.2.1)")
    func conditionOfFailure() async throws {
        fixture.serve(["Cache-Control": "max-age=60", "ETag": "\"1\""], "missing", status: 404)
        _ = try await fixture.get()
        for list in ["*", "\"1\""] {
            let response = try await fixture.get("/a", ["If-None-Match": list])
            #expect(response.status == 404)
            #expect(response.source == .cache)
            #expect(response.data == Data("missing".utf8))
        }
    }

    @Test("returnCacheDataDontLoad and only-if-cached prevent a request even if the cache does not apply to it")
    func offline() async throws {
        for method in [Request.Method.GET, .HEAD, .POST, .OPTIONS] {
            await #expect(throws: URLError(.resourceUnavailable)) {
                try await fixture.get("/a", ["Range": "bytes=0-1"], method: method, policy: .returnCacheDataDontLoad)
            }
        }
        #expect(try await fixture.get("/a", ["Range": "bytes=0-1", "Cache-Control": "only-if-cached"]).status == 504)
        #expect(fixture.sent.values.isEmpty)
    }

    @Test("The directives of the request are applied")
    func requestDirectives() async throws {
        func text(_ directive: String) async throws -> String {
            try await fixture.text("/a", ["Cache-Control": directive])
        }
        #expect(try await fixture.get("/a", ["Cache-Control": "only-if-cached"]).status == 504)
        fixture.serve(["Cache-Control": "max-age=60"], "one", tag: "\"1\"")
        #expect(try await text("no-store") == "network one")
        #expect(try await text("max-age=9") == "network one")
        fixture.advance(by: 10)
        #expect(try await text("max-age=10") == "cache one")
        #expect(try await text("only-if-cached") == "cache one")
        #expect(try await text("no-store") == "network one")
        #expect(try await text("max-age=9") == "revalidated one")
        fixture.advance(by: 10)
        #expect(try await text("min-fresh=50") == "cache one")
        #expect(try await text("min-fresh=51") == "revalidated one")
        #expect(try await text("no-cache") == "revalidated one")
        #expect(try await fixture.text("/a", ["Pragma": "no-cache"]) == "revalidated one")
        #expect(try await fixture.text("/a", ["Pragma": "no-cache", "Cache-Control": "x"]) == "cache one")
        fixture.advance(by: 70)
        #expect(try await fixture.get("/a", ["Cache-Control": "only-if-cached"]).status == 504)
        #expect(try await text("max-stale=10") == "cache one")
        #expect(try await text("max-stale") == "cache one")
        #expect(try await text("max-stale=9") == "revalidated one")
    }

    @Test("Every cache policy has the behavior that Foundation documents")
    func policies() async throws {
        await #expect(throws: URLError(.resourceUnavailable)) {
            try await fixture.get(policy: .returnCacheDataDontLoad)
        }
        fixture.serve(["Cache-Control": "max-age=60"], "one", tag: "\"1\"")
        #expect(try await fixture.text(policy: .returnCacheDataElseLoad) == "network one")
        #expect(try await fixture.text(policy: .reloadRevalidatingCacheData) == "revalidated one")
        #expect(fixture.sent.values.last?.headers[.cacheControl] == "max-age=0")
        fixture.serve(["Cache-Control": "max-age=60"], "two", tag: "\"1\"")
        #expect(try await fixture.text(policy: .reloadIgnoringLocalCacheData) == "network two")
        #expect(fixture.sent.values.last?.headers[.cacheControl] == nil)
        #expect(fixture.sent.values.last?.headers[.ifNoneMatch] == nil)
        #expect(try await fixture.text() == "cache two")
        fixture.serve([:], "three")
        #expect(try await fixture.text(policy: .reloadIgnoringLocalAndRemoteCacheData) == "network three")
        #expect(fixture.sent.values.last?.headers[.cacheControl] == "no-cache")
        #expect(fixture.sent.values.last?.headers["Pragma"] == "no-cache")
        fixture.advance(by: 1e6)
        #expect(try await fixture.text(policy: .returnCacheDataElseLoad) == "cache three")
        #expect(try await fixture.text(policy: .returnCacheDataDontLoad) == "cache three")
        #expect(try await fixture.text() == "network three")
        #expect(fixture.sent.values.count == 5)
    }

    @Test("A stored body that exceeds the limit of the request is an error")
    func limit() async throws {
        fixture.serve(["Cache-Control": "max-age=60"], "12345")
        _ = try await fixture.get()
        #expect(try await fixture.get { $0.options.maximumResponseBytes = 5 }.source == .cache)
        let error = await #expect(throws: WebServiceError.self) {
            try await fixture.get { $0.options.maximumResponseBytes = 4 }
        }
        #expect(error?.code == .responseTooLarge)
    }

    @Test("The timeline contains the decision to use a stored response")
    func timeline() async throws {
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        _ = try await fixture.get()
        let task = fixture.service.GET("/a")
        _ = try await task.data().value
        #expect(task.timeline.events.map { "\($0.kind): \($0.detail)" } == ["cache: stored, 0 s old"])
    }
}
