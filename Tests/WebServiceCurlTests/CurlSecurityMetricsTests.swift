import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// What the metrics of a request report about its connection.
@Suite(
    "Curl session: connection in the metrics", .serialized, .permit,
    .enabled(if: SecureServer.isAvailable, "nginx or openssl is not installed"))
struct CurlSecurityMetricsTests {
    private static let server = Result {
        let server = try SecureServer()
        try server.openssl("x509 -in server.pem -outform DER -out server-certificate.der")
        return server
    }

    private let server: SecureServer

    init() throws {
        server = try Self.server.get()
    }

    private func service(_ change: (inout CurlSession.Configuration) -> Void = { _ in }) throws -> WebService {
        let service = WebService(baseURLString: "https://localhost:\(server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
            change(&$0)
        }
        return service
    }

    @Test("The metrics and the timeline contain address, port, TLS version and cipher suite")
    func connection() async throws {
        let service = try service()
        for _ in 0..<2 {
            let task = service.GET("/").string()
            _ = try await task.value
            let metrics = try #require(try await task.response.transport)
            #expect(metrics.remoteAddress == "127.0.0.1")
            #expect(metrics.remotePort == server.port)
            if LinkedLibrary.exportsOpenSSL {
                #expect(metrics.tlsVersion == "TLSv1.3")
                #expect(metrics.tlsCipher?.hasPrefix("TLS_") == true)
            }
            #expect(metrics.certificates.isEmpty)
            #expect(task.timeline.events.first { $0.kind == .attempt }?.transport == metrics)
        }
        let old = service.GET("https://localhost:\(server.oldPort)/").string()
        _ = try await old.value
        #expect(try await old.response.transport?.remotePort == server.oldPort)
        if LinkedLibrary.exportsOpenSSL { #expect(try await old.response.transport?.tlsVersion == "TLSv1.2") }
    }

    @Test("A request without TLS, and one without a connection, reports no TLS")
    func withoutTLS() async throws {
        let plain = try MockServer.forTest { _ in MockResponse("ale") }
        let service = WebService(plain, try CurlSession { $0.recordsCertificates = true })
        let task = service.GET("/").string()
        _ = try await task.value
        let metrics = try #require(try await task.response.transport)
        #expect((metrics.remoteAddress, metrics.remotePort) == ("127.0.0.1", plain.port))
        #expect((metrics.tlsVersion, metrics.tlsCipher) == (nil, nil))
        #expect(metrics.certificates.isEmpty)
        plain.stop()
        let failed = service.GET("http://127.0.0.1:1/").string()
        #expect(await failed.result.urlErrorCode == .cannotConnectToHost)
        let attempt = try #require(failed.timeline.events.first { $0.kind == .attempt }?.transport)
        #expect((attempt.remoteAddress, attempt.remotePort, attempt.tlsVersion) == (nil, nil, nil))
    }

    @Test("The certificates are those of the connection, also if it or the handle was used before")
    func certificates() async throws {
        let other = try SecureServer()
        try other.openssl("x509 -in server.pem -outform DER -out server-certificate.der")
        let trusted =
            try Data(contentsOf: server.folder.appendingPathComponent("ca.pem"))
            + Data(contentsOf: other.folder.appendingPathComponent("ca.pem"))
        let service = try service {
            $0.recordsCertificates = true
            $0.tls.trustedCertificatesFile = nil
            $0.tls.trustedCertificates = trusted
        }
        for _ in 0..<3 {
            for server in [server, other] {
                let task = service.GET("https://localhost:\(server.port)/").string()
                _ = try await task.value
                let der = try Data(contentsOf: server.folder.appendingPathComponent("server-certificate.der"))
                #expect(try await task.response.transport?.certificates.first == der)
            }
        }
    }
}
