import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceResilience
import WebServiceServer

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

// Snippets of Cookbook.md about APIs and connections, with their expected behavior.
// `DocumentationTests` verifies that none is missing.

struct GraphQLResponse<Value: Decodable & Sendable>: Decodable, Sendable {
    struct QueryError: Error, Decodable { var message: String }
    var data: Value?
    var errors: [QueryError]?

    /// Returns the data if there is no error.
    func complete() throws -> Value {
        if let error = errors?.first { throw error }
        return try partial()
    }

    /// Returns the data, which is incomplete if there are errors.
    func partial() throws -> Value {
        guard let data else { throw errors?.first ?? QueryError(message: "no data") }
        return data
    }
}

/// Returns the expiry date of a JWT, without verifying its signature.
func expiry(ofJWT token: String) -> Date? {
    struct Claims: Decodable { var exp: TimeInterval }
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    var text = parts[1].replacing("-", with: "+").replacing("_", with: "/")
    text += String(repeating: "=", count: (4 - text.count % 4) % 4)
    guard let claims = Data(base64Encoded: String(text)) else { return nil }
    return (try? JSONDecoder().decode(Claims.self, from: claims))
        .map { Date(timeIntervalSince1970: $0.exp) }
}

struct ToolCall: Equatable, Sendable {
    var id = ""
    var name = ""
    var arguments = ""  // JSON that is complete when the stream ends
}

struct ToolChunk: Decodable, Sendable {
    struct Function: Decodable, Sendable { var name, arguments: String? }
    struct Part: Decodable, Sendable {
        var index: Int
        var id: String?
        var function: Function?
    }
    struct Delta: Decodable, Sendable { var tool_calls: [Part]? }
    struct Choice: Decodable, Sendable { var delta: Delta }
    var choices: [Choice]
}

struct Stock: Codable, Sendable {
    var beer: String
}

struct StockHandler: Sendable {
    let service: WebService

    func handle(_ event: Stock, remaining: Duration) async throws -> Int {
        try await service.withDeadline(remaining - .seconds(1)) {
            try await service.GET("/stock/{beer}", pathParameters: ["beer": event.beer])
                .decode([String: Int].self).value["kegs"] ?? 0
        }
    }
}

@Suite("Recipes for APIs and connections", .permit)
struct RecipeSnippets {
    private let mock = MockService()
    private var service: WebService { mock.service }

    @Test("The expiry date of a JWT is that of its claim exp")
    func expiryOfJWT() {
        // The example of RFC 7519, section 3.1.
        let token =
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9"
            + ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
            + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        #expect(expiry(ofJWT: token) == Date(timeIntervalSince1970: 1_300_819_380))
        #expect(expiry(ofJWT: "no token") == nil)
    }

