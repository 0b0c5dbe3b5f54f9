import WebServiceStorage
import Foundation
import TestSupport
import Testing
import WebServiceEndpoints

@testable import WebServiceCaching
@testable import WebServiceCore

@Suite("ResponseCache: Credentials, Vary and refusals", .permit)
struct ResponseCacheCredentialTests {
    private let fixture = CacheFixture()

    /// Serves a response that contains the values of the header fields of the request.
    private func echo(_ fixture: CacheFixture, _ headers: Headers = ["Cache-Control": "max-age=60"]) {
        fixture.serve { request in
            CacheFixture.Reply(headers: headers, body: request.headers.map(\.value).joined(separator: ","))
        }
    }

    /// Returns the decisions of the cache about a request.
    private func decisions(
        _ fixture: CacheFixture, _ headers: Headers = [:], change: (inout Request) -> Void = { _ in }
    ) async -> [String] {
        var request = fixture.service.request(.GET, path: "/a")
        request.headers = headers
        change(&request)
        let task = fixture.service.sessionTask(request: request)
        _ = await task.data().validateNothing().result
        return task.timeline.events.filter { $0.kind == .cache }.map(\.detail)
    }

    @Test(
        "Without an account, each header field with a credential separates the requests",
        arguments: [
            "Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token", "X-Session", "Private-Token",
            "X-Amz-Security-Token", "X-Sig",
        ])
    func credentialFields(name: String) async throws {
        echo(fixture)
        for source in ["network", "cache"] {
            for value in ["a", "b", nil] {
                let headers = Headers(value.map { [(name, $0)] } ?? [])
                #expect(try await fixture.text("/a", headers) == "\(source) \(value ?? "")")
            }
        }
    }

    @Test("Without an account, the same value in another credential field is another request")
    func credentialNames() async throws {
        echo(fixture)
        #expect(try await fixture.text("/a", ["X-Api-Key": "1"]) == "network 1")
        #expect(try await fixture.text("/a", ["X-Auth-Token": "1"]) == "network 1")
        #expect(try await fixture.text("/a", ["X-Api-Key": "1", "X-Auth-Token": "1"]) == "network 1,1")
        #expect(try await fixture.text("/a", ["X-Api-Key": "1", "Accept": "2"]) == "cache 1")
    }

