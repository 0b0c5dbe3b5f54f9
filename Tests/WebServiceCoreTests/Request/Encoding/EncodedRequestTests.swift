import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct EncodedRequestTests {
    private func plain(_ change: (inout URLRequest) -> Void = { _ in }) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: "https://h/v1?q=1")))
        change(&request)
        return request
    }

    @Test("A URLRequest survives a round trip through a Request")
    func roundTrip() throws {
        let rows: [(inout URLRequest) -> Void] = [
            { _ in }, { $0.httpMethod = "HEAD" }, { $0.httpMethod = "PURGE" },
            {
                $0.httpMethod = "POST"
                $0.httpBody = Data([0, 255])
                $0.allHTTPHeaderFields = ["Content-Type": "a/b", "X-A": "1", "Cookie": "a=b; c=d"]
            },
            { $0.cachePolicy = .reloadIgnoringLocalCacheData }, { $0.httpShouldHandleCookies = false },
            { $0.timeoutInterval = 7.5 },
            { $0.networkServiceType = .background }, { $0.mainDocumentURL = URL(string: "https://main/") },
            { $0.allowsCellularAccess = false },
        ]
        for change in rows {
            let original = try plain(change)
            let sent = try Request(original).urlRequest()
            #expect(sent.url == original.url)
            #expect(sent.httpMethod == original.httpMethod)
            #expect(sent.httpBody == original.httpBody)
            #expect((sent.allHTTPHeaderFields ?? [:]) == (original.allHTTPHeaderFields ?? [:]))
            #expect(sent.cachePolicy == original.cachePolicy)
            #expect(sent.httpShouldHandleCookies == original.httpShouldHandleCookies)
            #expect(sent.timeoutInterval == original.timeoutInterval)
            #expect(sent.networkServiceType == original.networkServiceType)
            #expect(sent.mainDocumentURL == original.mainDocumentURL)
            #expect(sent.allowsCellularAccess == original.allowsCellularAccess)
            #expect(try Request(sent).urlRequest() == sent)
        }
    }

    @Test("A Request created from a URLRequest has the same properties")
    func fields() throws {
        let request = Request(
            try plain {
                $0.httpMethod = "put"
                $0.httpBody = Data("x".utf8)
                $0.allHTTPHeaderFields = ["B": "2", "A": "1"]
                $0.cachePolicy = .returnCacheDataDontLoad
                $0.httpShouldHandleCookies = false
                $0.timeoutInterval = 5
            })
        #expect(request.method == .PUT)
        #expect(request.body == Data("x".utf8))
        #expect(request.headers == ["A": "1", "B": "2"])
        #expect(request.url?.absoluteString == "https://h/v1?q=1")
        #expect(request.options.cachePolicy == .returnCacheDataDontLoad)
        #expect(!request.options.shouldHandleCookies)
        #expect(request.options.timeout == .seconds(5))
        #expect(request.options.deadline == Request.Options().deadline)
    }

    @Test("Changes to a Request created from a URLRequest are sent")
    func changed() throws {
        var request = Request(
            try plain {
                $0.httpMethod = "POST"
                $0.httpBody = Data("old".utf8)
                $0.allHTTPHeaderFields = ["A": "1", "B": "2", "Content-Type": "a/b"]
                $0.httpShouldHandleCookies = false
                $0.cachePolicy = .reloadIgnoringLocalCacheData
            })
        request.method = .GET
        request.url = URL(string: "https://other/x")
        request.body = nil
        request.headers["a"] = nil
        request.contentType = nil
        request.headers["B"] = "3"
        request.options.shouldHandleCookies = true
        request.options.cachePolicy = .useProtocolCachePolicy
        request.options.timeout = .seconds(3)
        let sent = try request.urlRequest()
        #expect(sent.httpMethod == "GET")
        #expect(sent.url?.absoluteString == "https://other/x")
        #expect(sent.httpBody == nil)
        #expect(sent.httpBodyStream == nil)
        #expect(sent.allHTTPHeaderFields == ["B": "3"])
        #expect(sent.httpShouldHandleCookies)
        #expect(sent.cachePolicy == .useProtocolCachePolicy)
        #expect(sent.timeoutInterval == 3)
        request.headers = [:]
        #expect(try request.urlRequest().allHTTPHeaderFields?.isEmpty != false)
        request.method = .POST
        request.formParameters = ["f": 1]
        #expect(try request.urlRequest().httpBody == Data("f=1".utf8))
        #expect(try request.urlRequest().allHTTPHeaderFields == ["Content-Type": "application/x-www-form-urlencoded"])
    }

    @Test("A body stream is preserved until a body or body parameters are set")
    func stream() throws {
        let stream = InputStream(data: Data("stream".utf8))
        var request = Request(
            try plain {
                $0.httpMethod = "POST"
                $0.httpBodyStream = stream
            })
        let sent = try request.urlRequest()
        #expect(sent.httpBodyStream === stream)
        #expect(sent.httpBody == nil)
        #expect(request.body == nil)
        var replaced = request
        replaced.body = Data("new".utf8)
        #expect(try replaced.urlRequest().httpBody == Data("new".utf8))
        #expect(try replaced.urlRequest().httpBodyStream == nil)
        replaced.body = nil
        #expect(try replaced.urlRequest().httpBody == nil)
        #expect(try replaced.urlRequest().httpBodyStream == nil)
        #expect(try request.urlRequest().httpBodyStream === stream, "a copy of a request is independent")
        var form = request
        form.parameters = ["p": 1]
        #expect(try form.urlRequest().httpBody == Data("p=1".utf8))
        #expect(try form.urlRequest().httpBodyStream == nil)
        request.method = .GET
        expectFailure(.encoding, naming: ["GET", "body"]) { try request.urlRequest() }
        request.parameters = ["p": 1]
        request.method = .POST
        expectFailure(.encoding, naming: ["body", "parameters"]) { try request.urlRequest() }
    }

    @Test("The URLRequest has the cookie flag, cache policy and timeout of the request", arguments: [true, false])
    func policies(handlesCookies: Bool) throws {
        for policy in [
            URLRequest.CachePolicy.useProtocolCachePolicy, .reloadIgnoringLocalCacheData, .returnCacheDataElseLoad,
            .returnCacheDataDontLoad,
        ] {
            let sent = try Request.make {
                $0.options.shouldHandleCookies = handlesCookies
                $0.options.cachePolicy = policy
                $0.options.timeout = .milliseconds(12500)
            }.urlRequest()
            #expect(sent.httpShouldHandleCookies == handlesCookies)
            #expect(sent.cachePolicy == policy)
            #expect(sent.timeoutInterval == 12.5)
        }
    }

    @Test("A simple GET request encodes to a URLRequest with default values")
    func simple() throws {
        let sent = try Request.make().urlRequest()
        #expect(sent == URLRequest(url: try #require(URL(string: "https://h/v1"))))
        #expect(sent.httpMethod == "GET")
        #expect(sent.httpBody == nil)
        #expect(sent.allHTTPHeaderFields?.isEmpty != false)
    }

    @Test("An encoded request has no framing header fields, and its media type is a separate property")
    func pieces() throws {
        let encoded = try Request.make(.POST) {
            $0.headers = ["X": " 1 ", "A": "2", "x": "3"]
            $0.formParameters = ["a": "é"]
            $0.options.timeout = .seconds(4)
        }.encode()
        #expect(encoded.method == .POST)
        #expect(encoded.url == "https://h/v1")
        #expect(encoded.timeout == .seconds(4))
        #expect(encoded.headers == ["X": "1", "A": "2", "x": "3"])
        #expect(encoded.contentType == "application/x-www-form-urlencoded")
        #expect(encoded.body == Data("a=%C3%A9".utf8))
        #expect(try encoded.urlRequest() == encoded.urlRequestValue)
        #expect(
            encoded.urlRequestValue.allHTTPHeaderFields == [
                "X": "1, 3", "A": "2", "Content-Type": "application/x-www-form-urlencoded",
            ])
    }

    @Test("Encoding is deterministic, and changing a copy does not affect the original")
    func valueSemantics() throws {
        let request = Request.make(.POST) {
            $0.headers = ["A": "1"]
            $0.parameters = Parameters(["b": [1, ["x": 2.5]], "a": "é"] as [String: Any])
        }
        var copy = request
        copy.headers["A"] = "2"
        copy.parameters = ["c": 3]
        copy.method = .PUT
        let first = try request.urlRequest()
        #expect(try request.urlRequest() == first)
        #expect(first.httpMethod == "POST")
        #expect(first.httpBody == Data("a=%C3%A9&b=1&b%5Bx%5D=2.5".utf8))
        #expect(first.allHTTPHeaderFields?["A"] == "1")
    }
}
