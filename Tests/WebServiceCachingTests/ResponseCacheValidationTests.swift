import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("ResponseCache: Validation", .permit)
struct ResponseCacheValidationTests {
    private let fixture = CacheFixture()

    @Test(
        "A 304 or a HEAD response that must not be stored removes the stored response",
        arguments: [Request.Method.GET, .HEAD])
    func noStore(method: Request.Method) async throws {
        for forbidding in [["Cache-Control": "no-store, max-age=60"], ["Cache-Control": "max-age=60", "Vary": "*"]]
            as [Headers]
        {
            let fixture = CacheFixture()
            fixture.serve(["Cache-Control": "max-age=5"], "one", tag: "\"1\"")
            _ = try await fixture.get()
            fixture.advance(by: 6)
            fixture.serve(forbidding, "", tag: "\"1\"")
            #expect(try await fixture.text(method: method) == (method == .GET ? "revalidated one" : "network "))
            await #expect(throws: URLError(.resourceUnavailable)) {
                try await fixture.get(policy: .returnCacheDataDontLoad)
            }
        }
    }

    @Test("The Vary field of a 304 applies to later requests")
    func vary() async throws {
        fixture.serve(["Cache-Control": "max-age=5"], "one", tag: "\"1\"")
        _ = try await fixture.get("/a", ["X-A": "1"])
        fixture.advance(by: 6)
        fixture.serve(["Cache-Control": "max-age=60", "Vary": "X-A"], "one", tag: "\"1\"")
        #expect(try await fixture.text("/a", ["X-A": "1"]) == "revalidated one")
        fixture.serve([:], "two")
        #expect(try await fixture.text("/a", ["X-A": "1"]) == "cache one")
        #expect(try await fixture.text("/a", ["X-A": "2"]) == "network two")
    }

    @Test("A validating request with no-store does not store the fields of the 304")
    func requestNoStore() async throws {
        fixture.serve(["Cache-Control": "max-age=60"], "one", tag: "\"1\"")
        _ = try await fixture.get()
        fixture.serve(["Cache-Control": "max-age=60", "X-A": "1"], "", tag: "\"1\"")
        #expect(
            try await fixture.text("/a", ["Cache-Control": "no-store"], policy: .reloadRevalidatingCacheData)
                == "revalidated one")
        let stored = try await fixture.get()
        #expect(stored.source == .cache)
        #expect(stored.header("X-A") == nil)
    }

    @Test("A 304 with another Last-Modified date is not used")
    func otherDate() async throws {
        fixture.serve(["Last-Modified": CachedResponseTests.text(-9)], "one")
        _ = try await fixture.get()
        let older: Headers = ["Last-Modified": CachedResponseTests.text(-99)]
        fixture.serve { request in
            request.headers["If-Modified-Since"] == nil
                ? CacheFixture.Reply(headers: older, body: "older") : CacheFixture.Reply(status: 304, headers: older)
        }
        #expect(try await fixture.text() == "network older")
    }

    @Test("A stored error status is requested without a condition (RFC 9110, section 15.4.5)")
    func failure() async throws {
        let headers: Headers = ["Last-Modified": CachedResponseTests.text(-9)]
        fixture.serve(headers, "missing", status: 404)
        _ = try await fixture.get()
        fixture.serve { request in
            let isNew = request.headers["If-Modified-Since"] == nil
            return CacheFixture.Reply(status: isNew ? 200 : 304, headers: headers, body: isNew ? "there" : "")
        }
        #expect(try await fixture.text() == "network there")
        #expect(fixture.sent.values.count == 2)
    }

    @Test("A successful HEAD response does not make a stored error status fresh")
    func headOfFailure() async throws {
        fixture.serve(["Cache-Control": "max-age=5"], "missing", status: 404)
        _ = try await fixture.get()
        fixture.advance(by: 6)
        fixture.serve(["Cache-Control": "max-age=60"], "there")
        #expect(try await fixture.get(method: .HEAD).status == 200)
        #expect(try await fixture.text() == "network there")
    }

    @Test(
        "A 304 with another entity tag is not used and removes the response (RFC 9111, section 4.3.4)",
        arguments: [("\"1\"", "\"2\""), ("W/\"1\"", "W/\"2\""), ("W/\"1\"", "\"2\""), ("\"1\"", "*"), ("\"1\"", "1")])
    func otherTag(stored: String, named: String) async throws {
        fixture.serve(["Cache-Control": "max-age=5", "ETag": stored], "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        fixture.serve { request in
            request.headers[.ifNoneMatch] == nil
                ? CacheFixture.Reply(headers: ["Cache-Control": "no-store"], body: "two")
                : CacheFixture.Reply(status: 304, headers: ["ETag": named])
        }
        #expect(try await fixture.text() == "network two")
        #expect(fixture.sent.values.dropFirst().map { $0.headers[.ifNoneMatch] } == [stored, nil])
        await #expect(throws: URLError(.resourceUnavailable)) {
            try await fixture.get(policy: .returnCacheDataDontLoad)
        }
    }

    @Test("A 304 with a weak entity tag validates the equal strong one")
    func weakTag() async throws {
        fixture.serve(["Cache-Control": "max-age=5", "ETag": "\"1\""], "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        fixture.serve(["ETag": "W/\"1\""], "", status: 304)
        #expect(try await fixture.text() == "revalidated one")
    }

    @Test("A 304 with a strong entity tag confirms the equal weak one and does not update its fields")
    func strongTag() async throws {
        fixture.serve(["Cache-Control": "max-age=5", "ETag": "W/\"1\"", "X-A": "old"], "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        fixture.serve(["Cache-Control": "max-age=60", "ETag": "\"1\"", "X-A": "new"], "", status: 304)
        for _ in 0..<2 {
            let response = try await fixture.get()
            #expect(response.source == .revalidated)
            #expect(response.data == Data("one".utf8))
            #expect(response.header("X-A") == "old")
            #expect(response.header(.eTag) == "W/\"1\"")
        }
        #expect(fixture.sent.values.dropFirst().map { $0.headers[.ifNoneMatch] } == ["W/\"1\"", "W/\"1\""])
    }

    @Test("A 304 with a strong entity tag to the caller's own condition does not remove the equal weak one")
    func strongTagOfCaller() async throws {
        fixture.serve(["Cache-Control": "max-age=5", "ETag": "W/\"1\""], "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        fixture.serve(["ETag": "\"1\""], "", status: 304)
        #expect(try await fixture.get("/a", ["If-None-Match": "W/\"1\""]).status == 304)
        #expect(try await fixture.text(policy: .returnCacheDataDontLoad) == "cache one")
    }

    @Test("The conditions that the cache adds are not sent to the target of a redirect")
    func redirectedConditions() async throws {
        let headers: Headers = ["Cache-Control": "max-age=5", "Last-Modified": CachedResponseTests.text(-9)]
        fixture.serve(headers, "one", tag: "\"1\"")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        fixture.serve { request in
            request.url.hasSuffix("/a")
                ? CacheFixture.Reply(status: 302, headers: ["Location": "/v1/b"]) : CacheFixture.Reply(body: "two")
        }
        #expect(try await fixture.text() == "network two")
        let sent = fixture.sent.values.dropFirst()
        #expect(sent.map { $0.headers[.ifNoneMatch] } == ["\"1\"", nil])
        #expect(sent.map { $0.headers["If-Modified-Since"] } == [CachedResponseTests.text(-9), nil])
    }

    @Test("The caller's own conditions are sent to the target of a redirect")
    func redirectedConditionsOfCaller() async throws {
        fixture.serve { request in
            request.url.hasSuffix("/a")
                ? CacheFixture.Reply(status: 302, headers: ["Location": "/v1/b"]) : CacheFixture.Reply(status: 304)
        }
        #expect(try await fixture.get("/a", ["If-None-Match": "\"1\""]).status == 304)
        #expect(fixture.sent.values.map { $0.headers[.ifNoneMatch] } == ["\"1\"", "\"1\""])
    }

    @Test(
        "A 304 to an unconditional request is a badServerResponse error and removes the stored response",
        arguments: [
            ["ETag": "\"2\""], ["Vary": "*", "ETag": "\"2\""], ["Last-Modified": "Fri, 15 Jan 2027 07:00:00 GMT"],
        ] as [Headers])
    func always304(headers: Headers) async throws {
        fixture.serve(
            ["Cache-Control": "max-age=5", "ETag": "\"1\"", "Last-Modified": CachedResponseTests.text(-9)], "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        var headers = headers
        if headers[.eTag] == nil { headers[.eTag] = "\"3\"" }
        fixture.serve(headers, "", status: 304)
        await #expect(throws: URLError(.badServerResponse)) { try await fixture.get() }
        #expect(fixture.sent.values.count == 3)
        await #expect(throws: URLError(.resourceUnavailable)) {
            try await fixture.get(policy: .returnCacheDataDontLoad)
        }
    }

    @Test(
        "A 304 for a condition of the caller is returned, and another entity tag removes the stored response"
    )
    func otherTagOfOwnCondition() async throws {
        fixture.serve(["Cache-Control": "max-age=5", "ETag": "\"1\""], "one")
        _ = try await fixture.get()
        fixture.advance(by: 6)
        fixture.serve([:], "", status: 304)
        #expect(try await fixture.get("/a", ["If-None-Match": "\"2\""]).status == 304)
        #expect(try await fixture.text(policy: .returnCacheDataDontLoad) == "cache one")
        // The 304 was about another representation, so the stored one is still stale.
        #expect(try await fixture.text() == "revalidated one")
        fixture.advance(by: 6)
        fixture.serve(["ETag": "\"2\""], "", status: 304)
        #expect(try await fixture.get("/a", ["If-None-Match": "\"2\""]).status == 304)
        await #expect(throws: URLError(.resourceUnavailable)) {
            try await fixture.get(policy: .returnCacheDataDontLoad)
        }
    }

    @Test(
        "An invalid entity tag or date is never sent as a condition",
        arguments: ["*", "1", "w/\"1\"", "\"1", "1\"", "W/1", "\"1\", \"2\"", "\"a\"b\"", "\"", "W/", "\"a b\""])
    func invalidValidators(tag: String) async throws {
        fixture.serve(["Cache-Control": "max-age=5", "ETag": tag, "Last-Modified": "yesterday"], "one")
        #expect(try await fixture.text() == "network one")
        fixture.advance(by: 6)
        #expect(try await fixture.text() == "network one")
        #expect(fixture.sent.values.map { $0.headers[.ifNoneMatch] } == [nil, nil])
        #expect(fixture.sent.values.map { $0.headers["If-Modified-Since"] } == [nil, nil])
    }

    @Test(
        "A valid entity tag is sent unchanged", arguments: ["\"\"", "W/\"\"", "\"!#a,b*\"", "W/\"/\""])
    func validTags(tag: String) async throws {
        fixture.serve(["Cache-Control": "max-age=5"], "one", tag: tag)
        _ = try await fixture.get()
        fixture.advance(by: 6)
        #expect(try await fixture.text() == "revalidated one")
        #expect(fixture.sent.values.last?.headers[.ifNoneMatch] == tag)
    }

    @Test(
        "A request cancelled while it reads the storage or is validated ends once and stores nothing"
    )
    func cancelled() async throws {
        let gate = Once<Bool>()
        let fixture = CacheFixture(HandStorage(gate: gate))
        fixture.serve(["Cache-Control": "max-age=5"], "one", tag: "\"1\"")
        _ = try await fixture.get()
        let ends = Collected<URLError.Code?>()
        func begin() -> SessionTask {
            fixture.service.GET("/a").response { _, _ in .empty }.responseError { ends.add(($0 as? URLError)?.code) }
                .resume()
        }
        let waiting = begin()
        waiting.cancel()
        #expect(await ends.wait(for: 1) == [.cancelled])
        gate.set(true)
        await fixture.cache.finishStoring()
        #expect(fixture.sent.values.count == 1)

        fixture.advance(by: 6)
        let answer = Once<Bool>()
        fixture.serve { _ in
            _ = await answer.value
            return CacheFixture.Reply(status: 304, headers: ["Cache-Control": "max-age=99"])
        }
        let validating = begin()
        await fixture.sent.wait(for: 2)
        validating.cancel()
        #expect(await ends.wait(for: 2) == [.cancelled, .cancelled])
        answer.set(true)
        fixture.serve([:], "two")
        #expect(try await fixture.text() == "network two")
        #expect(ends.values.count == 2)
    }
}
