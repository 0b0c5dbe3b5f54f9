import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCurl

/// The TLS configurations of single hosts, over real TLS.
@Suite(
    "Curl session: TLS of single hosts", .serialized, .permit,
    .enabled(if: SecureServer.isAvailable, "nginx or openssl is not installed"))
struct CurlHostTLSTests {
    private static let wrongPin = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    private static let backend = Result {
        try MockServer { request in
            guard request.path == "/to-pinned" else { return MockResponse("ale") }
            var response = MockResponse(statusCode: 302)
            response.headers["Location"] = "https://pinned.brewery.example:\(request.url?.query ?? "")/"
            return response
        }
    }
    private static let server = Result { try SecureServer() }
    private static let redirecting = Result { try SecureServer(backend: try backend.get().baseURLString) }

    private let server: SecureServer

    init() throws {
        server = try Self.server.get()
    }

    private func trusting(_ change: (inout CurlSession.TLS) -> Void = { _ in }) -> CurlSession.TLS {
        var tls = CurlSession.TLS()
        tls.trustedCertificatesFile = server.path("ca.pem")
        change(&tls)
        return tls
    }

    private func service(
        _ server: SecureServer? = nil, hosts: [String: CurlSession.TLS],
        _ change: (inout CurlSession.Configuration) -> Void = { _ in }
    ) throws -> WebService {
        let server = server ?? self.server
        let service = WebService(baseURLString: "https://localhost:\(server.port)")
        service.session = try CurlSession { configuration in
            configuration.proxy = .none
            configuration.tls.trustedCertificatesFile = server.path("ca.pem")
            configuration.hostTLS = hosts
            for port in [server.port, server.oldPort, server.askingPort] {
                for host in ["plain", "pinned", "known", "a.deep"] {
                    configuration.addresses["\(host).brewery.example:\(port)"] = ["127.0.0.1"]
                }
            }
            change(&configuration)
        }
        return service
    }

    private func result(_ service: WebService, _ host: String, _ port: Int, path: String = "/") async
        -> Result<String, any Error>
    {
        await service.GET("https://\(host).brewery.example:\(port)\(path)").string().result
    }

