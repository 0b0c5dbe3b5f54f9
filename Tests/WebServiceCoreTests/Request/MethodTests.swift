import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct MethodTests {
    @Test(
        "Standard methods are converted to upper case",
        arguments: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "QUERY", "OPTIONS", "TRACE", "CONNECT"])
    func standard(name: String) throws {
        for spelled in [name, name.lowercased(), name.capitalized] {
            #expect(Request.Method(rawValue: spelled).rawValue == name)
            #expect(try Request.make(Request.Method(rawValue: spelled)).urlRequest().httpMethod == name)
        }
    }

    @Test(
        "Any other token is sent unchanged as the method",
        arguments: [
            "PURGE", "purge", "Report", "M-SEARCH", "GETS", "ge", "x", "!#$%&'*+-.^_`|~", "get2", "VERSION-CONTROL",
        ])
    func others(name: String) throws {
        #expect(Request.Method(rawValue: name).rawValue == name)
        #expect(try Request.make(Request.Method(rawValue: name)).urlRequest().httpMethod == name)
    }

    @Test(
        "A method that is not a token is rejected, and the error does not contain it",
        arguments: [
            "", " ", "GE T", "GET ", " GET", "GET /s3cret HTTP/1.1\r\nX:", "GET\r\n", "GET\u{0}", "GÉT", "poſt",
            "optıons", "poﬅ", "ＧＥＴ", "GET/",
            "GET:", "(GET)", "\u{1F4A9}",
        ])
    func refused(name: String) {
        let request = Request.make(Request.Method(rawValue: name))
        #expect(request.method.rawValue == name)
        expectFailure(.invalidMethod, hiding: ["s3cret"]) { try request.urlRequest() }
        #expect(!request.description.utf8.contains { $0 < 0x20 })
        #expect(!printed(request).contains("s3cret"))
    }

    @Test(
        "A byte that is not a token character is rejected at any position in a method",
        arguments: 0..<256)
    func bytes(code: Int) throws {
        for name in HeaderChecksTests.placed(code, in: "PROBE") {
            let request = Request.make(Request.Method(rawValue: name))
            if HeaderChecksTests.tokenBytes.contains(code) {
                #expect(try request.urlRequest().httpMethod == name)
            } else {
                expectFailure(.invalidMethod) { try request.urlRequest() }
            }
        }
    }

    @Test("The method of a URLRequest is normalized in the same way")
    func plainRequest() throws {
        var plain = try Request.make().urlRequest()
        for (name, read) in [("post", "POST"), ("purge", "purge")] {
            plain.httpMethod = name
            #expect(Request(plain).method.rawValue == read)
        }
    }

    @Test("Constants, literals and raw values create equal methods, whose description is the name that is sent")
    func spelling() {
        #expect(Request.Method.PATCH == "patch")
        #expect(Request.Method(rawValue: "PATCH") == .PATCH)
        #expect("\(Request.Method.PATCH)" == "PATCH")
        #expect(
            [Request.Method.GET, .HEAD, .POST, .PUT, .PATCH, .DELETE, .OPTIONS].map(\.rawValue) == [
                "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS",
            ])
    }

    @Test(
        "GET, HEAD and DELETE encode parameters in the URL, and all other methods in the body",
        arguments: [
            ("GET", true), ("head", true), ("DELETE", true), ("POST", false), ("PUT", false), ("PATCH", false),
            ("OPTIONS", false), ("PURGE", false),
        ])
    func parameters(name: String, inURL: Bool) throws {
        let request = Request.make(Request.Method(rawValue: name)) { $0.parameters = ["a": 1] }
        #expect(request.method.encodesParametersInURL == inURL)
        #expect(try request.encodedQuery() == (inURL ? "a=1" : nil))
        #expect(try request.encodedBody() == (inURL ? nil : "a=1"))
    }
}
