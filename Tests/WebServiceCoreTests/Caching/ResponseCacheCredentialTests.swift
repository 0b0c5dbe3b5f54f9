import Foundation
import Testing
@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("ResponseCache: credentials, Vary and refusals", .timeLimit(.minutes(10)))
struct ResponseCacheCredentialTests {
    /// A server whose response names the values of the request's fields.
    private func echo(_ fixture: CacheFixture, _ headers: Headers = ["Cache-Control": "max-age=60"]) {
        fixture.serve { request in
            CacheFixture.Reply(headers: headers, body: request.headers.map(\.value).joined(separator: ","))
        }
    }

    /// The decisions of the cache about a request.
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
        "C-61: without an account, each header field that holds a credential separates the requests",
        arguments: ["Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token", "X-Session", "Private-Token", "X-Amz-Security-Token", "X-Sig"])
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

    @Test("C-61: without an account, the same value in another credential field is another request")
    func credentialNames() async throws {
        let fixture = CacheFixture()
        echo(fixture)
        #expect(try await fixture.text("/a", ["X-Api-Key": "1"]) == "network 1")
        #expect(try await fixture.text("/a", ["X-Auth-Token": "1"]) == "network 1")
        #expect(try await fixture.text("/a", ["X-Api-Key": "1", "X-Auth-Token": "1"]) == "network 1,1")
        #expect(try await fixture.text("/a", ["X-Api-Key": "1", "X-Open": "2"]) == "cache 1")
    }

    @Test("C-61: without an account, a field that an Authentication sets separates the requests, whatever its name")
    func authenticationField() async throws {
        let value = Mutex("ann")
        let authentication = Authentication(TokenSource({ Credential(header: "X-Member", value: value.withLock { $0 }) }))
        let fixture = CacheFixture(outer: [authentication])
        echo(fixture)
        for source in ["network", "cache"] {
            for member in ["ann", "bob"] {
                value.withLock { $0 = member }
                #expect(try await fixture.text() == "\(source) \(member)")
            }
        }
        // A field that the caller has set already is not replaced, and is a credential all the same.
        #expect(try await fixture.text("/a", ["X-Member": "eve"]) == "network eve")
        #expect(try await fixture.text("/a", ["X-Member": "ann"]) == "cache ann")
    }

    @Test("C-61: where an Authentication follows the cache, a response is stored for a named account only", arguments: [false, true])
    func authenticationAfterCache(onRequest: Bool) async throws {
        let value = Mutex("ann")
        let authentication = Authentication(TokenSource({ .bearer(value.withLock { $0 }) }))
        let fixture = CacheFixture(inner: onRequest ? [] : [authentication])
        echo(fixture)
        func body() async throws -> String {
            let response = try await fixture.get { if onRequest { $0.interceptors = [authentication] } }
            return "\(response.source) \(String(decoding: response.data, as: UTF8.self))"
        }
        #expect(try await body() == "network Bearer ann")
        value.withLock { $0 = "bob" }
        #expect(try await body() == "network Bearer bob")
        let passed = try await decisions(fixture) { if onRequest { $0.interceptors = [authentication] } }
        #expect(passed == ["not used: an Authentication follows the cache, and no account is named"])
        fixture.signIn("bob")
        #expect(try await body() == "network Bearer bob")
        #expect(try await body() == "cache Bearer bob")
    }

    @Test(
        "M-22: a response that varies by credentials the request does not have is stored for requests without them",
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

    @Test("C-61: a response that varies by cookies is not stored where a cookie jar adds them after the cache")
    func varyByJar() async throws {
        let fixture = CacheFixture()
        fixture.service.cookieJar = CookieJar()
        echo(fixture, ["Cache-Control": "max-age=60", "Vary": "Cookie"])
        #expect(try await decisions(fixture) == ["not stored: Vary names Cookie, and the cookie jar adds cookies after the cache"])
        #expect(try await fixture.text() == "network ")
        #expect(try await fixture.get { $0.shouldHandleCookies = false }.source == .network)
        #expect(try await fixture.get { $0.shouldHandleCookies = false }.source == .cache)
        #expect(try await fixture.text() == "network ")
    }

    @Test(
        "M-22: a Vary that is no list of field names counts as *",
        arguments: ["X-A X-B", "\"X-A\"", "X-A;q=1", "X-A, @", "X-A, (x)", "X-\u{e4}", "X-A, *", ", *", "X-A:"])
    func malformedVary(vary: String) async throws {
        let fixture = CacheFixture()
        fixture.serve(["Cache-Control": "max-age=60", "Vary": vary], "one")
        let reason = vary.hasSuffix("*") ? "Vary is *" : "Vary is malformed"
        for _ in 0..<2 { #expect(try await decisions(fixture) == ["not stored: \(reason)"]) }
        await #expect(throws: URLError(.resourceUnavailable)) { try await fixture.get(policy: .returnCacheDataDontLoad) }
    }

    @Test("M-22: empty members of Vary are ignored", arguments: [",", "", " , X-A ,,", "X-A,\tX-B"])
    func emptyMembers(vary: String) async throws {
        let fixture = CacheFixture()
        fixture.serve(["Cache-Control": "max-age=60", "Vary": vary], "one")
        #expect(try await fixture.text("/a", ["X-A": "1"]) == "network one")
        #expect(try await fixture.text("/a", ["X-A": "1"]) == "cache one")
        #expect(try await fixture.text("/a", ["X-A": "2"]) == (vary.contains("X-A") ? "network one" : "cache one"))
    }

    @Test("M-22: character sets that a response varies by are compared without regard to case and spaces")
    func acceptCharset() async throws {
        let fixture = CacheFixture()
        fixture.serve(["Cache-Control": "max-age=60", "Vary": "Accept-Charset, X-A"], "one")
        #expect(try await fixture.text("/a", ["Accept-Charset": "utf-8, iso-8859-1", "X-A": "b"]) == "network one")
        #expect(try await fixture.text("/a", ["Accept-Charset": "UTF-8,ISO-8859-1", "X-A": "b"]) == "cache one")
        #expect(try await fixture.text("/a", ["Accept-Charset": "UTF-8", "X-A": "b"]) == "network one")
        #expect(try await fixture.text("/a", ["Accept-Charset": "UTF-8,ISO-8859-1", "X-A": "B"]) == "network one")
    }

    @Test(
        "every refusal to store a response is in the timeline, with its reason",
        arguments: [
            (200, ["Cache-Control": "no-store"], [:], "no-store in the response"),
            (200, [:], ["Cache-Control": "no-store"], "no-store in the request"),
            (206, ["Cache-Control": "max-age=60"], [:], "status 206"),
            (500, [:], [:], "status 500 without explicit freshness"),
            (599, ["Cache-Control": "must-understand, no-store"], [:], "must-understand, and status 599 is not known"),
            (200, ["Vary": "*"], [:], "Vary is *"),
            (200, [:], ["Range": "bytes=0-1"], "the request has Range"),
            (200, [:], ["If-Match": "\"1\""], "the request has If-Match"),
        ] as [(Int, Headers, Headers, String)])
    func refusals(status: Int, headers: Headers, asked: Headers, reason: String) async throws {
        let fixture = CacheFixture()
        fixture.serve(headers, "one", status: status)
        #expect(try await decisions(fixture, asked) == ["not stored: \(reason)"])
    }

    @Test("a response after a redirect, or for an account that has changed since, is not stored, and the timeline has the reason")
    func otherRefusals() async throws {
        let fixture = CacheFixture()
        fixture.serve { request in
            request.url.hasSuffix("/a")
                ? CacheFixture.Reply(status: 302, headers: ["Location": "b"]) : CacheFixture.Reply(headers: ["Cache-Control": "max-age=60"])
        }
        #expect(try await decisions(fixture) == ["not stored: the response came after a redirect"])
        fixture.serve { [unowned fixture] _ in
            fixture.signIn("bob")
            return CacheFixture.Reply(headers: ["Cache-Control": "max-age=60"])
        }
        #expect(try await decisions(fixture) == ["not stored: the account has changed since"])
    }
}