    @Test("A client certificate of one host is presented to no other host, in any order of requests")
    func identity() async throws {
        let service = try service(hosts: [
            "known.brewery.example": trusting {
                $0.clientCertificate = .init(
                    certificateFile: server.path("client.pem"), keyFile: server.path("client.key"))
            }
        ])
        for _ in 0..<4 {
            #expect(try await result(service, "known", server.askingPort).get().hasSuffix("CN=client"))
            let other = await result(service, "plain", server.askingPort)
            #expect((other.error as? WebServiceError)?.status == 400, "\(other)")
        }
        let session = service.session
        #expect(session.addsCredentials(to: try #require(URL(string: "https://KNOWN.brewery.example:1/x"))))
        #expect(!session.addsCredentials(to: try #require(URL(string: "https://plain.brewery.example/"))))
        let results = await withTaskGroup(of: (String, Result<String, any Error>).self) { group in
            for index in 0..<40 {
                let host = index.isMultiple(of: 2) ? "known" : "plain"
                group.addTask { (host, await result(service, host, server.askingPort)) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for (host, result) in results { #expect(((try? result.get()) != nil) == (host == "known"), "\(result)") }
    }

    @Test("The pins, the authorities and the minimum version of a host apply to it alone")
    func rules() async throws {
        let pinned = try service(hosts: ["pinned.brewery.example": trusting { $0.pinnedPublicKeys = [Self.wrongPin] }])
        for _ in 0..<3 {
            #expect(try await result(pinned, "plain", server.port).get().hasPrefix("HTTP/2.0"))
            let refused = await result(pinned, "pinned", server.port)
            let mismatch = (refused.error as? URLError)?.pinnedKeyMismatch
            #expect(mismatch == .init(expected: [Self.wrongPin], presented: server.pin), "\(refused)")
        }
        let trusted = try service(hosts: ["plain.brewery.example": trusting()]) {
            $0.tls.trustedCertificatesFile = self.server.path("client.pem")
        }
        for _ in 0..<2 {
            #expect(try await result(trusted, "plain", server.port).get().hasPrefix("HTTP/2.0"))
            #expect(await result(trusted, "known", server.port).urlErrorCode == .serverCertificateUntrusted)
        }
        let modern = try service(hosts: ["known.brewery.example": trusting { $0.minimumVersion = .tls13 }])
        for _ in 0..<2 {
            #expect(await result(modern, "known", server.oldPort).urlErrorCode == .secureConnectionFailed)
            #expect(try await result(modern, "plain", server.oldPort).get().hasPrefix("HTTP/1.1 TLSv1.2"))
        }
    }

    @Test("A redirect is followed according to the rules of its own host, and reuses no connection")
    func redirects() async throws {
        let server = try Self.redirecting.get()
        var tls = CurlSession.TLS()
        tls.trustedCertificatesFile = server.path("ca.pem")
        tls.pinnedPublicKeys = [Self.wrongPin]
        let service = try service(server, hosts: ["pinned.brewery.example": tls])
        for _ in 0..<3 {
            let result = await result(service, "plain", server.port, path: "/to-pinned?\(server.port)")
            #expect((result.error as? URLError)?.pinnedKeyMismatch?.presented == server.pin, "\(result)")
        }
        tls.pinnedPublicKeys = [server.pin]
        let accepting = try self.service(server, hosts: ["pinned.brewery.example": tls])
        let task = accepting.GET("https://plain.brewery.example:\(server.port)/to-pinned?\(server.port)").string()
        #expect(try await task.value == "ale")
        // Both hosts have the same address, port and certificate.
        #expect(try await task.response.transport?.isConnectionReused == false)
    }

    @Test("A failed pin over a proxy and over HTTP/2 contains both keys")
    func proxy() async throws {
        let proxy = try TunnelProxy()
        defer { proxy.stop() }
        for pin in [Self.wrongPin, server.pin] {
            let service = try service(hosts: ["*.brewery.example": trusting { $0.pinnedPublicKeys = [pin] }]) {
                $0.proxy = .url("http://127.0.0.1:\(proxy.port)")
            }
            let task = service.GET("https://pinned.brewery.example:\(server.port)/").string()
            let result = await task.result
            if pin == server.pin {
                #expect(try result.get().hasPrefix("HTTP/2.0"))
            } else {
                let mismatch = (result.error as? URLError)?.pinnedKeyMismatch
                #expect(mismatch == .init(expected: [pin], presented: server.pin), "\(result)")
            }
        }
        #expect(proxy.heads.count == 2)
    }

    @Test("Exact names precede domains, longer domains precede shorter ones, and every spelling of a host is found")
    func names() throws {
        func pins(_ url: String) throws -> [String] {
            var configuration = CurlSession.Configuration()
            for key in ["API.example.com", "*.example.com", "*.v1.example.com", "127.0.0.1", "[::1]", "*.com."] {
                var tls = CurlSession.TLS()
                tls.pinnedPublicKeys = [key]
                configuration.hostTLS[key] = tls
            }
            let rules = try HostRules(configuration)
            return rules.all[try rules.index(for: url)].pins
        }
        for (host, key) in [
            ("api.example.com", "API.example.com"), ("Api.Example.COM:8443", "API.example.com"),
            ("api.example.com.", "API.example.com"), ("x.api.example.com", "*.example.com"),
            ("v1.example.com", "*.example.com"), ("a.b.v1.example.com", "*.v1.example.com"),
            ("example.com", "*.com."), ("example.com.", "*.com."), ("127.0.0.1:1", "127.0.0.1"),
            ("[0:0::1]", "[::1]"), ("apiexample.com", "*.com."), ("com", nil), ("api.example.org", nil),
            (String(repeating: "a.", count: 30_000) + "example.com", "*.example.com"),
        ] as [(String, String?)] {
            #expect(try pins("https://\(host)/x?y") == [key].compactMap(\.self), "\(host.prefix(40))")
        }
        for url in ["https://u@api.example.com/", "https://127.1/", "https:///x", ""] {
            #expect(Result { try pins(url) }.code == .curl)
        }
    }

    @Test(
        "A key that is not a host name is an error",
        arguments: [
            "", "*", "*.", "a b", "https://a", "a:443", "a/", "a?", "u@a", "a.*.b", "*a.b", "*.*.b", "a\n", "127.1",
            "*.127.0.0.1", "*.[::1]", "::1",
        ])
    func invalid(key: String) {
        let error = #expect(throws: WebServiceError.self) { try CurlSession { $0.hostTLS = [key: CurlSession.TLS()] } }
        #expect(error?.code == .curl)
        #expect(error?.message.contains("hostTLS") == true)
    }

    @Test("Two spellings of one host are an error")
    func duplicates() {
        let tls = CurlSession.TLS()
        #expect(Result { try CurlSession { $0.hostTLS = ["a.com": tls, "A.com.": tls] } }.code == .curl)
        #expect(Result { try CurlSession { $0.hostTLS = ["a.com": tls, "*.a.com": tls] } }.error == nil)
    }
}
