import Foundation
import TestSupport
import Testing
import WebServiceCore

@testable import WebServiceMocking
@testable import WebServiceServer

@Suite(.permit) struct RequestParserTests {
    /// Returns all events of bytes that arrive in pieces. The parser is queried after each piece.
    private func events(_ pieces: [some Collection<UInt8>], limits: RequestParser.Limits = .init()) -> [RequestParser
        .Event]
    {
        var parser = RequestParser(limits: limits)
        var events: [RequestParser.Event] = []
        for piece in pieces {
            parser.append(piece)
            while let event = parser.next() {
                events.append(event)
                if case .violation = event { return events }
            }
        }
        return events
    }

    private func events(_ text: String, limits: RequestParser.Limits = .init()) -> [RequestParser.Event] {
        events([Array(text.utf8)], limits: limits)
    }

    private func request(_ text: String) throws -> ReceivedRequest {
        guard case .request(let request) = try #require(events(text).last) else {
            throw WebServiceError(.mockServer, "\(events(text))")
        }
        return request
    }

    private func status(_ text: String, limits: RequestParser.Limits = .init()) -> Int? {
        if case .violation(let violation) = events(text, limits: limits).last { violation.status } else { nil }
    }

    @Test("Every part of a request is parsed")
    func wholeRequest() throws {
        let text =
            "POST /a%20b?q=a+b%21&flag&=x&q=%zz HTTP/1.1\r\nHost: a.test\r\nX-Tab: \t one\ttwo \t\r\nx-tab:three\r\n"
            + "Content-Length: 7\r\n\r\nn=1&m=+"
        let request = try request(text)
        #expect(request.method == .POST)
        #expect(request.target == "/a%20b?q=a+b%21&flag&=x&q=%zz")
        #expect(request.path == "/a%20b")
        #expect(request.query == "q=a+b%21&flag&=x&q=%zz")
        #expect(
            request.queryItems.map { [$0.name, $0.value] } == [
                ["q", "a b!"], ["flag", ""], ["", "x"], ["q", "%zz"],
            ])
        #expect(request.version == "HTTP/1.1")
        #expect(request.headers == ["Host": "a.test", "X-Tab": "one\ttwo", "x-tab": "three", "Content-Length": "7"])
        #expect(request.body == Data("n=1&m=+".utf8))
        #expect(request.formItems == [.init(name: "n", value: "1"), .init(name: "m", value: " ")])
        #expect(request.rawBytes == Data(text.utf8))
    }

    @Test(
        "The path excludes the origin and the query",
        arguments: [
            ("/", "/", nil), ("/a?b?c=1", "/a", "b?c=1"), ("/?", "/", ""), ("http://a.test/x?y", "/x", "y"),
            ("http://a.test", "/", nil),
            ("http://a.test?y", "/", "y"), ("/go?to=http://b.test/", "/go", "to=http://b.test/"),
            ("//b/c", "//b/c", nil),
        ] as [(String, String, String?)])
    func path(target: String, path: String, query: String?) throws {
        let request = try request("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(request.path == path)
        #expect(request.query == query)
        #expect(request.target == target)
    }

    @Test(
        "Forms are decoded as the WHATWG URL Standard specifies",
        arguments: [
            ("", []), ("&", []), ("a", [["a", ""]]), ("=", [["", ""]]), ("a=b=c", [["a", "b=c"]]),
            ("a+b=%2B", [["a b", "+"]]), ("%", [["%", ""]]),
            ("%4", [["%4", ""]]), ("%e2%82%ac=%E2%82", [["\u{20AC}", "\u{FFFD}"]]), ("a&&b", [["a", ""], ["b", ""]]),
            ("%00=%0a", [["\0", "\n"]]),
        ] as [(String, [[String]])])
    func form(text: String, expected: [[String]]) {
        #expect(ReceivedRequest.Item.decode(text.utf8).map { [$0.name, $0.value] } == expected)
    }

    @Test("Chunks are joined, and extensions and trailers are dropped")
    func chunked() throws {
        let text =
            "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n00a\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n"
        let request = try request(text)
        #expect(request.body == Data("abc0123456789".utf8))
        #expect(request.rawBytes == Data(text.utf8))
        #expect(request.headers["X-Sum"] == nil)
    }

    @Test("The same requests are parsed wherever the bytes are split, and byte by byte")
    func cuts() throws {
        let text =
            "\r\nGET /1?a HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n\r\n\r\n"
            + "PUT /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;e\r\nhi\r\n1\r\n!\r\n0\r\nA: b\r\n\r\nGET /4 HTTP/1.0\r\n\r\n"
        let bytes = Array(text.utf8)
        let whole = events([bytes])
        let paths = whole.map { event in if case .request(let request) = event { request.path } else { "?" } }
        #expect(paths == ["/1", "/2", "/3", "/4"])
        #expect(events(bytes.map { [$0] }) == whole)
        for cut in 0...bytes.count {
            #expect(events([bytes[..<cut], bytes[cut...]]) == whole, "cut at \(cut)")
        }
    }

    @Test("A client that expects a 100 receives one only if its body has not started")
    func expectContinue() throws {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n"
        #expect(events([Array(head.utf8), Array("hi".utf8)]).first == .continueExpected)
        #expect(events([Array(head.utf8), Array("hi".utf8)]).count == 2)
        #expect(events(head + "hi").count == 1)
        #expect(events(head.replacing("Length: 2", with: "Length: 0")).count == 1)
        #expect(events(head.replacing("HTTP/1.1", with: "HTTP/1.0")).isEmpty)
    }

    static let wrong: [(Int, String)] = [
        (400, "GET / HTTP/1.1\nHost: a\r\n\r\n"), (400, "GET / HTTP/1.1\r\nHost: a\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: a\r\n\n"),
        (400, "GET / HTTP/1.1\rHost: a\r\n\r\n"), (400, "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"), (400, "\n"),
        (400, "\r\n\r\nGET / HTTP/1.1\r\n"),
        (400, "GET  / HTTP/1.1\r\n"), (400, "GET /  HTTP/1.1\r\n"), (400, " GET / HTTP/1.1\r\n"),
        (400, "GET / HTTP/1.1 \r\n"), (400, "GET /\r\n"),
        (400, "GET\t/ HTTP/1.1\r\n"), (400, "G(T / HTTP/1.1\r\n"), (400, "G\0T / HTTP/1.1\r\n"),
        (400, "G\u{C9}T / HTTP/1.1\r\n"),
        (400, "GET a HTTP/1.1\r\n"), (400, "GET  HTTP/1.1\r\n"), (400, "GET /\0 HTTP/1.1\r\n"),
        (400, "GET /\u{E9} HTTP/1.1\r\n"),
        (400, "GET /\u{7F} HTTP/1.1\r\n"), (400, "GET / HTTP\r\n"), (400, "GET / HTTP/1\r\n"),
        (400, "GET / HTTP/1.\r\n"),
        (400, "GET / HTTP/11\r\n"),
        (400, "GET / http/1.1\r\n"), (400, "GET / HTTP/1.1.1\r\n"), (400, "GET / HTTP/a.b\r\n"),
        (400, "GET / XTTP/1.1\r\n"),
        (400, "GET / HTTP/1,1\r\n"),
        (505, "GET / HTTP/2.0\r\n"), (505, "GET / HTTP/0.9\r\n"), (505, "GET / HTTP/9.9\r\n"),
        (505, "PRI * HTTP/2.0\r\n"),
        (400, "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\n"),
    ]

    @Test("An invalid request line is refused", arguments: wrong)
    func wrongRequestLine(expected: Int, text: String) {
        #expect(status(text) == expected)
    }

    @Test(
        "Invalid header fields are refused",
        arguments: [
            "A : b", " A: b", "A\u{7F}: b", ": b", "A", "", "A: b\r\n folded", "A: b\r\n\tfolded", "A: b\0",
            "A: b\u{1}", "A: b\u{7F}", "A: b\rc",
            "\u{E9}: b", "A(: b", "A: b\r", "Host: b",
        ])
    func wrongHeaders(lines: String) {
        #expect(status("GET / HTTP/1.1\r\n\(lines)\r\nHost: a\r\n\r\n") == 400)
    }

    @Test(
        "Invalid or contradictory framing is refused",
        arguments: [
            (400, "Content-Length: 1\r\nTransfer-Encoding: chunked"),
            (400, "Transfer-Encoding: chunked\r\nContent-Length: 0"),
            (400, "Content-Length: 1\r\nContent-Length: 1"), (400, "Content-Length: 1\r\ncontent-length: 2"),
            (400, "Content-Length: 1, 1"),
            (400, "Content-Length: +1"), (400, "Content-Length: -1"), (400, "Content-Length: 0x1"),
            (400, "Content-Length: 1 1"), (400, "Content-Length:"),
            (400, "Content-Length: 5abc"), (400, "Content-Length: \u{FF11}"), (413, "Content-Length: 268435457"),
            (413, "Content-Length: 9223372036854775807"),
            (413, "Content-Length: 9223372036854775808"), (413, "Content-Length: 99999999999999999999999"),
            (413, "Content-Length: 18446744073709551617"),
            (501, "Transfer-Encoding: gzip, chunked"), (501, "Transfer-Encoding: identity"),
            (501, "Transfer-Encoding: chunked, chunked"),
            (501, "Transfer-Encoding:"), (501, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            (400, "Transfer-Encoding: \u{B}chunked"),
        ])
    func wrongFraming(expected: Int, lines: String) {
        let status = status("POST / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n\r\n")
        #expect(status == expected)
    }

    @Test("A Host field is required only in HTTP/1.1, and a transfer coding is refused in HTTP/1.0")
    func versions() {
        #expect(status("GET / HTTP/1.1\r\n\r\n") == 400)
        #expect(status("GET / HTTP/1.0\r\n\r\n") == nil)
        #expect(status("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n") == 400)
        #expect(status("GET / HTTP/1.9\r\nHost: a\r\n\r\n") == nil)
    }

    @Test(
        "Invalid chunks are refused",
        arguments: [
            (400, "\r\n"), (400, "x\r\n"), (400, "-1\r\n"), (400, "+1\r\na\r\n"), (400, "0x1\r\na\r\n"),
            (400, " 1\r\na\r\n"),
            (400, "1 \r\na\r\n"), (400, "1\na\r\n"),
            (400, "1\r\nab\r\n"), (400, "1\r\na\n\r"), (400, "1;\0\r\na\r\n"), (400, "1;a\rb\r\na\r\n"),
            (413, "10000001\r\n"),
            (413, "7fffffffffffffff\r\n"),
            (413, "8000000000000000\r\n"), (413, "ffffffffffffffff\r\n"), (413, "fffffffffffffffffffffff\r\n"),
            (413, "10000000000000001\r\n"),
            (400, "0\r\nbad\r\n"), (400, "0\r\n A: b\r\n"), (400, "0\r\n\n"),
            (400, "1;\(String(repeating: "x", count: 4096))\r\n"),
        ])
    func wrongChunks(expected: Int, chunks: String) {
        #expect(status("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)") == expected)
    }

    @Test("Input at the limit is accepted, and one byte more is refused")
    func limits() {
        let limits = RequestParser.Limits(requestLine: 40, headers: 60, body: 20, chunkLine: 10)
        func line(_ length: Int) -> String { "GET /\(String(repeating: "a", count: length - 16)) HTTP/1.1\r\n" }
        func headers(_ length: Int) -> String { "Host: a\r\nX: \(String(repeating: "a", count: length - 16))\r\n\r\n" }
        #expect(status(line(40) + headers(60), limits: limits) == nil)
        #expect(status(line(41) + headers(60), limits: limits) == 414)
        #expect(status(line(40) + headers(61), limits: limits) == 431)
        #expect(status(String(repeating: "a", count: 41), limits: limits) == 414)
        #expect(status(line(40) + String(repeating: "a", count: 61), limits: limits) == 431)
        let post = "POST / HTTP/1.1\r\nHost: a\r\n"
        #expect(
            events(post + "Content-Length: 20\r\n\r\n" + String(repeating: "a", count: 20), limits: limits).count == 1)
        #expect(status(post + "Content-Length: 20\r\n\r\n" + String(repeating: "a", count: 20), limits: limits) == nil)
        #expect(status(post + "Content-Length: 21\r\n\r\n", limits: limits) == 413)
        let chunked = "\(post)Transfer-Encoding: chunked\r\n\r\n"
        #expect(status(chunked + "b\r\n12345678901\r\n0\r\n\r\n", limits: limits) == nil)
        #expect(status(chunked + "b\r\n12345678901\r\n5\r\n", limits: limits) == 413)
        #expect(status(chunked + "1;1234567\r\n", limits: limits) == 400)
    }

    @Test("Endless lines, header fields and empty lines end with an error")
    func endless() {
        let piece = Array(String(repeating: "a", count: 4096).utf8)
        #expect(events([[UInt8]](repeating: piece, count: 100)).count == 1)
        let fields = Array((0..<100).map { "X-\($0): \(String(repeating: "v", count: 40))\r\n" }.joined().utf8)
        #expect(events([Array("GET / HTTP/1.1\r\n".utf8)] + [[UInt8]](repeating: fields, count: 100)).count == 1)
        #expect(status(String(repeating: "\r\n", count: 3)) == 400)
    }

    @Test("After an error, no further request is parsed", arguments: ["bad\r\n", "bad\n"])
    func staysFailed(bytes: String) {
        var parser = RequestParser()
        parser.append(Array(bytes.utf8))
        let first = parser.next()
        parser.append(Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        #expect(first != nil)
        #expect(parser.next() == first)
    }

    @Test("Random and damaged bytes result in the same events however they are split")
    func fuzz() {
        var random = SeededGenerator(seed: 49)
        let chunked =
            "POST /a?b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nT: v\r\n\r\n"
        let good = Array("\(chunked)GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc".utf8)
        for round in 0..<4000 {
            var bytes = good
            if round.isMultiple(of: 4) {
                bytes = (0..<Int.random(in: 0..<200, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
            } else {
                for _ in 0...Int.random(in: 0..<4, using: &random) {
                    let place = Int.random(in: 0..<bytes.count, using: &random)
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                    case 1: bytes.remove(at: place)
                    default: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: place)
                    }
                }
            }
            let cut = Int.random(in: 0...bytes.count, using: &random)
            #expect(events([bytes[..<cut], bytes[cut...]]) == events(bytes.map { [$0] }))
        }
    }
}
