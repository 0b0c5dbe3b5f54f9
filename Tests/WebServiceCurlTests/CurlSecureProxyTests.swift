import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// an https proxy with a certificate of its own. nginx forwards requests for http URLs.
@Suite(
    "Curl session: https proxies", .serialized, .permit,
    .enabled(if: SecureServer.isAvailable, "nginx or openssl is not installed"))
struct CurlSecureProxyTests {
    private static let origin = Result { try MockServer { MockResponse("by way of the proxy \($0.path)") } }
    private static let proxy = Result { try SecureServer(backend: try origin.get().baseURLString) }

    private let server: SecureServer

    init() throws {
        server = try Self.proxy.get()
    }

    /// Sends a request for an http URL over the proxy at a port.
    private func send(
        over port: Int? = nil, _ change: (inout CurlSession.Configuration) -> Void
    ) async throws -> Result<String, any Error> {
        let service = WebService(baseURLString: "http://brewhapi.invalid")
        service.session = try CurlSession {
            $0.proxy = .url("https://localhost:\(port ?? server.port)")
            change(&$0)
        }
        return await service.GET("/x").string().result
    }

    private func trusting(_ tls: CurlSession.TLS = CurlSession.TLS()) -> CurlSession.TLS {
        var tls = tls
        tls.trustedCertificatesFile = server.path("ca.pem")
        return tls
    }

    @Test("The trusted certificates apply to the proxy")
    func authorities() async throws {
        var unrelated = CurlSession.TLS()
        unrelated.trustedCertificatesFile = server.path("client.pem")
        let distrusting = try await send { $0.tls = unrelated }
        #expect(distrusting.urlErrorCode == .serverCertificateUntrusted, "\(distrusting)")
        let trusted = try await send { $0.tls = trusting() }
        #expect(try trusted.get() == "by way of the proxy /x")
        let separate = try await send { $0.proxyTLS = trusting() }
        #expect(try separate.get() == "by way of the proxy /x")
        let other = try await send { configuration in
            configuration.tls = self.trusting()
            configuration.proxyTLS = unrelated
        }
        #expect(other.urlErrorCode == .serverCertificateUntrusted, "\(other)")
    }

    @Test("The minimum TLS version applies to the proxy")
    func version() async throws {
        #expect(try await send(over: server.oldPort) { $0.tls = trusting() }.get() == "by way of the proxy /x")
        let old = try await send(over: server.oldPort) {
            $0.tls = trusting()
            $0.tls.minimumVersion = .tls13
        }
        #expect(old.urlErrorCode == .secureConnectionFailed, "\(old)")
    }

    @Test("The pins of servers do not apply to the proxy, which can have its own")
    func pins() async throws {
        let wrong = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        let pinned = try await send {
            $0.tls = trusting()
            $0.tls.pinnedPublicKeys = [wrong]
        }
        #expect(try pinned.get() == "by way of the proxy /x")
        let right = try await send {
            $0.proxyTLS = trusting()
            $0.proxyTLS?.pinnedPublicKeys = [server.pin]
        }
        #expect(try right.get() == "by way of the proxy /x")
        let refused = try await send {
            $0.proxyTLS = trusting()
            $0.proxyTLS?.pinnedPublicKeys = [wrong]
        }
        #expect(refused.urlErrorCode == .serverCertificateUntrusted, "\(refused)")
        #expect((refused.error as? URLError)?.pinnedKeyMismatch?.expected == [wrong])
    }

    @Test("The client certificate for servers is not presented to the proxy, which can have its own")
    func clientCertificate() async throws {
        let certificate = CurlSession.TLS.ClientCertificate(
            certificateFile: server.path("client.pem"), keyFile: server.path("client.key"))
        let servers = try await send(over: server.askingPort) {
            $0.tls = trusting()
            $0.tls.clientCertificate = certificate
        }
        #expect((servers.error as? WebServiceError)?.status == 400, "\(servers)")
        let own = try await send(over: server.askingPort) {
            $0.proxyTLS = trusting()
            $0.proxyTLS?.clientCertificate = certificate
        }
        #expect(try own.get() == "by way of the proxy /x")
    }
}
