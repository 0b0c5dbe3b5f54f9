import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// The validation of header field names and values while a request is encoded.
@Suite(.permit) struct HeaderChecksTests {
    /// The token characters of RFC 9110, section 5.6.2, independent of the implementation.
    static let tokenBytes = Set(
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8.map(Int.init))

    /// A string with the scalar of the given code at its start, in its middle and at its end.
    static func placed(_ code: Int, in text: String) -> [String] {
        let scalar = String(Unicode.Scalar(UInt8(code)))
        return [scalar + text, text + scalar + text, text + scalar]
    }

    private func headers(_ name: String, _ value: String) throws -> [String: String]? {
        try Request.make { $0.headers = ["A": "1", name: value] }.urlRequest().allHTTPHeaderFields
    }

    @Test(
        "Only control characters are rejected in a value, and the error hides the value",
        arguments: 0..<256)
    func valueBytes(code: Int) throws {
        for value in Self.placed(code, in: "s3cret") {
            if code < 0x20 && code != 0x09 || code == 0x7F {
                expectFailure(.invalidHeader, naming: ["X-Probe"], hiding: ["s3cret"]) { try headers("X-Probe", value) }
            } else {
                let sent = value.trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
                #expect(try headers("X-Probe", value) == ["A": "1", "X-Probe": sent])
            }
        }
    }

    @Test(
        "A value that contains a line break or NUL is rejected, and the error hides the value",
        arguments: [
            "\r\n", "a\r\nb", "a\r\n b", "a\r\n\tb", "a\n b", "a\r b", "\r\nX: y", "a\r\n\r\nGET / HTTP/1.1\r\n",
            "a\r\n\u{301}", "\u{1F4A9}\r\n",
            " \r\n ", "a\u{0}",
        ])
    func lineBreaks(value: String) {
        expectFailure(.invalidHeader, naming: ["Authorization"], hiding: ["s3cret"]) {
            try headers("Authorization", "s3cret" + value)
        }
        expectFailure(.invalidHeader, naming: ["Authorization"], hiding: ["s3cret"]) {
            try headers("Authorization", value + "s3cret")
        }
    }

    @Test(
        "Only token characters are allowed in a field name, and the error hides the value",
        arguments: 0..<256)
    func nameBytes(code: Int) throws {
        for name in Self.placed(code, in: "X-Probe") {
            if Self.tokenBytes.contains(code) {
                #expect(try headers(name, "v") == ["A": "1", name: "v"])
            } else {
                expectFailure(.invalidHeader, naming: ["X-Probe"], hiding: ["s3cret"]) { try headers(name, "s3cret") }
            }
        }
    }

    @Test(
        "A field name that is not a token is rejected with a short error",
        arguments: [
            "", " ", ":", "A:", "A: b\r\nC", "A\r\nB", "A B", "É", "\u{1F4A9}", "A\u{0}", "\r\n", "(A)", "A/B", "\"A\"",
            String(repeating: "é", count: 5_000),
        ])
    func names(name: String) {
        let error = expectFailure(.invalidHeader, hiding: ["s3cret"]) { try headers(name, "s3cret") }
        #expect((error?.message.utf8.count ?? .max) < 200)
    }

    @Test(
        "Fields that frame or route the request are rejected regardless of letter case",
        arguments: [
            "Content-Length", "Transfer-Encoding", "Host", "Connection", "Keep-Alive", "Upgrade", "TE", "Trailer",
            "Expect", "Proxy-Authorization",
            "Proxy-Connection",
            "Proxy-Authenticate", "Proxy-X", "Proxy-Abc", "Proxy-Abcd", "Proxy-Abcdefgh", "Proxy-Abcdefghijk",
            "Proxy-Xyzw",
        ])
    func framing(name: String) {
        let mixed = String(
            name.enumerated().map {
                $0.offset.isMultiple(of: 2) ? Character($0.element.lowercased()) : Character($0.element.uppercased())
            })
        for spelled in [name, name.lowercased(), name.uppercased(), mixed] {
            expectFailure(.invalidHeader, naming: [spelled], hiding: ["s3cret"]) { try headers(spelled, "s3cret") }
            expectFailure(.invalidHeader, naming: [spelled]) { try headers(spelled, "") }
        }
    }

