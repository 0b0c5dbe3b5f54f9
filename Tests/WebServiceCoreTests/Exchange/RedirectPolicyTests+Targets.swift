import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// The target of a `Location` field.
extension RedirectPolicyTests {
    @Test(
        "The target is the resolved reference without its fragment",
        arguments: [
            ("../ok", "https://a/ok"), ("ok?x=%2F", "https://a/dir/ok?x=%2F"), ("/a%2Fb", "https://a/a%2Fb"),
            ("", "https://a/dir/x?q=1"),
            ("?", "https://a/dir/x?"), ("?y", "https://a/dir/x?y"), ("#f", "https://a/dir/x?q=1"),
            ("y#secret", "https://a/dir/y"),
            ("//a/x", "https://a/x"),
            (" \t/y\t ", "https://a/y"), ("/../../y/.", "https://a/y/"), ("/%7euser/%zz", "https://a/%7euser/%25zz"),
            ("/é ü", "https://a/%C3%A9%20%C3%BC"),
            ("/{id}/{\u{301}", "https://a/%7Bid%7D/%7B%CC%81"), ("?{x}={", "https://a/dir/x?%7Bx%7D=%7B"),
            ("/a//b//", "https://a/a//b//"),
            ("/\\evil", "https://a/%5Cevil"), ("\\\\evil\\x", "https://a/dir/%5C%5Cevil%5Cx"),
            ("\\/evil", "https://a/dir/%5C/evil"),
            ("/\\/evil", "https://a/%5C/evil"), ("/\\\\evil", "https://a/%5C%5Cevil"),
            ("./\\\\evil", "https://a/dir/%5C%5Cevil"),
            ("?\\\\evil", "https://a/dir/x?%5C%5Cevil"), ("@evil", "https://a/dir/@evil"),
            (".evil", "https://a/dir/.evil"),
            ("%2f%2fevil", "https://a/dir/%2f%2fevil"), ("/.//evil", "https://a//evil"), ("/x,y", "https://a/x,y"),
            ("x\u{AD}", "https://a/dir/x%C2%AD"),
        ])
    func targets(location: String, url: String) throws {
        #expect(try RedirectPolicy.follow.outcome(location) == .follow(url, droppedCredentials: false))
    }

    @Test(
        "A response without a usable target is delivered",
        arguments: [
            "http:evil", "https:evil", "https:/evil", "https:///evil", "https://", "//", "///evil", "https://:8443/",
            "https://a:0/",
            "https://a:99999/", "https://a:x/",
            "https:\\\\evil\\", "https:/\\evil/", "https://\\evil/",
            "https://[::1", "https://[::1]evil", "https://a\\evil/", "https://a%2Eevil/", "https://a evil/",
            "https://{a}/", "https:/..//evil",
            "/a\r\nSet-Cookie: x", "/\u{0}", "/\u{7F}", "\n/x", "/x\t/y", "/\u{1B}[0m", "/\u{FFFD}", "\u{FFFD}",
            "/a%2F..%2Fb", "/..%5c", "/%2e%2e/x",
        ])
    func unusable(location: String) throws {
        for followed in [0, 20] { #expect(try RedirectPolicy.follow.outcome(location, followed: followed) == .deliver) }
    }

    @Test(
        "A host that ends in a number and is not a canonical IPv4 address is refused with that reason",
        arguments: [
            "https://127.1/", "//127.1", "https://2130706433/", "https://0x7f000001:8443/", "https://0177.0.0.1/",
            "https://192.168.257/",
            "https://1.2.3.4./", "//1.2.3.08/x", "https://a.1/", "https://１２７.1/", "https://127。1/",
        ])
    func numericHosts(location: String) throws {
        for followed in [0, 19] {
            let decision = try RedirectPolicy.follow.decide(
                Self.planted(.GET, "https://a"), 302, location, followed: followed)
            let error = try #require(decision.error)
            #expect(error.code == .redirectRefused)
            #expect(
                error.message
                    == "the redirect leads to a host that ends in a number but is not an IPv4 address in canonical form"
                    + ", such as 192.0.2.1"
            )
            #expect(!printed(error).contains(Self.secret))
        }
        #expect(try RedirectPolicy.manual.outcome(location) == .deliver)
    }

