import Foundation
import Testing
@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("ResponseCache: Credentials, Vary and refusals", .timeLimit(.minutes(10)))
struct ResponseCacheCredentialTests {
    /// Serves a response that contains the values of the header fields of the request.
    private func echo(_ fixture: CacheFixture, _ headers: Headers = ["Cache-Control": "max-age=60"]) {
        fixture.serve { request in
            CacheFixture.Reply(headers: headers, body: request.headers.map(\.value).joined(separator: ","))
        }
    }

    /// Returns the decisions of the cache about a request.
    private func decisions(
        _ fixture: CacheFixture, _ headers: Headers = [:], change: (inout Request) -> Void = { _ in }
    ) async throws -> [String] {
        var request = fixture.service.request(.GET, path: "/a")
        request.headers = headers
        change(&request)
        let task = fixture.service.sessionTask(request: request)
        _ = try await task.data().validateNothing().response
        return task.timeline.events.filter { $0.kind == .cache }.map(\.detail)
    }

    @Test(
        "Without an account, each header field with a credential separates the requests", .covers("C-61"),
        arguments: [
            "Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token", "X-Session", "Private-Token",
            "X-Amz-Security-Token", "X-Sig",
        ])
    func credentialFields(name: String) async throws {
        let fixture = CacheFixture()
        echo(fixture)
        for source in ["network", "cache"] {
            for value in ["a", "b", nil] {
                let headers = Headers(value.map { [(name, $0)] } ?? [])
                #expect(try await fixture.text("/a", headers) == "\(source) \(value ?? "")")
            }
        }
    }

    @Test("Without an account, the same value in another credential field is another request", .covers("C-61"))
    func credentialNames() async throws {
        let fixture = CacheFixture()
        echo(fixture)
        #expect(try await fixture.text("/a", ["X-Api-Key": "1"]) == "network 1")
        #expect(try await fixture.text("/a", ["X-Auth-Token": "1"]) == "network 1")
        #expect(try await fixture.text("/a", ["X-Api-Key": "1", "X-Auth-Token": "1"]) == "network 1,1")
        #expect(try await fixture.text("/a", ["X-Api-Key": "1", "X-Open": "2"]) == "cache 1")
    }

    @Test("Without an account, a field of any name that an Authentication sets separates the requests", .covers("C-61"))
    func authenticationField() async throws {
        let value = Mutex("ann")
        let authentication = Authentication(
            TokenSource({ Credential(header: "X-Member", value: value.withLock { $0 }) }))
        let fixture = CacheFixture(outer: [authentication])
        echo(fixture)
        for source in ["network", "cache"] {
            for member in ["ann", "bob"] {
                value.withLock { $0 = member }
                #expect(try await fixture.text() == "\(source) \(member)")
            }
        }
        // A field that the caller has set is not replaced, but is also a credential.
        #expect(try await fixture.text("/a", ["X-Member": "eve"]) == "network eve")
        #expect(try await fixture.text("/a", ["X-Member": "ann"]) == "cache ann")
    }

    @Test(
        "If an Authentication follows the cache, a response is stored only for a named account", .covers("C-61"),
        arguments: [false, true])
    func authenticationAfterCache(onRequest: Bool) async throws {
        let value = Mutex("ann")
        let authentication = Authentication(TokenSource({ .bearer(value.withLock { $0 }) }))
        let fixture = CacheFixture(inner: onRequest ? [] : [authentication])
        echo(fixture)
        func body() async throws -> String {
            let response = try await fixture.get { if onRequest { $0.options.interceptors = [authentication] } }
            return "\(response.source) \(String(decoding: response.data, as: UTF8.self))"
        }
        #expect(try await body() == "network Bearer ann")
        value.withLock { $0 = "bob" }
        #expect(try await body() == "network Bearer bob")
        let passed = try await decisions(fixture) { if onRequest { $0.options.interceptors = [authentication] } }
        #expect(passed == ["not used: an Authentication follows the cache, and no account is named"])
        fixture.signIn("bob")
        #expect(try await body() == "network Bearer bob")
        #expect(try await body() == "cache Bearer bob")
    }

    @Test(
        "A response that varies by credentials is stored for requests without them and for each value", .covers("M-22"),
        arguments: ["Cookie", "Authorization"])
    func varyByAbsentCredential(name: String) async throws {
        for account in [nil, "ann"] {
            let fixture = CacheFixture()
            fixture.signIn(account)
            echo(fixture, ["Cache-Control": "max-age=60", "Vary": name])
            #expect(try await fixture.text() == "network ")
            #expect(try await fixture.text() == "cache ")
            #expect(try await fixture.text("/a", Headers([(name, "1")])) == "network 1")
            #expect(try await fixture.text("/a", Headers([(name, "1")])) == "cache 1")
            #expect(try await fixture.text("/a", Headers([(name, "2")])) == "network 2")
            #expect(try await fixture.text() == "cache ")
        }
    }

