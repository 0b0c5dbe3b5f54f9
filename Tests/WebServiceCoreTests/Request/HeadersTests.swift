import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct HeadersTests {
    @Test("Header fields preserve their order, their case and repeated names")
    func order() {
        var headers: Headers = ["B": "1", "a": "2", "b": "3"]
        headers.add("4", for: "A")
        #expect(headers.map { "\($0.name)=\($0.value)" } == ["B=1", "a=2", "b=3", "A=4"])
        #expect(headers.fields == Headers([("B", "1"), ("a", "2"), ("b", "3"), ("A", "4")]).fields)
        #expect(!headers.isEmpty)
        #expect(Headers().isEmpty)
    }

    @Test(
        "Field names are compared without regard to ASCII case",
        arguments: ["ETag", "etag", "ETAG", "eTaG"])
    func caseInsensitive(name: String) {
        var headers: Headers = ["X": "1", "ETag": "a"]
        #expect(headers[name] == "a")
        #expect(headers.values(for: Headers.Name(name)) == ["a"])
        headers[name] = "b"
        #expect(headers.map { "\($0.name)=\($0.value)" } == ["X=1", "\(name)=b"])
        headers[name] = nil
        #expect(headers == ["X": "1"])
    }

    @Test(
        "Case is ignored only for ASCII letters in field names",
        arguments: [
            ("If-Match", "ıf-Match"), ("IF-MATCH", "İF-MATCH"), ("K", "\u{212A}"), ("X-S", "X-ſ"), ("X-É", "x-é"),
            ("[", "{"), ("@", "`"),
            ("X-\u{E9}", "X-e\u{301}"), ("A", "A "),
        ])
    func onlyASCII(name: String, other: String) {
        var headers: Headers = [:]
        headers[name] = "a"
        #expect(headers[other] == nil)
        headers[other] = "b"
        #expect(headers.fields.count == 2)
        #expect(headers[name] == "a")
        #expect(headers[other] == "b")
    }

    @Test("The values of a repeated field are combined in order, separated by commas")
    func combined() {
        let headers: Headers = ["Accept": "a", "X": "x", "accept": "b, c", "ACCEPT": ""]
        #expect(headers[.accept] == "a, b, c, ")
        #expect(headers.values(for: .accept) == ["a", "b, c", ""])
        #expect(headers["Y"] == nil)
        #expect(headers.values(for: "Y").isEmpty)
    }

    @Test("Setting a field again in a different case replaces its value at its original position")
    func lastSetWins() throws {
        for _ in 0..<1_000 {
            var headers: Headers = ["A": "1", "authorization": "old", "B": "2", "AUTHORIZATION": "older", "C": "3"]
            headers["Authorization"] = "first"
            headers["authorization"] = "last"
            #expect(headers.map { "\($0.name)=\($0.value)" } == ["A=1", "authorization=last", "B=2", "C=3"])
            let request = Request.make { $0.headers = headers }
            #expect(
                try request.urlRequest().allHTTPHeaderFields == ["A": "1", "authorization": "last", "B": "2", "C": "3"])
        }
    }

    @Test("Repeated fields of a literal are combined into one field deterministically")
    func repeatedIsDeterministic() throws {
        for _ in 0..<1_000 {
            let request = Request.make { $0.headers = ["x-thing": "a", "X-Thing": "b", "Z": "z", "X-THING": "c"] }
            #expect(try request.urlRequest().allHTTPHeaderFields == ["x-thing": "a, b, c", "Z": "z"])
        }
    }

    @Test("Repeated Cookie fields are joined with a semicolon, as RFC 6265 requires")
    func cookies() throws {
        let request = Request.make { $0.headers = ["Cookie": "a=1", "COOKIE": "b=2; c=3", "cookie": "d=4"] }
        #expect(try request.urlRequest().allHTTPHeaderFields == ["Cookie": "a=1; b=2; c=3; d=4"])
    }

    @Test("Removing a field removes all its occurrences, and removing a missing field has no effect")
    func remove() {
        var headers: Headers = ["A": "1", "b": "2", "a": "3"]
        headers["a"] = nil
        #expect(headers == ["b": "2"])
        headers["a"] = nil
        #expect(headers == ["b": "2"])
        headers[.accept] = "x"
        #expect(headers == ["b": "2", "Accept": "x"])
    }

    @Test("Folded lines of a response field are joined with a space (RFC 9112, section 5.2)")
    func continuationLines() throws {
        let text = "HTTP/1.1 200 OK\r\nX-A: one\r\n two\r\n\tthree\r\n \t four\r\nX-B: b\r\n\r\n"
        let head = try #require(ResponseHead(bytes: Array(text.utf8), url: "https://h/"))
        #expect(head.headers == ["X-A": "one two three four", "X-B": "b"])
        #expect(head["x-a"] == "one two three four")
    }

    @Test(
        "A status line needs a three-digit status of at least 100, any HTTP version and an optional reason")
    func statusLines() {
        func status(_ line: String) -> Int? {
            ResponseHead(bytes: Array("\(line)\r\n\r\n".utf8), url: "https://h/")?.status
        }
        #expect(status("HTTP/1.1 200 OK") == 200)
        #expect(status("HTTP/1.0 404") == 404)
        #expect(status("HTTP/2 999 ") == 999)
        #expect(status("HTTP/1.1 100 Continue") == 100)
        for wrong in ["099", "20", "2000", "0200", "", "+20", "2 0", "20x", "-200", String(repeating: "9", count: 400)]
        {
            #expect(status("HTTP/1.1 \(wrong)") == nil, "\(wrong)")
        }
        for line in ["", "HTTP/1.1", "ICY 200 OK", "200 OK", " HTTP/1.1 200 OK"] {
            #expect(status(line) == nil, "\(line)")
        }
    }

    @Test("A constant, a literal and a raw value create equal field names")
    func names() {
        #expect(Headers.Name.accept == "Accept")
        #expect(Headers.Name("Accept") == .accept)
        #expect(Headers.Name(rawValue: "Accept") == .accept)
        let constants: [(Headers.Name, String)] = [
            (.acceptLanguage, "Accept-Language"), (.authorization, "Authorization"), (.cacheControl, "Cache-Control"),
            (.contentLength, "Content-Length"),
            (.contentType, "Content-Type"), (.cookie, "Cookie"), (.eTag, "ETag"), (.ifNoneMatch, "If-None-Match"),
            (.location, "Location"),
            (.retryAfter, "Retry-After"), (.setCookie, "Set-Cookie"), (.userAgent, "User-Agent"),
        ]
        for (name, text) in constants { #expect(name.rawValue == text) }
    }

    @Test(
        "Fields of a dictionary are sorted by name, and removing a name returns its values")
    func dictionary() {
        let dictionary = ["b": "2", "A": "1", "c": "3"]
        var headers = Headers(dictionary)
        #expect(headers.map(\.name) == ["A", "b", "c"])
        #expect(headers.map(\.value) == ["1", "2", "3"])
        headers.add("4", for: "B")
        #expect(headers.count == 4)
        #expect(headers.remove("B") == ["2", "4"])
        #expect(headers.remove("B").isEmpty)
        #expect(headers.count == 2)
    }
}
