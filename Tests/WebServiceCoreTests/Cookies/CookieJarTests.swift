import Dispatch
import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite("Cookie jar", .permit)
struct CookieJarTests {
    private let jar = CookieJar()

    /// Stores fields from one URL and returns the `Cookie` field for another.
    static func sent(_ fields: [String], from: String, to: String, in jar: CookieJar = CookieJar()) throws -> String? {
        jar.store(fields, from: try #require(URL(string: from)))
        return jar.header(for: try #require(URL(string: to)))
    }

    @Test(
        "A cookie is sent exactly as it was set, without its attributes",
        arguments: [
            ("foo=bar", "foo=bar"), ("x=", "x="), ("foo=\"bar\"", "foo=\"bar\""), ("foo=\"  bar \"", "foo=\"  bar \""),
            ("foo=\"a;b\"", "foo=\"a"),
            ("  A  = BC  ;foo;;;   bar", "A=BC"), ("  A=== BC  ;foo", "A=== BC"), ("\ta\t=\tb\t", "a=b"),
            ("foo bar=baz", "foo bar=baz"),
            ("\"a=b\"=bar", "\"a=b\"=bar"), ("$Version=1; foo=bar", "$Version=1"), ("春=节·\u{E9}", "春=节·\u{E9}"),
            ("@a[0]=1", "@a[0]=1"),
            ("a=b; version=1; x=\"y z\"; SameSite=Strict; HttpOnly", "a=b"),
            ("a={\"b\":1, \"c\":2}", "a={\"b\":1, \"c\":2}"),
            ("", nil), ("   ", nil), ("foo", nil), ("=", nil), ("=x", nil), ("  =x", nil), ("=a=b", nil), (";a=b", nil),
            ("foo; bar=baz", nil),
        ] as [(String, String?)])
    func syntax(field: String, expected: String?) throws {
        #expect(try Self.sent([field], from: "http://h.example/", to: "http://h.example/") == expected)
    }

    @Test(
        "A cookie is sent to its host and, with a valid Domain attribute, to the hosts in that domain",
        arguments: [
            ("", "a.example.com", ["a.example.com", "A.Example.COM", "a.example.com:8080"]),
            ("; Domain=a.example.com", "a.example.com", ["a.example.com", "b.a.example.com"]),
            ("; domain=.A.EXAMPLE.com", "a.example.com", ["a.example.com", "b.a.example.com"]),
            (
                "; Domain=example.com", "a.example.com",
                ["a.example.com", "b.a.example.com", "example.com", "c.example.com"]
            ),
            ("; Domain=", "a.example.com", ["a.example.com"]), ("; Domain", "a.example.com", ["a.example.com"]),
            ("; Domain=.", "a.example.com", []), ("; Domain=..", "a.example.com", []),
            ("; Domain=.; Domain=", "a.example.com", []), ("; Domain=.; Domain=a.example.com", "b.example.com", []),
            ("; Domain=com; Domain=a.example.com", "a.example.com", ["a.example.com", "b.a.example.com"]),
            ("; Domain=example.com; Domain=com", "example.com", []),
            ("; Domain=a.example.com; Domain=", "a.example.com", ["a.example.com", "b.a.example.com"]),
            ("; Domain=com", "example.com", []), ("; Domain=.com", "example.com", []),
            ("; Domain=com.", "example.com", []),
            ("; Domain=.com.", "example.com.", []), ("; Domain=com.", "example.com.", []),
            ("; Domain=example.com", "example.com.", []),
            ("; Domain=example.com.", "example.com", []),
            ("; Domain=example.com.", "a.example.com.", ["example.com.", "a.example.com."]),
            ("; Domain=example.org", "example.com", []), ("; Domain=a.example.com", "example.com", []),
            ("; Domain=ple.com", "example.com", []),
            ("; Domain=..example.com", "a.example.com", []), ("; Domain=\"example.com\"", "example.com", []),
            ("; Domain=example.com:80", "example.com", []), ("; Domain=b.example.com", "a.example.com", []),
            ("; Domain=*.com", "example.com", []),
            ("; Domain=example .com", "example.com", []), ("; Domain=.\u{301}example.com", "example.com", []),
            ("; Domain=bücher.example", "xn--bcher-kva.example", []),
            ("; Domain=localhost", "localhost", ["localhost"]),
            ("; Domain=com", "com", ["com"]), ("; Domain=com.", "com.", ["com."]),
            ("", "bücher.example", ["bücher.example", "xn--bcher-kva.example"]),
            ("", "127.0.0.1", ["127.0.0.1"]), ("; Domain=127.0.0.1", "127.0.0.1", ["127.0.0.1"]),
            ("; Domain=0.0.1", "127.0.0.1", []),
            ("; Domain=.1", "127.0.0.1", []), ("; Domain=0x1.1", "7.0x1.1", []), ("; Domain=2.0xa", "1.2.0xa", []),
            ("; Domain=0.1.", "127.0.0.1.", []), ("", "[::1]", ["[::1]", "[::1]:81"]),
            ("; Domain=[::1]", "[::1]", ["[::1]"]),
            ("; Domain=::1", "[::1]", []), ("; Domain=0.1]", "[::127.0.0.1]", []),
        ] as [(String, String, [String])])
    func domains(attributes: String, from host: String, reached: [String]) throws {
        let others = [
            "example.com", "a.example.com", "b.a.example.com", "c.example.com", "notexample.com",
            "example.com.evil.org", "example.org", "com", "org",
            "com.", "example.com.", "a.example.com.", "localhost", "a.localhost", "127.0.0.1", "0.0.1", "8.127.0.0.1",
            "127.0.0.2", "[::1]", "[::2]",
            "xn--bcher-kva.example", "a.xn--bcher-kva.example", "1",
        ]
        for other in Set(others + reached + [host]) {
            let header = try Self.sent(["n=v" + attributes], from: "http://\(host)/", to: "http://\(other)/")
            #expect(header == (reached.contains(other) ? "n=v" : nil), "\(other)")
        }
    }

    @Test("During redirects between two hosts, each host receives only the cookies it has set")
    func redirects() throws {
        #expect(try Self.sent(["s=a; Path=/"], from: "https://a.example/1", to: "https://b.example/2", in: jar) == nil)
        #expect(
            try Self.sent(
                ["s=b; Path=/", "t=b; Domain=a.example"], from: "https://b.example/2", to: "https://a.example/3",
                in: jar) == "s=a")
        #expect(
            try Self.sent(
                ["s=; Max-Age=0; Domain=a.example"], from: "https://b.example/", to: "https://a.example:81/", in: jar)
                == "s=a")
        for url in [
            "ftp://a.example/", "file:///a.example", "https://u:p@a.example/", "https://ex%61mple/", "data:,x",
            "a.example",
        ] {
            #expect(try Self.sent(["x=1"], from: url, to: url, in: jar) == nil)
        }
        #expect(jar.cookies.map(\.domain) == ["a.example", "b.example"])
    }