    @Test("A response that varies by cookies is not stored if a cookie jar adds them after the cache", .covers("C-61"))
    func varyByJar() async throws {
        let fixture = CacheFixture()
        let jar = CookieJar()
        jar.store(["sid=1"], from: try #require(URL(string: "https://h/v1/")))
        fixture.service.cookieJar = jar
        echo(fixture, ["Cache-Control": "max-age=60", "Vary": "Cookie"])
        #expect(
            try await decisions(fixture) == [
                "not stored: Vary names Cookie, and the cookie jar adds cookies after the cache"
            ])
        #expect(try await fixture.text() == "network sid=1")
        #expect(try await fixture.get { $0.options.shouldHandleCookies = false }.source == .network)
        #expect(try await fixture.get { $0.options.shouldHandleCookies = false }.source == .cache)
        #expect(try await fixture.text() == "network sid=1")
    }

    @Test("A response that varies by cookies is stored if the cookie jar has none for the URL", .covers("M-22"))
    func varyByEmptyJar() async throws {
        let fixture = CacheFixture()
        let jar = CookieJar()
        let url = try #require(URL(string: "https://h/v1/"))
        fixture.service.cookieJar = jar
        jar.store(["other=1; Path=/v2"], from: url)
        echo(fixture, ["Cache-Control": "max-age=60", "Vary": "Cookie"])
        #expect(try await decisions(fixture) == [])
        #expect(try await fixture.text() == "cache ")
        jar.store(["sid=1"], from: url)
        #expect(try await fixture.text() == "network sid=1")
        jar.removeAll()
        #expect(try await fixture.text() == "cache ")
    }

