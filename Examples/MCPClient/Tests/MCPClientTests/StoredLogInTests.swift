import Foundation
import Synchronization
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import MCPClient

@Suite("A stored log-in", .timeLimit(.minutes(5)))
struct StoredLogInTests {
    /// Starts a resource and its authorization server, which registers client-1, client-2 …
    private func startServer() throws -> MockServer {
        let server = try MockServer()
        let origin = server.baseURLString
        server.on(.GET, "/.well-known/oauth-protected-resource/mcp") { _ in
            MockResponse.json(
                ["resource": .string("\(origin)/mcp"), "authorization_servers": [.string(origin)]] as JSONValue)
        }
        server.on(.GET, "/.well-known/oauth-authorization-server") { _ in
            let metadata: JSONValue = [
                "issuer": .string(origin), "authorization_endpoint": .string("\(origin)/authorize"),
                "token_endpoint": .string("\(origin)/token"), "registration_endpoint": .string("\(origin)/register"),
                "code_challenge_methods_supported": ["S256"],
            ]
            return MockResponse.json(metadata)
        }
        let clients = Mutex(0)
        server.on(.POST, "/register") { _ in
            let number = clients.withLock { count in
                count += 1
                return count
            }
            return MockResponse.json(["client_id": .string("client-\(number)")] as JSONValue, status: 201)
        }
        server.on(.POST, "/token") { request in
            let form = Self.form(of: request)
            let token = form["refresh_token"] == nil ? "first" : "second"
            let tokens: JSONValue = [
                "access_token": .string(token), "refresh_token": .string("of-\(form["client_id"] ?? "")"),
                "token_type": "Bearer",
            ]
            return MockResponse.json(tokens)
        }
        server.on(.GET, "/me") { request in
            MockResponse.status(request.headers["Authorization"] == "Bearer second" ? 200 : 401)
        }
        return server
    }

    private static func form(of request: ReceivedRequest) -> [String: String] {
        Dictionary(request.formItems.map { ($0.name, $0.value) }) { first, _ in first }
    }

    /// Logs in, with this test as the browser.
    private func begin(_ logIn: LogIn) async throws {
        try await logIn.begin(after: nil, scopes: nil) { url in
            let items = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems ?? []
            func value(_ name: String) -> String { items.first { $0.name == name }?.value ?? "" }
            let callback = "\(value("redirect_uri"))?code=a&state=\(value("state"))"
            try await WebService(baseURL: nil).GET(callback).empty().value
        }
    }

    @Test("After another log-in, a process refreshes the new tokens as the new client")
    func anotherLogIn() async throws {
        let server = try startServer()
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("mcp-\(UUID().uuidString)")
        defer {
            server.stop()
            try? FileManager.default.removeItem(at: folder)  // the files of a test
        }
        let url = try #require(URL(string: "\(server.baseURLString)/mcp"))
        let logIn = try LogIn(at: url, over: WebService(baseURL: url), in: folder)
        try await begin(logIn)
        let service = WebService(baseURL: url)
        service.interceptors = [try #require(try logIn.authentication)]
        try await begin(logIn)
        try await service.GET("\(server.baseURLString)/me").empty().value
        let refreshes = server.receivedRequests.map(Self.form).filter { $0["grant_type"] == "refresh_token" }
        #expect(refreshes.map { $0["refresh_token"] } == ["of-client-2"])
        #expect(refreshes.map { $0["client_id"] } == ["client-2"])
    }
}
