import Foundation
import TestSupport
import Testing

@testable import WebServiceCore

/// The header fields and bodies that are sent to another origin.
extension RedirectPolicyTests {
    /// A secret that is planted in every part of a request but its path, and searched for in
    /// everything that is sent.
    static let secret = "s3cr3t"

    static func planted(_ method: Request.Method, _ url: String) -> Request {
        .make(method, url + "/a/x?token=\(secret)") {
            $0.headers = [
                "Authorization": "Bearer \(secret)", "Cookie": "sid=\(secret)", "X-API-Key": secret, "x-custom": secret,
                "Referer": "https://a/?\(secret)",
                "Origin": "https://\(secret)", "Range": "bytes=0-\(secret)", "If-None-Match": "\"\(secret)\"",
                "If-Modified-Since": secret,
                "If-Match": secret, "Cache-Control": secret, "Content-Language": secret, "Idempotency-Key": secret,
                "Forwarded": secret,
                "User-Agent": "brewery", "Accept": "application/json", "accept-LANGUAGE": "en",
                "Accept-Encoding": "gzip", "Accept": "text/plain",
            ]
            $0.queryParameters = ["key": secret]
            $0.queryParameterEncoder = { url, _ in URL(string: "\(url?.absoluteString ?? "")&encoder=\(secret)") }
            if method == .GET || method == .HEAD {
                $0.parameters = ["p": secret]
            } else {
                $0.body = Data("password=\(secret)".utf8)
            }
            $0.options.timeout = .seconds(30)
        }
    }

    /// Everything that is sent, as an encoded request and as a `URLRequest`.
    func wire(_ request: Request) throws -> String {
        let encoded = try request.encode()
        let plain = encoded.urlRequestValue
        return [
            encoded.method.rawValue, encoded.url, "\(encoded.headers.fields)", encoded.contentType ?? "",
            String(decoding: encoded.body ?? Data(), as: UTF8.self),
            plain.url?.absoluteString ?? "", "\(plain.allHTTPHeaderFields ?? [:])",
            String(decoding: plain.httpBody ?? Data(), as: UTF8.self),
        ].joined(separator: "\n")
    }

    static let elsewhere = [
        "https://b/", "https://a:8443/", "https://a.b/", "https://b.a/", "https://aa/", "https://a./", "//b",
        "//a:444/", "https://127.0.0.1/",
        "https://[::1]/",
        "HTTPS://A:444", "https://é.example/",
    ]

