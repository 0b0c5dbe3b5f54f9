import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct PathJoinTests {
    private let service = WebService(baseURLString: "https://h/v1")

    // MARK: Paths

    @Test(
        "A path never changes the origin, regardless of its first characters",
        arguments: [
            "//evil", "///evil", "////evil/x", "/\\evil", #"\\evil\x"#, #"/\/evil"#, #"\/\/evil"#, "@evil",
            "/user:pw@evil/x", ".evil", ":8080/x",
            "evil", ":@evil", "/@evil",
            "%2f%2fevil", "%5c%5cevil", "/%2fevil", "/.evil", ";@evil", "?@evil", "#@evil", "\t//evil", " //evil",
            "\n//evil", "\u{0}//evil",
            "／／evil", "。evil",
            "［::1］", "[::1]", "/[::1]:80/", "%40evil", "%3a8080", "0x7f000001", "．．", "evil。com",
        ])
    func origin(path: String) throws {
        for base in ["https://h", "https://h/", "https://h/v1", "https://h:8080/v1/"] {
            let url = try WebService(baseURLString: base).absoluteURL(path)
            #expect(url.scheme == "https")
            #expect(url.host == "h")
            #expect(url.user == nil)
            #expect(url.port == (base.contains("8080") ? 8080 : nil))
            #expect(url.absoluteString.hasPrefix(base))
        }
    }

    @Test(
        "Control characters and spaces are escaped in path and query and dropped with a fragment",
        arguments: Array(0...32) + [127])
    func controls(code: Int) throws {
        let raw = String(Unicode.Scalar(UInt8(code)))
        let escaped = "%" + (code < 16 ? "0" : "") + String(code, radix: 16, uppercase: true)
        for (path, url) in [
            ("\(raw)a/b", "/\(escaped)a/b"), ("a\(raw)b", "/a\(escaped)b"), ("a/\(raw)", "/a/\(escaped)"),
            ("a?\(raw)q", "/a?\(escaped)q"),
            ("a?q\(raw)", "/a?q\(escaped)"),
            ("a#\(raw)", "/a"), ("\(raw)", "/\(escaped)"), (".\(raw).", "/.\(escaped)."),
        ] {
            let encoded = try service.request(.GET, path: path).encode().url
            #expect(encoded == "https://h/v1" + url)
            #expect("GET \(encoded) HTTP/1.1".split(separator: " ", omittingEmptySubsequences: false).count == 3)
        }
    }

    @Test(
        "A valid percent-encoded triplet is preserved, and other characters are escaped once",
        arguments: [
            ("%41", "%41"), ("%7e", "%7e"), ("%c3%A9", "%c3%A9"), ("é%C3%A9", "%C3%A9%C3%A9"), ("%", "%25"),
            ("%4", "%254"), ("%zz", "%25zz"),
            ("%4z", "%254z"),
            ("%%41", "%25%41"), ("%25", "%25"), ("%2541", "%2541"), ("100%/x", "100%25/x"), ("%e", "%25e"),
            ("%\u{E9}1", "%25%C3%A91"),
            ("a%2Fb", "a%2Fb"),
            ("%00", "%00"), ("%252e%252e/x", "%252e%252e/x"), ("%c0%ae%c0%ae/x", "%c0%ae%c0%ae/x"),
        ])
    func triplets(text: String, encoded: String) throws {
        #expect(try service.request(.GET, path: text).encode().url == "https://h/v1/" + encoded)
        #expect(try service.request(.GET, path: "?" + text).encode().url == "https://h/v1?" + encoded)
        let again = try service.request(.GET, path: encoded).encode().url
        #expect(again == "https://h/v1/" + encoded, "encoding must be idempotent")
    }

    @Test("Characters that RFC 3986 allows are preserved, and all others are escaped", arguments: Array(0x21...0x7E))
    func legalBytes(code: Int) throws {
        let text = String(Unicode.Scalar(UInt8(code)))
        let inPath = CharacterSet(charactersIn: "!$&'()*+,;=:@/-._~").union(.alphanumerics)
        let isLegal = text.unicodeScalars.allSatisfy(inPath.contains)
        let escaped = "%" + String(code, radix: 16, uppercase: true)
        if text != "#", text != "?" {
            #expect(
                try service.request(.GET, path: "/a\(text)b").encode().url
                    == "https://h/v1/a\(isLegal ? text : escaped)b")
        }
        if text != "#" {
            #expect(
                try service.request(.GET, path: "?a\(text)b").encode().url
                    == "https://h/v1?a\(isLegal || text == "?" ? text : escaped)b")
        }
    }

    @Test(
        "The UTF-8 bytes of a path are preserved without Unicode normalization",
        arguments: [
            ("\u{E9}", "%C3%A9"), ("e\u{301}", "e%CC%81"), ("\u{1F4A9}", "%F0%9F%92%A9"), ("\u{FEFF}", "%EF%BB%BF"),
            ("\u{2028}", "%E2%80%A8"),
            ("\u{202E}x", "%E2%80%AEx"),
            ("\u{FFFF}", "%EF%BF%BF"), ("ß/ﬁ", "%C3%9F/%EF%AC%81"), ("\u{2025}", "%E2%80%A5"),
            ("．．/x", "%EF%BC%8E%EF%BC%8E/x"),
        ])
    func unicode(text: String, encoded: String) throws {
        #expect(try service.absoluteURL(text).absoluteString == "https://h/v1/" + encoded)
        #expect(
            try service.absoluteURL("{x}", pathParameters: ["x": text]).absoluteString.hasSuffix(
                encoded.replacing("/", with: "%2F")))
    }

    // MARK: Placeholders

    @Test(
        "The value of a placeholder is escaped within its segment",
        arguments: [
            ("a/b", "a%2Fb"), (#"a\b"#, "a%5Cb"), ("a?b", "a%3Fb"), ("a#b", "a%23b"), ("a%b", "a%25b"),
            ("%2e%2e", "%252e%252e"), (".%2e", ".%252e"),
            ("%2e%2e%2f", "%252e%252e%252f"), ("..%2f", "..%252f"), ("%252e%252e", "%25252e%25252e"),
            ("..;/", "..%3B%2F"), ("..;", "..%3B"),
            ("...", "..."), (".a", ".a"), ("..a", "..a"),
            ("/", "%2F"), ("//evil", "%2F%2Fevil"), (#"\"#, "%5C"), ("a b", "a%20b"), ("a+b", "a%2Bb"),
            ("a&b=c", "a%26b%3Dc"),
            ("a;b,c:d@e", "a%3Bb%2Cc%3Ad%40e"),
            ("{x}", "%7Bx%7D"), ("{y}", "%7By%7D"), ("\u{0}", "%00"), ("\r\n", "%0D%0A"), ("é", "%C3%A9"),
            ("e\u{301}", "e%CC%81"),
            ("https://evil", "https%3A%2F%2Fevil"),
            ("./x", ".%2Fx"), ("a-b._~", "a-b._~"), (" ", "%20"), ("．．", "%EF%BC%8E%EF%BC%8E"),
        ])
    func escaping(value: String, encoded: String) throws {
        #expect(
            try service.absoluteURL("/users/{x}", pathParameters: ["x": value]).absoluteString == "https://h/v1/users/"
                + encoded)
        #expect(
            try service.absoluteURL("{x}/y?z", pathParameters: ["x": value]).absoluteString
                == "https://h/v1/\(encoded)/y?z")
        #expect(
            try service.absoluteURL("https://o/{x}", pathParameters: ["x": value]).absoluteString == "https://o/"
                + encoded)
    }

    @Test(
        "A value that creates a dot segment is an error that hides the value",
        arguments: [
            ("{x}", "."), ("{x}", ".."), ("{x}", "s3cret/.."), ("{x}", "../s3cret"), ("{x}", #"..\s3cret"#),
            ("{x}", #"s3cret\..\..\.."#),
            ("a/{x}/b", ".."), (".{x}", "."),
            ("{x}.", "."), ("%2e{x}", "."), ("{x}{x}", "."), ("..%2f{x}", "s3cret"), ("https://o/{x}/a", ".."),
            ("{x}", "../"), ("{x}", "/.."),
            ("{x}", "s3cret/../s3cret"),
        ])
    func climbing(path: String, value: String) {
        expectFailure(.invalidURL, naming: ["{x}"], hiding: ["s3cret"]) {
            try service.absoluteURL(path, pathParameters: ["x": value])
        }
    }

    @Test(
        "A placeholder without a valid value is an error that names the placeholder",
        arguments: [
            (nil, "has no value"), (["y": 1], "has no value"), (["x": ""], "is empty"), (["x": nil], "is empty"),
            (["x": [1, 2]], "{x}"),
            (["x": ["a": 1]], "{x}"),
            (["x": Double.nan], "{x}"), (["x": Double.infinity], "{x}"),
            (["x": Date(timeIntervalSince1970: .nan)], "{x}"),
        ] as [(Parameters?, String)])
    func withoutText(values: Parameters?, reason: String) {
        expectFailure(.invalidURL, naming: ["{x}", reason]) {
            try service.absoluteURL("/a/{x}", pathParameters: values)
        }
    }

    @Test(
        "A value without a placeholder is an error that contains its name and hides the value",
        arguments: [
            "", "/", "a", "a?q={y}", "?{y}", "a#{y}", "{x}", "{ y}", "{y", "y}", "{}", "%7By%7D", "{{y}}", "{a/y}",
        ])
    func unused(path: String) {
        let values: Parameters = path == "{x}" ? ["x": "s3cret", "y": "s3cret"] : ["y": "s3cret"]
        expectFailure(.invalidURL, naming: ["{y}"], hiding: ["s3cret"]) {
            try service.absoluteURL(path, pathParameters: values)
        }
    }

    @Test(
        "A placeholder with two values is an error that contains its name and hides the values",
        arguments: ["{x}", "a/{x}/{x}", "{x}{y}", "https://o/{x}"])
    func twoValues(path: String) {
        let values: Parameters =
            path.contains("{y}") ? ["x": "s3cret", "y": 1, "x": "s3cret2"] : ["x": "s3cret", "x": "s3cret2"]
        expectFailure(.invalidURL, naming: ["{x}", "has two values"], hiding: ["s3cret"]) {
            try service.absoluteURL(path, pathParameters: values)
        }
    }

    @Test(
        "Placeholders can share a segment and be repeated",
        arguments: [
            ("{a}-{b}.{a}", "https://h/v1/1-x.1"), ("{a}{b}", "https://h/v1/1x"), ("{a}/{b}/{a}", "https://h/v1/1/x/1"),
            ("p{a}s/{b}", "https://h/v1/p1s/x"),
            ("{a}/{b}/", "https://h/v1/1/x/"), ("//{a}//{b}", "https://h/v1/1//x"),
            ("{a}é{b} ", "https://h/v1/1%C3%A9x%20"),
            ("{b}/../{a}", "https://h/v1/1"),
            ("{a}?{b}={c}", nil), ("{a b}{a}{b}", "https://h/v1/%7Ba%20b%7D1x"), ("{}{a}{b}", "https://h/v1/%7B%7D1x"),
            ("}{a}{b}{", "https://h/v1/%7D1x%7B"),
        ] as [(String, String?)])
    func several(path: String, url: String?) throws {
        let values: Parameters = ["a": 1, "b": "x"]
        if let url {
            #expect(try service.absoluteURL(path, pathParameters: values).absoluteString == url)
        } else {
            expectFailure(.invalidURL) { try service.absoluteURL(path, pathParameters: values) }
        }
    }

    @Test(
        "Placeholder values are encoded like query values",
        arguments: [
            (["x": 42], "42"), (["x": Int64.min], "-9223372036854775808"), (["x": UInt64.max], "18446744073709551615"),
            (["x": true], "true"),
            (["x": 1.5], "1.5"), (["x": -0.0], "0"),
            (["x": 1e21], "1e%2B21"), (["x": Date(timeIntervalSince1970: 0)], "1970-01-01T00%3A00%3A00Z"),
            (["x": Optional("o")], "o"),
        ] as [(Parameters, String)])
    func values(values: Parameters, text: String) throws {
        #expect(try service.absoluteURL("{x}", pathParameters: values).absoluteString == "https://h/v1/" + text)
    }

    @Test("Braces in a query and braces without a valid name are escaped")
    func braces() throws {
        #expect(try service.absoluteURL("a?b={x}").absoluteString == "https://h/v1/a?b=%7Bx%7D")
        #expect(
            try service.absoluteURL("{x}?b={x}", pathParameters: ["x": 1]).absoluteString == "https://h/v1/1?b=%7Bx%7D")
        #expect(
            try service.absoluteURL("a{}/{ }/{é}/{").absoluteString == "https://h/v1/a%7B%7D/%7B%20%7D/%7B%C3%A9%7D/%7B"
        )
    }

    @Test("A placeholder name can contain letters, digits, underscores and hyphens")
    func names() throws {
        #expect(try service.absoluteURL("{aZ0_-}", pathParameters: ["aZ0_-": 1]).absoluteString == "https://h/v1/1")
    }
}
