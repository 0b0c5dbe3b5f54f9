import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceStorage

@testable import WebServiceOAuth

@Suite("Authorization code", .permit)
struct AuthorizationTests {
    private let server = FakeServer()
    private let redirect = "com.example.app:/callback"

    private func begin(_ oauth: OAuth? = nil) async throws -> OAuth.Authorization {
        let oauth = try oauth ?? server.oauth()
        return try await oauth.authorization(redirect: server.url(redirect), scopes: ["read", "write"])
    }

    @Test("The tokens of a log-in authenticate requests")
    func logIn() async throws {
        let oauth = try server.oauth()
        let authorization = try await begin(oauth)
        let tokens = try await authorization.tokens(from: server.callback(to: authorization.url))
        #expect(tokens.credential == .bearer("s3cr3t-access-1", expires: server.clock.date + 3600))
        #expect(tokens.refreshToken == "s3cr3t-refresh-1")
        server.mock.service.interceptors = [Authentication(oauth.tokenSource(tokens))]
        #expect(try await server.mock.service.GET("/me").json().value["name"] == .string("user"))
    }

    @Test("The URL has the parameters of RFC 6749, RFC 7636 and RFC 8707")
    func parameters() async throws {
        let oauth = try server.oauth(resources: [server.url("https://api.example/mcp")])
        let authorization = try await oauth.authorization(
            redirect: server.url(redirect), scopes: ["read", "write"], parameters: ["prompt": "consent"])
        let items = URLComponents(url: authorization.url, resolvingAgainstBaseURL: false)?.queryItems ?? []
        let query = Dictionary(items.map { ($0.name, $0.value) }) { first, _ in first }
        #expect(query["response_type"] == "code")
        #expect(query["client_id"] == "client")
        #expect(query["redirect_uri"] == redirect)
        #expect(query["scope"] == "read write")
        #expect(query["code_challenge_method"] == "S256")
        #expect(query["code_challenge"]??.count == 43)
        #expect(query["state"]??.count == 43)
        #expect(query["resource"] == "https://api.example/mcp")
        #expect(query["prompt"] == "consent")
        _ = try await authorization.tokens(from: server.callback(to: authorization.url))
        let form = try #require(server.requests("/token").first).form
        #expect(form["redirect_uri"] == redirect)
        #expect(form["client_id"] == "client")
        #expect(form["resource"] == "https://api.example/mcp")
    }

    @Test("A refresh replaces the tokens, and keeps a refresh token that is not replaced")
    func refresh() async throws {
        let oauth = try server.oauth()
        let old = OAuth.Tokens(.bearer("s3cr3t-old"), refreshToken: "s3cr3t-r", scopes: ["read"])
        server.replace(.token) { [server] _ in server.tokens(["refresh_token": nil]) }
        let new = try #require(try await oauth.refresh(old))
        #expect(new.credential.value == "Bearer s3cr3t-access-1")
        #expect(new.refreshToken == "s3cr3t-r")
        #expect(new.scopes == ["read"])
        #expect(server.requests("/token").first?.form["refresh_token"] == "s3cr3t-r")
        #expect(try await oauth.refresh(OAuth.Tokens(.bearer("x"))) == nil)
    }

    @Test("An expired token is refreshed before it is sent, once for all requests")
    func expiry() async throws {
        let oauth = try server.oauth()
        let tokens = OAuth.Tokens(.bearer("s3cr3t-old", expires: .distantPast), refreshToken: "s3cr3t-r")
        server.mock.service.interceptors = [Authentication(oauth.tokenSource(tokens))]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<5 { group.addTask { try await server.mock.service.GET("/me").empty().value } }
            try await group.waitForAll()
        }
        #expect(server.requests("/token").count == 1)
        #expect(server.requests("/me").allSatisfy { $0.headers[.authorization] == "Bearer s3cr3t-access-1" })
    }

    @Test("Requests to the server do not have the credential of the service")
    func ownAuthentication() async throws {
        let origin = try #require(Origin(FakeServer.issuer))
        server.mock.service.interceptors = [Authentication(TokenSource(.bearer("other")), origins: [origin])]
        let oauth = try server.oauth()
        try await server.logIn(oauth)
        #expect(server.requests("/token").first?.headers[.authorization] == nil)
    }

    @Test("A client obtains its own token before the first request, and another one after its expiry")
    func clientCredentials() async throws {
        let oauth = try server.oauth(client: .secret("p:w d", id: "wor ker"))
        server.mock.service.interceptors = [Authentication(oauth.clientCredentials(scopes: ["jobs"]))]
        try await server.mock.service.GET("/me").empty().value
        try await server.mock.service.GET("/me").empty().value
        #expect(server.requests("/me").count == 2)
        let request = try #require(server.requests("/token").first)
        #expect(server.requests("/token").count == 1)
        #expect(request.form == ["grant_type": "client_credentials", "scope": "jobs", "client_id": "wor ker"])
        let basic = Data("wor%20ker:p%3Aw%20d".utf8).base64EncodedString()
        #expect(request.headers[.authorization] == "Basic \(basic)")
        await server.clock.advance(by: .seconds(3600))
        try await server.mock.service.GET("/me").empty().value
        #expect(server.requests("/token").count == 2)
    }

    @Test("A receiver on loopback delivers the callback of the browser, and shows a page")
    func loopback() async throws {
        let pages = Collected<Response>()
        let browser = WebService(baseURL: nil)
        let tokens = try await server.oauth().logIn { url in
            let callback = try server.callback(to: url)
            let foreign = try server.callback(to: url, ["state": "foreign"])
            pages.add(try await browser.GET(foreign.absoluteString).empty().response)
            pages.add(try await browser.GET("\(callback.absoluteString.prefix { $0 != "?" })/other").empty().response)
            pages.add(try await browser.GET(callback.absoluteString).empty().response)
        }
        #expect(tokens.credential.value == "Bearer s3cr3t-access-1")
        #expect(pages.values.map(\.status) == [400, 404, 200])
        #expect(try pages.values.last?.text().contains("return to the program") == true)
    }

    @Test("A log-in that is not completed ends after its limit")
    func limit() async throws {
        let oauth = try server.oauth()
        let logIn = Task(executorPreference: server.clock.executor) {
            try await oauth.logIn(within: .seconds(60)) { _ in }
        }
        await server.clock.advance(by: .seconds(61))
        await #expect {
            _ = try await logIn.value
        } throws: {
            ($0 as? WebServiceError)?.code == .authorizationExpired
        }
    }
}