    @Test(
        "Another notation of the host has the same origin, and its canonical form is used"
    )
    func sameHost() throws {
        for (base, location, url) in [
            ("https://[::1]:1/x", "//[0:0:0:0:0:0:0:1]:1/y", "https://[::1]:1/y"),
            ("https://[0::1]/x", "https://[::1]:443/y", "https://[::1]:443/y"),
            ("https://127.0.0.1/x", "https://127。0。0。1/y", "https://127.0.0.1/y"),
            ("https://localhost/x", "//ⓛocalhost/y", "https://localhost/y"),
            ("https://faß.de/x", "//xn--fa-hia.de/y", "https://xn--fa-hia.de/y"),
        ] {
            #expect(
                try RedirectPolicy.follow.outcome(location, from: base) == .follow(url, droppedCredentials: false),
                "\(location)")
        }
        let mapped = try RedirectPolicy.follow.outcome("//[::ffff:127.0.0.1]/y", from: "https://127.0.0.1/x")
        #expect(mapped == .follow("https://[::ffff:127.0.0.1]/y", droppedCredentials: true))
    }

    @Test(
        "A response with no Location field, different ones or an overlong one is delivered",
        .permit)
    func values() throws {
        let request = Request.make()
        let policy = RedirectPolicy.follow
        #expect(policy.decision(for: request, at: "https://h/v1", status: 302, locations: [], followed: 0).isDelivery)
        #expect(try policy.decide(request, 302, "/a", "/b").isDelivery)
        #expect(try policy.decide(request, 302, "/a", "/a", "/b").isDelivery)
        #expect(try policy.decide(request, 302, "/a", "/a").next?.encode().url == "https://h/a")
        for piece in ["a", "/", "../", " ", "@", "é", "{", "%", "?", "\\", ":", "\u{0}"] {
            let long = String(repeating: piece, count: amount(1 << 17, thorough: 1 << 20) / piece.utf8.count)
            #expect(try policy.decide(request, 302, "/x" + long).isDelivery)
            #expect(try policy.decide(request, 302, "https://h" + long).isDelivery)
        }
        let longest = Request.maximumHeaderValueLength - "https://h/".utf8.count
        #expect(
            try policy.decide(request, 302, "/" + String(repeating: "a", count: longest)).next?.encode().url.utf8.count
                == 65_536)
        #expect(try policy.decide(request, 302, "/" + String(repeating: "a", count: longest + 1)).isDelivery)
    }

    @Test("A comma is a part of a target, unless Foundation has joined several")
    func commas() throws {
        let policy = RedirectPolicy.follow
        #expect(try policy.decide(.make(), 302, "/a, b").next?.encode().url == "https://h/a,%20b")
        let url = try #require(URL(string: "https://h/"))
        for (value, locations) in [
            ("/a, b", ["/a", "b"]), ("/a, /a", ["/a", "/a"]), ("/a,b", ["/a,b"]), ("/a", ["/a"]), ("", []),
        ] {
            let response = HTTPURLResponse(
                url: url, statusCode: 302, httpVersion: nil, headerFields: ["Location": value])
            #expect(ResponseHead(try #require(response)).locations == locations, "\(value)")
            let bytes = Array("HTTP/1.1 302 Found\r\nLocation: \(value)\r\n\r\n".utf8)
            #expect(ResponseHead(bytes: bytes, url: "https://h/")?.locations == [value], "\(value)")
        }
    }

    @Test(
        "A response is delivered if the URL of its request is invalid",
        arguments: ["", "x", "/x", "ftp://a/", "https://u:p@a/", "https://", "https:a"])
    func hostileBase(url: String) {
        for location in ["/y", "https://b/", ""] {
            #expect(
                RedirectPolicy.follow.decision(for: .make(), at: url, status: 302, locations: [location], followed: 0)
                    .isDelivery)
        }
    }

    @Test(
        "Other schemes and user information are refused, and the error contains no secret",
        arguments: [
            "javascript:alert(1)", "JavaScript:alert(1)", "file:///etc/passwd", "data:text/html,s3cr3t", "ftp://b/",
            "gopher://b/", "ws://a/",
            "wss://a/", "mailto:a@b",
            "localhost:8080/x", "view-source:https://a/", "httpss://a/", "https+x://a/", "x:", "about:blank",
            "blob:https://a/s3cr3t",
            "https://u:s3cr3t@a/", "https://s3cr3t@b/", "https://@a/", "//u@a/", "//@a", "https://a\\@b/",
            "https://a:80\\@b:443/",
            "https://[::1]@b/", "https://a@b@c/",
        ])
    func refused(location: String) throws {
        let request = Self.planted(.GET, "https://a")
        let error = try #require(try RedirectPolicy.follow.decide(request, 302, location).error)
        #expect(error.code == .redirectRefused)
        #expect(error.request?.url == request.url)
        #expect(!printed(error).contains(Self.secret))
        #expect(try RedirectPolicy.follow.decide(request, 307, location).error?.code == .redirectRefused)
    }

    // MARK: Random input

    /// Returns the defect of a decision for a request to `https://good.example/…` that contains
    /// secrets, or `nil` if the decision is correct.
    private func complaint(_ location: String, _ status: Int, _ method: Request.Method) throws -> String? {
        let request = Self.planted(method, "https://good.example")
        guard case .follow(let next, let dropped) = try RedirectPolicy.follow.decide(request, status, location) else {
            return nil
        }
        let url = try next.encode().url
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), !url.contains("#"), url.hasPrefix("https://") else {
            return "illegal bytes, or not https: \(url)"
        }
        guard let seen = URL(string: url, encodingInvalidCharacters: false), seen.absoluteString == url,
            seen.user == nil
        else {
            return "not a URL: \(url)"
        }
        let isHome = seen.host == "good.example" && [nil, 443].contains(seen.port)
        guard dropped != isHome else { return "compared with the wrong origin: \(url)" }
        if !isHome, try wire(next).contains(Self.secret), !location.contains(Self.secret) {
            return "a secret was sent to \(url)"
        }
        return nil
    }

    @Test(
        "No random target receives a secret or is downgraded to http",
        arguments: 0..<amount(1, thorough: 4, soak: 16))
    func random(seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let pieces = [
            "https:", "http:", "HTTPS://", "https://", "//", "/", "\\", "@", ":", "?", "#", "..", ".", "%2e", "%2f",
            "%5c", "%", "%00", "\u{0}", "\t",
            "\r\n", " ", ",", "é",
            "。", "\u{202E}", "\u{FFFD}", "{", "}", "good.example", "evil.host", ":443", ":8443", "[::1]", "user:pw",
            "x", "javascript:", "e\u{301}",
        ]
        var followed = 0
        for _ in 0..<1_000 {
            let location = (0..<Int.random(in: 0...7, using: &random)).reduce(into: "") { text, _ in
                text += pieces.randomElement(using: &random) ?? ""
            }
            let status = [301, 302, 303, 307, 308].randomElement(using: &random) ?? 301
            let complaint = try complaint(location, status, Self.allMethods.randomElement(using: &random) ?? .GET)
            #expect(complaint == nil, "\(location.debugDescription)")
            if try RedirectPolicy.follow.outcome(location, from: "https://good.example/") != .deliver { followed += 1 }
        }
        #expect(
            (200...900).contains(followed), "both outcomes must be frequent for a meaningful test: \(followed)")
    }

    @Test(
        "No target from the redirect, traversal and injection lists receives a secret",
        .enabled(if: Corpora.areThere, Corpora.comment),
        arguments: [
            ("redirect-injection-template.txt", 5), ("redirect-urls-template.txt", 20), ("crlf-injection.txt", 20),
            ("naughty-unicode.txt", 5),
            ("NullByteRepresentations.txt", 5), ("right-to-left.txt", 1),
            ("traversals-8-deep-exotic-encoding.txt", 500),
        ])
    func fuzzdb(file: String, minimum: Int) throws {
        let lines = try Corpora.lines("fuzzdb/" + file)
        #expect(lines.count >= minimum)
        var random = SeededGenerator(seed: 7)
        let targets = [
            "evil.host", "good.example.evil.host", "user@evil.host", "good.example@evil.host", "https://evil.host",
            "http://good.example",
            "good.example:8443",
        ]
        for line in sample(lines, every: 40, thorough: 4) {
            for target in line.contains("{target}") ? targets : [""] {
                let location = line.replacing("{target}", with: target).replacing("{FILE}", with: "etc/passwd")
                let cut = String(
                    decoding: location.utf8.dropFirst(Int.random(in: 0...8, using: &random)), as: UTF8.self)
                for text in [
                    location, "/" + location, "//" + location, "https://" + location, "https://good.example" + location,
                    cut,
                ] {
                    let complaint = try complaint(text, 302, .POST) ?? complaint(text, 308, .GET)
                    #expect(complaint == nil, "\(text.debugDescription)")
                }
            }
        }
    }
}
