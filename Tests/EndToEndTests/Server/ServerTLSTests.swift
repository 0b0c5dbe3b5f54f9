#if WEBSERVICE_CURL
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// A mock server with TLS, and a client that trusts its certificate.
@Suite(.permit) struct ServerTLSTests {
    private func service(_ server: MockServer, trusts: Bool = true) throws -> WebService {
        var configuration = CurlSession.Configuration()
        if trusts { configuration.tls.trustedCertificatesFile = server.certificateFile?.path }
        let service = WebService(server.baseURLString, session: try CurlSession(configuration: configuration))
        return service
    }

    @Test("Requests and responses of any size are encrypted, and share a connection")
    func exchanges() async throws {
        let server = try MockServer(tls: true)
        #expect(server.baseURLString.hasPrefix("https://127.0.0.1:"))
        server.on(.POST, "/echo") { MockResponse(statusCode: 200, data: $0.body) }
        let service = try service(server)
        for size in [0, 1, 16 << 10, 3_000_000] {
            let body = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            #expect(try await service.POST("/echo").setBody(body).data().value == body)
        }
        #expect(server.connectionCount == 1)
    }

    @Test("A client that does not trust the certificate fails, and the next one is served")
    func distrust() async throws {
        let server = try MockServer(tls: true)
        server.on(.GET, "/", .text("ale"))
        let error = await #expect(throws: URLError.self) {
            try await service(server, trusts: false).GET("/").string().value
        }
        #expect(error?.code == .serverCertificateUntrusted)
        #expect(try await service(server).GET("/").string().value == "ale")
        #expect(server.receivedRequests.count == 1)
    }

    @Test(
        "Faults of responses occur within TLS",
        arguments: [MockResponse.Wire.cut(after: 200), .reset(after: 200), .disconnect])
    func faults(wire: MockResponse.Wire) async throws {
        let server = try MockServer(tls: true)
        var response = MockResponse.text(String(repeating: "ale", count: 100))
        response.wire = wire
        server.on(.any, response)
        let error = await #expect(throws: URLError.self) { try await service(server).GET("/").string().value }
        #expect(error?.code == .networkConnectionLost)
    }

    @Test("Streams and 50 requests at the same time work over TLS")
    func concurrency() async throws {
        let server = try MockServer(tls: true)
        server.on(.GET, "/{number}") { .text($0.pathParameters["number"] ?? "") }
        server.on(
            .GET, "/stream",
            MockResponse(statusCode: 200) { body in
                for number in 0..<100 { try body.write(Data("tick \(number)\n".utf8)) }
            })
        let service = try service(server)
        var lines = 0
        for try await _ in service.GET("/stream").lines() { lines += 1 }
        #expect(lines == 100)
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<50 {
                group.addTask { (try? await service.GET("/\(number)").string().value) == "\(number)" }
            }
            for await isRight in group { #expect(isRight) }
        }
    }

    @Test("A client without TLS and a client that leaves do not hang the server")
    func plainClient() async throws {
        let server = try MockServer(tls: true)
        server.on(.GET, "/", .text("ale"))
        let plain = WebService("http://127.0.0.1:\(server.port)", session: try CurlSession())
        await #expect(throws: (any Error).self) { try await plain.GET("/").string().value }
        #expect(try await service(server).GET("/").string().value == "ale")
        server.stop()
    }
}
#endif
