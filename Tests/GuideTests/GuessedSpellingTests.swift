import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceEndpoints
import WebServiceMocking
import WebServiceServer

/// Spellings that a new user tries before reading the Guide.
@Suite("Guessed spellings", .permit)
struct GuessedSpellingTests {
    private struct Rename: ParameterizedRequest {
        typealias Output = Void
        var method: Method { .PUT }
        var path: String { "/x" }
    }

    private struct User: Decodable, Equatable {
        var name: String
    }

    private let session = MockSession()

    private var service: WebService {
        let service = WebService(baseURLString: "https://h/")
        service.session = session
        return service
    }

    @Test("Header fields are set by a well-known name or from a dictionary, and read from a recorded request")
    func headers() async throws {
        session.addStub(MockResponse(statusCode: 200))
        let dictionary = ["X-B": "2", "X-A": "1"]
        let service = service
        _ = try await service.OPTIONS("/x").setHeaders(Headers(dictionary))
            .setHeaderValue("a/b", forName: .accept).setHeaderValue("3", forName: "X-C").data().value
        let sent = try #require(session.recordedRequests.first)
        #expect(sent.httpMethod == "OPTIONS")
        #expect(sent.headers == ["Accept": "a/b", "X-A": "1", "X-B": "2", "X-C": "3"])
    }

    @Test("Parameters are assigned by name, also from variables and dictionaries")
    func parameters() throws {
        var request = service.request(.GET, path: "/x")
        let (page, filter) = (2, ["kind": "ale"])
        request.queryParameters = ["page": 1, "sort": "name", "page": 7]
        request.queryParameters?["page"] = page
        request.queryParameters?["limit"] = 20
        request.queryParameters?["filter"] = filter
        request.queryParameters?["sort"] = nil
        #expect(
            request.queryParameters == [
                "page": 2, "limit": 20, "filter": ParameterValue.object(["kind": "ale"]),
            ])
        #expect(request.queryParameters?["page"] == 2)
        #expect(request.queryParameters?["sort"] == nil)
        request.queryParameters = Parameters(filter)
        #expect(try request.urlRequest().url?.query == "kind=ale")
    }

    @Test("A timeout of the task is a duration, and configure reaches every option")
    func options() async throws {
        session.addStub(MockResponse(statusCode: 200))
        let service = service
        let task = service.GET("/x").setTimeout(.seconds(5)).data().configure { $0.options.maximumResponseBytes = 9 }
        _ = try await task.value
        #expect(task.request.options.timeout == .seconds(5))
        #expect(task.request.options.maximumResponseBytes == 9)
        #expect(session.recordedRequests.first?.timeoutInterval == 5)
        #expect(try Rename().request(for: service).method == .PUT)
    }

    @Test("A response is decoded by itself")
    func response() async throws {
        session.addStub(MockResponse(statusCode: 200, headers: ["X-A": "1"], data: Data(#"{"name":"Ann"}"#.utf8)))
        let service = service
        let response = try await service.GET("/x").data().response
        #expect(try response.decode(User.self) == User(name: "Ann"))
        #expect(try response.json()["name"]?.string == "Ann")
        #expect(response.status == 200)
        #expect(response.header("X-A") == "1")
    }

    @Test("A retry is decided by a predicate or by statuses, over a server with a sequence of responses")
    func retries() async throws {
        let server = try MockServer()
        defer { server.stop() }
        server.on(.GET, "/user", [MockResponse(statusCode: 403, headers: ["Retry-After": "0"]), 418, 200])
        let service = WebService(baseURL: server.baseURL)
        service.interceptors = [
            .retry(baseDelay: .milliseconds(1), statuses: [418]) {
                $0.status == 403 && $0.header(.retryAfter) != nil
            },
            .bearer("t"),
        ]
        let response = try await service.GET("/user").data().response
        #expect(response.status == 200)
        #expect(response.attempts == 3)
        #expect(server.receivedRequests.map { $0.headers[.authorization] } == ["Bearer t", "Bearer t", "Bearer t"])
        #expect(try await service.GET("/user").data().response.status == 200)
    }
}
