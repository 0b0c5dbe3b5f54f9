import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCore
@testable import WebServiceCurl

/// The addresses to which a session may connect, over loopback.
///
/// ``DestinationNamespaceTests`` connects to other addresses.
@Suite("Destinations: requests", .permit)
struct DestinationTests {
    typealias Destinations = CurlSession.Destinations

    private func session(
        _ destinations: Destinations, exceptions: [String] = [],
        _ change: (inout CurlSession.Configuration) -> Void = { _ in }
    ) throws -> CurlSession {
        try CurlSession {
            $0.proxy = .none
            $0.destinations = destinations
            $0.destinations.exceptions = exceptions
            change(&$0)
        }
    }

    private func service(_ url: String, _ session: CurlSession) -> WebService { WebService(url, session: session) }

    // MARK: The rule

    @Test(
        "Over .publicInternet, a host on loopback fails without a connection, and the error names address and host",
        arguments: ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
    func refusal(host: String) async throws {
        let server = try AddressServer("127.0.0.1")
        let service = service("http://\(host):\(server.port)", try session(.publicInternet))
        let task = service.GET("/").setHeaderValue("canary", forName: "X-Secret").string()
        let error = try #require(await task.result.error as? WebServiceError)
        #expect(error.code == .destinationRefused)
        #expect(
            error.message.contains(
                "(port \(server.port)) of the host '\(host == "localhost" ? host : Origin("http://\(host)")?.host ?? "")'"
            ))
        #expect(error.message.contains("127.0.0.1") || host == "localhost" && error.message.contains("::1"))
        #expect(error.message.contains("'exceptions'"))
        #expect(!"\(error)".contains("canary"))
        #expect(error.request?.url?.port == server.port)
        #expect(server.addresses.isEmpty)
    }

    @Test("By default, every address is allowed")
    func anywhere() async throws {
        let server = try AddressServer("127.0.0.1")
        let service = service("http://127.0.0.1:\(server.port)", try CurlSession { $0.proxy = .none })
        #expect(try await service.GET("/").string().value == "ale")
        let explicit = self.service(
            "http://127.0.0.1:\(server.port)", try session(.anywhere, exceptions: ["10.0.0.0/8"]))
        #expect(try await explicit.GET("/").string().value == "ale")
    }

    @Test("A refused request is not sent again, not by a retry policy and not by a wait for a network")
    func retries() async throws {
        let server = try AddressServer("127.0.0.1")
        let count = Box(0)
        let session = try session(
            Destinations { _ in
                count.change { $0 += 1 }
                return false
            })
        let service = service("http://127.0.0.1:\(server.port)", session)
        service.interceptors = [.retry(maximumAttempts: 5, baseDelay: .zero)]
        let task = service.GET("/").string()
        let error = try #require(await task.result.error as? WebServiceError)
        #expect(error.code == .destinationRefused)
        #expect(task.timeline.events.contains { $0.kind == .retry } == false)
        #expect(count.value == 1)
        #expect(server.addresses.isEmpty)
    }

    @Test("Streams, uploads and bodies from a sequence are refused as well")
    func kinds() async throws {
        let server = try AddressServer("127.0.0.1")
        let service = service("http://127.0.0.1:\(server.port)", try session(.publicInternet))
        let (pieces, continuation) = AsyncStream.makeStream(of: Data.self)
        continuation.yield(Data("ale".utf8))
        continuation.finish()
        #expect(await outcome { try await service.GET("/").stream().value }.code == .destinationRefused)
        #expect(await service.POST("/").setBody(Data(count: 100_000)).string().result.code == .destinationRefused)
        #expect(await service.POST("/").setBody(.stream(pieces)).string().result.code == .destinationRefused)
        #expect(await service.HEAD("/").string().result.code == .destinationRefused)
        #expect(server.addresses.isEmpty)
    }