    @Test(
        "A cookie path matches itself and the paths below it, and defaults to the directory of the URL",
        arguments: [
            ("", "/a/b", "/a/c", true), ("", "/a/b", "/a", true), ("", "/a/b", "/ab", false), ("", "/a/b", "/", false),
            ("", "/a", "/", true),
            ("", "", "/x", true), ("", "?q=/x/y", "", true), ("", "/a/b/?q", "/a/b/c", true),
            ("; Path", "/a/b", "/", false),
            ("; Path=/", "/a/b", "", true),
            ("; Path=", "/a/b", "/", false), ("; Path=a", "/a/b", "/", false),
            ("; Path=/x; Path=/", "/a/b", "/q", true),
            ("; Path=/x; Path=", "/a/b", "/a/c", true), ("; Path=/x", "/a", "/x", true),
            ("; Path=/x", "/a", "/x/", true),
            ("; Path=/x", "/a", "/x/y", true), ("; Path=/x", "/a", "/xy", false), ("; Path=/x", "/a", "/X", false),
            ("; Path=/x", "/a", "/x?y", true),
            ("; Path=/x/", "/a", "/x", false), ("; Path=/x/", "/a", "/x/y", true), ("; Path=/x/", "/a", "/x//y", true),
            ("; path = /x ", "/a", "/x", true),
            ("; Path=/f%6Fo", "/a", "/foo", false), ("; Path=\"/x\"", "/a", "/", true),
            ("; Path=/x?", "/a", "/x?", false),
        ] as [(String, String, String, Bool)])
    func paths(attributes: String, from: String, to: String, matches: Bool) throws {
        let header = try Self.sent(["n=v" + attributes], from: "http://h.example" + from, to: "http://h.example" + to)
        #expect(header == (matches ? "n=v" : nil))
    }

