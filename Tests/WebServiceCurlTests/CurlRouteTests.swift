import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// The proxy and the addresses that closures return, and the credentials of proxies.
@Suite("Curl session: routes of requests", .permit)
struct CurlRouteTests {
    private struct Refusal: Error, Equatable {}

    // MARK: Proxies

    @Test("A closure selects the proxy of each request, also asynchronously")
    func selection() async throws {
        let origin = try MockServer.forTest { _ in MockResponse("directly") }
        let first = try MockServer.forTest { _ in MockResponse("first") }
        let second = try MockServer.forTest { _ in MockResponse("second") }
        let urls = Box<[String]>([])
        let session = try CurlSession {
            $0.proxy = .perRequest { url in
                urls.change { $0.append(url.absoluteString) }
                switch url.path {
                case "/1": return .url("http://127.0.0.1:\(first.port)")
                case "/2":
                    await Task.yield()
                    return .authenticated(url: "http://127.0.0.1:\(second.port)", user: "u", password: "p@:/")
                case "/error": throw Refusal()
                case "/bad": return .url("ftp://h:1")
                case "/closure": return .perRequest { _ in .none }
                default: return .none
                }
            }
        }
        let service = WebService(origin, session)
        for _ in 0..<3 {
            #expect(try await service.GET("/1").string().value == "first")
            #expect(try await service.GET("/2").string().value == "second")
            #expect(try await service.GET("/3?x=1").string().value == "directly")
        }
        #expect(Array(urls.value.prefix(3)) == ["/1", "/2", "/3?x=1"].map { origin.baseURLString + $0 })
        #expect(first.receivedRequests.allSatisfy { $0.headers["Proxy-Authorization"] == nil })
        let credentials = "Basic " + Data("u:p@:/".utf8).base64EncodedString()
        #expect(
            second.receivedRequests.map { $0.headers["Proxy-Authorization"] } == Array(repeating: credentials, count: 3)
        )
        #expect(origin.receivedRequests.allSatisfy { $0.headers["Proxy-Authorization"] == nil })
        #expect(await service.GET("/error").string().result.error is Refusal)
        #expect(await service.GET("/bad").string().result.code == .curl)
        #expect(await service.GET("/closure").string().result.code == .curl)
    }

    @Test("A closure may send a request over the same session, and is cancelled with its request")
    func threads() async throws {
        let server = try MockServer.forTest { request in MockResponse(request.path) }
        let service = WebService(baseURLString: server.baseURLString)
        let reached = Box(false)
        service.session = try CurlSession {
            $0.proxy = .perRequest { [weak service] url in
                if url.path == "/wait" {
                    reached.change { $0 = true }
                    let never = AsyncStream<Void> { _ in }
                    for await _ in never {}  // until the cancellation
                }
                if url.path == "/outer" { _ = try await service?.GET("/inner").string().value }
                return .none
            }
        }
        #expect(try await service.GET("/outer").string().value == "/outer")
        #expect(server.receivedRequests.map(\.path) == ["/inner", "/outer"])
        let task = service.GET("/wait").string().resume()
        await eventually("the closure runs") { reached.value }
        task.cancel()
        #expect(await task.result.urlErrorCode == .cancelled)
        #expect(server.receivedRequests.count == 2)
    }

    @Test(
        "Credentials of one request are not used for the tunnel of another",
        .enabled(if: SecureServer.isAvailable, "nginx or openssl is not installed"))
    func tunnels() async throws {
        let server = try SecureServer()
        let proxy = try TunnelProxy()
        defer { proxy.stop() }
        let service = WebService(baseURLString: "https://localhost:\(server.port)")
        service.session = try CurlSession {
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
            $0.proxy = .perRequest { url in
                .authenticated(url: "http://127.0.0.1:\(proxy.port)", user: url.query ?? "", password: "secret")
            }
        }
        for user in ["a", "a", "b", "a", "b"] {
            #expect(try await service.GET("/?\(user)").string().value.hasPrefix("HTTP/2.0"))
        }
        let sent = proxy.heads.map { head in
            head.split(separator: "\r\n").first { $0.hasPrefix("Proxy-Authorization: Basic ") }.map { line in
                String(decoding: Data(base64Encoded: String(line.dropFirst(27))) ?? Data(), as: UTF8.self)
            }
        }
        let users = LinkedLibrary.exportsOpenSSL ? ["a", "b", "b"] : ["a", "a", "b", "a", "b"]
        #expect(sent == users.map { "\($0):secret" })
    }

    @Test(
        "A proxy with Digest authentication opens a tunnel and receives no password",
        arguments: ["https", "http"])
    func digest(scheme: String) async throws {
        let plain = try MockServer.forTest { _ in MockResponse("ale") }
        let secure = scheme == "https" && SecureServer.isAvailable ? try SecureServer() : nil
        let challenge = #"Digest realm="proxy", nonce="n1", qop="auth", algorithm=SHA-256"#
        let proxy = try TunnelProxy { head in
            head.contains("Proxy-Authorization: Digest ")
                ? nil
                : "HTTP/1.1 407 Who\r\nProxy-Authenticate: \(challenge)\r\nContent-Length: 0\r\n\r\n"
        }
        defer { proxy.stop() }
        let port = secure?.port ?? plain.port
        let service = WebService(baseURLString: "\(secure == nil ? "http" : "https")://localhost:\(port)")
        service.session = try CurlSession {
            $0.tls.trustedCertificatesFile = secure?.path("ca.pem")
            $0.proxy = .authenticated(
                url: "http://127.0.0.1:\(proxy.port)", user: "user", password: "proxy-secret", usesDigest: true)
        }
        let task = service.POST("/").setBody(Data("stout".utf8)).string()
        let text = try await task.value
        #expect(text == "ale" || secure != nil && text.hasPrefix("HTTP/2.0"))
        #expect(try await task.response.attempts == 1)
        if secure == nil { #expect(plain.receivedRequests.map(\.body) == [Data("stout".utf8)]) }
        let heads = proxy.heads
        #expect(heads.count == 2)
        #expect(heads.first?.contains("Proxy-Authorization") == false)
        let last = try #require(heads.last)
        func value(_ name: String) -> String {
            let rest = last.components(separatedBy: " \(name)=").dropFirst().first ?? ""
            return String(rest.prefix { $0 != "," && $0 != "\r" && $0 != "\r\n" }).replacingOccurrences(
                of: "\"", with: "")
        }
        func hash(_ text: String) -> String {
            SHA2.sha256.hash(Data(text.utf8)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        let secret = hash("user:proxy:proxy-secret")
        let target = hash("CONNECT:localhost:\(port)")
        #expect(value("username") == "user")
        #expect(value("response") == hash("\(secret):n1:\(value("nc")):\(value("cnonce")):auth:\(target)"))
        #expect(!last.contains("proxy-secret"))
        #expect(plain.receivedRequests.allSatisfy { $0.headers["Proxy-Authorization"] == nil })
    }

    @Test("Wrong Digest credentials for a proxy are a typed error without the password")
    func refusal() async throws {
        let proxy = try TunnelProxy { _ in
            #"HTTP/1.1 407 Who\#r\#nProxy-Authenticate: Digest realm="p", nonce="n", qop="auth"\#r\#nContent-Length: 0\#r\#n\#r\#n"#
        }
        defer { proxy.stop() }
        let service = WebService(baseURLString: "https://brewhapi.invalid")
        service.session = try CurlSession {
            $0.proxy = .authenticated(
                url: "http://127.0.0.1:\(proxy.port)", user: "user", password: "proxy-secret", usesDigest: true)
        }
        let result = await service.GET("/").string().result
        #expect(result.urlErrorCode == .userAuthenticationRequired, "\(result)")
        let text = "\(result) \(result.error?.localizedDescription ?? "")"
        #expect(!text.contains("proxy-secret"))
        #expect((2...3).contains(proxy.heads.count))
    }

    @Test("The credentials of a proxy are checked when the session is created, and no description contains them")
    func checks() throws {
        typealias Proxy = CurlSession.Proxy
        for proxy in [
            Proxy.authenticated(url: "http://u@h:1", user: "secret", password: "secret"),
            .authenticated(url: "http://h:1", user: "", password: "secret"),
            .authenticated(url: "http://h:1", user: "se:cret", password: "secret"),
            .authenticated(url: "http://h:1", user: "secret", password: "se\ncret"),
            .authenticated(url: "socks5://h:1", user: "secret", password: "secret", usesDigest: true),
            .authenticated(url: "h:1", user: "secret", password: "secret"),
        ] {
            let error = #expect(throws: WebServiceError.self) { try CurlSession { $0.proxy = proxy } }
            #expect(error?.code == .curl)
            #expect(error?.message.contains("secret") == false)
        }
        let proxy = Proxy.authenticated(url: "http://h:1", user: "secret", password: "secret")
        var text = "\(proxy) \(String(reflecting: proxy))"
        dump(proxy, to: &text)
        #expect(!text.contains("secret"))
        #expect("\(proxy)" == "http://h:1")
        _ = try CurlSession { $0.proxy = .authenticated(url: "socks5://h:1", user: "u", password: "p") }
    }

    // MARK: Addresses

    @Test("A closure looks hosts up, and the system does if it returns nil")
    func resolver() async throws {
        let server = try MockServer.forTest { request in MockResponse(request.headers["Host"] ?? "") }
        let calls = Box<[String]>([])
        let service = WebService(baseURLString: "http://Brewery.EXAMPLE:\(server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.idleConnectionLifetime = .zero
            $0.addresses = ["static.example:\(server.port)": ["127.0.0.1"]]
            $0.resolver = { host, port in
                calls.change { $0.append("\(host):\(port)") }
                await Task.yield()
                switch host {
                case "brewery.example": return ["127.0.0.2", "127.0.0.1"]
                case "empty.example": return []
                case "wrong.example": return ["localhost"]
                case "error.example": throw Refusal()
                default: return nil
                }
            }
        }
        func send(_ host: String) async -> Result<String, any Error> {
            await service.GET("http://\(host):\(server.port)/").string().result
        }
        for _ in 0..<3 { #expect(try await send("brewery.example").get() == "brewery.example:\(server.port)") }
        #expect(try await send("localhost").get() == "localhost:\(server.port)")
        #expect(
            calls.value == Array(repeating: "brewery.example:\(server.port)", count: 3) + ["localhost:\(server.port)"])
        #expect(try await send("127.0.0.1").get() == "127.0.0.1:\(server.port)")
        #expect(try await send("static.example").get() == "static.example:\(server.port)")
        #expect(calls.value.count == 4)
        #expect(await send("empty.example").code == .curl)
        #expect(await send("wrong.example").code == .curl)
        #expect(await send("error.example").error is Refusal)
    }

    @Test("The addresses of a closure are not used after it has returned nil")
    func forgottenAddresses() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale", wire: .untilClose) }
        let isKnown = Box(true)
        let service = WebService(baseURLString: "http://brewery.invalid:\(server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.resolver = { _, _ in isKnown.value ? ["127.0.0.1"] : nil }
        }
        #expect(try await service.GET("/").string().value == "ale")
        isKnown.change { $0 = false }
        #expect(await service.GET("/").string().result.urlErrorCode == .cannotFindHost)
        isKnown.change { $0 = true }
        #expect(try await service.GET("/").string().value == "ale")
    }

    @Test(
        "Names are looked up over HTTPS",
        .enabled(if: SecureServer.isAvailable, "nginx or openssl is not installed"))
    func dnsOverHTTPS() async throws {
        let dns = try MockServer.namesOnLoopback()
        let front = try SecureServer(backend: dns.baseURLString)
        let server = try MockServer.forTest { request in MockResponse(request.headers["Host"] ?? "") }
        let service = WebService(baseURLString: "http://brewery.example:\(server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.tls.trustedCertificatesFile = front.path("ca.pem")
            $0.dnsURL = "https://localhost:\(front.port)/dns-query"
        }
        for _ in 0..<3 { #expect(try await service.GET("/").string().value == "brewery.example:\(server.port)") }
        #expect(dns.receivedRequests.contains { $0.path == "/dns-query" })
        for url in ["", "http://localhost/", "https://u:p@localhost/", "https://a b/", "dns"] {
            #expect(Result { try CurlSession { $0.dnsURL = url } }.code == .curl)
        }
    }
}
