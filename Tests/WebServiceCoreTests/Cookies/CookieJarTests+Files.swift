import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// Cookies that a program adds, removes and writes to a file.
@Suite("Cookie jar: changes and files", .permit)
struct CookieJarFileTests {
    private let jar = CookieJar()
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("cookies-\(UUID().uuidString)")
    private var file: URL { folder.appendingPathComponent("jar.json") }

    private static func cookie(_ name: String, _ value: String = "v", path: String = "/") throws -> Cookie {
        try Cookie(name: name, value: value, domain: "a.example", path: path)
    }

    @Test("An added cookie is sent, replaces an equal one in its place, and can be removed")
    func changes() throws {
        let url = try #require(URL(string: "https://a.example/x/y"))
        jar.store(["a=1; Path=/", "b=2; Path=/"], from: url)
        jar.add(try Self.cookie("c", "3"))
        jar.add(try Self.cookie("a", "4"))
        jar.add(try Self.cookie("a", "5", path: "/x"))
        #expect(jar.header(for: url) == "a=5; a=4; b=2; c=3")
        jar.remove(try Self.cookie("a"))
        jar.remove(try Self.cookie("none"))
        #expect(jar.header(for: url) == "a=5; b=2; c=3")
        let first = try #require(jar.cookies.first { $0.name == "b" })
        jar.remove(first)
        jar.add(try Cookie(name: "c", value: "x", domain: "a.example", expires: .distantPast))
        #expect(jar.cookies.map(\.name) == ["a"])
        #expect(jar.description == "CookieJar(1)")
    }