    @Test(
        "A redirect to another origin sends only the permitted header fields",
        arguments: elsewhere)
    func otherOrigin(location: String) throws {
        for (method, status) in [
            (Request.Method.GET, 301), (.GET, 302), (.GET, 307), (.GET, 308), (.POST, 301), (.POST, 302), (.PUT, 303),
            (.DELETE, 303),
        ] {
            let request = Self.planted(method, "https://a")
            #expect(try wire(request).contains(Self.secret))
            let decision = try RedirectPolicy.follow.decide(request, status, location)
            guard case .follow(let next, droppedCredentials: true) = decision else {
                Issue.record("\(status) \(method) to \(location): \(decision)")
                continue
            }
            #expect(try !wire(next).contains(Self.secret))
            #expect(
                try next.encode().headers.map { "\($0.name): \($0.value)" } == [
                    "User-Agent: brewery", "Accept: application/json", "accept-LANGUAGE: en", "Accept-Encoding: gzip",
                    "Accept: text/plain",
                ])
            #expect(next.options.timeout == .seconds(30))
            #expect(next.queryParameterEncoder == nil)
        }
    }

    @Test("A redirect between http and https changes the origin and drops secrets")
    func otherScheme() throws {
        for (from, to) in [
            ("http://a", "https://a/"), ("https://a", "http://a/"), ("http://a:443", "https://a/"),
            ("https://a:80", "http://a:80/"),
        ] {
            let next = try #require(
                try RedirectPolicy(allowsDowngrade: true).decide(Self.planted(.GET, from), 302, to).next)
            #expect(try !wire(next).contains(Self.secret), "\(from) to \(to)")
        }
    }

    @Test(
        "A redirect to the same origin in another notation preserves all header fields",
        arguments: ["/y", "https://a:443/y", "HTTPS://A/y", "//a/y", "y"])
    func sameOrigin(location: String) throws {
        let request = Self.planted(.GET, "https://a")
        guard
            case .follow(let next, droppedCredentials: false) = try RedirectPolicy.follow.decide(request, 302, location)
        else {
            Issue.record("the redirect was not followed, or credentials were dropped")
            return
        }
        #expect(next.headers == request.headers)
        #expect(try !next.encode().url.contains("token="))
    }

    @Test(
        "Dropped secrets are not restored when a chain of redirects returns to the first origin",
        arguments: ["https://b:8443/2", "https://a/2", "https://b/2", "http://c/2"])
    func chain(third: String) throws {
        for (method, status) in [(Request.Method.GET, 302), (.GET, 307), (.POST, 303), (.POST, 301)] {
            let policy = RedirectPolicy(allowsDowngrade: true)
            let second = try #require(try policy.decide(Self.planted(method, "https://a"), status, "https://b/1").next)
            let last = try #require(try policy.decide(second, status, third, followed: 1).next)
            let back = try #require(try policy.decide(last, status, "https://a/3", followed: 2).next)
            for request in [second, last, back] { #expect(try !wire(request).contains(Self.secret)) }
        }
    }

    @Test("The body, header fields and query of a URLRequest are not sent to another origin")
    func template() throws {
        var plain = URLRequest(url: try #require(URL(string: "https://a/?token=\(Self.secret)")))
        plain.httpMethod = "POST"
        plain.setValue(Self.secret, forHTTPHeaderField: "Authorization")
        plain.setValue(Self.secret, forHTTPHeaderField: "X-Key")
        plain.setValue(Self.secret, forHTTPHeaderField: "Content-Type")
        plain.httpBody = Data(Self.secret.utf8)
        let next = try #require(try RedirectPolicy.follow.decide(Request(plain), 302, "https://b/").next)
        #expect(try !wire(next).contains(Self.secret))
        #expect(try next.urlRequest().httpMethod == "GET")
        #expect(try next.urlRequest().httpBody == nil)
        #expect(try RedirectPolicy.follow.decide(Request(plain), 307, "https://b/").error?.code == .redirectRefused)
        let same = try #require(try RedirectPolicy.follow.decide(Request(plain), 307, "/y").next).urlRequest()
        #expect(same.httpBody == Data(Self.secret.utf8))
        #expect(same.value(forHTTPHeaderField: "x-key") == Self.secret)
        #expect(same.url?.absoluteString == "https://a/y")
    }

    @Test(
        "A body of any kind is sent to another origin only if the policy allows it",
        arguments: [301, 302, 307, 308],
        ["https://b/", "http://a/"])
    func body(status: Int, location: String) throws {
        var requests = [Request.make(.PUT, "https://a/") { $0.body = Data("password=\(Self.secret)".utf8) }]
        requests.append(.make(.PUT, "https://a/") { $0.formParameters = ["password": Self.secret] })
        requests.append(.make(.PUT, "https://a/") { $0.parameters = ["password": Self.secret] })
        requests.append(.make(.PUT, "https://a/") { $0.setBodyProvider { Data() } })
        for request in requests {
            let refused = try RedirectPolicy(allowsDowngrade: true).decide(request, status, location).error
            #expect(refused?.code == .redirectRefused)
            #expect(refused?.message.contains("body") == true)
        }
        let open = RedirectPolicy(allowsDowngrade: true, resendsBodyAcrossOrigins: true)
        requests[0].headers = [
            "Authorization": Self.secret, "Content-Type": "t/x", "Content-Encoding": "gzip",
            "Content-Language": Self.secret, "Accept": "a/b",
        ]
        let next = try #require(try open.decide(requests[0], status, location).next).encode()
        #expect(next.method == .PUT)
        #expect(next.body == Data("password=\(Self.secret)".utf8))
        #expect(next.headers.map(\.name) == ["Content-Type", "Content-Encoding", "Accept"])
        #expect(try open.decide(requests[2], status, location).next?.encodedBody() == "password=\(Self.secret)")

        var empty = Request.make(.PUT, "https://a/") { $0.headers = ["Content-Type": Self.secret] }
        for content in [Request.Body.none, .data(Data()), .form([:])] {
            empty.content = content
            let next = try #require(try RedirectPolicy(allowsDowngrade: true).decide(empty, status, location).next)
            #expect(next.method == .PUT)
            #expect(next.headers.isEmpty)
        }
    }

    @Test("A body stream is not sent twice, and it is removed together with the body")
    func stream() throws {
        var plain = URLRequest(url: try #require(URL(string: "https://a/x")))
        plain.httpMethod = "POST"
        plain.httpBodyStream = InputStream(data: Data("body".utf8))
        let request = Request(plain)
        for location in ["/y", "https://b/"] {
            for status in [307, 308] {
                let error = try RedirectPolicy(resendsBodyAcrossOrigins: true).decide(request, status, location).error
                #expect(error?.code == .redirectRefused)
                #expect(error?.message.contains("httpBodyStream") == true)
            }
            for status in [301, 302, 303] {
                let next = try #require(try RedirectPolicy.follow.decide(request, status, location).next).urlRequest()
                #expect(next.httpMethod == "GET")
                #expect(next.httpBodyStream == nil)
            }
        }
    }

    @Test("A redirect from https to http is refused by default")
    func downgrade() throws {
        for location in ["http://a/", "HTTP://a/", "http://a:443/", "http://b/"] {
            #expect(try RedirectPolicy.follow.outcome(location) == .fail(.redirectRefused))
        }
        #expect(
            try RedirectPolicy.follow.outcome("https://a/", from: "http://a/")
                == .follow("https://a/", droppedCredentials: true))
        #expect(
            try RedirectPolicy.follow.outcome("http://a/y", from: "http://a/")
                == .follow("http://a/y", droppedCredentials: false))
        #expect(
            try RedirectPolicy(allowsDowngrade: true).outcome("http://a/")
                == .follow("http://a/", droppedCredentials: true))
    }
}
