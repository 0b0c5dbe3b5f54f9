import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.permit) struct MockResponseTests {
    private let request = Request(.GET, url: "http://a.test/path?q=1")

    @Test("JSON that cannot be encoded is an error, not an empty success")
    func unwritableJSON() async {
        for json: Any in [Double.nan, ["since": Date(timeIntervalSince1970: 0)], [Data()]] {
            let (data, response, error) = MockResponse(statusCode: 200, json: json).dataTaskResult(request: request)
            #expect((error as? WebServiceError)?.code == .encoding)
            #expect(data == nil)
            #expect(response == nil)
        }
    }

    @Test("Data that is set later replaces JSON that could not be encoded")
    func replacedJSON() {
        var response = MockResponse(statusCode: 200, json: Date(timeIntervalSince1970: 0))
        response.data = Data("1".utf8)
        let (data, _, error) = response.dataTaskResult(request: request)
        #expect(data == Data("1".utf8))
        #expect(error == nil)
    }

    @Test(
        "JSON may be a single value",
        arguments: [("\"a\"", "a" as any Sendable), ("1", 1), ("null", NSNull()), ("[true]", [true])])
    func fragments(text: String, json: any Sendable) {
        #expect(MockResponse(statusCode: 200, json: json).data == Data(text.utf8))
    }

    @Test("Repeated header fields are joined, regardless of their case")
    func repeatedHeaders() {
        var response = MockResponse(statusCode: 200)
        response.headers = ["Via": "a", "vIA": "b", "X-One": "1"]
        let answer = response.dataTaskResult(request: request).1 as? HTTPURLResponse
        #expect(answer?.value(forHTTPHeaderField: "Via") == "a, b")
        #expect(answer?.allHeaderFields.count == 2)
    }

    @Test("A session delivers header fields in their order, with repetitions")
    func deliveredHeaders() async throws {
        let mock = MockService()
        var response = MockResponse(statusCode: 200)
        response.headers = ["X-Two": "2", "Via": "a", "X-One": "1", "vIA": "b"]
        mock.on(.GET, "/", response)
        let head = try #require(try await mock.service.GET("/").data().response.head)
        #expect(head.headers.map(\.name) == ["X-Two", "Via", "X-One", "vIA"])
        #expect(head.values(for: "Via") == ["a", "b"])
        #expect((head.urlResponse as? HTTPURLResponse)?.value(forHTTPHeaderField: "Via") == "a, b")
    }

    @Test(
        "A header field that cannot occur in a message adds no other field",
        arguments: [("X-One", "1\r\nX-Two: 2"), ("X-One", "1\nX-Two: 2"), ("X-One: 1\r\nX-Two", "2")])
    func splitFields(name: String, value: String) async throws {
        let mock = MockService()
        var response = MockResponse(statusCode: 200)
        response.headers.add(value, for: Headers.Name(name))
        mock.on(.GET, "/", response)
        let head = try #require(try await mock.service.GET("/").data().response.head)
        #expect(head["X-Two"] == nil)
        #expect(head.headers.count == 1)
    }

    @Test("A status and a version that cannot occur in a message are delivered", arguments: [0, 99, 1000])
    func unusualStatus(status: Int) async throws {
        let mock = MockService()
        var response = MockResponse(statusCode: status)
        response.version = "HTTP/ 9"
        mock.on(.GET, "/", response)
        let delivered = try await mock.service.GET("/").data().validate(statuses: 0...1000).response
        #expect(delivered.status == status)
    }

    @Test("The URL is that of the request unless the response specifies another")
    func url() {
        var response = MockResponse(statusCode: 200)
        #expect(response.dataTaskResult(request: request).1?.url?.absoluteString == "http://a.test/path?q=1")
        response.url = URL(string: "http://b.test/")
        #expect(response.dataTaskResult(request: request).1?.url?.absoluteString == "http://b.test/")
    }

    @Test(
        "HEAD and statuses without content have no body",
        arguments: [
            (Request.Method.GET, 200, true), (.HEAD, 200, false), (.GET, 204, false), (.GET, 205, false),
            (.GET, 304, false), (.POST, 404, true),
        ])
    func bodiless(method: Request.Method, status: Int, hasBody: Bool) {
        let response = MockResponse(statusCode: status, data: Data("body".utf8))
        let (data, _, error) = response.dataTaskResult(request: Request(method, url: "http://a.test/"))
        #expect(data == Data((hasBody ? "body" : "").utf8))
        #expect(error == nil)
    }
}