    @Test(
        "A cookie that no Set-Cookie field could set is an error that does not repeat its value",
        arguments: [
            ("", "canary", "a.example", "/"), ("a=b", "canary", "a.example", "/"), ("a;b", "canary", "a.example", "/"),
            ("a\n", "canary", "a.example", "/"), (" a", "canary", "a.example", "/"), ("a", "canary;", "a.example", "/"),
            ("a", "canary\r\nX: 1", "a.example", "/"), ("a", " canary", "a.example", "/"),
            ("a", "canary\t", "a.example", "/"),
            ("a", "canary", "", "/"), ("a", "canary", "a.example:80", "/"), ("a", "canary", "a.example/x", "/"),
            ("a", "canary", "u@a.example", "/"), ("a", "canary", "b\u{FC}cher.example", "/"),
            ("a", "canary", "a example", "/"), ("a", "canary", String(repeating: "a", count: 256), "/"),
            ("a", "canary", "a.example", ""), ("a", "canary", "a.example", "x"), ("a", "canary", "a.example", "/;x"),
            ("a", "canary", "a.example", "/" + String(repeating: "a", count: 1_024)),
            ("__Host-a", "canary", "a.example", "/x"),
            ("a", "canary" + String(repeating: "a", count: 4_096), "a.example", "/"),
        ])
    func invalid(name: String, value: String, domain: String, path: String) throws {
        let error = #expect(throws: WebServiceError.self) {
            try Cookie(name: name, value: value, domain: domain, path: path)
        }
        #expect(error?.code == .invalidHeader)
        #expect(error.map { "\($0)".contains("canary") } == false)
    }

    @Test("The name prefixes require their attributes, and a date is at most in the year 9999")
    func attributes() throws {
        for prefix in ["__Host-", "__secure-"] {
            #expect(throws: WebServiceError.self) {
                try Cookie(name: prefix + "a", value: "", domain: "a.example", isSecure: false)
            }
            #expect(try Cookie(name: prefix + "a", value: "", domain: "a.example").isSecure)
        }
        #expect(throws: WebServiceError.self) {
            try Cookie(name: "__Host-a", value: "", domain: "a.example", isHostOnly: false)
        }
        #expect(throws: WebServiceError.self) {
            try Cookie(name: "a", value: "", domain: "h", expires: Date(timeIntervalSince1970: .nan))
        }
        let late = try Cookie(name: "a", value: "", domain: "A.Example", expires: .distantFuture, isHostOnly: false)
        #expect(late.expires == HTTPDate.latest || late.expires == .distantFuture)
        #expect(late.domain == "a.example")
        #expect(!late.isHostOnly)
        for domain in ["127.0.0.1", "[::1]", "localhost", "com"] {
            #expect(try Cookie(name: "a", value: "", domain: domain, isHostOnly: false).isHostOnly, "\(domain)")
        }
    }

    @Test("A file preserves all attributes and the order, without session cookies unless they are requested")
    func roundTrip() throws {
        defer { try? FileManager.default.removeItem(at: folder) }  // in the temporary folder
        let url = try #require(URL(string: "https://b.a.example/x/y"))
        jar.store(
            [
                "p=\"\u{E9} 1\"; Max-Age=1000; Domain=a.example; Path=/x; Secure; HttpOnly", "s=2", "q=; Max-Age=2000",
                "old=1; Max-Age=1000",
            ], joined: false, from: url)
        jar.store(["p=2; Max-Age=1000; Path=/"], from: url)
        try jar.write(to: file)
        #expect(try CookieJar(contentsOf: file).cookies == jar.cookies.filter { $0.expires != nil })
        #expect(try CookieJar(contentsOf: file).cookies.map(\.name) == ["p", "q", "old", "p"])
        jar.remove(try #require(jar.cookies.first { $0.name == "old" }))
        try jar.write(to: file, includingSessionCookies: true)
        let read = try CookieJar(contentsOf: file)
        #expect(read.cookies == jar.cookies)
        #expect(read.header(for: url) == jar.header(for: url))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["jar.json"])
        func permissions(_ url: URL) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int
        }
        #expect(try permissions(file) == 0o600)
        #expect(try permissions(folder) == 0o700)
    }

    @Test("Cookies that expire between writing and reading are omitted")
    func expiry() throws {
        defer { try? FileManager.default.removeItem(at: folder) }  // in the temporary folder
        let now = Date(timeIntervalSince1970: 1_700_000_000)
        func jar(after seconds: TimeInterval) throws -> CookieJar {
            let date = now.addingTimeInterval(seconds)
            return try CookieJar(contentsOf: file, timekeeper: TestTimekeeper(date: { date }))
        }
        let first = try jar(after: 0)
        let url = try #require(URL(string: "https://a.example/"))
        first.store(["a=1; Max-Age=10", "b=2; Max-Age=30"], from: url)
        try first.write(to: file)
        #expect(try jar(after: 9).cookies == first.cookies)
        #expect(try jar(after: 10).cookies.map(\.name) == ["b"])
        #expect(try jar(after: 30).cookies.isEmpty)
        try jar(after: 30).write(to: file)
        #expect(try String(contentsOf: file, encoding: .utf8) == "[]")
    }

    @Test("A missing file is an empty jar; anything that is not a file of cookies is a storage error")
    func damaged() throws {
        defer { try? FileManager.default.removeItem(at: folder) }  // in the temporary folder
        #expect(try CookieJar(contentsOf: file).cookies.isEmpty)
        jar.add(try Self.cookie("a", "canary"))
        try jar.write(to: file, includingSessionCookies: true)
        let bytes = try Data(contentsOf: file)
        #expect(try CookieJar(contentsOf: file).cookies.count == 1)
        let text = String(decoding: bytes, as: UTF8.self)
        for damaged in [
            "", "{}", "[{}]", String(text.dropLast()), text.replacingOccurrences(of: "canary", with: "canary;x"),
            text.replacingOccurrences(of: "a.example", with: "a example"), String(repeating: "[", count: 600),
        ] {
            try Data(damaged.utf8).write(to: file)
            let error = #expect(throws: WebServiceError.self) { try CookieJar(contentsOf: file) }
            #expect(error?.code == .storage, "\(damaged)")
            #expect(error.map { "\($0)".contains("canary") } == false, "\(damaged)")
        }
        let parent = #expect(throws: WebServiceError.self) { try CookieJar(contentsOf: folder) }
        #expect(parent?.code == .storage)
        for place in ["http://h/x", "file:///", "data:,x"] {
            let url = try #require(URL(string: place))
            #expect(throws: WebServiceError.self) { try jar.write(to: url) }
        }
        try FileManager.default.removeItem(at: file)
        try FileManager.default.createSymbolicLink(at: file, withDestinationURL: folder.appendingPathComponent("other"))
        #expect(throws: WebServiceError.self) { try CookieJar(contentsOf: file) }
        try jar.write(to: file)
        #expect(try String(contentsOf: file, encoding: .utf8) == "[]")
        #expect(!FileManager.default.fileExists(atPath: folder.appendingPathComponent("other").path))
    }

    @Test("A file that cannot be written is a storage error and leaves the previous file")
    func unwritable() throws {
        defer { try? FileManager.default.removeItem(at: folder) }  // in the temporary folder
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: true)
        let error = #expect(throws: WebServiceError.self) { try jar.write(to: file) }
        #expect(error?.code == .storage)
        #expect(error?.underlying is POSIXError)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["jar.json"])
    }
}

