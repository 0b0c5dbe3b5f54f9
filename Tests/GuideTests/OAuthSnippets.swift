import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceOAuth
import WebServiceStorage

// Snippets about OAuth in Guide.md, Cookbook.md and the article, with their expected behavior.
// `DocumentationTests` verifies that none is missing.

@Suite("Snippets about OAuth", .permit)
struct OAuthSnippets {
    /// An authorization server and its resource.
    private struct Server {
        let mock = MockService(clock: TestClock())
        let issuer: URL

        init() throws {
            issuer = try #require(URL(string: "https://login.example.com"))
            let base = issuer.absoluteString
            mock.on(
                .GET, "/.well-known/oauth-authorization-server",
                .json([
                    "issuer": base, "authorization_endpoint": "\(base)/authorize", "token_endpoint": "\(base)/token",
                    "device_authorization_endpoint": "\(base)/device", "registration_endpoint": "\(base)/register",
                    "revocation_endpoint": "\(base)/revoke",
                    "code_challenge_methods_supported": ["S256"],
                ]))
            mock.on(.POST, "/token") { request in
                let type = request.headers["DPoP"] == nil ? "Bearer" : "DPoP"
                return .json(["access_token": "a", "token_type": type, "expires_in": 60, "refresh_token": "r"])
            }
            mock.on(
                .POST, "/device",
                .json([
                    "device_code": "d", "user_code": "WDJB-MJHT", "verification_uri": "\(base)/activate",
                    "expires_in": 600, "interval": 1,
                ]))
            mock.on(.POST, "/revoke", 200)
            mock.on(.POST, "/register", .json(["client_id": "c"], status: 201))
            mock.on(
                .GET, "/.well-known/oauth-protected-resource/mcp",
                .json(["resource": "\(base)/mcp", "authorization_servers": [base]]))
            mock.on(
                .GET, "/mcp",
                .status(401).header(
                    "WWW-Authenticate",
                    "Bearer resource_metadata=\"\(base)/.well-known/oauth-protected-resource/mcp\""))
            mock.on(.GET, "/me") { request in
                request.headers[.authorization]?.hasSuffix(" a") == true ? .text("ann") : .status(401)
            }
        }
    }

    private let server: Server
    private var service: WebService { server.mock.service }
    private var issuer: URL { server.issuer }

    init() throws { server = try Server() }

    /// Creates a client that sends its requests to the mock.
    private func OAuth(issuer: URL, client: WebServiceOAuth.OAuth.Client, dpop: DPoP? = nil) -> WebServiceOAuth.OAuth {
        WebServiceOAuth.OAuth(issuer: issuer, client: client, dpop: dpop, service: server.mock.service)
    }

    /// Follows the redirect of the server in place of a browser: the last URL of a printed text.
    private func print(_ text: String) {
        guard let start = text.range(of: "https://"),
            let url = URLComponents(string: String(text[start.lowerBound...])),
            let redirect = url.queryItems?.first(where: { $0.name == "redirect_uri" })?.value,
            let state = url.queryItems?.first(where: { $0.name == "state" })?.value
        else { return }
        Task {
            try await WebServiceCore.WebService(baseURL: nil).GET("\(redirect)?code=c&state=\(state)").empty().value
        }
    }

    /// Creates a service over the mock.
    private func WebService(baseURLString: String) -> WebServiceCore.WebService { server.mock.service.clone() }

    @Test("A command-line program logs in, and stays logged in")
    func commandLine() async throws {
        let tokensURL = TemporaryFolder.forTest().url.appendingPathComponent("tokens")
        let address = "https://login.example.com"
        guard let issuer = URL(string: address) else { throw URLError(.badURL) }
        let oauth = OAuth(issuer: issuer, client: .public(id: "cli"))
        let tokens = try TokenFile(tokensURL) { try await oauth.refresh($0) }
        if try await tokens.tokens() == nil {
            let new = try await oauth.logIn(scopes: ["profile"], within: .seconds(120)) { url in
                print("Open this URL in your browser:\n\(url)")
            }
            try await tokens.store(new)
        }
        let service = WebService(baseURLString: address)
        service.interceptors = [.retry(), Authentication(tokens)]
        print(try await service.GET("/me").string().value)

        #expect(try await service.GET("/me").string().value == "ann")
        #expect(try await TokenFile(tokensURL).tokens() == tokens.tokens())

        if let old = try await tokens.tokens() { try await oauth.revoke(old) }
        try await tokens.remove()
        #expect(try await tokens.tokens() == nil)
    }

