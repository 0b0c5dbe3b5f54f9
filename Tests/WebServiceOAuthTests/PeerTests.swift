import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceServer
import WebServiceStorage

@testable import WebServiceOAuth

/// An independent server: a script in `Peers`, and the folder of the Python packages that it uses.
private struct IndependentServer: Sendable {
    /// The name of the script.
    let name: String
    /// `nil` if the packages are not installed.
    let modules: String?

    static let authlib = IndependentServer("authlib-server.py", "WEBSERVICE_AUTHLIB")
    static let mcp = IndependentServer("mcp-server.py", "WEBSERVICE_MCP")

    init(_ name: String, _ variable: String) {
        self.name = name
        modules = ProcessInfo.processInfo.environment[variable]
    }

    /// Starts the server until the end of the test, and returns its URL.
    func start(_ arguments: String...) async throws -> String {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Peers/\(name)")
        var environment = ProcessInfo.processInfo.environment
        environment["PYTHONPATH"] = modules
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        let (input, output) = (Pipe(), Pipe())
        let process = ChildProcess(
            "/usr/bin/env", ["python3", script.path] + arguments, environment: environment, input: .pipe(input),
            output: .pipe(output), errors: .null)
        Permit.atEnd {
            process.send(SIGKILL)
            process.waitUntilExit()
            withExtendedLifetime(input) {}
        }
        let line = try await blocking {
            try process.run()
            var line = Data()
            while line.last != 0x0A, let byte = try output.fileHandleForReading.read(upToCount: 1) { line += byte }
            return String(decoding: line.dropLast(), as: UTF8.self)
        }
        return "http://127.0.0.1:\(try #require(Int(line)))"
    }
}

/// A user's browser, which follows the redirects of the server.
private let browser = WebService(baseURL: nil)

/// Log-ins at Authlib's authorization server. `scripts/test` installs it if possible.
@Suite(
    "Log-ins at Authlib", .permit,
    .enabled(if: IndependentServer.authlib.modules != nil, "requires Authlib and Flask (WEBSERVICE_AUTHLIB)"))
struct AuthlibTests {
    private let key = Result { try OAuth.SigningKey() }

