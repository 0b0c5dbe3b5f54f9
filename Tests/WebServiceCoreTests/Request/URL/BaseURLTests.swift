import Foundation
import Testing

@testable import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(5))) struct BaseURLTests {
    @Test(
        "C-05, C-06, C-08: a base that is no plain http or https URL is refused, and the error holds nothing of it",
        arguments: [
            "https://user:s3cret@h/v1", "https://s3cret@h", "https://:s3cret@h", "https://@h", #"http://good\@s3cret/"#, #"http://good\s3cret/"#,
            "ftp://s3cret", "file:///s3cret", "data:text/plain,s3cret", "javascript:s3cret", "gopher://s3cret", "ws://s3cret", "wss://s3cret",
            "//s3cret/v1", "/s3cret", "s3cret", "s3cret.com/v1", "http:s3cret", "http:/s3cret", "https:///s3cret", "https://", "https:",
            "https://?s3cret",
            "https://#s3cret", "https://:80", "https://h:0", "https://h:65536", "https://h:000080", "https://h:99999999999999999999",
            "https://h:s3cret",
            "https://h:8 0", "https://h:-1", "https://h:+80", "https://h:80:80", "https://h s3cret/", " https://s3cret", "https://h%2fs3cret",
            "https://h%00s3cret",
            "https://%68s3cret", "https://h<s3cret>", "https://h\"s3cret", "https://h^s3cret", "https://h|s3cret", "https://[::1",
            "https://[::1]s3cret", "https://[::1]8/s3cret",
            "https://[::1]:s3cret", "https://[]", "https://[:]", "https://[s3cret]", "https://[fe80::1%25s3cret]", "https://::1/s3cret",
            "https://h]/s3cret",
            "https://s3cret/..", "https://s3cret/a/../..", "https://h/{s3cret}", "\u{FEFF}https://s3cret", "ｈttps://s3cret", "https://a／s3cret",
            "https://a＠s3cret",
            "https://a？s3cret", "https://a＃s3cret", "https://a％2fs3cret", "https://é%2fs3cret", "https://a\u{200D}s3cret/\u{0}",
            "https://\u{AD}/s3cret",
        ])
    func refused(base: String) {
        let placeholder = base.contains("{") ? [] : ["s3cret"]  // a placeholder's name is named
        expectFailure(.invalidURL, hiding: placeholder) { try BaseURL(base) }
        #expect(WebService(baseURLString: base).baseURL == nil)
        if base.contains("@") { expectFailure(.invalidURL, naming: ["user information"]) { try BaseURL(base) } }
        expectFailure(.invalidURL, hiding: placeholder) { try Request(url: base).urlRequest() }
    }

    @Test("C-07: a control character or a space in the authority is refused, wherever it stands", arguments: Array(0...32) + [127])
    func controlInAuthority(code: Int) {
        let character = String(Unicode.Scalar(UInt8(code)))
        for base in [
            "https://\(character)h", "https://h\(character)h", "https://h\(character)", "https://h:\(character)80", "https://h:80\(character)/x",
        ] {
            expectFailure(.invalidURL, "\(base.debugDescription)") { try BaseURL(base) }
        }
    }

    @Test(
        "Scheme and host are put in lower case, everything else stays",
        arguments: [
            ("HTTPS://API.Example.COM:8443/V1?Q=X", "https://api.example.com:8443", "/V1", "Q=X"), ("http://h", "http://h", "", nil),
            ("http://h/", "http://h", "/", nil), ("http://h?", "http://h", "", ""), ("http://h/a?b?c#d?e", "http://h", "/a", "b?c"),
            ("http://a-b_c.d/", "http://a-b_c.d", "/", nil), ("http://h:1", "http://h:1", "", nil), ("http://h:65535", "http://h:65535", "", nil),
            ("http://h//a//b/", "http://h", "//a//b/", nil), ("http://h/a/./b/../c", "http://h", "/a/c", nil),
        ] as [(String, String, String, String?)])
    func pieces(text: String, origin: String, path: String, query: String?) throws {
        let base = try BaseURL(text)
        #expect(base.origin == origin && base.path == path && base.query == query)
    }

    @Test(
        "M-02: hosts that look like numbers are taken by the letter, and Foundation sees the same host",
        arguments: [
            "0x7f000001", "2130706433", "127.1", "0177.0.0.1", "1.2.3.4.", "127.0.0.1", "h.", "xn--9ca.example", "[::ffff:127.0.0.1]", "[::1]",
        ])
    func hostForms(host: String) throws {
        let request = try Request(url: "https://\(host):8443/x").urlRequest()
        #expect(request.url?.absoluteString == "https://\(host):8443/x")
        #expect(request.url?.host == host.trimmingCharacters(in: CharacterSet(charactersIn: "[]")) && request.url?.port == 8443)
    }

    @Test(
        "M-01: an international host becomes ASCII once",
        arguments: [
            ("é.example", "xn--9ca.example"), ("É.example", "xn--9ca.example"), ("e\u{301}.example", "xn--9ca.example"),
            ("日本.example", "xn--wgv71a.example"),
            ("ⓛocalhost", "localhost"), ("127。0。0。1", "127.0.0.1"),
        ])
    func international(host: String, ascii: String) throws {
        let request = try Request(url: "https://\(host):81/é").urlRequest()
        #expect(request.url?.absoluteString == "https://\(ascii):81/%C3%A9")
        #expect(request.url?.host == ascii)
    }

    @Test(
        "C-08: what looks like a scheme in a path has to be http or https",
        arguments: [
            "file:///etc/passwd", "ftp://h/x", "data:,x", "javascript:alert(1)", "JavaScript:alert(1)", "gopher://h", "ws://h", "about:blank",
            "x-y+z.1:q", "a:",
            "users:batch", "http:", "https:x", "http:/x", "HTTPS:evil",
        ])
    func schemes(path: String) {
        expectFailure(.invalidURL) { try WebService(baseURLString: "https://h/v1").absoluteURL(path) }
    }

    @Test(
        "A colon that belongs to no scheme is part of the path",
        arguments: [
            ("v1/users:batch", "https://h/v1/users:batch"), ("./a:b", "https://h/a:b"), ("1:2", "https://h/1:2"), ("-a:b", "https://h/-a:b"),
            (" https://evil", "https://h/%20https://evil"), ("\thttps://evil", "https://h/%09https://evil"),
            ("ｈttps://evil", "https://h/%EF%BD%88ttps://evil"),
        ])
    func colons(path: String, url: String) throws {
        #expect(try WebService(baseURLString: "https://h").absoluteURL(path).absoluteString == url)
    }

    @Test(
        "C-02: an absolute URL stands for itself; nothing of the base is carried over",
        arguments: [
            ("https://other/x?y=1#z", "https://other/x?y=1"), ("HTTP://Other:81", "http://other:81"), ("https://other", "https://other"),
            ("https://other?y", "https://other?y"), ("https://other/a/../b", "https://other/b"), ("https://other//x/", "https://other//x/"),
            ("https://other/%7Ea/%e9?%zz", "https://other/%7Ea/%e9?%25zz"), ("https://[::1]/x", "https://[::1]/x"),
        ])
    func absolute(path: String, url: String) throws {
        #expect(try WebService(baseURLString: "https://h:1/v1?key=1").absoluteURL(path).absoluteString == url)
        #expect(try Request(url: path).urlRequest().url?.absoluteString == url)
    }
}
