import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking

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
