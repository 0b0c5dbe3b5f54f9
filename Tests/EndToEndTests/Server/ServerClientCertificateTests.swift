#if WEBSERVICE_CURL
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// A mock server that verifies the certificates of its clients.
@Suite(.permit, .enabled(if: ClientCertificates.isAvailable, "openssl is not installed"))
struct ServerClientCertificateTests {
    private func service(_ server: MockServer, _ client: ClientCertificates?) throws -> WebService {
        var configuration = CurlSession.Configuration()
        configuration.tls.trustedCertificatesFile = server.certificateFile?.path
        configuration.tls.clientCertificate = client.map {
            .init(certificateFile: $0.certificate.path, keyFile: $0.key.path)
        }
        return WebService(server.baseURLString, session: try CurlSession(configuration: configuration))
    }

    @Test("A request has the certificate of its client, and a URL with the scheme https")
    func certificate() async throws {
        let client = try ClientCertificates(subject: "/O=Brewery/CN=Zoë")
        let server = try MockServer(clientCA: client.authority)
        server.on(.url("\(server.baseURLString)/me")) { .text($0.clientCertificate?.subject ?? "none") }
        #expect(try await service(server, client).GET("/me").string().value == "CN=Zoë,O=Brewery")
        let request = try await server.nextRequest()
        #expect(try request.clientCertificate?.der == client.der)
        #expect(request.url?.absoluteString == "\(server.baseURLString)/me")
    }

    @Test("A client without a certificate, or with one of another authority, fails")
    func rejection() async throws {
        let client = try ClientCertificates(subject: "/CN=ann")
        let server = try MockServer(clientCA: client.authority)
        server.on(.any, .text("ale"))
        for other in [nil, try ClientCertificates(subject: "/CN=ann")] {
            let error = await #expect(throws: URLError.self) { try await service(server, other).GET("/").data().value }
            // With TLS 1.3, the client has sent its request before the server rejects it.
            let codes: [URLError.Code?] = [.networkConnectionLost, .secureConnectionFailed]
            #expect(codes.contains(error?.code))
        }
        #expect(server.receivedRequests.isEmpty)
        #expect(try await service(server, client).GET("/").string().value == "ale")
    }

    @Test("A certificate may be optional, and one that is sent is verified")
    func optional() async throws {
        let client = try ClientCertificates(subject: "/CN=ann")
        let server = try MockServer(clientCA: client.authority, requiresClientCertificate: false)
        server.on(.any) { .text($0.clientCertificate?.subject ?? "none") }
        #expect(try await service(server, nil).GET("/").string().value == "none")
        #expect(try await service(server, client).GET("/").string().value == "CN=ann")
        let other = try ClientCertificates(subject: "/CN=ann")
        await #expect(throws: URLError.self) { try await service(server, other).GET("/").data().value }
        #expect(server.receivedRequests.count == 2)
    }

    @Test("Each connection of a session has the certificate, also if TLS resumes")
    func resumption() async throws {
        let client = try ClientCertificates(subject: "/CN=ann")
        let server = try MockServer(clientCA: client.authority)
        server.on(.any) { .text($0.clientCertificate?.subject ?? "none").header("Connection", "close") }
        let service = try service(server, client)
        for _ in 0..<4 { #expect(try await service.GET("/").string().value == "CN=ann") }
        #expect(server.connectionCount == 4)
    }

    @Test("A server without a CA has no certificate of its clients, and the scheme of its URLs is that of TLS")
    func withoutAuthority() async throws {
        let client = try ClientCertificates(subject: "/CN=ann")
        let secure = try MockServer(tls: true)
        secure.on(.any, 204)
        _ = try await service(secure, client).GET("/a").data().value
        #expect(secure.receivedRequests.map(\.clientCertificate) == [nil])
        #expect(secure.receivedRequests.map { $0.url?.absoluteString } == ["\(secure.baseURLString)/a"])
        let plain = try MockServer()
        plain.on(.any, 204)
        _ = try await service(plain, client).GET("/a").data().value
        #expect(plain.receivedRequests.map { $0.url?.absoluteString } == ["\(plain.baseURLString)/a"])
    }

    @Test("A file without a certificate is a typed error")
    func invalidAuthority() throws {
        let folder = TemporaryFolder()
        for file in [try folder.file("empty.pem"), folder.url.appendingPathComponent("missing.pem")] {
            let error = #expect(throws: WebServiceError.self) { try MockServer(clientCA: file) }
            #expect(error?.code == .tlsUnavailable)
            #expect(error?.message.contains("clientCA") == true)
        }
        let client = try ClientCertificates(subject: "/CN=ann")
        let port = #expect(throws: WebServiceError.self) { try MockServer(clientCA: client.authority, port: 70_000) }
        #expect(port?.code == .portUnavailable)
    }
}
#endif
