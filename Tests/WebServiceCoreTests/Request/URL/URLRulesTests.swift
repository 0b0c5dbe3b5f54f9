import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// The rules in the table of the documentation of ``WebService/absoluteURL(_:pathParameters:)``.
@Suite(.permit) struct URLRulesTests {
    struct Rule: Sendable, CustomTestStringConvertible {
        var path: String
        var values: Parameters?
        /// The expected URL, or `nil` if the rule is an error.
        var url: String?

        init(_ path: String, _ url: String?) {
            self.init(path, nil, url)
        }

        init(_ path: String, _ values: Parameters?, _ url: String?) {
            self.path = path
            self.values = values
            self.url = url
        }

        var testDescription: String { "\(path.debugDescription) \(values.map { "\($0.map(\.key))" } ?? "")" }
    }

    static let rules = [
        Rule("brewers", "https://h/v1/brewers"), Rule("/brewers", "https://h/v1/brewers"),
        Rule("/", "https://h/v1/"),
        Rule("brewers/", "https://h/v1/brewers/"),
        Rule("a/../b", "https://h/v1/b"), Rule("a/%2e%2e/b", "https://h/v1/b"), Rule("a/%2E./b", "https://h/v1/b"),
        Rule("%2e/a/%2E/b/%2e", "https://h/v1/a/b/"),
        Rule("../b", nil), Rule("..", nil), Rule("/..", nil), Rule("a/../../b", nil), Rule("%2e%2e/b", nil),
        Rule("..%2fb", nil),
        Rule("..%5Cb", nil), Rule("a%2F..%2f..%2Fb", nil), Rule(#"..\b"#, nil), Rule("./../b", nil),
        Rule("a//../../../b", nil),
        Rule("//evil.host/x", "https://h/v1/evil.host/x"),
        Rule(#"/\evil"#, "https://h/v1/%5Cevil"),
        Rule("@evil.host", "https://h/v1/@evil.host"), Rule(":8080/x", "https://h/v1/:8080/x"),
        Rule("brewers?state=ny", "https://h/v1/brewers?state=ny"),
        Rule("brewers#top", "https://h/v1/brewers"),
        Rule("a b/é/100%", "https://h/v1/a%20b/%C3%A9/100%25"), Rule("%41", "https://h/v1/%41"),
        Rule("https://other/x", "https://other/x"), Rule("HTTP://OTHER/X", "http://other/X"),
        Rule("http://other//x//y", "http://other//x//y"),
        Rule("ftp://h", nil), Rule("file:/x", nil), Rule("mailto:x", nil), Rule("x:y", nil),
        Rule("/users/{id}", ["id": "a/b"], "https://h/v1/users/a%2Fb"),
        Rule("/users/{id}", ["id": ".."], nil), Rule("/users/{id}", ["id": ""], nil), Rule("/users/{id}", nil, nil),
        Rule("/users/{id}", [:], nil),
    ]

    @Test(
        "A path resolves to the URL or the error in the table of rules",
        arguments: rules,
        ["https://h/v1", "https://h/v1/"])
    func rule(_ rule: Rule, base: String) throws {
        let service = WebService(baseURLString: base)
        let request = service.request(.GET, path: rule.path, pathParameters: rule.values)
        if let url = rule.url {
            #expect(try service.absoluteURL(rule.path, pathParameters: rule.values).absoluteString == url)
            #expect(try request.urlRequest().url?.absoluteString == url)
            #expect(request.url?.absoluteString == url)
        } else {
            expectFailure(.invalidURL) { try service.absoluteURL(rule.path, pathParameters: rule.values) }
            expectFailure(.invalidURL) { try request.urlRequest() }
            #expect(request.url == nil)
        }
    }

    @Test(
        "An empty path resolves to the unchanged base URL",
        arguments: [
            "https://h/v1", "https://h/v1/", "https://h", "https://h/", "https://h:81/v1?k=1", "https://[::1]/a",
        ])
    func emptyPath(base: String) throws {
        #expect(try WebService(baseURLString: base).absoluteURL("").absoluteString == base)
    }

    @Test(
        "A path that is only a query preserves the path of the base URL", arguments: ["https://h/v1", "https://h/v1/"])
    func queryOnly(base: String) throws {
        let service = WebService(baseURLString: base)
        #expect(try service.absoluteURL("?state=ny").absoluteString == base + "?state=ny")
        var request = service.request(.GET, path: "?state=ny")
        request.queryParameters = ["page": 2]
        #expect(try request.urlRequest().url?.absoluteString == base + "?state=ny&page=2")
        #expect(try service.absoluteURL("#top?no=query").absoluteString == base)
    }

    @Test("Query parameters are appended to the query of a path")
    func addedToQuery() throws {
        var request = WebService(baseURLString: "https://h/v1").request(.GET, path: "brewers?state=ny#top")
        request.queryParameters = ["state": "nj"]
        #expect(try request.urlRequest().url?.absoluteString == "https://h/v1/brewers?state=ny&state=nj")
    }

    @Test(
        "A path and a base URL are joined with exactly one slash",
        arguments: [
            ("https://h", "x", "https://h/x"), ("https://h/", "x", "https://h/x"), ("https://h/", "/x", "https://h/x"),
            ("https://h", "//x", "https://h/x"),
            ("https://h///", "x", "https://h/x"), ("https://h/v1//", "x", "https://h/v1/x"),
            ("https://h//v1", "x", "https://h//v1/x"),
            ("https://h/a/../v1", "x", "https://h/v1/x"), ("https://h/v1/.", "x", "https://h/v1/x"),
            ("https://h/v1?k=1", "x", "https://h/v1/x?k=1"),
            ("https://h/v1/?k=1", "x?l=2", "https://h/v1/x?k=1&l=2"),
            ("https://h/v1?k=1", "?l=2", "https://h/v1?k=1&l=2"),
            ("https://h?k=1", "x", "https://h/x?k=1"), ("https://h/v1#part", "x", "https://h/v1/x"),
            ("https://h/v1?k=1#part", "x", "https://h/v1/x?k=1"),
            ("https://h/v1#a?b", "x", "https://h/v1/x"), ("https://h:8443/v1", "x", "https://h:8443/v1/x"),
            ("https://h:/v1", "x", "https://h/v1/x"),
            ("https://h:00080/v1", "x", "https://h:80/v1/x"),
            ("HTTPS://API.Example.COM/V1", "X", "https://api.example.com/V1/X"),
            ("http://[::1]:8080/v1", "x", "http://[::1]:8080/v1/x"),
            ("http://[2001:DB8::1]", "x", "http://[2001:db8::1]/x"),
            ("https://h/a b/é", "x", "https://h/a%20b/%C3%A9/x"), ("https://h/a%20b", "x", "https://h/a%20b/x"),
            ("https://h/v1", "x//y", "https://h/v1/x//y"),
            ("https://h/v1?q=a b", "x", "https://h/v1/x?q=a%20b"), ("https://h/v1", "a.b/...", "https://h/v1/a.b/..."),
            ("https://h/v1", ".", "https://h/v1/"),
            ("https://h/v1", "a/..", "https://h/v1/"), ("https://h/v1", "a/./b/.", "https://h/v1/a/b/"),
            ("https://h/v1", ".hidden", "https://h/v1/.hidden"),
        ])
    func join(base: String, path: String, url: String) throws {
        #expect(try WebService(baseURLString: base).absoluteURL(path).absoluteString == url)
    }

    @Test("Without a base URL, the path must be an absolute URL")
    func noBase() throws {
        for service in [WebService(baseURL: nil), WebService(baseURLString: "")] {
            #expect(try service.absoluteURL("https://other/x?y").absoluteString == "https://other/x?y")
            for path in ["", "/", "brewers", "//other/x"] {
                expectFailure(.invalidURL, naming: ["base"], "\(path)") { try service.absoluteURL(path) }
            }
        }
    }

    @Test("An invalid base URL is an error of every request, including one with an absolute URL")
    func invalidBase() {
        let service = WebService(baseURLString: "ftp://h/v1")
        expectFailure(.invalidURL, naming: ["base URL", "ftp"]) { try service.absoluteURL("x") }
        expectFailure(.invalidURL, naming: ["base URL", "ftp"]) { try service.absoluteURL("https://other/x") }
        #expect(service.baseURL == nil)
    }

    @Test("The result of the URL builder is validated, and its error is rethrown or wrapped")
    func urlBuilder() throws {
        func url(_ builder: @escaping WebService.URLBuilder) throws -> String {
            try WebService(baseURLString: "https://h/v1", urlBuilder: builder).absoluteURL("x").absoluteString
        }
        #expect(
            try url { base, path in try #require(URL(string: "\(base?.absoluteString ?? "")/built/\(path)")) }
                == "https://h/v1/built/x")
        expectFailure(.invalidURL, naming: ["ftp"], hiding: ["s3cret"]) {
            try url { _, _ in try #require(URL(string: "ftp://h/s3cret")) }
        }
        expectFailure(.decoding, naming: ["own"]) { try url { _, _ in throw WebServiceError(.decoding, "own") } }
        let error = expectFailure(.invalidURL, naming: ["urlBuilder"]) {
            try url { _, _ in throw CocoaError(.fileNoSuchFile) }
        }
        #expect((error?.underlying as? CocoaError)?.code == .fileNoSuchFile)
    }

    @Test("A service with a URL builder rejects path parameters, which the builder does not receive")
    func urlBuilderWithParameters() throws {
        let service = WebService(
            baseURLString: "https://h", urlBuilder: { _, _ in try #require(URL(string: "https://h/x")) })
        #expect(try service.absoluteURL("x", pathParameters: [:]).absoluteString == "https://h/x")
        expectFailure(.invalidURL, naming: ["urlBuilder", "pathParameters"]) {
            try service.absoluteURL("x/{id}", pathParameters: ["id": 1])
        }
    }
}
