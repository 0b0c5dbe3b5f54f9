import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCurl

/// Over real TLS. `./scripts/test` installs nginx and openssl if they are missing.
@Suite(
    "Curl session: TLS and HTTP/2", .serialized, .enabled(if: SecureServer.isAvailable, "nginx and openssl are needed"),
    .permit
)
struct CurlTLSTests {
    private let server: SecureServer

    init() throws {
        server = try SecureServer()
    }

    private func service(_ port: Int, host: String = "localhost", _ change: (inout CurlSession.Configuration) -> Void)
        throws -> WebService
    {
        let service = WebService(baseURLString: "https://\(host):\(port)")
        service.session = try CurlSession {
            $0.proxy = .none
            change(&$0)
        }
        return service
    }

    /// Sends requests until the server is up.
    private func text(_ service: WebService) async throws -> String {
        var result = await service.GET("/").string().result
        await eventually("the server is up") {
            if result.urlErrorCode == .cannotConnectToHost { result = await service.GET("/").string().result }
            return result.urlErrorCode != .cannotConnectToHost
        }
        return try result.get()
    }

    @Test("HTTP/2 is used if the server supports it, over few connections, and the metrics include the handshake")
    func http2() async throws {
        let trusting = try service(server.port) { $0.tls.trustedCertificatesFile = server.path("ca.pem") }
        #expect(try await text(trusting).hasPrefix("HTTP/2.0 TLSv1.3"))
        let fresh = try service(server.port) { $0.tls.trustedCertificatesFile = server.path("ca.pem") }
        let metrics = try await withThrowingTaskGroup(of: TransportMetrics?.self) { group in
            for _ in 0..<20 { group.addTask { try await fresh.GET("/").string().response.transport } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(metrics.allSatisfy { $0?.networkProtocol == "HTTP/2" })
        let connections = metrics.count { $0?.isConnectionReused == false }
        #expect((LinkedLibrary.exportsOpenSSL ? 1...2 : 20...20).contains(connections))
        #expect(metrics.contains { ($0?.secureConnect ?? .zero) > .zero })
        let plain = try service(server.port) {
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
            $0.httpVersion = .http1
        }
        #expect(try await text(plain).hasPrefix("HTTP/1.1"))
    }

    @Test("A multipart body with files arrives over HTTP/2 unchanged, with its length")
    func multipart() async throws {
        let backend = try MockServer.forTest { _ in MockResponse("ok") }
        let folder = TemporaryFolder()
        var form = MultipartFormData()
        form.append("Söhne", name: "name")
        for number in 0..<10 {
            form.append(file: try folder.file("\(number)", CurlMultipartTests.content), name: "photo")
        }
        let server = try SecureServer(backend: backend.baseURLString)
        let service = try service(server.port) { $0.tls.trustedCertificatesFile = server.path("ca.pem") }
        #expect(try await text(service) == "ok")
        let task = service.PUT("/a").setMultipart(form).string()
        #expect(try await task.value == "ok")
        #expect(try await task.response.transport?.networkProtocol == "HTTP/2")
        var request = Request(.PUT, url: "http://h/a")
        request.multipart = form
        let arrived = try #require(backend.receivedRequests.last)
        #expect(arrived.body == (try CurlMultipartTests.bytes(of: request)))
        #expect(arrived.headers.values(for: .contentLength) == ["\(arrived.body.count)"])
    }

    @Test("A server certificate that is untrusted or for another name is an error")
    func untrusted() async throws {
        _ = try await text(try service(server.port) { $0.tls.trustedCertificatesFile = server.path("ca.pem") })
        // A certificate that signed no other one.
        let distrusting = try service(server.port) { $0.tls.trustedCertificatesFile = server.path("client.pem") }
        #expect(await distrusting.GET("/").string().result.urlErrorCode == .serverCertificateUntrusted)
        let misnamed = try service(server.port, host: "127.0.0.1") {
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
        }
        #expect(await misnamed.GET("/").string().result.urlErrorCode == .serverCertificateUntrusted)
    }

    @Test(
        "Without a file of trusted certificates, those of libcurl's default file are trusted, and no others",
        .enabled(if: TrustStore.system.isPresent, TrustStore.absence))
    func defaultStore() async throws {
        let service = try service(server.port) { _ in }
        #expect(await service.GET("/").string().result.urlErrorCode == .serverCertificateUntrusted)
    }

    @Test("A server whose key is not pinned is refused")
    func pins() async throws {
        let pinned = try service(server.port) {
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
            $0.tls.pinnedPublicKeys = [server.pin]
        }
        #expect(try await text(pinned).hasPrefix("HTTP/2.0"))
        let other = try service(server.port) {
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
            $0.tls.pinnedPublicKeys = ["sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
        }
        let error = try #require(await other.GET("/").string().result.error as? URLError)
        #expect(error.code == .serverCertificateUntrusted)
        let mismatch = try #require(error.pinnedKeyMismatch)
        #expect(mismatch.expected == ["sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="])
        #expect(mismatch.presented == server.pin)
        #expect(error.localizedDescription == mismatch.description)
        #expect(
            "\(error)"
                == "serverCertificateUntrusted (-1202): \(mismatch); if the server has another key, add its pin (GET "
                + "https://localhost:\(server.port)/)")
        #expect(mismatch.description.contains(server.pin))
        let untrusted = try service(server.port) {
            $0.tls.trustedCertificatesFile = server.path("client.pem")
            $0.tls.pinnedPublicKeys = [server.pin]
        }
        let distrust = try #require(await untrusted.GET("/").string().result.error as? URLError)
        #expect(distrust.code == .serverCertificateUntrusted)
        #expect(distrust.pinnedKeyMismatch == nil)
    }

    @Test("The key of a certificate is found, and a damaged certificate is none and never traps")
    func certificateKeys() throws {
        let pem = try String(contentsOfFile: server.path("server.pem"), encoding: .utf8)
        #expect(CertificateKey.pin(ofCertificate: "Cert:" + pem) == server.pin)
        #expect(CertificateKey.pin(ofCertificate: pem.replacingOccurrences(of: "\n", with: "\r\n")) == server.pin)
        for damaged in [
            "", "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\nMIIB\n", String(pem.dropFirst()),
        ] {
            #expect(CertificateKey.pin(ofCertificate: damaged) == nil)
        }
        let base64 = pem.split(separator: "\n").dropFirst().dropLast().joined()
        let bytes = [UInt8](try #require(Data(base64Encoded: base64)))
        let key = try #require(CertificateKey.publicKey(of: bytes))
        #expect(Data(key) == (try Data(contentsOf: server.folder.appendingPathComponent("server.der"))))
        for count in 0..<bytes.count { #expect(CertificateKey.publicKey(of: Array(bytes.prefix(count))) == nil) }
        for bit in 0..<bytes.count * 8 {
            var flipped = bytes
            flipped[bit / 8] ^= 1 << UInt8(bit % 8)
            _ = CertificateKey.publicKey(of: flipped)
        }
    }

    @Test("A server with a version below the minimum is refused")
    func versions() async throws {
        #expect(
            try await text(try service(server.oldPort) { $0.tls.trustedCertificatesFile = server.path("ca.pem") })
                .hasPrefix("HTTP/1.1 TLSv1.2"))
        let modern = try service(server.oldPort) {
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
            $0.tls.minimumVersion = .tls13
        }
        #expect(await modern.GET("/").string().result.urlErrorCode == .secureConnectionFailed)
    }

    @Test("A client certificate is sent to a server that requests one")
    func clientCertificate() async throws {
        let known = try service(server.askingPort) {
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
            $0.tls.clientCertificate = .init(
                certificateFile: server.path("client.pem"), keyFile: server.path("client.key"))
        }
        #expect(try await text(known).hasSuffix("CN=client"))
        let unknown = try service(server.askingPort) { $0.tls.trustedCertificatesFile = server.path("ca.pem") }
        #expect(try await unknown.GET("/").data().validateNothing().response.status == 400)
    }
}
