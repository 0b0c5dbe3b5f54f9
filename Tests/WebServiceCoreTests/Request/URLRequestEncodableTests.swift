import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct URLRequestEncodableTests {
    private struct Throwing: URLRequestEncodable {
        var error: any Error
        var urlRequestValue: URLRequest { EncodedRequest.unsendable }
        func urlRequest() throws -> URLRequest { throw error }
    }

    private struct Ping: URLRequestEncodable {
        var host: String
        var urlRequestValue: URLRequest {
            URL(string: "https://\(host)/ping").map { URLRequest(url: $0) } ?? EncodedRequest.unsendable
        }
    }

    @Test("A custom type is sent as the URLRequest it returns")
    func ownType() throws {
        #expect(try Ping(host: "h").urlRequest() == Ping(host: "h").urlRequestValue)
        #expect(try Request(Ping(host: "h")).urlRequest().url?.absoluteString == "https://h/ping")
        expectFailure(.invalidURL) { try Request(Ping(host: "user:s3cret@h")).urlRequest() }
        expectFailure(.invalidURL) { try Request(Ping(host: "h h")).urlRequest() }
    }

    @Test("An error of a custom type is thrown when the request is encoded")
    func ownError() {
        let foreign = Request(Throwing(error: TestError(name: "s3cret")))
        let error = expectFailure(.encoding, hiding: ["s3cret"]) { try foreign.urlRequest() }
        #expect(error?.underlying as? TestError == TestError(name: "s3cret"))
        expectFailure(.noStub, naming: ["own"]) {
            try Request(Throwing(error: WebServiceError(.noStub, "own"))).urlRequest()
        }
        #expect(foreign.url == nil)
        #expect(foreign.description == "GET (invalid URL)")
    }

    @Test("A Request created from a Request is unchanged")
    func request() throws {
        let request = Request.make(.PUT) {
            $0.options.deadline = .seconds(3)
            $0.parameters = ["a": 1]
            $0.setBodyProvider { Data() }
        }
        let same = Request(request as any URLRequestEncodable)
        #expect(same.options.deadline == .seconds(3))
        #expect(same.parameters == ["a": 1])
        #expect(same.method == .PUT)
        if case .provider = same.content.content {} else { Issue.record("the body provider is lost") }
    }

    @Test(
        "The URLRequest of a request that cannot be encoded cannot be sent",
        arguments: ["ftp://h", "", "https://", "https://u:p@h"])
    func unsendable(url: String) {
        let value = Request(url: url).urlRequestValue
        #expect(value.url?.scheme == "invalid")
        #expect(value.httpBody == nil)
        #expect(value.url?.host == nil)
        expectFailure(.invalidURL) { try Request(value).urlRequest() }
    }

    @Test("A URLRequest encodes to itself and cannot be sent without a URL")
    func plain() throws {
        var plain = try Request.make().urlRequest()
        #expect(try plain.urlRequest() == plain)
        #expect(plain.urlRequestValue == plain)
        plain.url = nil
        expectFailure(.invalidURL) { try Request(plain).urlRequest() }
    }

    @Test("A relative URL of a URLRequest is resolved before it is sent")
    func relative() throws {
        let base = try #require(URL(string: "https://h/v1/"))
        let plain = URLRequest(url: try #require(URL(string: "a?b", relativeTo: base)))
        #expect(try Request(plain).urlRequest().url?.absoluteString == "https://h/v1/a?b")
    }
}