    @Test(
        "An exception allows an address, a network or a host, on one port or on all",
        arguments: [
            ("127.0.0.1", true), ("127.0.0.0/8", true), ("127.0.0.1/32", true), ("::ffff:127.0.0.1", true),
            ("[::ffff:127.0.0.1]", true), ("brewery.example", true), ("BREWERY.example.", true),
            ("127.0.0.1:PORT", true),
            ("brewery.example:PORT", true), ("[::ffff:127.0.0.1]:PORT", true), ("127.0.0.2", false),
            ("127.0.0.1:1", false),
            ("brewery.example:1", false), ("example", false), ("other.example", false), ("10.0.0.0/8", false),
            ("::1", false), ("::/0", false),
        ])
    func exceptions(text: String, isAllowed: Bool) async throws {
        let server = try AddressServer("127.0.0.1")
        let port = server.port
        let session = try session(.publicInternet, exceptions: [text.replacing("PORT", with: "\(port)")]) {
            $0.addresses = ["brewery.example:\(port)": ["127.0.0.1"]]
        }
        let result = await service("http://brewery.example:\(port)", session).GET("/").string().result
        #expect((try? result.get()) == (isAllowed ? "ale" : nil))
        #expect(result.code == (isAllowed ? nil : .destinationRefused))
        #expect(server.addresses.count == (isAllowed ? 1 : 0))
    }

    @Test(
        "A session is not created with an invalid exception",
        arguments: [
            "", " ", "10.0.0.1/8", "10.0.0.0/33", "h/8", "http://h", "h:0", "h:99999", "h:x", "a b", "*.example.com",
            "127.1",
            "2130706433", "[::1", "::1]", "h/path", "u@h", "h?x", "/run/socket", "1.2.3.4:80:80",
        ])
    func invalidExceptions(text: String) {
        for destinations in [Destinations.publicInternet, .anywhere] {
            let error = #expect(throws: WebServiceError.self) { try session(destinations, exceptions: [text]) }
            #expect(error?.code == .curl)
            #expect(error?.message.contains("'destinations'") == true)
        }
    }

