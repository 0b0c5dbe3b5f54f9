import Foundation
import TestSupport
import Testing
import WebServiceEndpoints
import WebServiceMocking
import WebServicePagination
import WebServiceStorage

@testable import WebServiceCore

@Suite("Defaults of a service", .permit)
struct ServiceDefaultsTests {
    private let session = HandSession(text: "x")

    private struct Brew: Codable, Equatable, Sendable {
        var brewName: String
    }

    private struct Search: ParameterizedRequest {
        typealias Output = Data
        var path: String { "/search" }
        var headers: Headers { ["accept": "text/plain", "X-Part": "1"] }
    }

    private static let snakeCase: (decoder: JSONDecoder, encoder: JSONEncoder) = {
        let (decoder, encoder) = (JSONDecoder(), JSONEncoder())
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return (decoder, encoder)
    }()

    @Test("The options of a request contain only its own deadline and limit, not those of its service")
    func inheritedLimits() {
        let service = WebService.make(session)
        service.options.deadline = .seconds(5)
        service.options.maximumResponseBytes = 7
        let request = service.request(.GET, path: "/x")
        #expect(request.options.deadline == nil)
        #expect(request.options.maximumResponseBytes == nil)
        #expect(request.options.requestDeadline == .seconds(5))
        #expect(request.options.bodyMaximum == 7)
    }

    @Test("The options of a service contain the limits that were set, and nil removes them")
    func removedLimits() {
        let service = WebService.make(session)
        service.options.deadline = .seconds(5)
        service.options.maximumResponseBytes = 7
        #expect(service.options.deadline == .seconds(5))
        #expect(service.options.maximumResponseBytes == 7)
        service.options.deadline = nil
        service.options.maximumResponseBytes = nil
        let request = service.request(.GET, path: "/x")
        #expect(request.options.requestDeadline == .seconds(600))
        #expect(request.options.bodyMaximum == 100 << 20)
    }

    private func sent(_ session: HandSession) throws -> URLRequest {
        try #require(session.exchanges.values.last).request.urlRequestValue
    }

    @Test("A task has the header fields and options of its service, and can replace or remove each one")
    func fields() async throws {
        let service = WebService.make(session)
        service.headers = ["Accept": "a/b", "X-App": "1", "X-Old": "2"]
        service.options.timeout = .seconds(7)
        service.options.maximumResponseBytes = 9
        let task = service.GET("/x").setHeaderValue("c/d", forName: "accept").setHeaderValue(nil, forName: "X-Old")
            .setTimeout(.seconds(3))
        _ = try await task.data().value
        let sent = try sent(session)
        #expect(sent.allHTTPHeaderFields == ["accept": "c/d", "X-App": "1"])
        #expect(sent.timeoutInterval == 3)
        #expect(task.request.options.bodyMaximum == 9)
        #expect(service.headers[.accept] == "a/b")
        #expect(service.options.timeout == .seconds(7))
    }

    @Test("Requests have the defaults at the time of their creation, and a clone has its own defaults")
    func creation() {
        let service = WebService.make()
        service.headers = ["X-App": "1"]
        service.options.deadline = .seconds(5)
        let request = service.request(.GET, path: "/x")
        let task = service.DELETE("/x")
        let clone = service.clone()
        service.headers = ["X-App": "2"]
        service.options = Request.Options()
        for request in [request, task.request, clone.GET("/x").request] {
            #expect(request.headers == ["X-App": "1"])
            #expect(request.options.requestDeadline == .seconds(5))
        }
        #expect(service.GET("/x").request.headers == ["X-App": "2"])
        #expect(service.GET("/x").request.options.requestDeadline == .seconds(600))
    }

    @Test("An absolute URL of another origin has no header field of the service but harmless ones")
    func otherOrigins() throws {
        let service = WebService.make()
        service.headers = ["X-Key": "canary", "Authorization": "canary", "Accept": "a/b", "user-agent": "brewery"]
        for path in ["https://other/x", "http://h/v1/x", "https://h:444/x", "https://h.other/x", "HTTPS://OTHER/{id}"] {
            let values: Parameters? = path.contains("{") ? ["id": 1] : nil
            let request = service.request(.GET, path: path, pathParameters: values)
            #expect(request.headers == ["Accept": "a/b", "user-agent": "brewery"], "\(path)")
            #expect(service.GET(path, pathParameters: values).request.headers == request.headers, "\(path)")
        }
        for path in ["/x", "//other/x", "https://h/y", "HTTPS://H:443/y", "/{id}", "?a=1"] {
            let request = service.request(.GET, path: path, pathParameters: path.contains("{") ? ["id": 1] : nil)
            #expect(request.headers == service.headers, "\(path)")
        }
    }