    private func oauth(_ server: String, _ client: OAuth.Client, service: WebService? = nil) throws -> OAuth {
        OAuth(issuer: try #require(URL(string: server)), client: client, service: service, allowsLoopbackHTTP: true)
    }

    private func start() async throws -> String {
        let jwk = try JSONEncoder().encode(try key.get().publicJWK)
        return try await IndependentServer.authlib.start(String(decoding: jwk, as: UTF8.self))
    }

    @Test("A command-line program logs in, refreshes the token, and logs out")
    func commandLine() async throws {
        let server = try await start()
        let oauth = try oauth(server, .public(id: "cli"))
        let tokens = try await oauth.logIn(scopes: ["profile"]) { url in
            let page = try await browser.GET(url.absoluteString).string().value
            #expect(page.contains("return to the program"))
        }
        #expect(tokens.scopes == ["profile"])
        let service = WebService(baseURLString: server)
        service.interceptors = [Authentication(oauth.tokenSource(tokens))]
        let user = try await service.GET("/me").json().value
        #expect(user["name"]?.string == "ann")
        #expect(user["client"]?.string == "cli")
        let refreshed = try #require(try await oauth.refresh(tokens))
        #expect(refreshed.credential != tokens.credential)
        // Authlib has revoked the old tokens. A refresh with the old refresh token is refused.
        let error = await #expect(throws: WebServiceError.self) { try await service.GET("/me").empty().value }
        #expect(error?.authorizationFailure?.code == "invalid_grant")
        try await oauth.revoke(refreshed)
        let revoked = await #expect(throws: WebServiceError.self) { try await oauth.refresh(refreshed) }
        #expect(revoked?.authorizationFailure?.code == "invalid_grant")
    }

    @Test("Tokens in a file are refreshed once for two programs")
    func storedTokens() async throws {
        let server = try await start()
        let oauth = try oauth(server, .public(id: "cli"))
        var tokens = try await oauth.logIn { try await browser.GET($0.absoluteString).empty().value }
        tokens.credential.expires = .distantPast
        let folder = TemporaryFolder.forTest()
        let file = folder.url.appendingPathComponent("tokens")
        try await TokenFile(file).store(tokens)
        for _ in 0..<2 {
            let service = WebService(baseURLString: server)
            service.interceptors = [Authentication(try TokenFile(file) { try await oauth.refresh($0) })]
            #expect(try await service.GET("/me").json().value["name"]?.string == "ann")
        }
        #expect(try await TokenFile(file).tokens()?.refreshToken != tokens.refreshToken)
    }

    @Test("A replayed code and a foreign state obtain no token")
    func replay() async throws {
        let oauth = try oauth(await start(), .public(id: "cli"))
        let receivers = try (LoopbackReceiver(), LoopbackReceiver())
        let first = try await oauth.authorization(redirect: receivers.0.redirect)
        let second = try await oauth.authorization(redirect: receivers.0.redirect)
        receivers.0.listen { _ in true }
        try await browser.GET(first.url.absoluteString).empty().value
        let callback = try await receivers.0.callback(within: .seconds(60), .system)
        let foreign = await #expect(throws: WebServiceError.self) { try await second.tokens(from: callback) }
        #expect(foreign?.code == .invalidAuthorization)
        _ = try await first.tokens(from: callback)
        let replayed = await #expect(throws: WebServiceError.self) { try await first.tokens(from: callback) }
        #expect(replayed?.code == .invalidAuthorization)
    }

    @Test("A program authenticates itself", arguments: ["basic", "post", "jwt"])
    func clientCredentials(client: String) async throws {
        let server = try await start()
        let clients: [String: OAuth.Client] = [
            "basic": .secret("s:e cret", id: client), "post": .secret("secret", id: client, inBody: true),
            "jwt": .privateKey(try key.get(), id: client),
        ]
        let oauth = try oauth(server, #require(clients[client]))
        let service = WebService(baseURLString: server)
        service.interceptors = [Authentication(oauth.clientCredentials(scopes: ["jobs"]))]
        let user = try await service.GET("/me").json().value
        #expect(user["client"]?.string == client)
        #expect(user["scope"]?.string == "jobs")
    }

    @Test("A wrong secret and a wrong key are refused", arguments: [true, false])
    func wrongClient(hasKey: Bool) async throws {
        let client: OAuth.Client = hasKey ? .privateKey(try .init(), id: "jwt") : .secret("wrong", id: "basic")
        let oauth = try oauth(await start(), client)
        let error = await #expect(throws: WebServiceError.self) { try await oauth.clientCredentials().refresh(nil) }
        #expect(error?.authorizationFailure?.code == "invalid_client")
    }

    @Test("A device logs in after the user has entered the code")
    func device() async throws {
        // The pauses between the requests end at once, and deadlines never.
        let clock = TestTimekeeper(pause: { if $0 > .seconds(30) { throw CancellationError() } })
        let service = WebService(baseURLString: "", passthroughDelegate: nil, timekeeper: clock)
        let oauth = try oauth(await start(), .public(id: "cli"), service: service)
        let device = try await oauth.deviceAuthorization(scopes: ["profile"])
        #expect(device.userCode.count >= 8)
        #expect(device.verificationURL.path == "/activate")
        // The server responds with authorization_pending and slow_down first.
        #expect(try await device.tokens().scopes == ["profile"])
    }
}

/// Log-ins at the OAuth server of the `mcp` package. `scripts/test` installs it if possible.
@Suite(
    "Log-ins at the server of mcp", .permit,
    .enabled(if: IndependentServer.mcp.modules != nil, "requires mcp and uvicorn (WEBSERVICE_MCP)"))
struct MCPServerTests {
    @Test(
        "A program finds the server of a resource, registers, and logs in",
        arguments: [OAuth.Registration.Authentication.none, .basic, .body])
    func resource(authentication: OAuth.Registration.Authentication) async throws {
        let server = try await IndependentServer.mcp.start()
        let service = WebService(baseURLString: server)
        let refusal = try await service.GET("/mcp").empty().response
        #expect(refusal.status == 401)
        let challenge = try #require(OAuth.Challenge.all(in: refusal).first)
        let resource = try await OAuth.ProtectedResource.discover(
            #require(refusal.url), challenge: challenge, allowsLoopbackHTTP: true)
        #expect(resource.scopes == ["user"])
        let issuer = try #require(resource.authorizationServers.first)
        let metadata = try await OAuth.ServerMetadata.discover(issuer, allowsLoopbackHTTP: true)
        let receiver = try LoopbackReceiver()
        var registration = OAuth.Registration(name: "Test", redirects: [receiver.redirect])
        registration.authentication = authentication
        let registered = try await OAuth.register(registration, metadata: metadata, allowsLoopbackHTTP: true)
        #expect(registered.authentication == authentication)
        let oauth = OAuth(
            metadata: metadata, client: registered.client, resources: [resource.resource], allowsLoopbackHTTP: true)
        let tokens = try await oauth.logIn(scopes: ["user"], receiver: receiver) {
            try await browser.GET($0.absoluteString).empty().value
        }
        service.interceptors = [Authentication(oauth.tokenSource(tokens))]
        let user = try await service.GET("/mcp").json().value
        #expect(user["client"]?.string == registered.id)
        #expect(user["resource"]?.string == resource.resource.absoluteString)
        let refreshed = try #require(try await oauth.refresh(tokens))
        #expect(refreshed.refreshToken != tokens.refreshToken)
        // The server refuses a revocation without a secret in the body.
        guard authentication == .body else { return }
        try await oauth.revoke(refreshed)
        let error = await #expect(throws: WebServiceError.self) { try await oauth.refresh(refreshed) }
        #expect(error?.authorizationFailure?.code == "invalid_grant")
    }
}