    @Test("A query of GraphQL is a POST with an envelope")
    func graphQL() async throws {
        mock.on(
            .method(.POST) && .json(["variables": ["s": "vermont"]]),
            [
                .text(#"{"data": {"brewers": [{"name": "Long Trail"}]}}"#),
                .text(#"{"data": {"brewers": [{"name": "Long Trail"}]}, "errors": [{"message": "no hops"}]}"#),
                .text(#"{"data": {"brewers": [{"name": "Long Trail"}]}, "errors": [{"message": "no hops"}]}"#),
                MockResponse(
                    statusCode: 400, headers: ["Content-Type": "application/graphql-response+json"],
                    data: Data(#"{"errors": [{"message": "no field"}]}"#.utf8)),
                .status(401),
            ])
        func response() async throws -> GraphQLResponse<[String: [Brewer]]> {
            let query: JSONValue = [
                "query": "query($s: String!) { brewers(state: $s) { name } }",
                "variables": ["s": "vermont"],
            ]
            let response = try await service.POST("/graphql").setJSON(query)
                .decode(GraphQLResponse<[String: [Brewer]]>.self).validate(statuses: [200, 400]).value
            return response
        }
        #expect(try await response().complete()["brewers"] == [Brewer(name: "Long Trail")])
        let partial = try await response()
        #expect(try partial.partial()["brewers"]?.count == 1)
        var error = await #expect(throws: GraphQLResponse<[String: [Brewer]]>.QueryError.self) {
            try await response().complete()
        }
        #expect(error?.message == "no hops")
        error = await #expect(throws: GraphQLResponse<[String: [Brewer]]>.QueryError.self) {
            try await response().partial()
        }
        #expect(error?.message == "no field")
        await #expect(throws: WebServiceError.self) { try await response() }
    }

    @Test("The tool calls of a chat stream are joined, and their results are sent")
    func tools() async throws {
        func event(_ calls: String) -> ServerSentEvent {
            ServerSentEvent(data: #"{"choices": [{"index": 0, "delta": {"tool_calls": [\#(calls)]}}]}"#)
        }
        let last = ServerSentEvent(data: #"{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}"#)
        mock.on(
            .path("/chat/completions"),
            .events([
                event(#"{"index": 0, "id": "c1", "function": {"name": "stock", "arguments": ""}}"#),
                event(#"{"index": 0, "function": {"arguments": "{\"beer\""}}"#),
                event(#"{"index": 0, "function": {"arguments": ": \"ale\"}"}}"#),
                event(#"{"index": 1, "id": "c2", "function": {"name": "stock", "arguments": "{}"}}"#),
                event(#"{"index": 7, "id": "c7", "function": {"name": "stock", "arguments": "{}"}}"#),
                last, ServerSentEvent(data: "[DONE]"),
            ]))
        var messages: [JSONValue] = [["role": "user", "content": "How many kegs of ale?"]]
        let tools: JSONValue = []
        let question: JSONValue = [
            "model": "ale-1", "stream": true, "messages": .array(messages), "tools": tools,
        ]
        let chat = service.POST("/chat/completions").setJSON(question)
        var calls: [ToolCall] = []
        for try await chunk in chat.events(ToolChunk.self, until: "[DONE]") {
            for part in chunk.choices.first?.delta.tool_calls ?? [] {
                if part.index == calls.count { calls.append(ToolCall()) }
                guard calls.indices.contains(part.index) else { continue }
                calls[part.index].id += part.id ?? ""
                calls[part.index].name += part.function?.name ?? ""
                calls[part.index].arguments += part.function?.arguments ?? ""
            }
        }
        #expect(
            calls == [
                ToolCall(id: "c1", name: "stock", arguments: #"{"beer": "ale"}"#),
                ToolCall(id: "c2", name: "stock", arguments: "{}"),
            ])

        func run(_ call: ToolCall) async throws -> String { "3" }
        let requested: [JSONValue] = calls.map { call in
            let function: JSONValue = [
                "name": .string(call.name), "arguments": .string(call.arguments),
            ]
            return ["id": .string(call.id), "type": "function", "function": function]
        }
        messages.append(["role": "assistant", "tool_calls": .array(requested)])
        for call in calls {
            let result = JSONValue.string(try await run(call))
            messages.append(["role": "tool", "tool_call_id": .string(call.id), "content": result])
        }
        #expect(messages.count == 4)
        #expect(messages[1]["tool_calls"]?[0]?["function"]?["name"]?.string == "stock")
        #expect(messages[3]["tool_call_id"]?.string == "c2")
    }

    @Test("A function uses one service, and ends before its deadline")
    func function() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let handler = StockHandler(service: mock.service)
        mock.on(.GET, "/stock/ale", [.json(["kegs": 3]), .json(["kegs": 3]).after(.seconds(60))])
        #expect(try await handler.handle(Stock(beer: "ale"), remaining: .seconds(10)) == 3)
        let late = Task(executorPreference: clock.executor) {
            try await handler.handle(Stock(beer: "ale"), remaining: .seconds(10))
        }
        await clock.advance(by: .seconds(9))
        let error = await #expect(throws: WebServiceError.self) { try await late.value }
        #expect(error?.code == .deadline)
        do {
            let service = WebService(baseURLString: "https://stock.example.com")
            service.interceptors = [.idempotencyKey(), .retry()]
            let handler = StockHandler(service: service)
            service.session = self.mock.session
            self.mock.on(.GET, "/stock/ale", .json(["kegs": 3]))
            #expect(try await handler.handle(Stock(beer: "ale"), remaining: .seconds(60)) == 3)
        }
    }

    @Test("A form has fields and a file")
    func form() async throws {
        let menu = try TemporaryFolder.forTest().file("menu.pdf", Data("soup".utf8))
        mock.on(.POST, "/brewers/7/documents", .status(201))
        var form = MultipartFormData()
        form.append("Long Trail", name: "name")
        form.append(file: menu, name: "menu", contentType: "application/pdf")
        try await service.POST("/brewers/7/documents").setMultipart(form).empty().value
        let body = String(decoding: try #require(mock.receivedRequests.first).body, as: UTF8.self)
        #expect(body.contains("name=\"name\"\r\n\r\nLong Trail\r\n"))
        #expect(body.contains("filename=\"menu.pdf\"\r\nContent-Type: application/pdf\r\n\r\nsoup\r\n"))
    }

    @Test("The URLRequest for a transfer in the background has the current credential")
    func backgroundTransfer() async throws {
        let authentication = Authentication(TokenSource(.bearer("canary")))
        var photoRequest = service.request(.PUT, path: "/photos/7")
        let credential = try await authentication.withCredential(refreshingAfter: { _ in false }) { $0 }
        photoRequest.headers[.authorization] = credential?.value
        let urlRequest = try photoRequest.urlRequest()
        #expect(urlRequest.value(forHTTPHeaderField: "Authorization") == "Bearer canary")
        #expect(urlRequest.httpMethod == "PUT")
    }

    #if WEBSERVICE_CURL
    @Test("The connections and the version of HTTP are configured")
    func connections() async throws {
        let server = try MockServer { _ in .text("ale") }
        defer { server.stop() }
        let service = WebService(baseURLString: server.baseURLString)
        var configuration = CurlSession.Configuration()
        configuration.maximumConnectionsPerHost = 4
        configuration.httpVersion = .http1
        service.session = try CurlSession(configuration: configuration)
        let tasks = (0..<20).map { _ in service.GET("/").string().resume() }
        for task in tasks { #expect(try await task.value == "ale") }
        #expect(server.connectionCount <= 4)
        #expect(try await service.GET("/").string().response.transport?.networkProtocol == "HTTP/1.1")
    }

    @Test("Names are looked up by a configuration, and requests can be sent to a Unix domain socket")
    func names() async throws {
        let server = try MockServer { _ in .text("ale") }
        defer { server.stop() }
        let (service, port) = (WebService(baseURL: nil), server.port)
        var configuration = CurlSession.Configuration()
        configuration.addresses = ["brewery.corp.example:\(port)": ["127.0.0.1"]]
        configuration.resolver = { host, port in host == "registry" ? ["127.0.0.1"] : nil }
        service.session = try CurlSession(configuration: configuration)
        #expect(try await service.GET("http://brewery.corp.example:\(port)/").string().value == "ale")
        #expect(try await service.GET("http://registry:\(port)/").string().value == "ale")
        configuration.dnsURL = "https://dns.example.com/dns-query"
        #expect(configuration.dnsURL != nil)

        let folder = TemporaryFolder.forTest().url
        let socket = folder.appendingPathComponent("engine.sock").path
        let engine = WebService(baseURLString: "http://localhost")
        var local = CurlSession.Configuration()
        local.unixSocketPath = socket
        engine.session = try CurlSession(configuration: local)
        let error = await #expect(throws: URLError.self) { try await engine.GET("/version").json().value }
        #expect(error?.code == .cannotConnectToHost)  // no program listens there
    }
    #endif
}

#if canImport(Darwin)
/// Starts an upload in the background, which is compiled and not run.
private func startUpload(of photo: URL, _ urlRequest: URLRequest, _ delegate: any URLSessionDelegate) {
    let configuration = URLSessionConfiguration.background(withIdentifier: "photos")
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    session.uploadTask(with: urlRequest, fromFile: photo).resume()
}
#endif