    @Test("Without an account, a field of any name that an Authentication sets separates the requests")
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
        "If an Authentication follows the cache, a response is stored only for a named account",
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
        let passed = await decisions(fixture) { if onRequest { $0.options.interceptors = [authentication] } }
        #expect(passed == ["an Authentication follows the cache, and no account is named"])
        fixture.signIn("bob")
        #expect(try await body() == "network Bearer bob")
        #expect(try await body() == "cache Bearer bob")
    }

    @Test(
        "A response that varies by credentials is stored for requests without them and for each value",
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

    @Test(
        "The cookies of the cookie jar separate the requests, with and without Vary",
        arguments: [nil, "Cookie"])
    func cookieJar(vary: String?) async throws {
        for account in [nil, "ann"] where account == nil || vary != nil {
            let fixture = CacheFixture()
            fixture.signIn(account)
            let jar = CookieJar()
            let url = try #require(URL(string: "https://h/v1/"))
            fixture.service.cookieJar = jar
            echo(fixture, Headers([("Cache-Control", "max-age=60")] + (vary.map { [("Vary", $0)] } ?? [])))
            for source in ["network", "cache"] {
                for user in ["ann", "bob"] {
                    jar.store(["sid=\(user)"], from: url)
                    #expect(try await fixture.text() == "\(source) sid=\(user)")
                }
                jar.removeAll()
                #expect(try await fixture.text() == "\(source) ")
            }
            jar.store(["sid=ann"], from: url)
            #expect(try await fixture.text("/a", ["Cookie": "sid=bob"]) != "cache sid=bob")
            #expect(try await fixture.get { $0.options.shouldHandleCookies = false }.source == .cache)
        }
    }

    @Test(
        "Without an account, a field of any other name separates the requests",
        arguments: ["X-Member", "DPoP", "X-User", "Range-Key", "X-Tenant", "From"])
    func unknownFields(name: String) async throws {
        echo(fixture)
        for source in ["network", "cache"] {
            for value in ["a", "b", nil] {
                let headers = Headers(value.map { [(name, $0)] } ?? [])
                let response = try await fixture.get("/a", headers)
                #expect("\(response.source)" == source)
            }
        }
    }

    @Test("A public response is separated only by credentials and by the fields in Vary")
    func publicResponses() async throws {
        echo(fixture, ["Cache-Control": "max-age=60, public", "Vary": "X-Tenant"])
        for source in ["network", "cache"] {
            for headers in [["Authorization": "a"], ["Authorization": "b"], ["X-Tenant": "1"], ["X-Tenant": "2"]]
                as [Headers]
            {
                #expect("\(try await fixture.get("/a", headers).source)" == source)
            }
        }
        #expect(try await fixture.text("/b", ["X-Member": "1"]) == "network 1")
        #expect(try await fixture.text("/b", ["X-Member": "2"]) == "cache 1")
    }

    @Test(
        "Standard fields that describe the client do not separate the requests",
        arguments: [
            "Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Date", "DNT", "Origin", "Pragma",
            "Priority", "Referer", "Request-Id", "Save-Data", "Sec-GPC", "User-Agent", "X-Correlation-Id",
            "X-Request-Id", "traceparent", "tracestate",
        ])
    func harmlessFields(name: String) async throws {
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        let other = name == "Pragma" ? "x" : "2"
        #expect(try await fixture.text("/a", [name: "1"]) == "network one")
        #expect(try await fixture.text("/a", [name: other]) == "cache one")
        #expect(try await fixture.text() == "cache one")
    }

    /// An interceptor after the cache that sets a field, or removes it.
    private struct Setting: Interceptor {
        let name: Headers.Name
        var value: String? = UUID().uuidString

        func intercept(_ request: Request, next: Next) async throws -> Response {
            var request = request
            request.headers[name] = value
            return try await next(request)
        }
    }

    @Test(
        "Without an account, a response is not stored if a credential or an unknown field is added after the cache")
    func addedFields() async throws {
        let reason = "not stored: a header field that selects the response was changed after the cache read it"
        for name in ["X-Member", "Authorization"] {
            let fixture = CacheFixture(inner: [Setting(name: Headers.Name(name))])
            fixture.serve(["Cache-Control": "max-age=60"], "one")
            for _ in 0..<2 { #expect(await decisions(fixture) == [reason]) }
            fixture.signIn("ann")
            #expect(try await fixture.text() == "network one")
            #expect(try await fixture.text() == "cache one")
        }
        let fixture = CacheFixture(inner: [Setting(name: "X-Request-Id")])
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        #expect(try await fixture.text() == "network one")
        #expect(try await fixture.text() == "cache one")
    }

    @Test("A response is not stored if a credential is removed after the cache")
    func removedFields() async throws {
        let fixture = CacheFixture(inner: [Setting(name: .authorization, value: nil)])
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        for _ in 0..<2 { #expect(try await fixture.text("/a", ["Authorization": "a"]) == "network one") }
    }

    /// A session that receives a cookie with its first response.
    private final class SignedInSession: Session {
        private let inner: any Session
        private let isSignedIn = Mutex(false)

        init(inner: any Session) { self.inner = inner }

        func dataTask(
            request: any URLRequestEncodable,
            completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        ) -> any DataTask {
            isSignedIn.withLock { $0 = true }
            return inner.dataTask(request: request, completion: completion)
        }

        func addsCredentials(to url: URL) -> Bool { isSignedIn.withLock { $0 } }
    }

    /// A session with a client certificate.
    private struct CertifiedSession: Session {
        let inner: any Session

        func dataTask(
            request: any URLRequestEncodable,
            completion: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
        ) -> any DataTask {
            inner.dataTask(request: request, completion: completion)
        }

        func addsCredentials(to url: URL) -> Bool { true }
    }

    @Test("Without an account, nothing is stored or returned if the session adds credentials")
    func certifiedSession() async throws {
        fixture.serve(["Cache-Control": "max-age=60"], "one")
        #expect(try await fixture.text() == "network one")
        fixture.service.session = CertifiedSession(inner: fixture.service.session)
        for _ in 0..<2 {
            #expect(
                await decisions(fixture) == ["the session adds credentials, and no account is named"])
            #expect(try await fixture.text() == "network one")
        }
        fixture.signIn("ann")
        #expect(try await fixture.text() == "network one")
        #expect(try await fixture.text() == "cache one")
    }

    @Test("A session of Foundation reports the cookies, fields and delegates that add credentials")
    func foundationSessions() throws {
        let url = try #require(URL(string: "https://h/v1/a"))
        #expect(!FoundationSession().addsCredentials(to: url))
        let fields = FoundationSession.defaultConfiguration
        fields.httpAdditionalHeaders = ["Authorization": "Bearer canary"]
        #expect(FoundationSession(configuration: fields).addsCredentials(to: url))
        #expect(URLSession(configuration: fields).addsCredentials(to: url))
        let cookies = URLSessionConfiguration.ephemeral
        let session = URLSession(configuration: cookies)
        #expect(!session.addsCredentials(to: url))
        let cookie = HTTPCookie(properties: [.domain: "h", .path: "/", .name: "sid", .value: "canary"])
        session.configuration.httpCookieStorage?.setCookie(try #require(cookie))
        #expect(session.addsCredentials(to: url))
        final class Delegate: NSObject, URLSessionDelegate {}
        let delegated = URLSession(
            configuration: FoundationSession.defaultConfiguration, delegate: Delegate(), delegateQueue: nil)
        #expect(delegated.addsCredentials(to: url))
        delegated.invalidateAndCancel()
    }

    @Test("A stored entry contains no hash of a field without a salt that differs between responses")
    func saltedFields() async throws {
        var fingerprints: Set<Data> = []
        for _ in 0..<4 {
            var request = Request(url: "https://h/")
            request.headers[.authorization] = "Bearer canary"
            let selection = try CacheSelection(of: ["Vary": "Authorization"], to: request, account: nil)
            #expect(selection.matches(request))
            #expect(selection.salt.count == 16)
            fingerprints.insert(selection.fingerprint)
            request.headers[.authorization] = "Bearer other"
            #expect(!selection.matches(request))
        }
        #expect(fingerprints.count == 4)
    }

    @Test("A response that varies by cookies is stored if the cookie jar has none for the URL")
    func varyByEmptyJar() async throws {
        let jar = CookieJar()
        let url = try #require(URL(string: "https://h/v1/"))
        fixture.service.cookieJar = jar
        jar.store(["other=1; Path=/v2"], from: url)
        echo(fixture, ["Cache-Control": "max-age=60", "Vary": "Cookie"])
        #expect(await decisions(fixture) == [])
        #expect(try await fixture.text() == "cache ")
        jar.store(["sid=1"], from: url)
        #expect(try await fixture.text() == "network sid=1")
        jar.removeAll()
        #expect(try await fixture.text() == "cache ")
    }

    @Test(
        "A response is stored for the cookies that were sent, not for those received while it is in flight")
    func varyByLateCookie() async throws {
        let jar = CookieJar()
        let url = try #require(URL(string: "https://h/v1/"))
        fixture.service.cookieJar = jar
        fixture.serve { _ in
            jar.store(["sid=1"], from: url)
            return CacheFixture.Reply(headers: ["Cache-Control": "max-age=60", "Vary": "Cookie"], body: "one")
        }
        #expect(try await fixture.text() == "network one")
        #expect(try await fixture.text() == "network one")
        jar.removeAll()
        #expect(try await fixture.text() == "cache one")
    }

    @Test(
        "A Vary field that is not a list of field names counts as *",
        arguments: ["X-A X-B", "\"X-A\"", "X-A;q=1", "X-A, @", "X-A, (x)", "X-\u{e4}", "X-A, *", ", *", "X-A:"])
    func malformedVary(vary: String) async throws {
        fixture.serve(["Cache-Control": "max-age=60", "Vary": vary], "one")
        let reason = vary.hasSuffix("*") ? "Vary is *" : "Vary is malformed"
        for _ in 0..<2 { #expect(await decisions(fixture) == ["not stored: \(reason)"]) }
        await #expect(throws: URLError(.resourceUnavailable)) {
            try await fixture.get(policy: .returnCacheDataDontLoad)
        }
    }

    @Test("Empty members of Vary are ignored", arguments: [",", "", " , X-A ,,", "X-A,\tX-B"])
    func emptyMembers(vary: String) async throws {
        fixture.serve(["Cache-Control": "max-age=60", "Vary": vary], "one")
        #expect(try await fixture.text("/a", ["X-A": "1"]) == "network one")
        #expect(try await fixture.text("/a", ["X-A": "1"]) == "cache one")
        #expect(try await fixture.text("/a", ["X-A": "1", "Accept": "2"]) == "cache one")
    }

    @Test("An Accept-Charset field that a response varies by is compared without case and spaces")
    func acceptCharset() async throws {
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
        Refusal(reason: "status 400 without explicit freshness", status: 400, headers: [:]),
        Refusal(
            reason: "must-understand in the response, but status 499 is unknown", status: 499,
            headers: ["Cache-Control": "must-understand, no-store"]),
        Refusal(
            reason: "more than 128 cache groups",
            headers: [
                "Cache-Control": "max-age=60", "Cache-Groups": (0..<129).map { "\"\($0)\"" }.joined(separator: ", "),
            ]),
        Refusal(reason: "Vary is *", headers: ["Vary": "*"]),
        Refusal(reason: "Vary is malformed", headers: ["Vary": "a b"]),
        Refusal(
            reason: "a header field that selects the response was changed after the cache read it",
            prepare: { $0.service.interceptors.append(Setting(name: "X-Member")) }),
        Refusal(
            reason: "the session adds credentials, and no account is named",
            prepare: { $0.service.session = SignedInSession(inner: $0.service.session) }),
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
        Refusal(reason: "the account has changed since the exchange started", serve: { $0.signIn("bob") }),
        Refusal(
            reason: "the stored responses were removed while the request was in flight",
            serve: { try await $0.cache.remove(try #require(url)) }),
        Refusal(
            reason: "the response is not an HTTP response",
            prepare: { fixture in
                let response = URLResponse(
                    url: try #require(url), mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
                fixture.service.session = HandSession { $0.completion(Data(), response, nil) }
            }),
        Refusal(
            reason: "the body is incomplete",
            prepare: { fixture in
                let response = HTTPURLResponse(
                    url: try #require(url), statusCode: 404, httpVersion: "HTTP/1.1",
                    headerFields: ["Cache-Control": "max-age=60"])
                fixture.service.session = HandSession {
                    $0.completion(Data("o".utf8), response, URLError(.networkConnectionLost))
                }
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
        let decisions = await decisions(fixture, refusal.asked) { request in
            if refusal.reason.hasPrefix("too many") { request.options.cachePolicy = .reloadIgnoringLocalCacheData }
        }
        #expect(decisions == ["not stored: \(refusal.reason)"])
        storage.hangs(.store, false)
        await fixture.cache.finishStoring()
    }

    @Test("Every reason in the sources has a test")
    func reasons() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let folder = tests.appendingPathComponent("../../Sources/WebServiceCaching").standardized
        var count = 0
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        where file.pathExtension == "swift" {
            let source = try String(contentsOf: file, encoding: .utf8)
            for begin in ["CacheRefusal(\"", "not stored: "] {
                for rest in source.components(separatedBy: begin).dropFirst() {
                    let reason = rest.prefix { !"\"\\`".contains($0) }
                    if begin == "not stored: ", reason.isEmpty || rest.hasPrefix("Vary is *`") { continue }
                    count += 1
                    let tested = Self.refusals.map(\.reason) + ResponseCacheStreamTests.refusalReasons
                    #expect(tested.contains { $0.hasPrefix(reason) }, "\(reason)")
                }
            }
        }
        #expect(count >= 14)
    }
}