    @Test(
        "Fields with names similar to the rejected ones are sent",
        arguments: [
            "X-Host", "Hosts", "Content-Lengths", "Content-Length-X", "X-Content-Length", "Transfer-Encodings",
            "Connections", "TEa", "T", "Proxy",
            "Proxy_A", "Proxies-A", "Expected",
            "Upgrade-Insecure-Requests", "Trailers", "Forwarded", "Via", "Date", "Content-Type", "Accept-Encoding",
            "Cookie", "Content-MD5-Sum",
            "Hopf", "Expec7", "Trailes",
        ])
    func lookAlikes(name: String) throws {
        #expect(try headers(name, "v") == ["A": "1", name: "v"])
    }

    @Test(
        "Spaces and tabs around a value are removed, and those inside it are preserved",
        arguments: [
            (" v", "v"), ("v ", "v"), ("\tv\t", "v"), (" \t v \t w \t ", "v \t w"), ("", ""), (" ", ""), ("\t \t", ""),
            ("\u{A0}v\u{A0}", "\u{A0}v\u{A0}"), ("é\u{2003}", "é\u{2003}"),
            ("\u{FEFF}v", "\u{FEFF}v"), ("\u{1F4A9} ", "\u{1F4A9}"), ("e\u{301} ", "e\u{301}"), (" \u{301}", "\u{301}"),
        ])
    func trimming(value: String, sent: String) throws {
        let encoded = try Request.make { $0.headers = ["Before": "1", "X": value, "After": " 2"] }.encode().headers
        #expect(encoded.map(\.name) == ["Before", "X", "After"])
        #expect(encoded.map { Array($0.value.utf8) } == ["1", sent, "2"].map { Array($0.utf8) })
    }

    @Test(
        "A value of 65,536 bytes is sent, and a longer one is rejected",
        arguments: ["a", "é", "\u{1F4A9}"])
    func length(unit: String) throws {
        let whole = String(repeating: unit, count: 65_536 / unit.utf8.count)
        #expect(Request.maximumHeaderValueLength == 65_536)
        #expect(whole.utf8.count == 65_536)
        #expect(try headers("X", whole) == ["A": "1", "X": whole])
        expectFailure(.invalidHeader, naming: ["X", "65536"], hiding: ["s3cret"]) { try headers("X", "s3cret" + whole) }
        expectFailure(.invalidHeader, naming: ["X"]) { try headers("X", whole + "a") }
        expectFailure(.invalidHeader, naming: ["X"]) { try headers("X", String(repeating: unit, count: 1_048_576)) }
    }

    @Test(
        "The media type of a body is validated like any other field value",
        arguments: ["a/b\r\nX-Injected: y", "a/b\n", "a\u{0}/b", "a/b\u{7F}"])
    func contentType(text: String) {
        expectFailure(.invalidHeader, naming: ["Content-Type"], hiding: ["Injected"]) {
            try Request.make(.POST) { try $0.serialize(["a": 1], contentType: text) }.urlRequest()
        }
        expectFailure(.invalidHeader, naming: ["Content-Type"], hiding: ["Injected"]) {
            try Request.make(.POST) { $0.setBodyProvider(contentType: text) { Data() } }.encode(
                provided: Data("x".utf8))
        }
        expectFailure(.invalidHeader, naming: ["Content-Type"], hiding: ["Injected"]) {
            try Request.make(.POST) { $0.contentType = text }.urlRequest()
        }
    }

    @Test("Invalid header fields of a URLRequest are rejected")
    func plainRequest() throws {
        var plain = try Request.make().urlRequest()
        plain.allHTTPHeaderFields = ["X": "a\r\nY: s3cret"]
        expectFailure(.invalidHeader, naming: ["X"], hiding: ["s3cret"]) { try Request(plain).urlRequest() }
        plain.allHTTPHeaderFields = ["Content-Length": "2"]
        expectFailure(.invalidHeader, naming: ["Content-Length"]) { try Request(plain).urlRequest() }
    }

    @Test(
        "Strings from the injection and escape sequence lists never add a line break to a field",
        .enabled(if: Corpora.areThere, Corpora.comment)
    )
    func corpora() throws {
        let lines = try ["crlf-injection.txt", "terminal-escape-codes.txt", "naughty-unicode.txt", "right-to-left.txt"]
            .flatMap {
                try Corpora.lines("fuzzdb/" + $0)
            }
        var refused = 0
        for value in try lines + Corpora.naughtyStrings() {
            do throws(WebServiceError) {
                let sent = try Request.make { $0.headers = ["X": value] }.encode().headers
                #expect(sent[("X")].map { $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 } } == true)
            } catch {
                refused += 1
                #expect(error.code == .invalidHeader)
                #expect(value.utf8.contains { $0 < 0x20 || $0 == 0x7F })
            }
        }
        #expect(refused > 0)
    }
}