    @Test("A closure receives the address, the port and the host of each address")
    func closure() async throws {
        let server = try AddressServer("127.0.0.1")
        let port = server.port
        let calls = Box<[String]>([])
        let session = try session(
            Destinations { destination in
                calls.change {
                    $0.append("\(destination.address) \(destination.port) \(destination.host) \(destination.isPublic)")
                }
                return destination.address == "127.0.0.1"
            }
        ) { $0.addresses = ["brewery.example:\(port)": ["127.0.0.2", "127.0.0.3", "127.0.0.1"]] }
        #expect(try await service("http://Brewery.EXAMPLE:\(port)", session).GET("/").string().value == "ale")
        #expect(
            calls.value == ["127.0.0.2", "127.0.0.3", "127.0.0.1"].map { "\($0) \(port) brewery.example false" })
        #expect(server.addresses == ["127.0.0.1"])
    }

    @Test("The description of a destination contains no other part of the URL")
    func description() {
        let url = "http://h.example/canary?canary"
        let destination = CurlSession.Destination(IPAddress("::ffff:192.0.2.1"), port: 80, url: url)
        #expect("\(destination)" == "192.0.2.1 (port 80) for the host 'h.example'")
        var text = String(reflecting: destination)
        dump(destination, to: &text)
        #expect(!text.contains("canary"))
    }

    @Test(
        "Over HTTP/3, connections over UDP are checked as well",
        .enabled(if: CurlSession.library.supportsHTTP3, "libcurl does not support HTTP/3"))
    func http3() async throws {
        let server = try AddressServer("127.0.0.1")
        let ports = Box<[Int]>([])
        let session = try session(
            Destinations { destination in
                ports.change { $0.append(destination.port) }
                return false
            }
        ) { $0.httpVersion = .http3 }
        let result = await service("https://127.0.0.1:\(server.port)", session).GET("/").string().result
        #expect(result.code == .destinationRefused, "\(result)")
        #expect(ports.value == [server.port, server.port])
        #expect(server.addresses.isEmpty)
    }

    @Test("If some addresses of a host are refused, the others are used")
    func someAddresses() async throws {
        let (refused, allowed) = try AddressServer.pair("127.0.0.2", "127.0.0.1")
        let session = try session(.publicInternet, exceptions: ["127.0.0.1"]) {
            $0.addresses = ["brewery.example:\(allowed.port)": ["127.0.0.2", "::1", "10.0.0.1", "127.0.0.1"]]
        }
        #expect(try await service("http://brewery.example:\(allowed.port)", session).GET("/").string().value == "ale")
        #expect(allowed.addresses == ["127.0.0.1"])
        #expect(refused.addresses.isEmpty)
    }

    @Test(
        "If the allowed addresses of a host cannot be reached, the error is that of the connection",
        arguments: [["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"], ["127.0.0.2", "127.0.0.1", "127.0.0.3"]])
    func unreachable(addresses: [String]) async throws {
        let refused = try AddressServer("127.0.0.2")
        let session = try session(.publicInternet, exceptions: ["127.0.0.1"]) {
            $0.addresses = ["brewery.example:\(refused.port)": addresses]
        }
        let result = await service("http://brewery.example:\(refused.port)", session).GET("/").string().result
        #expect(result.urlErrorCode == .cannotConnectToHost, "\(result)")
        #expect(refused.addresses.isEmpty)
    }

    @Test("An allowed connection is reused")
    func reuse() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        let count = Box(0)
        let session = try session(
            Destinations { _ in
                count.change { $0 += 1 }
                return true
            })
        let service = WebService(server, session)
        for number in 0..<5 {
            let task = service.GET("/").string()
            #expect(try await task.value == "ale")
            #expect(try await task.response.transport?.isConnectionReused == (number > 0))
        }
        #expect(count.value == 1)
    }

    // MARK: Redirects and names that change

    @Test("A redirect to a refused address is not followed, with a message about the address")
    func redirects() async throws {
        let (refused, home) = try AddressServer.pair("127.0.0.2", "127.0.0.1") { port in
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:\(port)/x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        }
        let service = service("http://127.0.0.1:\(home.port)", try session(.publicInternet, exceptions: ["127.0.0.1"]))
        let error = try #require(await service.GET("/").string().result.error as? WebServiceError)
        #expect(error.code == .destinationRefused)
        #expect(error.message.contains("127.0.0.2"))
        #expect(home.addresses.count == 1)
        #expect(refused.addresses.isEmpty)
    }

    @Test("A name whose address changes between a check of the program and the request is refused")
    func rebinding() async throws {
        let (inside, outside) = try AddressServer.pair("127.0.0.2", "127.0.0.1")
        let lookups = Box(0)
        let lookUp: @Sendable () -> [String] = {
            lookups.withValue { count in
                count += 1
                return count == 1 ? ["127.0.0.1"] : ["127.0.0.2"]
            }
        }
        let session = try session(.publicInternet, exceptions: ["127.0.0.1"]) {
            $0.idleConnectionLifetime = .zero
            $0.resolver = { _, _ in lookUp() }
        }
        #expect(lookUp() == ["127.0.0.1"])
        let result = await service("http://brewery.example:\(outside.port)", session).GET("/").string().result
        #expect(result.code == .destinationRefused, "\(result)")
        #expect(lookups.value == 2)
        #expect(inside.addresses.isEmpty)
        #expect(outside.addresses.isEmpty)
    }

    @Test("A name whose address changes between two requests is refused on its new connection")
    func rebindingBetweenRequests() async throws {
        let (inside, outside) = try AddressServer.pair("127.0.0.2", "127.0.0.1")
        let isInside = Box(false)
        let session = try session(.publicInternet, exceptions: ["127.0.0.1"]) {
            $0.resolver = { _, _ in isInside.value ? ["127.0.0.2"] : ["127.0.0.1"] }
        }
        let service = service("http://brewery.example:\(outside.port)", session)
        #expect(try await service.GET("/").string().value == "ale")
        isInside.change { $0 = true }
        #expect(await service.GET("/").string().result.code == .destinationRefused)
        isInside.change { $0 = false }
        #expect(try await service.GET("/").string().value == "ale")
        #expect(outside.addresses.count == 2)
        #expect(inside.addresses.isEmpty)
    }

    @Test("A connection that is opened to send a request again is checked like the first one")
    func resending() async throws {
        let isAllowed = Box(true)
        let server = try MockServer.forTest { request in
            request.path == "/last" ? MockResponse("", wire: .disconnect) : MockResponse("ale")
        }
        let service = WebService(server, try session(Destinations { _ in isAllowed.value }))
        #expect(try await service.GET("/").string().value == "ale")
        isAllowed.change { $0 = false }
        // The server closes the reused connection instead of responding, so libcurl opens another.
        #expect(await service.GET("/last").string().result.code == .destinationRefused)
        #expect(server.receivedRequests.count == 2)
    }

    @Test("Numeric spellings of addresses, which the service rejects, are also refused by their address")
    func spellings() async throws {
        let server = try AddressServer("127.0.0.1")
        let session = try session(.publicInternet)
        let service = WebService(baseURL: nil)
        service.session = session
        for host in AddressTable.insideNames {
            let url = "http://\(host):\(server.port)/"
            let result = await service.GET(url).string().result
            #expect(
                result.code == .invalidURL || result.code == .destinationRefused
                    || result.urlErrorCode == .cannotFindHost, "\(host): \(result)")
            // A request whose URL was not checked.
            let request = EncodedRequest(Request(.GET, url: url), url: url, headers: [:], body: nil, contentType: nil)
            let connection = await outcome { try await session.connect(request) }
            #expect(
                connection.code == .destinationRefused || host.hasSuffix(".") && connection.urlErrorCode != nil,
                "\(host): \(connection)")
        }
        #expect(server.addresses.isEmpty)
    }

    // MARK: Proxies

    /// A proxy that forwards no request, but responds to each.
    private static let proxy: AddressServer.Responder = { head in
        head.hasPrefix("CONNECT")
            ? "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            : "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nproxy"
    }

    @Test("A configured proxy inside may be used for a public IP address")
    func proxyInside() async throws {
        let proxy = try AddressServer("127.0.0.1", Self.proxy)
        let session = try session(.publicInternet) { $0.proxy = .url("http://127.0.0.1:\(proxy.port)") }
        for host in ["8.8.8.8", "[2606:4700:4700::1111]"] {
            #expect(try await service("http://\(host)", session).GET("/").string().value == "proxy")
        }
        #expect(await service("https://8.8.8.8", session).GET("/").string().result.urlErrorCode == .cannotConnectToHost)
        #expect(proxy.addresses.count == 3)
    }

    @Test(
        "Over a proxy, an IP address inside and localhost are refused, even if the proxy is trusted",
        arguments: ["http", "socks5h", "socks5", "socks4"])
    func targetInside(scheme: String) async throws {
        let proxy = try AddressServer("127.0.0.1", Self.proxy)
        let session = try session(.publicInternet) {
            $0.proxy = .url("\(scheme)://127.0.0.1:\(proxy.port)")
            $0.destinations.trustsProxies = true
        }
        for host in [
            "127.0.0.1:\(proxy.port)", "10.0.0.1", "169.254.169.254", "[::1]", "[fd00:ec2::254]", "[::ffff:10.0.0.1]",
            "[64:ff9b::10.0.0.1]", "localhost", "LOCALHOST.", "a.localhost",
        ] {
            for scheme in ["http", "https"] {
                let result = await service("\(scheme)://\(host)", session).GET("/").string().result
                #expect(result.code == .destinationRefused, "\(host): \(result)")
            }
            let connection = await outcome {
                try await session.connect(EncodedRequest.encoding(Request(.GET, url: "http://\(host)/chat")))
            }
            #expect(connection.code == .destinationRefused, "\(host): \(connection)")
        }
        #expect(proxy.addresses.isEmpty)
    }

    @Test(
        "Over a proxy, a name is refused unless the proxy is trusted or the name is an exception",
        arguments: [false, true], ["", "brewery.example", "brewery.example:80", "brewery.example:81"])
    func names(isTrusted: Bool, exception: String) async throws {
        let proxy = try AddressServer("127.0.0.1", Self.proxy)
        let destinations = [
            CurlSession.Proxy.url("http://127.0.0.1:\(proxy.port)"),
            .perRequest { _ in .url("http://127.0.0.1:\(proxy.port)") },
        ]
        for configured in destinations {
            let session = try session(.publicInternet, exceptions: exception.isEmpty ? [] : [exception]) {
                $0.proxy = configured
                $0.destinations.trustsProxies = isTrusted
            }
            let count = proxy.addresses.count
            let result = await service("http://brewery.example", session).GET("/").string().result
            let isAllowed = isTrusted || ["brewery.example", "brewery.example:80"].contains(exception)
            #expect((try? result.get()) == (isAllowed ? "proxy" : nil))
            #expect(result.code == (isAllowed ? nil : .destinationRefused))
            #expect(proxy.addresses.count == count + (isAllowed ? 1 : 0))
            if !isAllowed {
                #expect((result.error as? WebServiceError)?.message.contains("'trustsProxies'") == true)
            }
        }
    }

    @Test("A connection to a proxy is not used for a request to the proxy's own address")
    func proxyAsTarget() async throws {
        let proxy = try MockServer.forTest { _ in MockResponse("proxy") }
        let session = try session(.publicInternet) {
            $0.proxy = .perRequest { url in url.host == "8.8.8.8" ? .url("http://127.0.0.1:\(proxy.port)") : .none }
        }
        #expect(try await service("http://8.8.8.8", session).GET("/").string().value == "proxy")
        let direct = service("http://127.0.0.1:\(proxy.port)", session)
        #expect(await direct.GET("/").string().result.code == .destinationRefused)
        #expect(try await service("http://8.8.8.8", session).GET("/").string().value == "proxy")
        #expect(proxy.receivedRequests.count == 2)
    }

    // MARK: Other routes

    @Test("The connections of WebSockets are checked")
    func byteConnections() async throws {
        let server = try AddressServer("127.0.0.1")
        let refused = await outcome { try await session(.publicInternet).connect(port: server.port) }
        #expect(refused.code == .destinationRefused, "\(refused)")
        #expect(server.addresses.isEmpty)
        let peer = try BytePeer.echo()
        let allowed = try session(.publicInternet, exceptions: ["127.0.0.1:\(peer.port)"])
        let connection = try await allowed.connect(port: peer.port)
        #expect(try await connection.exchange(Data("a".utf8)) == Data("a".utf8))
        connection.close()
    }

    @Test(
        "A Unix domain socket is refused unless its path is an exception",
        .enabled(if: SecureServer.nginx != nil, "nginx is needed"))
    func unixSocket() async throws {
        let server = try PlainServer()
        let path = server.socket
        let refused = service("http://8.8.8.8", try session(.publicInternet) { $0.unixSocketPath = path })
        let error = try #require(await refused.GET("/").string().result.error as? WebServiceError)
        #expect(error.code == .destinationRefused)
        #expect(error.message.contains(path))
        let allowed = service(
            "http://127.0.0.1", try session(.publicInternet, exceptions: [path]) { $0.unixSocketPath = path })
        #expect(try await allowed.GET("/").string().value.hasPrefix("HTTP/1.1 127.0.0.1"))
        let paths = Box<[String]>([])
        let closure = Destinations { destination in
            paths.change { $0.append("\(destination.address) \(destination.port) \(destination.isPublic)") }
            return true
        }
        let asked = service("http://8.8.8.8", try session(closure) { $0.unixSocketPath = path })
        _ = try await asked.GET("/").string().value
        #expect(paths.value == ["\(path) 0 false"])
        let connection = await outcome {
            try await session(.publicInternet) { $0.unixSocketPath = path }.connect(port: 80, host: "8.8.8.8")
        }
        #expect(connection.code == .destinationRefused)
    }

    @Test(
        "The server of dnsURL is not checked, but the addresses it returns are, and its connection serves no request",
        .enabled(if: SecureServer.isAvailable, "nginx or openssl is not installed"))
    func dnsOverHTTPS() async throws {
        let dns = try MockServer.namesOnLoopback()
        let front = try SecureServer(backend: dns.baseURLString)
        let server = try AddressServer("127.0.0.1")
        let url = "https://localhost:\(front.port)/dns-query"
        func session(exceptions: [String]) throws -> CurlSession {
            try self.session(.publicInternet, exceptions: exceptions) {
                $0.tls.trustedCertificatesFile = front.path("ca.pem")
                $0.dnsURL = url
            }
        }
        let strict = try session(exceptions: [])
        let refused = service("http://brewery.example:\(server.port)", strict)
        #expect(await refused.GET("/").string().result.code == .destinationRefused)
        let lookups = dns.receivedRequests.count
        #expect(lookups > 0)
        #expect(server.addresses.isEmpty)
        let own = service("https://localhost:\(front.port)", strict)
        #expect(await own.GET("/dns-query").string().result.code == .destinationRefused)
        #expect(
            await outcome { try await strict.connect(port: front.port, host: "localhost", scheme: "https") }.code
                == .destinationRefused)
        #expect(dns.receivedRequests.count == lookups)
        let lenient = try session(exceptions: ["127.0.0.1:\(server.port)"])
        #expect(try await service("http://brewery.example:\(server.port)", lenient).GET("/").string().value == "ale")
    }
}
