import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceResilience
import WebServiceStorage

@testable import WebServiceOAuth

@Suite("Bad input of servers and browsers", .permit)
struct BadInputTests {
    private let server = FakeServer()

    /// Returns the code of the error with which a log-in fails; `nil` if it succeeds.
    private func failure(_ body: () async throws -> Void) async -> WebServiceError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? WebServiceError)?.code ?? WebServiceError.Code("\(type(of: error))")
        }
    }

    /// Returns a response with a text as JSON.
    private func document(_ text: String) -> MockResponse {
        MockResponse.text(text).header("Content-Type", "application/json")
    }

    // MARK: Metadata

    @Test(
        "Metadata of another issuer, without S256, or with an endpoint over http or of another origin are refused",
        arguments: [
            ["issuer": "https://evil.example"], ["issuer": "https://login.example/"], ["issuer": nil],
            ["code_challenge_methods_supported": nil], ["code_challenge_methods_supported": ["plain"]],
            ["authorization_endpoint": "http://login.example/authorize"], ["authorization_endpoint": nil],
            ["authorization_endpoint": "https://evil.example/authorize"],
            ["authorization_endpoint": "javascript:alert(1)"], ["authorization_endpoint": "http://127.0.0.1/authorize"],
            ["token_endpoint": "http://login.example/token"], ["token_endpoint": nil],
            ["token_endpoint": "https://evil.example/token"], ["token_endpoint": "https://login.example:444/token"],
            ["token_endpoint": "https://login.example@evil.example/token"],
            ["token_endpoint": "https://login.example/token#a"], ["token_endpoint": 1],
        ] as [[String: JSONValue?]])
    func metadata(changes: [String: JSONValue?]) async {
        server.replace(.authorizationServerMetadata, FakeServer.metadata(changes))
        #expect(await failure { try await server.logIn() } == .invalidServerMetadata)
        #expect(server.requests("/token").isEmpty)
    }

    @Test("An endpoint of another origin is used if that origin is allowed")
    func allowedOrigin() async throws {
        server.replace(
            .authorizationServerMetadata, FakeServer.metadata(["token_endpoint": "https://tokens.example/token"]))
        let origin = try #require(Origin("https://tokens.example"))
        let oauth = OAuth(
            issuer: try server.issuer, client: .public(id: "client"), service: server.mock.service, origins: [origin])
        try await server.logIn(oauth)
        #expect(server.requests("/token").first?.url?.host == "tokens.example")
    }

    @Test("An issuer over http is refused, and allowed only on loopback and only explicitly")
    func insecureIssuer() async throws {
        for (issuer, allows) in [("http://login.example", true), ("http://127.0.0.1:1", false), ("ftp://h", true)] {
            let oauth = OAuth(
                issuer: try server.url(issuer), client: .public(id: "client"), service: server.mock.service,
                allowsLoopbackHTTP: allows)
            #expect(await failure { _ = try await oauth.metadata() } == .invalidServerMetadata)
        }
        #expect(server.mock.receivedRequests.isEmpty)
    }

    @Test("A redirect of the metadata or the token request to another origin is not followed", arguments: [302, 307])
    func redirects(status: Int) async {
        let redirect = MockResponse.status(status).header("Location", "https://evil.example/token")
        server.replace(.token, redirect)
        #expect(await failure { try await server.logIn() } == .invalidAuthorization)
        server.replace(.authorizationServerMetadata, redirect)
        #expect(await failure { try await server.logIn() } == .invalidServerMetadata)
        #expect(!server.mock.receivedRequests.contains { $0.url?.host == "evil.example" })
    }

    @Test("A server that publishes only OpenID metadata is found, also below a path")
    func openID() async throws {
        for issuer in ["https://id.example", "https://id.example/tenant"] {
            let mock = MockService(clock: TestClock())
            var members = FakeServer.metadata
            members["issuer"] = .string(issuer)
            members["authorization_endpoint"] = .string("\(issuer)/authorize")
            // A page in place of an unknown document.
            mock.on(.any, MockResponse.text("<html>").header("Content-Type", "text/html"))
            mock.on(.url("\(issuer)/.well-known/openid-configuration"), .json(.object(members)))
            let metadata = try await OAuth.ServerMetadata.discover(server.url(issuer), service: mock.service)
            #expect(metadata.authorizationEndpoint?.absoluteString == "\(issuer)/authorize")
        }
    }

    // MARK: Callbacks

    @Test("A foreign state does not end a log-in, and a callback is used once")
    func states() async throws {
        let oauth = try server.oauth()
        let authorizations = try await (
            oauth.authorization(redirect: server.url(FakeServer.redirect)),
            oauth.authorization(redirect: server.url(FakeServer.redirect))
        )
        let (first, second) = authorizations
        let foreign = try server.callback(to: second.url)
        #expect(await failure { _ = try await first.tokens(from: foreign) } == .invalidAuthorization)
        let own = try server.callback(to: first.url)
        _ = try await first.tokens(from: own)
        #expect(await failure { _ = try await first.tokens(from: own) } == .invalidAuthorization)
        _ = try await second.tokens(from: foreign)
        #expect(server.requests("/token").count == 2)
    }

    @Test("A callback of another server obtains no token, and ends the log-in")
    func mixedUpIssuer() async throws {
        let authorization = try await server.oauth().authorization(redirect: server.url(FakeServer.redirect))
        for changes in [["iss": "https://evil.example"], ["iss": nil], [:]] as [[String: String?]] {
            let callback = try server.callback(to: authorization.url, changes)
            #expect(await failure { _ = try await authorization.tokens(from: callback) } == .invalidAuthorization)
        }
        #expect(server.requests("/token").isEmpty)
    }

    @Test("An issuer that is only canonically equivalent is another one")
    func equivalentIssuer() async throws {
        let issuer = "\(FakeServer.issuer)/K"
        let metadata = OAuth.ServerMetadata(
            issuer: try server.url(issuer), authorizationEndpoint: try server.url("\(issuer)/authorize"),
            tokenEndpoint: try server.url("\(FakeServer.issuer)/token"))
        let oauth = OAuth(metadata: metadata, client: .public(id: "client"), service: server.mock.service)
        let kelvin = "\(FakeServer.issuer)/\u{212A}"
        #expect(kelvin == issuer)
        let failure = await failure {
            try await server.logIn(oauth) { try server.callback(to: $0, ["iss": kelvin]) }
        }
        #expect(failure == .invalidAuthorization)
        try await server.logIn(oauth) { try server.callback(to: $0, ["iss": issuer]) }
    }

    @Test("A code is sent once and only to its server, even if other requests of the service are repeated elsewhere")
    func codes() async throws {
        let other = try #require(Origin("https://other.example"))
        let mock = MockService(baseURLString: FakeServer.issuer)
        mock.service.interceptors = [.idempotencyKey(), .retry(retriesAnyMethod: true), .endpoints([other])]
        mock.on(.any, .status(503))
        mock.on(
            .url("\(FakeServer.issuer)/.well-known/oauth-authorization-server"), .json(.object(FakeServer.metadata)))
        let oauth = OAuth(issuer: try server.issuer, client: .public(id: "client"), service: mock.service)
        #expect(await failure { try await server.logIn(oauth) } == .authorizationRefused)
        #expect(mock.receivedRequests.map(\.url?.host) == ["login.example", "login.example"])
    }

    @Test("A browser that comes twice obtains one log-in, and then no page")
    func browserTwice() async throws {
        let browser = WebService(baseURL: nil)
        let callbacks = Collected<String>()
        _ = try await server.oauth().logIn { url in
            let callback = try server.callback(to: url).absoluteString
            callbacks.add(callback)
            let responses = try await (
                browser.GET(callback).empty().response, try? browser.GET(callback).empty().response
            )
            #expect(responses.0.status == 200)
        }
        #expect(server.requests("/token").count == 1)
        let callback = try #require(callbacks.values.first)
        await #expect(throws: URLError.self) { try await browser.GET(callback).empty().value }
    }

    @Test("Two log-ins at once have receivers of their own")
    func concurrentLogIns() async throws {
        let browser = WebService(baseURL: nil)
        let oauth = try server.oauth()
        async let first = oauth.logIn { try await browser.GET(server.callback(to: $0).absoluteString).empty().value }
        async let second = oauth.logIn { try await browser.GET(server.callback(to: $0).absoluteString).empty().value }
        let tokens = try await [first, second].map(\.credential)
        #expect(Set(tokens).count == 2)
    }

    @Test("Connections without a request, and requests that never end, do not delay a callback")
    func idleConnections() async throws {
        let browser = WebService(baseURL: nil)
        _ = try await server.oauth().logIn { url in
            let port = try #require(
                url.absoluteString.firstMatch(of: #/127\.0\.0\.1%3A(\d+)/#).flatMap { Int($0.output.1) })
            let sockets = (0..<40).map { _ in LoopbackListener.newSocket() }
            defer { for socket in sockets { close(socket) } }
            for (number, socket) in sockets.enumerated() {
                #expect(LoopbackListener.connect(socket, to: port))
                if number % 2 == 0 {
                    _ = Array("GET /callback?state=".utf8).withUnsafeBytes { write(socket, $0.baseAddress, $0.count) }
                }
            }
            try await browser.GET(server.callback(to: url).absoluteString).empty().value
        }
    }

    @Test("Invalid characters in a parameter that is ignored, which a browser does not encode, change no other one")
    func invalidCharacters() async throws {
        _ = try await server.oauth().logIn { url in
            let callback = try server.callback(to: url)
            let port = try #require(callback.port)
            let target = callback.absoluteString.dropFirst("http://127.0.0.1:\(port)".count)
            let socket = LoopbackListener.newSocket()
            defer { close(socket) }
            #expect(LoopbackListener.connect(socket, to: port))
            let head = Array("GET \(target)&other=a|[b] HTTP/1.1\r\n\r\n".utf8)
            _ = head.withUnsafeBytes { write(socket, $0.baseAddress, $0.count) }
        }
        #expect(server.requests("/token").count == 1)
    }

    @Test("A receiver on a port in use is an error, and a cancelled log-in closes its receiver")
    func receivers() async throws {
        let receiver = try LoopbackReceiver()
        let port = UInt16(receiver.redirect.port ?? 0)
        #expect(await failure { _ = try LoopbackReceiver(port: port) } == .loopbackReceiver)
        // A browser would request the path with %7C.
        for path in ["callback", "/a|b"] {
            #expect(await failure { _ = try LoopbackReceiver(path: path) } == .invalidURL)
        }
        let oauth = try server.oauth()
        let opened = Collected<URL>()
        let logIn = Task { try await oauth.logIn(receiver: receiver) { opened.add($0) } }
        await opened.wait()
        logIn.cancel()
        await #expect(throws: CancellationError.self) { try await logIn.value }
        let browser = WebService(baseURL: nil)
        await #expect(throws: URLError.self) { try await browser.GET(receiver.redirect.absoluteString).empty().value }
    }

    @Test("A path that cannot be used does not occupy the port")
    func receiverPath() async throws {
        let receiver = try LoopbackReceiver()
        let port = UInt16(receiver.redirect.port ?? 0)
        receiver.close()
        #expect(await failure { _ = try LoopbackReceiver(path: "callback", port: port) } == .invalidURL)
        #expect(try LoopbackReceiver(port: port).redirect.port == Int(port))
    }

    // MARK: Tokens

    @Test(
        "A lifetime that is not a number of seconds is refused",
        arguments: ["-1", "1e400", "\"3600\"", "true", "[3600]", "\"\""])
    func invalidLifetime(value: String) async {
        server.replace(.token, document(#"{"access_token":"a","token_type":"Bearer","expires_in":\#(value)}"#))
        #expect(await failure { try await server.logIn() } == .invalidAuthorization)
    }

    @Test("A token whose lifetime is 0 is refreshed before it is sent, and the refreshes end")
    func noLifetime() async throws {
        server.replace(.token) { [server] _ in server.tokens(["expires_in": JSONValue(0)]) }
        let oauth = try server.oauth()
        server.mock.service.interceptors = [Authentication(oauth.tokenSource(try await server.logIn(oauth)))]
        for _ in 0..<20 { _ = try? await server.mock.service.GET("/me").empty().value }
        #expect(server.requests("/token").count <= 6)
    }

    @Test("A large lifetime does not overflow", arguments: ["1e300", "18446744073709551615"])
    func largeLifetime(value: String) async throws {
        server.replace(.token, document(#"{"access_token":"a","token_type":"Bearer","expires_in":\#(value)}"#))
        #expect(try await server.logIn().credential.expires.map { $0 > server.clock.date } == true)
    }

    @Test("Huge and deeply nested documents are refused", arguments: FakeServer.Place.allCases)
    func largeDocuments(place: FakeServer.Place) async {
        let huge = #"{"a":"\#(String(repeating: "a", count: 300 << 10))"}"#
        for text in [huge, String(repeating: "[", count: 100_000), #"{"a":"# + String(repeating: "[", count: 600)] {
            server.replace(place, document(text))
            switch place {
            case .authorizationServerMetadata, .token:
                #expect(await failure { try await server.logIn() } != nil)
            case .protectedResourceMetadata:
                let failure = await failure {
                    _ = try await OAuth.ProtectedResource.discover(
                        server.url("https://api.example/mcp"), service: server.mock.service)
                }
                #expect(failure != nil)
            case .deviceAuthorization, .deviceToken:
                #expect(await failure { _ = try await server.logInOnDevice() } != nil)
            case .registration:
                #expect(await failure { _ = try await server.register() } != nil)
            case .revocation, .resource: break
            }
        }
    }

    @Test("HTML with status 200 is refused")
    func html() async {
        server.replace(.token, MockResponse.text("<html>access_token=a</html>").header("Content-Type", "text/html"))
        #expect(await failure { try await server.logIn() } == .invalidAuthorization)
    }

    @Test("A refresh that overlaps a log-out does not restore the tokens")
    func logOut() async throws {
        let oauth = try server.oauth()
        let stored = Collected<OAuth.Tokens>()
        let isLoggedOut = OnceFlag()
        let tokens = OAuth.Tokens(.bearer("a", expires: .distantPast), refreshToken: "r")
        let source = oauth.tokenSource({ isLoggedOut.isSet ? nil : tokens }, store: { stored.add($0) })
        server.replace(.token) { [server] request in
            _ = isLoggedOut.set()
            return server.honest(.token, request)
        }
        #expect(try await source.refresh(tokens.credential) == nil)
        #expect(stored.values.isEmpty)
    }

    @Test("Tokens that cannot be stored are stored by the next refresh, without another request")
    func failedStore() async throws {
        let oauth = try server.oauth()
        let stored = Collected<OAuth.Tokens>()
        let hasFailed = OnceFlag()
        let old = OAuth.Tokens(.bearer("a", expires: .distantPast), refreshToken: "r")
        let source = oauth.tokenSource(
            { stored.values.last ?? old },
            store: { tokens in
                if hasFailed.set() { throw POSIXError(.ENOSPC) }
                stored.add(tokens)
            })
        await #expect(throws: POSIXError.self) { try await source.refresh(old.credential) }
        #expect(try await source.refresh(old.credential)?.value == "Bearer s3cr3t-access-1")
        #expect(stored.values.map(\.refreshToken) == ["s3cr3t-refresh-1"])
        #expect(server.requests("/token").count == 1)
    }

    // MARK: Devices

    @Test(
        "A device code that expires, and slow_down without end, end the wait",
        arguments: ["authorization_pending", "slow_down"])
    func deviceExpiry(code: String) async throws {
        server.replace(.deviceToken, .json(["error": code], status: 400))
        #expect(await failure { _ = try await server.logInOnDevice() } == .authorizationExpired)
        // With slow_down, the interval grows by 5 seconds: 5 + 10 + … + 130 seconds.
        #expect(server.requests("/token").count == (code == "slow_down" ? 26 : 359))
    }

    @Test("A lifetime of years ends after an hour, and a short interval is at least a second")
    func deviceLimits() async throws {
        server.replace(.deviceToken, .json(["error": "authorization_pending"], status: 400))
        server.replace(
            .deviceAuthorization,
            document(
                #"{"device_code":"d","user_code":"u","verification_uri":"https://h/","expires_in":1e9,"interval":0}"#))
        #expect(await failure { _ = try await server.logInOnDevice() } == .authorizationExpired)
        #expect(server.requests("/token").count == 3_599)
    }

    @Test("A denied log-in ends the wait, and a lost connection only slows it down")
    func deviceFailures() async throws {
        let count = Collected<Int>()
        server.replace(.deviceToken) { [server] request in
            count.add(1)
            guard count.values.count > 1 else { throw URLError(.networkConnectionLost) }
            return count.values.count == 2
                ? server.honest(.deviceToken, request) : .json(["error": "access_denied"], status: 400)
        }
        let start = server.clock.elapsed
        _ = try await server.advancing(by: .seconds(15)) { [server] in
            try await server.oauth().deviceAuthorization().tokens()
        }
        #expect(server.clock.elapsed - start == .seconds(15))
        #expect(await failure { _ = try await server.logInOnDevice() } == .authorizationRefused)
    }

    @Test("An overloaded server only slows down the wait, even if it states an error code", arguments: [429, 503])
    func deviceOverload(status: Int) async throws {
        let count = Collected<Int>()
        server.replace(.deviceToken) { [server] request in
            count.add(1)
            return count.values.count > 1
                ? server.honest(.deviceToken, request) : .json(["error": "temporarily_unavailable"], status: status)
        }
        _ = try await server.advancing(by: .seconds(15)) { [server] in
            try await server.oauth().deviceAuthorization().tokens()
        }
        #expect(count.values.count == 2)
    }

    // MARK: Generated documents

    /// Values that no member may have, except where they are valid.
    private static let wrongValues: [JSONValue] = [
        .null, .bool(true), JSONValue(-1), .double(1.5e300), .string(""), .string("a\r\nb"), .string("ä"),
        .string("\u{1B}[31m"), .string("\u{0}"), .array([]), .array([.string("a")]), .object([:]),
        .string("http://login.example/x"), .string("https://evil.example/x"), .string("javascript:x"),
    ]

    @Test("A required member with a wrong value, and a document that is cut off, obtain no token")
    func generated() async throws {
        let token: [String: JSONValue] = ["access_token": .string("a"), "token_type": .string("Bearer")]
        let device: [String: JSONValue] = [
            "device_code": .string("\(FakeServer.mark)-device"), "user_code": .string("u"),
            "verification_uri": .string("https://login.example/d"), "expires_in": JSONValue(60),
        ]
        let resource: [String: JSONValue] = ["resource": .string("\(FakeServer.api)/mcp")]
        let metadata = FakeServer.metadata.filter {
            ["issuer", "authorization_endpoint", "token_endpoint", "code_challenge_methods_supported"].contains($0.key)
        }
        let documents: [(FakeServer.Place, [String: JSONValue])] = [
            (.token, token), (.deviceToken, token), (.deviceAuthorization, device),
            (.protectedResourceMetadata, resource), (.authorizationServerMetadata, metadata),
        ]
        var count = 0
        for (place, members) in documents {
            #expect(await accepts(place, .json(.object(members))))
            var wrong: [String] = []
            for name in members.keys.sorted() {
                for value in Self.wrongValues where !Self.isValid(value, name) {
                    wrong.append(JSONValue.object(members.merging([name: value]) { $1 }).description)
                }
            }
            let text = JSONValue.object(members).description
            wrong += stride(from: 0, to: text.utf8.count, by: 5).map { String(text.prefix($0)) }
            for text in wrong {
                let isAccepted = await accepts(place, document(text))
                #expect(!isAccepted, "\(place): \(text)")
            }
            count += wrong.count
        }
        #expect(count >= 250)
    }

    /// Returns whether a value is valid for a member: any visible text is a token or a code, and any
    /// number from 0 on a lifetime.
    private static func isValid(_ value: JSONValue, _ name: String) -> Bool {
        switch name {
        case "access_token", "user_code":
            value.string.map { $0.utf8.first == UInt8(ascii: "h") || $0.hasPrefix("java") } ?? false
        case "expires_in": (value.double ?? -1) >= 0
        case "verification_uri": value.string?.hasPrefix("https://") ?? false
        default: false
        }
    }

    private func accepts(_ place: FakeServer.Place, _ response: MockResponse) async -> Bool {
        let server = FakeServer()
        server.replace(place, response)
        return await failure {
            switch place {
            case .deviceAuthorization, .deviceToken: _ = try await server.logInOnDevice()
            case .protectedResourceMetadata:
                _ = try await OAuth.ProtectedResource.discover(
                    server.url("\(FakeServer.api)/mcp"), service: server.mock.service)
            default: try await server.logIn { try server.callback(to: $0) }
            }
        } == nil
    }
}
