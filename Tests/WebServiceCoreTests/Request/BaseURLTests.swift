import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct BaseURLTests {
    @Test(
        "A base that is not a plain http or https URL is rejected without revealing it",
        arguments: [
            "https://user:s3cret@h/v1", "https://s3cret@h", "https://:s3cret@h", "https://@h", #"http://good\@s3cret/"#,
            #"http://good\s3cret/"#,
            "ftp://s3cret", "file:///s3cret", "data:text/plain,s3cret", "javascript:s3cret", "gopher://s3cret",
            "ws://s3cret", "wss://s3cret",
            "//s3cret/v1", "/s3cret", "s3cret", "s3cret.com/v1", "http:s3cret", "http:/s3cret", "https:///s3cret",
            "https://", "https:",
            "https://?s3cret",
            "https://#s3cret", "https://:80", "https://h:0", "https://h:65536", "https://h:000080",
            "https://h:99999999999999999999",
            "https://h:s3cret",
            "https://h:8 0", "https://h:-1", "https://h:+80", "https://h:80:80", "https://h s3cret/", " https://s3cret",
            "https://h%2fs3cret",
            "https://h%00s3cret",
            "https://%68s3cret", "https://h<s3cret>", "https://h\"s3cret", "https://h^s3cret", "https://h|s3cret",
            "https://[::1",
            "https://[::1]s3cret", "https://[::1]8/s3cret",
            "https://[::1]:s3cret", "https://[]", "https://[:]", "https://[s3cret]", "https://[fe80::1%25s3cret]",
            "https://::1/s3cret",
            "https://h]/s3cret",
            "https://s3cret/..", "https://s3cret/a/../..", "https://h/{s3cret}", "\u{FEFF}https://s3cret",
            "ｈttps://s3cret", "https://a／s3cret",
            "https://a＠s3cret",
            "https://a？s3cret", "https://a＃s3cret", "https://a％2fs3cret", "https://é%2fs3cret",
            "https://a\u{200D}s3cret/\u{0}",
            "https://\u{AD}/s3cret",
        ])
    func refused(base: String) {
        let placeholder = base.contains("{") ? [] : ["s3cret"]  // the error contains the name of a placeholder
        expectFailure(.invalidURL, hiding: placeholder) { try BaseURL(base) }
        #expect(WebService(baseURLString: base).baseURL == nil)
        if base.contains("@") { expectFailure(.invalidURL, naming: ["user information"]) { try BaseURL(base) } }
        expectFailure(.invalidURL, hiding: placeholder) { try Request(url: base).urlRequest() }
    }

    @Test(
        "A control character or a space in the authority is rejected at any position",
        arguments: Array(0...32) + [127])
    func controlInAuthority(code: Int) {
        let character = String(Unicode.Scalar(UInt8(code)))
        for base in [
            "https://\(character)h", "https://h\(character)h", "https://h\(character)", "https://h:\(character)80",
            "https://h:80\(character)/x",
        ] {
            expectFailure(.invalidURL, "\(base.debugDescription)") { try BaseURL(base) }
        }
    }

    @Test(
        "Scheme and host are converted to lower case, and other components preserve their case",
        arguments: [
            ("HTTPS://API.Example.COM:8443/V1?Q=X", "https://api.example.com:8443", "/V1", "Q=X"),
            ("http://h", "http://h", "", nil),
            ("http://h/", "http://h", "/", nil), ("http://h?", "http://h", "", ""),
            ("http://h/a?b?c#d?e", "http://h", "/a", "b?c"),
            ("http://a-b_c.d/", "http://a-b_c.d", "/", nil), ("http://h:1", "http://h:1", "", nil),
            ("http://h:65535", "http://h:65535", "", nil),
            ("http://h//a//b/", "http://h", "//a//b/", nil), ("http://h/a/./b/../c", "http://h", "/a/c", nil),
        ] as [(String, String, String, String?)])
    func pieces(text: String, origin: String, path: String, query: String?) throws {
        let base = try BaseURL(text)
        #expect(base.origin == origin)
        #expect(base.path == path)
        #expect(base.query == query)
    }

    @Test(
        "A host that ends in a number and is not a canonical IPv4 address is an error with that reason",
        arguments: [
            "0x7f000001", "0X7F000001", "0xffffffff", "0x", "2130706433", "0", "127.1", "127.0.1", "0177.0.0.1",
            "192.168.257", "1.2.3.4.",
            "1.2.3.4..", "1.", "1.2.3.08", "01.2.3.4", "1.2.3.00", "256.0.0.1", "1.2.3.256", "1.2.3.4.5", ".1.2.3.4",
            "1..3.4", "1.2.3.0x4", "h.1",
            "example.0xbeef", "99999999999999999999", "１２７.1", "0ｘ7f", "①②③.1", "é.①", "127。1", "1。2。3。4。",
        ])
    func numericHosts(host: String) {
        let reason = "the host ends in a number but is not an IPv4 address"
        for text in ["https://\(host)", "https://\(host):8443/x", "http://\(host)?q"] {
            expectFailure(.invalidURL, naming: [reason]) { try BaseURL(text) }
            expectFailure(.invalidURL, naming: [reason]) {
                try WebService(baseURLString: "https://h").absoluteURL(text)
            }
            expectFailure(.invalidURL, naming: [reason]) { try Request(url: text).urlRequest() }
            #expect(Origin(text) == nil)
        }
    }

    @Test(
        "A host with percent-encoded digits is rejected",
        arguments: ["%31%32%37.0.0.1", "127.0.0.%31", "%30x7f000001", "127%2e0%2e0%2e1"])
    func encodedNumbers(host: String) {
        expectFailure(.invalidURL, naming: ["character"]) { try BaseURL("https://\(host)/") }
        #expect(Origin("https://\(host)/") == nil)
    }

    @Test(
        "Canonical addresses and names that end in a nonnumeric label are preserved, also by Foundation",
        arguments: [
            "127.0.0.1", "0.0.0.0", "255.255.255.255", "h.", "1.h", "0x7f.h", "1.2.3.4.example", "127.0.0.1x", "0xg",
            "a0x7f", "1-2", "1.2.3.4-",
            "1_", "xn--9ca.example", "XN--9ca.Example", "xn--0.example", "[::ffff:127.0.0.1]", "[::1]", "[::]", "[1::]",
            "[2001:db8::8:800:200c:417a]",
        ])
    func hostForms(host: String) throws {
        let request = try Request(url: "https://\(host):8443/x").urlRequest()
        #expect(request.url?.absoluteString == "https://\(host.lowercased()):8443/x")
        #expect(request.url?.host == host.lowercased().trimmingCharacters(in: CharacterSet(charactersIn: "[]")))
        #expect(request.url?.port == 8443)
    }

    @Test(
        "An IPv6 address is validated and converted to its canonical form (RFC 5952)",
        arguments: [
            ("0:0:0:0:0:0:0:1", "::1"), ("::0001", "::1"), ("0::1", "::1"), ("0:0::0:1", "::1"),
            ("2001:DB8::0", "2001:db8::"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"), ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
            ("1::2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
            ("0:0:0:0:0:0:0:0", "::"), ("::FFFF:7F00:1", "::ffff:127.0.0.1"), ("::ffff:127.0.0.1", "::ffff:127.0.0.1"),
            ("64:ff9b::192.0.2.1", "64:ff9b::c000:201"), ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
        ])
    func addresses(text: String, canonical: String) throws {
        #expect(
            try Request(url: "https://[\(text)]:81/x").urlRequest().url?.absoluteString == "https://[\(canonical)]:81/x"
        )
        #expect(try BaseURL("https://[\(text)]/v1").origin == "https://[\(canonical)]")
        #expect(Origin("https://[\(text)]") == Origin("https://[\(canonical)]"))
    }

    @Test(
        "A malformed IPv6 address is rejected in base URLs, absolute URLs and redirects",
        arguments: [
            "0::0::0", "::1.2.", "::1.2.3", "::1.2.3.4.5", "::1.2.3.256", "::01.2.3.4", "1.2.3.4::", "1.2.3.4", "1",
            "a", ":1", "1:", ":::", ":::1",
            "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::1:2:3:4:5:6:7:8", "12345::", "::g", "1:2:3:4:5:6:7:1.2.3.4",
            "fe80::1%eth0", "fe80::1%25eth0",
            "fe80::1%251", "::1/64", " ::1", "::1 ", "v1.x", "::１", "[::1]", "....", ".", "::ffff:0x7f.0.0.1",
            "::ffff:127.1",
        ])
    func malformedAddresses(text: String) throws {
        for url in ["https://[\(text)]", "https://[\(text)]:81/x"] {
            expectFailure(.invalidURL) { try BaseURL(url) }
            expectFailure(.invalidURL) { try WebService(baseURLString: "https://h").absoluteURL(url) }
            #expect(Origin(url) == nil)
            #expect(try RedirectPolicy.follow.outcome(url) == .deliver)
        }
        let long = "https://[" + String(repeating: text + ":", count: 10_000) + "]"
        expectFailure(.invalidURL) { try BaseURL(long) }
    }

    @Test(
        "An international host is converted to ASCII (UTS 46, nontransitional)",
        arguments: [
            ("é.example", "xn--9ca.example"), ("É.example", "xn--9ca.example"), ("e\u{301}.example", "xn--9ca.example"),
            ("日本.example", "xn--wgv71a.example"),
            ("ⓛocalhost", "localhost"), ("127。0。0。1", "127.0.0.1"), ("１２７．0.0.1", "127.0.0.1"),
            ("faß.de", "xn--fa-hia.de"),
            ("ẞ.example", "xn--zca.example"), ("σς.example", "xn--3xab.example"),
            ("क्\u{200D}ष.example", "xn--11b2ezcw70k.example"),
            ("\u{5D0}1.example", "xn--1-zhc.example"), ("é\u{AD}.example", "xn--9ca.example"), ("a．b", "a.b"),
            ("é。", "xn--9ca."),
            ("аpple.example", "xn--pple-43d.example"),
            (String(repeating: "é", count: 40), "xn--9ca" + String(repeating: "a", count: 39)),
        ])
    func international(host: String, ascii: String) throws {
        let request = try Request(url: "https://\(host):81/é").urlRequest()
        #expect(request.url?.absoluteString == "https://\(ascii):81/%C3%A9")
        #expect(request.url?.host == ascii)
        #expect(Origin("https://\(host):81") == Origin("https://\(ascii):81"))
        #expect(Origin("https://\(ascii):81")?.host == ascii)
    }

    @Test(
        "A host with invalid joiners, mixed directions or overlong or empty labels is rejected (UTS 46)",
        arguments: [
            "a\u{200D}b.example", "a\u{200C}b", "\u{5D0}a.example", "a\u{5D0}.example", "1\u{5D0}.example",
            "\u{202E}evil.example",
            String(repeating: "é", count: 60) + ".example", String(repeating: "é.", count: 140) + "example",
            "-é.example", "é..x", ".é", "é..",
            "。é", "xn--é", "é.xn--0", "٣.example", "ab--é.example", "\u{300}a.example", "é.x n",
        ])
    func forbiddenNames(host: String) throws {
        expectFailure(.invalidURL, naming: ["host"]) { try BaseURL("https://\(host)/") }
        expectFailure(.invalidURL) { try Request(url: "https://\(host)/x").urlRequest() }
        #expect(Origin("https://\(host)") == nil)
        #expect(try RedirectPolicy.follow.outcome("https://\(host)/") == .deliver)
    }

    @Test(
        "Each of 5,000 random hosts is rejected or identical in the origin, the URL and Foundation"
    )
    func oneHost() throws {
        var random = SeededGenerator(seed: 11)
        let pieces = [
            "1", "0", "127", "256", "08", "0x", "f", "٣", "１", "①", ".", ".", "。", "．", "a", "xn--", "ß", "ⓛ", "é", "א",
            "-", "_", "\u{200D}", "[",
            "]", ":", "::", "%31", "\\", "localhost",
        ]
        var accepted = 0
        for _ in 0..<5_000 {
            let host = (0..<Int.random(in: 1...7, using: &random)).reduce(into: "") { text, _ in
                text += pieces.randomElement(using: &random) ?? ""
            }
            guard let origin = Origin("https://\(host)/x") else { continue }
            accepted += 1
            let url = try #require(try Request(url: "https://\(host)/x").urlRequest().url)
            #expect(Origin(url) == origin, "\(host.debugDescription)")
            #expect(Origin(origin.description) == origin, "\(host.debugDescription)")
            #expect(
                url.host == origin.host.trimmingCharacters(in: CharacterSet(charactersIn: "[]")),
                "\(host.debugDescription)")
            let labels = origin.host.split(separator: ".")
            let last = labels.last ?? ""
            let isHex = last.hasPrefix("0x") && last.dropFirst(2).allSatisfy(\.isHexDigit)
            guard isHex || !last.isEmpty && last.allSatisfy(\.isNumber) else { continue }
            #expect(
                labels.count == 4,
                "\(host.debugDescription)")
            #expect(
                labels.allSatisfy { UInt8($0).map(String.init) == String($0) },
                "\(host.debugDescription)")
        }
        #expect((200...4_000).contains(accepted), "both outcomes must be frequent: \(accepted)")
    }

    @Test(
        "A path that begins with a scheme must be a complete http or https URL",
        arguments: [
            "file:///etc/passwd", "ftp://h/x", "data:,x", "javascript:alert(1)", "JavaScript:alert(1)", "gopher://h",
            "ws://h", "about:blank",
            "x-y+z.1:q", "a:",
            "users:batch", "http:", "https:x", "http:/x", "HTTPS:evil",
        ])
    func schemes(path: String) {
        expectFailure(.invalidURL) { try WebService(baseURLString: "https://h/v1").absoluteURL(path) }
    }

    @Test(
        "A colon that is not part of a scheme belongs to the path",
        arguments: [
            ("v1/users:batch", "https://h/v1/users:batch"), ("./a:b", "https://h/a:b"), ("1:2", "https://h/1:2"),
            ("-a:b", "https://h/-a:b"),
            (" https://evil", "https://h/%20https://evil"), ("\thttps://evil", "https://h/%09https://evil"),
            ("ｈttps://evil", "https://h/%EF%BD%88ttps://evil"),
        ])
    func colons(path: String, url: String) throws {
        #expect(try WebService(baseURLString: "https://h").absoluteURL(path).absoluteString == url)
    }

    @Test(
        "An absolute URL is used without any component of the base URL",
        arguments: [
            ("https://other/x?y=1#z", "https://other/x?y=1"), ("HTTP://Other:81", "http://other:81"),
            ("https://other", "https://other"),
            ("https://other?y", "https://other?y"), ("https://other/a/../b", "https://other/b"),
            ("https://other//x/", "https://other//x/"),
            ("https://other/%7Ea/%e9?%zz", "https://other/%7Ea/%e9?%25zz"), ("https://[::1]/x", "https://[::1]/x"),
        ])
    func absolute(path: String, url: String) throws {
        #expect(try WebService(baseURLString: "https://h:1/v1?key=1").absoluteURL(path).absoluteString == url)
        #expect(try Request(url: path).urlRequest().url?.absoluteString == url)
    }
}
