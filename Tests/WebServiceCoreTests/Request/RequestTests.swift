import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct RequestTests {
    /// Requests that contain a secret, each in a different part.
    private func requestsWithSecrets() throws -> [Request] {
        var plain = try Request.make(.POST).urlRequest()
        plain.httpBody = Data("s3cret".utf8)
        plain.allHTTPHeaderFields = ["Authorization": "s3cret"]
        plain.url = URL(string: "https://user:s3cret@h/x?token=s3cret")
        return [
            Request.make(.GET, "https://h/v1?token=s3cret#s3cret"), Request.make(.GET, "https://user:s3cret@h/x"),
            Request.make(.GET, "https://s3cret@h/x"), Request(plain),
            Request.make { $0.queryParameters = ["token": "s3cret"] },
            Request.make { $0.headers = ["Authorization": "Bearer s3cret", "Cookie": "s3cret"] },
            Request.make { $0.parameters = ["token": "s3cret"] },
            Request.make(.POST) { $0.parameters = ["token": "s3cret"] },
            Request.make(.POST) { $0.formParameters = ["password": "s3cret"] },
            Request.make(.POST) { $0.body = Data("s3cret".utf8) },
            try Request.make(.POST) { try $0.serialize(json: ["password": "s3cret"]) },
            Request.make(.POST) { $0.contentType = "s3cret" },
            Request.make(Request.Method(rawValue: "GET /s3cret")), Request.make(.GET, "s3cret"),
            Request.make(.GET, "ftp://s3cret"),
            WebService(baseURLString: "https://user:s3cret@h").request(.GET, path: "x?s3cret"),
            WebService(baseURLString: "https://h").request(.GET, path: "x?s3cret#s3cret"),
            WebService(baseURLString: "https://h").request(.GET, path: "{id}", pathParameters: ["id": "s3cret/.."]),
        ]
    }

    @Test("The descriptions of a request contain no secret")
    func requestHidesSecrets() throws {
        for request in try requestsWithSecrets() {
            let log = printed(request)
            #expect(!log.contains("s3cret"), "\(log)")
            #expect(!log.contains("\r"), "\(log)")
            #expect(log.contains(request.description))
            #expect(request.debugDescription == request.description)
        }
    }

    @Test(
        "The descriptions of an error contain no secret of its request, response, body or underlying error")
    func errorHidesSecrets() throws {
        let url = try #require(URL(string: "https://h/?token=s3cret"))
        let response = HTTPURLResponse(
            url: url, statusCode: 401, httpVersion: nil, headerFields: ["Set-Cookie": "s3cret"])
        for request in try requestsWithSecrets() {
            let error = WebServiceError(
                .decoding, "no JSON", request: request,
                response: Response(data: Data("s3cret".utf8), urlResponse: response),
                underlying: TestError(name: "s3cret"))
            #expect(!printed(error).contains("s3cret"))
            #expect(error.description == "decoding: no JSON" + (request.url == nil ? "" : " (\(request))"))
            #expect(error.debugDescription == error.description)
            #expect(error.localizedDescription == "no JSON.")
            if case .failure(let error) = Result(catching: { try request.urlRequest() }) {
                #expect(!printed(error).contains("s3cret"), "\(error)")
            }
        }
    }

    @Test(
        "The description of a request is its method and its URL without the query",
        arguments: [
            ("GET", "https://H/v1/a b?q#f", "GET https://h/v1/a%20b"), ("post", "https://h", "POST https://h"),
            ("PURGE", "ftp://h", "PURGE (invalid URL)"),
            ("GE T", "https://h/x", "(invalid method) https://h/x"), ("A\r\nB", "", "(invalid method) (invalid URL)"),
        ])
    func description(method: String, url: String, text: String) {
        #expect(Request(Request.Method(rawValue: method), url: url).description == text)
    }

    @Test("A dump contains only the description")
    func dumped() {
        var text = ""
        dump(Request.make { $0.headers = ["A": "s3cret"] }, to: &text)
        #expect(text.contains("GET https://h/v1"))
        #expect(text.split(separator: "\n").count == 2)
    }

    @Test("A new request has the documented defaults")
    func defaults() {
        let request = Request(url: "https://h")
        #expect(request.method == .GET)
        #expect(request.headers.isEmpty)
        #expect(request.queryParameters == nil)
        #expect(request.parameters == nil)
        #expect(request.body == nil)
        #expect(request.options.shouldHandleCookies)
        #expect(request.options.cachePolicy == .useProtocolCachePolicy)
        #expect(request.options.idleTimeout == .seconds(60))
        #expect(request.options.requestDeadline == .seconds(600))
        #expect(request.contentType == nil)
        #expect(request.userAgent == nil)
        #expect(request.formParameters == nil)
        #expect(request.formParametersAllowedCharacters == nil)
    }

    @Test("The URL can be replaced, and encoding a request with a nil or invalid URL is an error")
    func url() throws {
        var request = Request(.POST, url: try #require(URL(string: "https://h/a?b#c")))
        #expect(request.url?.absoluteString == "https://h/a?b")
        request.url = URL(string: "HTTP://Other:81/x")
        #expect(request.url?.absoluteString == "http://other:81/x")
        #expect(request.method == .POST)
        for bad in [
            nil, URL(string: "ftp://h"), URL(fileURLWithPath: "/etc/passwd"), URL(string: "x"),
            URL(string: "https://u:p@h"),
        ] {
            request.url = bad
            #expect(request.url == nil)
            expectFailure(.invalidURL) { try request.urlRequest() }
        }
    }

    @Test(
        "The template of a path has its placeholders, and neither a query nor the base path",
        arguments: [
            ("/brewers/{id}", "/brewers/{id}"), ("brewers/{id}?state={id}#a", "/brewers/{id}"), ("", "/"),
            ("?a=b", "/"), ("https://other/brewers/{id}", nil),
        ])
    func pathTemplate(_ path: String, _ template: String?) {
        let service = WebService(baseURLString: "https://h/v1")
        #expect(service.request(.GET, path: path, pathParameters: ["id": "s3cret"]).pathTemplate == template)
    }

    @Test("A request with an absolute URL has no template of its path")
    func absolutePathTemplate() {
        var request = WebService(baseURLString: "https://h").request(.GET, path: "/a")
        request.url = URL(string: "https://h/b")
        #expect(request.pathTemplate == nil)
        #expect(Request(.GET, url: "https://h/a").pathTemplate == nil)
    }
}