/// The rules that need the list of public suffixes, which libpsl of the system provides.
@Suite(
    "Cookie jar: public suffixes", .permit,
    .enabled(if: CookieJar.knowsPublicSuffixes, "libpsl is needed"))
struct PublicSuffixTests {
    @Test(
        "A cookie for a public suffix is rejected, except as a host-only cookie of the suffix itself",
        arguments: [
            ("a.example.co.uk", "co.uk", nil), ("a.example.co.uk", "example.co.uk", false),
            ("me.github.io", "github.io", nil), ("github.io", "github.io", true), ("co.uk", ".co.uk", true),
            ("www.ck", "www.ck", false), ("a.foo.ck", "foo.ck", nil), ("a.co.uk.", "co.uk.", nil),
            ("x.xn--55qx5d.cn", "xn--55qx5d.cn", nil), ("A.Example.CO.UK", "CO.uk", nil),
            ("b.a.example", "a.example", false),
        ] as [(String, String, Bool?)])
    func rejected(host: String, domain: String, isHostOnly: Bool?) throws {
        let jar = CookieJar()
        jar.store(["a=b; Domain=\(domain)"], from: try #require(URL(string: "https://\(host)/")))
        #expect(jar.cookies.map(\.isHostOnly) == (isHostOnly.map { [$0] } ?? []))
    }

    @Test("Without the list, a domain with a dot is accepted")
    func withoutList() throws {
        let jar = CookieJar(timekeeper: nil, suffixes: PublicSuffixList("libnone.so"))
        jar.store(["a=b; Domain=co.uk"], from: try #require(URL(string: "https://a.example.co.uk/")))
        jar.store(["a=b; Domain=uk"], from: try #require(URL(string: "https://a.example.co.uk/")))
        #expect(jar.cookies.map(\.domain) == ["co.uk"])
    }

    @Test("A cookie that a program creates for a public suffix is host-only")
    func created() throws {
        #expect(try Cookie(name: "a", value: "", domain: "co.uk", isHostOnly: false).isHostOnly)
        #expect(try !Cookie(name: "a", value: "", domain: "a.co.uk", isHostOnly: false).isHostOnly)
    }

    @Test("No site below a public suffix of two labels evicts the cookies of another")
    func sites() throws {
        for (suffixes, remaining) in [(PublicSuffixList.system, 40), (nil, 0)] {
            let jar = CookieJar(timekeeper: nil, suffixes: suffixes)
            func set(_ count: Int, from host: String) throws {
                let url = try #require(URL(string: "https://\(host)/"))
                jar.store((0..<count).map { "c\($0)=v" }, from: url)
            }
            try set(40, from: "www.victim.co.uk")
            for number in 0..<20 { try set(150, from: "a\(number).attacker.co.uk") }
            #expect(jar.cookies.count { $0.domain == "www.victim.co.uk" } == remaining)
        }
    }
}