    @Test(
        "The default path of a cookie is the URL path up to its last slash, or / if that is empty",
        arguments: [
            ("", "/"), ("/", "/"), ("/a", "/"), ("?q=/x/y", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("/a/b/c", "/a/b"),
            ("//b", "/"),
        ])
    func defaultPath(path: String, expected: String) throws {
        jar.store(["n=v", "m=v; Path=x"], from: try #require(URL(string: "http://h.example" + path)))
        #expect(jar.cookies.map(\.path) == [expected, expected])
    }

    @Test("Cookies are sorted by path length, then by creation, and a replaced cookie preserves its position")
    func order() throws {
        let fields = [
            "a=1; Path=/", "b=2; Path=/x/y", "c=3; Path=/", "d=4; Path=/x", "é=5", "e\u{301}=6", "a=7; Path=/",
            "d=8; Domain=h.example; Path=/x",
        ]
        #expect(
            try Self.sent(fields, from: "http://h.example/", to: "http://h.example/x/y/z", in: jar)
                == "b=2; d=8; a=7; c=3; é=5; e\u{301}=6")
        #expect(jar.cookies.map(\.name) == ["a", "b", "c", "d", "é", "e\u{301}"])
        let cookie = try #require(jar.cookies.first { $0.name == "d" })
        #expect(
            cookie
                == (try Cookie(
                    name: "d", value: "8", domain: "h.example", path: "/x", expires: nil, isSecure: false,
                    isHostOnly: false, isHTTPOnly: false))
        )
        jar.removeAll()
        #expect(jar.cookies.isEmpty)
        #expect(jar.description == "CookieJar(0)")
        #expect(try Self.sent([], from: "http://h.example/", to: "http://h.example/x/y/z", in: jar) == nil)
    }