    @Test("The service names the other origins that receive its header fields")
    func headerOrigins() throws {
        let service = WebService.make()
        service.headers = ["X-Key": "1"]
        service.headerOrigins = [try #require(Origin("https://cdn.example"))]
        #expect(service.GET("https://cdn.example/x").request.headers == ["X-Key": "1"])
        #expect(service.clone().GET("https://cdn.example/x").request.headers == ["X-Key": "1"])
        #expect(service.GET("https://other/x").request.headers == [:])
        service.headerOrigins = []
        #expect(service.GET("https://cdn.example/x").request.headers == [:])
        #expect(service.GET("/x").request.headers == ["X-Key": "1"])
    }

    @Test("Without a base URL, only the origins that the service names receive its header fields")
    func noBase() throws {
        let service = WebService(baseURLString: "")
        service.headers = ["X-Key": "1"]
        #expect(service.GET("https://h/x").request.headers == [:])
        service.headerOrigins = [try #require(Origin("https://h"))]
        #expect(service.GET("https://h/x").request.headers == ["X-Key": "1"])
    }

    @Test("A URL of another origin removes the fields of the service, and not those of the request")
    func changedURL() throws {
        let service = WebService.make()
        service.headers = ["X-Key": "canary", "X-Same": "canary"]
        var request = service.request(.GET, path: "/x")
        request.headers["X-Own"] = "own"
        request.headers["X-Same"] = "own"
        request.url = URL(string: "https://h/other")
        #expect(request.headers == ["X-Key": "canary", "X-Same": "own", "X-Own": "own"])
        request.url = URL(string: "https://other/")
        #expect(request.headers == ["X-Same": "own", "X-Own": "own"])
        request.url = URL(string: "https://h/back")
        #expect(request.headers == ["X-Same": "own", "X-Own": "own"])
    }

    @Test("A URL builder that returns another origin receives no header field of the service")
    func builder() throws {
        let service = WebService(baseURLString: "https://h") { _, path in
            guard let url = URL(string: path == "away" ? "https://other/x" : "https://h/x") else {
                throw URLError(.badURL)
            }
            return url
        }
        service.headers = ["X-Key": "canary"]
        #expect(service.GET("away").request.headers == [:])
        #expect(service.GET("home").request.headers == ["X-Key": "canary"])
    }

    @Test("A typed request with an absolute URL has only its own header fields")
    func typedRequest() throws {
        struct Absolute: ParameterizedRequest {
            typealias Output = Data
            var path: String { "https://other/search" }
            var headers: Headers { ["X-Part": "1"] }
        }
        let service = WebService.make()
        service.headers = ["X-Key": "canary"]
        #expect(try Absolute().request(for: service).headers == ["X-Part": "1"])
    }

    @Test("Interceptors add their header fields at their origins only")
    func interceptors() async throws {
        let service = WebService.make(session)
        service.interceptors = [.headers(["X-Key": "canary", "Accept": "a/b"]), .userAgent("brewery")]
        _ = try await service.GET("https://other/x").data().value
        #expect(try sent(session).allHTTPHeaderFields == ["Accept": "a/b", "User-Agent": "brewery"])
        service.interceptors = [.headers(["X-Key": "1"], origins: [try #require(Origin("https://other"))])]
        _ = try await service.GET("https://other/x").data().value
        #expect(try sent(session).allHTTPHeaderFields == ["X-Key": "1"])
    }

    @Test("A link to another origin that is permitted receives no header field of the service")
    func links() async throws {
        let session = MockSession()
        session.addStub(requestMatcher: { _ in true }) { request in
            let isFirst = request.urlRequestValue.url?.host == "h"
            return MockResponse(
                statusCode: 200, headers: isFirst ? ["Link": "<https://other/2>; rel=next"] : [:],
                data: Data("[1]".utf8))
        }
        let service = WebService.make(session)
        service.headers = ["X-Key": "canary"]
        var request = service.request(.GET, path: "/list")
        request.headers["X-Own"] = "own"
        let pages = Paginator<Int, URL>.links(from: request, origins: [try #require(Origin("https://other"))]) {
            request in
            service.sessionTask(request: request).decode([Int].self)
        }
        for try await _ in pages.items() {}
        #expect(
            session.recordedRequests.map(\.allHTTPHeaderFields) == [
                ["X-Key": "canary", "X-Own": "own"], ["X-Own": "own"],
            ])
    }

    @Test("A request that was created elsewhere is sent with its own header fields and options")
    func elsewhere() async throws {
        let service = WebService.make(session)
        service.headers = ["X-App": "1"]
        service.options.timeout = .seconds(7)
        let url = try #require(URL(string: "https://h/x"))
        let requests: [any URLRequestEncodable] = [Request(url: url), URLRequest(url: url)]
        for request in requests {
            _ = try await service.sessionTask(request: request).data().value
            let sent = try sent(session)
            #expect(sent.value(forHTTPHeaderField: "X-App") == nil)
            #expect(sent.timeoutInterval == 60)
        }
    }

    @Test("A parameterized request adds its header fields to those of the service")
    func parameterized() throws {
        let service = WebService.make()
        service.headers = ["Accept": "a/b", "X-App": "1", "X-App": "2"]
        service.options.timeout = .seconds(7)
        let request = try Search().request(for: service)
        #expect(request.headers == ["accept": "text/plain", "X-Part": "1", "X-App": "1", "X-App": "2"])
        #expect(request.options.timeout == .seconds(7))
    }

    @Test("Values are decoded by the decoder of the service unless the call specifies one")
    func decoder() async throws {
        let service = WebService.make(HandSession(text: #"{"brew_name":"Ale"}"#))
        let before = await #expect(throws: WebServiceError.self) {
            try await service.GET("/x").decode(Brew.self).value
        }
        #expect(before?.code == .decoding)
        service.decoder = Self.snakeCase.decoder
        #expect(try await service.GET("/x").decode(Brew.self).value == Brew(brewName: "Ale"))
        let explicit = await #expect(throws: WebServiceError.self) {
            try await service.GET("/x").decode(Brew.self, decoder: JSONDecoder()).value
        }
        #expect(explicit?.code == .decoding)
    }

    @Test("The elements of a stream are decoded by the decoder of the service")
    func streamDecoder() async throws {
        let service = WebService.make(HandSession(text: #"{"brew_name":"Ale"}"# + "\n"))
        service.decoder = Self.snakeCase.decoder
        var brews: [Brew] = []
        for try await brew in service.GET("/x").jsonLines(Brew.self) { brews.append(brew) }
        #expect(brews == [Brew(brewName: "Ale")])
    }

    private struct Brews: ParameterizedRequest, RawStorableRequest {
        typealias Output = Brew
        var method: Request.Method { .POST }
        var path: String { "/brews" }
        var storageIdentifier: String? { "brews" }
        var body: some Encodable { Brew(brewName: "Ale") }
    }

    private struct OwnBrews: ParameterizedRequest {
        typealias Output = Brew
        var method: Request.Method { .POST }
        var path: String { "/brews" }
        var body: some Encodable { Brew(brewName: "Ale") }
        var decoder: any BodyDecoder { JSONDecoder() }
        var encoder: any BodyEncoder { JSONEncoder() }
    }

    @Test("Typed requests use the decoder and the encoder of the service unless they define their own")
    func typed() async throws {
        let session = HandSession(text: #"{"brew_name":"Ale"}"#)
        let service = WebService.make(session)
        service.storages = [MemoryStorage()]
        (service.decoder, service.encoder) = Self.snakeCase
        #expect(try await service.perform(Brews()).value == Brew(brewName: "Ale"))
        #expect(try sent(session).httpBody == Data(#"{"brew_name":"Ale"}"#.utf8))
        #expect(try await service.stored(Brews()).value.value == Brew(brewName: "Ale"))
        #expect(try Brews().request(for: service).body == Data(#"{"brew_name":"Ale"}"#.utf8))
        let error = await #expect(throws: WebServiceError.self) { try await service.perform(OwnBrews()).value }
        #expect(error?.code == .decoding)
        #expect(try sent(session).httpBody == Data(#"{"brewName":"Ale"}"#.utf8))
    }

    @Test("Values are encoded by the encoder of the service unless the call specifies one")
    func encoder() async throws {
        let service = WebService.make(session)
        service.encoder = Self.snakeCase.encoder
        _ = try await service.POST("/x").setJSON(Brew(brewName: "Ale")).data().value
        #expect(try sent(session).httpBody == Data(#"{"brew_name":"Ale"}"#.utf8))
        _ = try await service.POST("/x").setJSON(Brew(brewName: "Ale"), encoder: JSONEncoder()).data().value
        #expect(try sent(session).httpBody == Data(#"{"brewName":"Ale"}"#.utf8))
    }
}
