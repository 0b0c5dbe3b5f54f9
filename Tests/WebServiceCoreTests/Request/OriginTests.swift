import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

@Suite(.permit) struct OriginTests {
    @Test(
        "An origin is the scheme, host and port of a URL, with case and default port normalized",
        arguments: [
            ("https://h", "https", "h", 443, "https://h"), ("https://h:443/x?y#z", "https", "h", 443, "https://h"),
            ("HTTPS://H:00443", "https", "h", 443, "https://h"), ("http://h:", "http", "h", 80, "http://h"),
            ("http://H:80/", "http", "h", 80, "http://h"),
            ("http://h:443", "http", "h", 443, "http://h:443"), ("https://h:80", "https", "h", 80, "https://h:80"),
            ("https://API.Example.com:8443/v1", "https", "api.example.com", 8443, "https://api.example.com:8443"),
            ("https://[::1]", "https", "[::1]", 443, "https://[::1]"),
            ("https://[2001:DB8::1]:8443", "https", "[2001:db8::1]", 8443, "https://[2001:db8::1]:8443"),
            ("http://[::ffff:127.0.0.1]:80", "http", "[::ffff:127.0.0.1]", 80, "http://[::ffff:127.0.0.1]"),
            ("https://é.example?q", "https", "xn--9ca.example", 443, "https://xn--9ca.example"),
            ("https://h.:1", "https", "h.", 1, "https://h.:1"),
            ("https://a_b-c.d:65535/@x", "https", "a_b-c.d", 65535, "https://a_b-c.d:65535"),
        ])
    func parts(text: String, scheme: String, host: String, port: Int, description: String) throws {
        let origin = try #require(Origin(text))
        #expect(origin.scheme == scheme)
        #expect(origin.host == host)
        #expect(origin.port == port)
        #expect("\(origin)" == description)
        #expect(Origin(origin.description) == origin)
        #expect(try Origin(#require(URL(string: text))) == origin)
    }

    @Test(
        "Similar but different origins are not equal",
        arguments: [
            ("https://h", "http://h"), ("https://h", "https://h:8443"), ("https://h", "https://h:80"),
            ("https://h", "https://h."),
            ("https://h", "https://hh"),
            ("https://example.com", "https://api.example.com"), ("https://api.example.com", "https://api.evil-api.com"),
            ("https://example.com", "https://evilexample.com"), ("https://good.com", "https://good.com.evil"),
            ("https://good.com", "https://good.co"),
            ("https://127.0.0.1", "https://localhost"), ("https://127.0.0.1", "https://127.0.0.2"),
            ("https://127.0.0.1", "https://[::1]"),
            ("https://[::1]", "https://[::2]"), ("https://127.0.0.1", "https://[::ffff:127.0.0.1]"),
            ("https://127.0.0.1", "https://[::127.0.0.1]"),
            ("http://h:443", "https://h"), ("http://h:8", "http://h:80"),
        ])
    func different(one: String, other: String) throws {
        let origins = [try #require(Origin(one)), try #require(Origin(other))]
        #expect(origins[0] != origins[1])
        #expect(Set(origins).count == 2)
        #expect(origins[0].description != origins[1].description)
    }

    @Test("Equal origins have equal hashes and descriptions")
    func equal() throws {
        let texts = [
            "https://h", "https://h/", "HTTPS://H:443", "https://h:0443/x?y=//z#@", "https://h?q", "https://h#f",
            "https://h:/",
        ]
        let origins = Set(try texts.map { try #require(Origin($0)) })
        #expect(origins.count == 1)
        #expect(Set(origins.map(\.description)) == ["https://h"])
    }

    @Test(
        "All notations of an IPv6 address have the same origin",
        arguments: [
            ["[::1]", "[0:0:0:0:0:0:0:1]", "[::0001]", "[0::1]", "[::0.0.0.1]"],
            ["[2001:DB8::1]", "[2001:db8:0:0::1]", "[2001:0db8::0:1]"],
            ["[::ffff:127.0.0.1]", "[::FFFF:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]"],
        ])
    func sameAddress(hosts: [String]) throws {
        let origins = Set(try hosts.map { try #require(Origin("https://\($0):8443/x")) })
        #expect(origins.count == 1)
        #expect(origins.first?.host == hosts[0].lowercased())
    }

    @Test(
        "A string that is not an http or https URL with a plain host has no origin",
        arguments: [
            "", "h", "/x", "//h", "https:", "https:/h", "https:h", "https://", "https:///x", "https://:443", "ftp://h",
            "file:///etc/passwd",
            "ws://h", "javascript:alert(1)",
            "data:,x", "https://u@h", "https://u:p@h", "https://@h", "https://h\\@evil", "https://h\\evil",
            "https://h:0", "https://h:65536",
            "https://h:-1", "https://h:x",
            "https://h:80:80", "https://[::1", "https://[::1]x", "https://[]", "https://h%2Eevil", "https://h h",
            "https://h\r\n", "https://h\u{0}",
            " https://h",
            "https://h:８０", "https://h\u{202E}", "https://\u{FFFD}", "https\u{301}://h", "https://h:443\u{301}",
            "nope://h:443",
            "https://127.1", "https://0x7f.1", "https://2130706433", "https://127.0.0.1.", "https://[::1%25lo]",
            "https://[0::0::0]",
        ])
    func none(text: String) {
        #expect(Origin(text) == nil)
    }

    @Test(
        "A URL with a base URL has the origin of the resolved URL",
        arguments: [("x", "https://h:8443"), ("//g/x", "https://g"), ("http://g", "http://g")])
    func relative(text: String, description: String) throws {
        let url = try #require(URL(string: text, relativeTo: URL(string: "https://h:8443/v1/")))
        #expect(Origin(url)?.description == description)
    }

    @Test("A long string has no origin or the origin at its start", .permit)
    func megabyte() {
        let length = amount(1 << 17, thorough: 1 << 20)
        let long = String(repeating: "a", count: length)
        #expect(Origin(long) == nil)
        #expect(Origin("https://h:" + String(repeating: "1", count: length)) == nil)
        #expect(Origin("https://h/" + long)?.description == "https://h")
        #expect(Origin("https://" + long)?.host == long)
    }
}