    @Test(
        "The Secure attribute and the name prefixes are enforced",
        arguments: [
            ("n=v; Secure", "https", true), ("n=v; secure=no", "https", true), ("n=v; Secure", "http", false),
            ("__Secure-n=v; Secure", "https", true),
            ("__Secure-n=v", "https", false), ("__sECURE-n=v", "https", false), ("__Secure-n=v; Secure", "http", false),
            ("__Secure-\u{301}n=v", "https", false), ("__Host-n=v; Secure; Path=/", "https", true),
            ("__Host-n=v; Secure; Path=/", "http", false),
            ("__Host-n=v; Path=/", "https", false), ("__Host-n=v; Secure", "https", false),
            ("__Host-n=v; Secure; Path=/x", "https", false),
            ("__host-n=v; Secure; Path=/; Domain=h.example", "https", false),
            ("__Host-n=v; Secure; Path=/; Domain=.", "https", false),
        ] as [(String, String, Bool)])
    func secure(field: String, scheme: String, isKept: Bool) throws {
        #expect(
            (try Self.sent([field], from: scheme + "://h.example/", to: "https://h.example/x", in: jar) != nil)
                == isKept)
        #expect(jar.cookies.map(\.isSecure) == (isKept ? [true] : []))
        #expect(try Self.sent([], from: "http://h.example/", to: "http://h.example/x", in: jar) == nil)
    }

    @Test("A response over http neither replaces nor removes a Secure cookie")
    func overwriting() throws {
        let clock = Clock()
        let jar = CookieJar { clock.now }
        let all = "https://a.example.com/x/y"
        #expect(
            try Self.sent(
                ["n=v; Secure; Domain=example.com; Path=/x"], from: "https://a.example.com/", to: all, in: jar) == "n=v"
        )
        for field in [
            "n=e; Domain=example.com; Path=/x", "n=e; Path=/x", "n=e; Path=/x/y",
            "n=; Max-Age=0; Domain=example.com; Path=/x",
        ] {
            #expect(try Self.sent([field], from: "http://a.example.com/", to: all, in: jar) == "n=v")
        }
        #expect(try Self.sent(["n=e; Path=/"], from: "http://a.example.com/", to: all, in: jar) == "n=v; n=e")
        #expect(
            try Self.sent(["n=w; Domain=example.com; Path=/x"], from: "https://b.example.com/", to: all, in: jar)
                == "n=w; n=e")
        #expect(
            try Self.sent(["m=v; Secure; Max-Age=60"], from: "https://a.example.com/", to: all, in: jar)
                == "n=w; n=e; m=v")
        #expect(
            try Self.sent(["m=e; Domain=example.com"], from: "http://a.example.com/", to: all, in: jar)
                == "n=w; n=e; m=v")
        clock.now += 60
        #expect(
            try Self.sent(["m=e; Domain=example.com"], from: "http://a.example.com/", to: all, in: jar)
                == "n=w; n=e; m=e")
    }

    @Test(
        "A cookie expires after its Max-Age or, without one, at its Expires date",
        arguments: [
            ("", nil), ("; Max-Age=60", 60), ("; max-age = 60", 60), ("; Max-Age=60; Max-Age=x", 60),
            ("; Max-Age=60; Max-Age=30", 30),
            ("; Max-Age=0", 0),
            ("; Max-Age=-1", 0), ("; Max-Age=-99999999999999999999", 0), ("; Max-Age=+60", nil), ("; Max-Age=6.5", nil),
            ("; Max-Age=", nil),
            ("; Max-Age=-", nil), ("; Max-Age=\"60\"", nil), ("; Max-Age=50,399", nil),
            ("; Max-Age=9223372036854775808", 251_702_300_799),
            ("; Max-Age=" + String(repeating: "9", count: 500), 251_702_300_799),
            ("; Expires=Tue, 14 Nov 2023 22:14:20 GMT", 60),
            ("; Expires=Tue, 14-Nov-23 22:13:20 GMT", 0), ("; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("; Expires=0", nil),
            ("; Expires=Tue, 31 Feb 2023 00:00:00 GMT", nil),
            ("; Expires=Fri, 31 Dec 9999 23:59:59 GMT", 251_702_300_799),
            ("; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 60),
            ("; Expires=Tue, 14 Nov 2023 22:14:20 GMT; Max-Age=0", 0),
            ("; Expires=Tue, 14 Nov 2023 22:14:20 GMT; Expires=never", 60),
            ("; Max-Age=x; Expires=Tue, 14 Nov 2023 22:14:20 GMT", 60),
        ] as [(String, Double?)])
    func expiry(attributes: String, life: Double?) throws {
        let clock = Clock()
        let jar = CookieJar { clock.now }
        let url = "http://h.example/"
        #expect(try Self.sent(["n=old", "n=v" + attributes], from: url, to: url, in: jar) == (life == 0 ? nil : "n=v"))
        #expect(
            jar.cookies.map(\.expires)
                == (life == 0 ? [] : [life.map { Date(timeIntervalSince1970: 1_700_000_000 + $0) }]))
        guard let life, life > 0 else { return }
        clock.now = Date(timeIntervalSince1970: 1_700_000_000 + life - 0.5)
        #expect(try Self.sent([], from: url, to: url, in: jar) == "n=v")
        clock.now = Date(timeIntervalSince1970: 1_700_000_000 + life)
        #expect(try Self.sent([], from: url, to: url, in: jar) == nil)
        #expect(jar.cookies.isEmpty)
    }

    @Test(
        "Joined Set-Cookie fields are split where a cookie begins, and not inside a date",
        arguments: [
            ("a=1, b=2", "a=1; b=2"), ("a=1; Path=/; HttpOnly, b=2; Path=/, c=3", "a=1; b=2; c=3"),
            ("a=1,\tb=2", "a=1; b=2"), ("a=1,b=2", "a=1,b=2"),
            ("a=1; Expires=Wed, 09 Jun 2100 10:18:14 GMT, b=2; Expires=Wed, 09-Jun-2100 10:18:14 GMT", "a=1; b=2"),
            ("a=1; expires=Wednesday, 09-Jun-21 10:18:14 GMT; Path=/, b=2", "b=2"),
            ("a=1; Expires=Wed, 09 Jun 2100 10:18:14 GMT", "a=1"),
            ("a=1; Expires=Wed, 09 Jun 2000 10:18:14 GMT", nil), ("a=x, y", "a=x, y"), ("a=x, y; b=z", "a=x, y"),
            ("a=1, =2", "a=1, =2"),
            ("a=1, x y=2", "a=1, x y=2"), ("a=1, c[0]=2", "a=1; c[0]=2"), ("a=1, b=c=d", "a=1; b=c=d"),
            (", a=1, ", "a=1,"), ("a, b=2", "b=2"),
            ("a=1; Max-Age=0, b=2", "b=2"), ("a=1\u{0}, b=2", "b=2"), ("a=1; Secure, b=2", "b=2"),
            ("a=1, b=2; Domain=evil.example", "a=1"),
        ] as [(String, String?)])
    func splitting(field: String, expected: String?) throws {
        let url = "http://h.example/"
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        #expect(try Self.sent([field], from: url, to: url, in: CookieJar { now }) == expected)
    }

    @Test(
        "Cookies with control characters in name, value or attributes are rejected, except tabs in attributes",
        arguments: Array(0...31) + [127] as [UInt8])
    func controls(byte: UInt8) throws {
        let control = String(decoding: [byte], as: UTF8.self)
        let url = "http://h.example/"
        for field in ["a\(control)b=c", "a=b\(control)c", "a=b\(control)\n", "a=\"\(control)\""] {
            #expect(try Self.sent([field], from: url, to: url) == nil)
        }
        #expect(try Self.sent(["a=b; x=\(control)y"], from: url, to: url) == (byte == 9 ? "a=b" : nil))
    }

    @Test(
        "A name and value of 4,096 bytes in total and an attribute value of 1,024 bytes are the maximum"
    )
    func lengths() throws {
        let url = "http://h.example/"
        for (name, value, isKept) in [
            (1, 4_095, true), (1, 4_096, false), (4_096, 0, true), (4_097, 0, false), (2_048, 2_049, false),
        ] {
            let pair = String(repeating: "n", count: name) + "=" + String(repeating: "v", count: value)
            #expect(try Self.sent([pair], from: url, to: url) == (isKept ? pair : nil))
        }
        #expect(try Self.sent(["é=" + String(repeating: "é", count: 2_048)], from: url, to: url) == nil)
        let path = "/" + String(repeating: "x", count: 1_023)
        #expect(try Self.sent(["n=v; Path=\(path)"], from: url, to: url + path.dropFirst()) == "n=v")
        #expect(try Self.sent(["n=v; Path=\(path)x"], from: url, to: url) == "n=v")
        let longest = String(repeating: "a.", count: 124) + "example"
        #expect(try Self.sent(["n=v"], from: "http://\(longest)/", to: "http://\(longest)/") == "n=v")
        #expect(try Self.sent(["n=v"], from: "http://a\(longest)/", to: "http://a\(longest)/") == nil)
    }

    @Test(
        "A Cookie field is limited to the maximum length of a field value, and further cookies are omitted")
    func longField() throws {
        let fields =
            (10..<60).map { "n\($0)=" + String(repeating: "v", count: 4_092) } + [
                "z=" + String(repeating: "v", count: 100)
            ]
        let url = try #require(URL(string: "http://h.example/"))
        jar.store(fields, from: url)
        let header = try #require(jar.header(for: url))
        #expect(jar.cookies.count == 51)
        #expect(header.split(separator: ";").count == 16)
        #expect(header.utf8.count == 15 * 4_098 - 2 + 104)
        #expect(
            try Request.make(.GET, url.absoluteString) { $0.headers[.cookie] = header }.encode().headers[.cookie]
                == header)
        #expect(header.utf8.count <= Request.maximumHeaderValueLength)
    }

    @Test("Beyond 180 cookies per domain, an expired or else the least recently used cookie is evicted")
    func domainLimit() throws {
        let clock = Clock()
        let jar = CookieJar { clock.now }
        let url = "http://h.example/"
        #expect(
            try Self.sent(["x=1; Max-Age=60"] + (2...180).map { "n\($0)=1; Path=/\($0)" }, from: url, to: url, in: jar)
                == "x=1")
        #expect(jar.cookies.count == 180)
        #expect(try Self.sent([], from: url, to: url + "2", in: jar) == "n2=1; x=1")
        #expect(
            try Self.sent(["a=1"], from: url, to: url + "3", in: jar) == "x=1; a=1",
            "n3 is the least recently used cookie")
        #expect(
            try Self.sent(["n4=2; Path=/4"], from: url, to: url + "x", in: jar) == "x=1; a=1",
            "replacing a cookie counts as a use"
        )
        #expect(try Self.sent(["b=1"], from: url, to: url + "5", in: jar) == "x=1; a=1; b=1")
        clock.now += 60
        #expect(try Self.sent(["c=1"], from: url, to: url + "6", in: jar) == "n6=1; a=1; b=1; c=1", "x has expired")
        #expect(jar.cookies.count == 180)
        #expect(Set((2...6).map { "n\($0)" }).subtracting(jar.cookies.map(\.name)) == ["n3", "n5"])
    }

    @Test("Beyond 3,000 cookies in total, the least recently used cookie of any host is evicted")
    func totalLimit() throws {
        for host in 1...3_000 {
            jar.store(["n=\(host)"], from: try #require(URL(string: "http://h\(host).example/")))
        }
        #expect(jar.cookies.count == 3_000)
        #expect(try Self.sent([], from: "http://h.example/", to: "http://h1.example/", in: jar) == "n=1")
        #expect(try Self.sent(["n=1"], from: "http://new.example/", to: "http://h2.example/", in: jar) == nil)
        #expect(try Self.sent([], from: "http://h.example/", to: "http://h1.example/", in: jar) == "n=1")
        #expect(try Self.sent([], from: "http://h.example/", to: "http://h3.example/", in: jar) == "n=3")
        #expect(jar.cookies.count == 3_000)
    }

    @Test("Removed cookies do not count toward the limits")
    func removedCookiesAreNotCounted() throws {
        let url = "http://h.example/"
        for place in 0..<60 { _ = try Self.sent(["n\(place)=1"], from: url, to: url, in: jar) }
        for _ in 0..<amount(400, thorough: 4_000) {
            _ = try Self.sent(["x=1", "x=; Max-Age=0"], from: "http://other.example/", to: url, in: jar)
        }
        #expect(try Self.sent(["y=1"], from: url, to: "http://other.example/", in: jar) == nil)
        #expect(jar.cookies.map(\.name) == (0..<60).map { "n\($0)" } + ["y"])
    }

    @Test("The descriptions of a cookie and of a jar contain neither values nor control characters")
    func printing() throws {
        _ = try Self.sent(
            ["sid\u{202E}=s3cret; Path=/x\u{85}"], from: "http://h.example/", to: "http://h.example/", in: jar)
        let cookie = try #require(jar.cookies.first)
        #expect(cookie.value == "s3cret")
        #expect(cookie.description == "sid\\u{202E} of h.example/x\\u{85}")
        for text in [printed(cookie), printed(jar), printed(jar.cookies)] {
            #expect(!text.contains("s3cret"))
            #expect(!text.contains("\u{202E}"))
        }
        #expect(jar.description == "CookieJar(1)")
    }

    @Test("Eight threads can store and read cookies concurrently without losing any")
    func concurrency() throws {
        let url = try #require(URL(string: "https://h.example/"))
        let damaged = Mutex(0)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for round in 0..<200 {
                jar.store(["own\(thread)=\(round)", "shared=\(thread); Max-Age=\(round % 2 * 60)"], from: url)
                let own = jar.header(for: url)?.split(separator: "; ").filter { $0.hasPrefix("own\(thread)=") }
                if own != ["own\(thread)=\(round)"] || jar.cookies.count > 9 { damaged.withLock { $0 += 1 } }
            }
        }
        #expect(damaged.withLock { $0 } == 0)
        #expect(jar.cookies.filter { $0.name != "shared" }.map(\.value) == Array(repeating: "199", count: 8))
    }

    @Test(
        "With random fields, no control character is sent and no cookie reaches an unrelated host"
    )
    func fuzz() throws {
        var random = SeededGenerator(seed: 52)
        let hosts = [
            "example.com", "a.example.com", "b.a.example.com", "example.org", "notexample.com", "com", "127.0.0.1",
            "127.0.0.2", "[::1]",
            "example.com.",
        ]
        let families = [0, 0, 0, 1, 2, 3, 4, 5, 6, 7]
        let names = ["n", "__Host-n", "__Secure-n", "m", " ", "\u{301}"]
        let pieces = [
            "; Domain=", ";Path=", "; Secure", "; Max-Age=", "; Expires=", ", ", ",", "=", ";", " ", "\t", "\r\n",
            "\u{0}", "\u{7F}", "\"", "/", "/x",
            ".", "0", "1",
            "99999999999999999999", "-1", "Wed, 09 Jun 2100 10:18:14 GMT", "Wed, 09 Jun 2000 10:18:14 GMT", "é",
            "\u{301}", ".com", ".0.0.1",
        ]
        let count = amount(1_000, thorough: 5_000, soak: 20_000)
        var received = 0
        for _ in 0..<count {
            let setter = Int.random(in: 0..<hosts.count, using: &random)
            var field = "\(names.randomElement(using: &random) ?? "")=\(setter)v"
            for _ in 0..<Int.random(in: 0...6, using: &random) {
                switch Int.random(in: 0..<8, using: &random) {
                case 0: field += "; Domain=\(hosts.randomElement(using: &random) ?? "")"
                case 1: field += ", n=\(setter)v"
                default: field += pieces.randomElement(using: &random) ?? ""
                }
            }
            let scheme = Bool.random(using: &random) ? "http" : "https"
            jar.store([field], from: try #require(URL(string: "\(scheme)://\(hosts[setter])/x/y")))
            let reader = Int.random(in: 0..<hosts.count, using: &random)
            guard let header = jar.header(for: try #require(URL(string: "\(scheme)://\(hosts[reader])/x/y"))) else {
                continue
            }
            #expect(header.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
            for pair in header.split(separator: "; ") {
                let value = try #require(pair.split(separator: "=", maxSplits: 1).last)
                guard let origin = value.first?.wholeNumberValue else { continue }
                received += 1
                #expect(families[origin] == families[reader], "\(field) of \(hosts[origin]) reached \(hosts[reader])")
            }
        }
        #expect(received > count)
    }
}

/// A clock that changes only when the test sets it.
private final class Clock: Sendable {
    private let time = Mutex(Date(timeIntervalSince1970: 1_700_000_000))
    var now: Date {
        get { time.withLock { $0 } }
        set { time.withLock { $0 = newValue } }
    }
}