    @Test(
        "A response that varies by cookies is not stored if the jar receives cookies while it is in flight",
        .covers("C-61"))
    func varyByLateCookie() async throws {
        let fixture = CacheFixture()
        let jar = CookieJar()
        let url = try #require(URL(string: "https://h/v1/"))
        fixture.service.cookieJar = jar
        fixture.serve { _ in
            jar.store(["sid=1"], from: url)
            return CacheFixture.Reply(headers: ["Cache-Control": "max-age=60", "Vary": "Cookie"], body: "one")
        }
        #expect(
            try await decisions(fixture) == [
                "not stored: Vary names Cookie, and the cookie jar adds cookies after the cache"
            ])
        jar.removeAll()
        #expect(try await fixture.text() == "network one")
    }

    @Test(
        "A Vary field that is not a list of field names counts as *", .covers("M-22"),
        arguments: ["X-A X-B", "\"X-A\"", "X-A;q=1", "X-A, @", "X-A, (x)", "X-\u{e4}", "X-A, *", ", *", "X-A:"])
    func malformedVary(vary: String) async throws {
        let fixture = CacheFixture()
        fixture.serve(["Cache-Control": "max-age=60", "Vary": vary], "one")
        let reason = vary.hasSuffix("*") ? "Vary is *" : "Vary is malformed"
        for _ in 0..<2 { #expect(try await decisions(fixture) == ["not stored: \(reason)"]) }
        await #expect(throws: URLError(.resourceUnavailable)) {
            try await fixture.get(policy: .returnCacheDataDontLoad)
        }
    }

    @Test("Empty members of Vary are ignored", .covers("M-22"), arguments: [",", "", " , X-A ,,", "X-A,\tX-B"])
    func emptyMembers(vary: String) async throws {
        let fixture = CacheFixture()
        fixture.serve(["Cache-Control": "max-age=60", "Vary": vary], "one")
        #expect(try await fixture.text("/a", ["X-A": "1"]) == "network one")
        #expect(try await fixture.text("/a", ["X-A": "1"]) == "cache one")
        #expect(try await fixture.text("/a", ["X-A": "2"]) == (vary.contains("X-A") ? "network one" : "cache one"))
    }

    @Test("An Accept-Charset field that a response varies by is compared without case and spaces", .covers("M-22"))
    func acceptCharset() async throws {
        let fixture = CacheFixture()
        fixture.serve(["Cache-Control": "max-age=60", "Vary": "Accept-Charset, X-A"], "one")
        #expect(try await fixture.text("/a", ["Accept-Charset": "utf-8, iso-8859-1", "X-A": "b"]) == "network one")
        #expect(try await fixture.text("/a", ["Accept-Charset": "UTF-8,ISO-8859-1", "X-A": "b"]) == "cache one")
        #expect(try await fixture.text("/a", ["Accept-Charset": "UTF-8", "X-A": "b"]) == "network one")
        #expect(try await fixture.text("/a", ["Accept-Charset": "UTF-8,ISO-8859-1", "X-A": "B"]) == "network one")
    }

    /// A case in which the cache does not store a response.
    struct Refusal: Sendable, CustomTestStringConvertible {
        let reason: String
        var status = 200
        var headers: Headers = ["Cache-Control": "max-age=60"]
        var asked: Headers = [:]
        /// Runs before the request is sent.
        var prepare: @Sendable (CacheFixture) async throws -> Void = { _ in }
        /// Runs when the server receives the request.
        var serve: @Sendable (CacheFixture) async throws -> Void = { _ in }
        var testDescription: String { reason }
    }

    private static let url = URL(string: "https://h/v1/a")

    static let refusals: [Refusal] = [
        Refusal(reason: "no-store in the response", headers: ["Cache-Control": "no-store"]),
        Refusal(reason: "no-store in the request", asked: ["Cache-Control": "no-store"]),
        Refusal(reason: "status 206", status: 206),
        Refusal(reason: "status 304", status: 304),
        Refusal(reason: "status 304", status: 304, asked: ["If-None-Match": "\"1\""]),
        Refusal(reason: "status 500 without explicit freshness", status: 500, headers: [:]),
        Refusal(
            reason: "must-understand, but status 599 is unknown", status: 599,
            headers: ["Cache-Control": "must-understand, no-store"]),
        Refusal(reason: "Vary is *", headers: ["Vary": "*"]),
        Refusal(reason: "Vary is malformed", headers: ["Vary": "a b"]),
        Refusal(
            reason: "Vary names Cookie, and the cookie jar adds cookies after the cache", headers: ["Vary": "Cookie"],
            prepare: { fixture in
                fixture.service.cookieJar = CookieJar()
                fixture.service.cookieJar?.store(["sid=1"], from: try #require(url))
            }),
        Refusal(reason: "the request has Range", asked: ["Range": "bytes=0-1"]),
        Refusal(reason: "the request has If-Range", asked: ["If-Range": "\"1\""]),
        Refusal(reason: "the request has If-Match", asked: ["If-Match": "\"1\""]),
        Refusal(
            reason: "the request has If-Unmodified-Since", asked: ["If-Unmodified-Since": CachedResponseTests.text(0)]),
        Refusal(
            reason: "the response came after a redirect",
            prepare: { fixture in
                fixture.serve { request in
                    request.url.hasSuffix("/a")
                        ? CacheFixture.Reply(status: 302, headers: ["Location": "b"])
                        : CacheFixture.Reply(headers: ["Cache-Control": "max-age=60"])
                }
            }),
        Refusal(reason: "the account has changed since", serve: { $0.signIn("bob") }),
        Refusal(
            reason: "it was removed while the request was in flight",
            serve: { try await $0.cache.remove(try #require(url)) }),
        Refusal(
            reason: "the response is not an HTTP response",
            prepare: { fixture in
                let response = URLResponse(
                    url: try #require(url), mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
                fixture.service.session = HandSession { $0.completion(Data(), response, nil) }
            }),
        Refusal(
            reason: "a header field is malformed",
            prepare: { fixture in
                let bytes = Array("HTTP/1.1 200 OK\r\na b: c\r\n\r\n".utf8)
                fixture.service.session = HeadSession(
                    head: try #require(ResponseHead(bytes: bytes, url: "https://h/v1/a")))
            }),
        Refusal(
            reason: "too many changes are pending in the storage",
            prepare: { fixture in
                let storage = try #require(fixture.cache.storage as? HangingStorage)
                storage.hangs(.store, true)
                for _ in 0..<65 { _ = try await fixture.get(policy: .reloadIgnoringLocalCacheData) }
            }),
    ]

    @Test("The timeline contains the reason for each response that is not stored", arguments: refusals)
    func refusal(_ refusal: Refusal) async throws {
        let storage = HangingStorage()
        let fixture = CacheFixture(storage)
        fixture.serve { [unowned fixture] _ in
            do { try await refusal.serve(fixture) } catch { Issue.record(error) }
            return CacheFixture.Reply(status: refusal.status, headers: refusal.headers, body: "one")
        }
        try await refusal.prepare(fixture)
        let decisions = try await decisions(fixture, refusal.asked) { request in
            if refusal.reason.hasPrefix("too many") { request.options.cachePolicy = .reloadIgnoringLocalCacheData }
        }
        #expect(decisions == ["not stored: \(refusal.reason)"])
        storage.hangs(.store, false)
        await fixture.cache.finishStoring()
    }

    @Test("Every reason in the sources has a test")
    func reasons() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let folder = tests.appendingPathComponent("../../../../Sources/WebServiceCore/Interceptors/HTTPCache")
            .standardized
        var count = 0
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
            let source = try String(contentsOf: file, encoding: .utf8)
            for begin in ["CacheRefusal(\"", "not stored: "] {
                for rest in source.components(separatedBy: begin).dropFirst() {
                    let reason = rest.prefix { !"\"\\`".contains($0) }
                    if begin == "not stored: ", reason.isEmpty || rest.hasPrefix("Vary is *`") { continue }
                    count += 1
                    #expect(Self.refusals.contains { $0.reason.hasPrefix(reason) }, "\(reason)")
                }
            }
        }
        #expect(count >= 14)
    }
}