    @Test("A log-in in memory")
    func memory() async throws {
        let oauth = OAuth(issuer: issuer, client: .public(id: "my-tool"))
        let tokens = try await oauth.logIn(scopes: ["profile"]) { url in print("Open \(url)") }
        service.interceptors = [.retry(), Authentication(oauth.tokenSource(tokens))]
        #expect(try await service.GET("/me").string().value == "ann")
    }

    /// The environment value of SwiftUI.
    private struct WebAuthenticationSession {
        func authenticate(using url: URL, callbackURLScheme: String) async throws -> URL {
            let items = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems ?? []
            let state = items.first { $0.name == "state" }?.value ?? ""
            return try #require(URL(string: "\(callbackURLScheme):/callback?code=c&state=\(state)"))
        }
    }

    @Test("An app logs in")
    func app() async throws {
        let webAuthenticationSession = WebAuthenticationSession()
        let redirect = try #require(URL(string: "com.example.app:/callback"))
        let oauth = OAuth(issuer: issuer, client: .public(id: "app"))
        let authorization = try await oauth.authorization(redirect: redirect, scopes: ["profile"])
        let callback = try await webAuthenticationSession.authenticate(
            using: authorization.url, callbackURLScheme: "com.example.app")
        let tokens = try await authorization.tokens(from: callback)
        #expect(tokens.credential.value == "Bearer a")
    }

    @Test("A program without a user")
    func machine() async throws {
        let secret = "secret"
        let oauth = OAuth(issuer: issuer, client: .secret(secret, id: "worker"))
        service.interceptors = [.retry(), Authentication(oauth.clientCredentials(scopes: ["jobs"]))]
        #expect(try await service.GET("/me").string().value == "ann")
    }

    @Test("A device without a browser")
    func device() async throws {
        let clock = try #require(server.mock.clock)
        let task = Task(executorPreference: clock.executor) {
            let oauth = OAuth(issuer: issuer, client: .public(id: "tv"))
            let device = try await oauth.deviceAuthorization(scopes: ["profile"])
            print("Open \(device.verificationURL) and enter \(device.userCode).")
            let tokens = try await device.tokens()
            service.interceptors = [.retry(), Authentication(oauth.tokenSource(tokens))]
        }
        await clock.advance(by: .seconds(2))
        try await task.value
        #expect(try await service.GET("/me").string().value == "ann")
    }

    @Test("A token that is bound to a key")
    func bound() async throws {
        let dpop = try DPoP()
        let oauth = OAuth(issuer: issuer, client: .public(id: "my-tool"), dpop: dpop)
        let tokens = try await oauth.logIn { url in print("Open \(url)") }
        service.interceptors = [.retry(), Authentication(oauth.tokenSource(tokens)), dpop]
        #expect(try await service.GET("/me").string().value == "ann")
        #expect(server.mock.receivedRequests.last?.headers["DPoP"] != nil)
    }
}

/// Snippets that create their own services, which are compiled and not run.
private func completedMetadata(_ issuer: URL) async throws {
    var metadata = try await OAuth.ServerMetadata.discover(issuer)
    metadata.codeChallengeMethods = ["S256"]
    let oauth = OAuth(metadata: metadata, client: .public(id: "my-tool"))
    _ = oauth
}

private func resource(_ service: WebService, _ url: URL) async throws {
    let response = try await service.GET(url.absoluteString).empty().response
    let challenge = OAuth.Challenge.all(in: response).first { $0.resourceMetadata != nil }
    let resource = try await OAuth.ProtectedResource.discover(url, challenge: challenge)
    guard let issuer = resource.authorizationServers.first else { return }
    let metadata = try await OAuth.ServerMetadata.discover(issuer)
    let receiver = try LoopbackReceiver()
    let registration = OAuth.Registration(name: "My tool", redirects: [receiver.redirect])
    let registered = try await OAuth.register(registration, metadata: metadata)
    let oauth = OAuth(
        metadata: metadata, client: registered.client, resources: [resource.resource])
    let tokens = try await oauth.logIn(receiver: receiver) { url in print("Open \(url)") }
    _ = tokens
}
