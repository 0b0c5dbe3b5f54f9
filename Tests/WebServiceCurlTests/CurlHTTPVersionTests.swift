import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// HTTP/2 without TLS, and limits of the rate.
@Suite(
    "Curl session: HTTP/2 without TLS", .permit,
    .enabled(if: SecureServer.nginx != nil, "nginx is needed"))
struct CurlHTTPVersionTests {
    private func service(_ url: String, _ version: CurlSession.HTTPVersion = .priorKnowledge) throws -> WebService {
        let service = WebService(baseURLString: url)
        service.session = try CurlSession {
            $0.proxy = .none
            $0.httpVersion = version
        }
        return service
    }

    @Test("HTTP/2 is used without negotiation, and requests share connections if libcurl can reuse them")
    func priorKnowledge() async throws {
        let server = try PlainServer()
        let service = try service("http://127.0.0.1:\(server.port)")
        let responses = try await withThrowingTaskGroup(of: (String, String?).self) { group in
            for _ in 0..<40 {
                group.addTask {
                    let task = service.GET("/").string()
                    return try await (task.value, task.response.transport?.networkProtocol)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(responses.allSatisfy { $0.0.hasPrefix("HTTP/2.0 ") })
        #expect(responses.allSatisfy { $0.1 == "HTTP/2" })
        let connections = Set(responses.map(\.0)).count
        if ccurl_reuses_known_http2() != 0 {
            #expect(connections <= 2)
        } else {
            #expect(connections == 40)
        }
    }

    @Test("Bodies of all sizes are sent and received over HTTP/2 without TLS")
    func bodies() async throws {
        let backend = try MockServer.forTest { request in MockResponse(request.body) }
        let server = try PlainServer(backend: backend.baseURLString)
        let service = try service("http://127.0.0.1:\(server.port)")
        for count in [0, 1, 40_000, 2_000_000] {
            let body = Data((0..<count).map { UInt8($0 % 251) })
            let task = service.POST("/backend").setBody(body).data().validateNothing()
            #expect(try await task.value == body)
            #expect(try await task.response.transport?.networkProtocol == "HTTP/2")
        }
    }

    @Test("A server that supports only one version is an error for the other one")
    func otherVersions() async throws {
        let server = try PlainServer()
        let url = "http://127.0.0.1:\(server.port)"
        for version in [CurlSession.HTTPVersion.negotiated, .http1] {
            let result = await (try service(url, version)).GET("/").string().result
            #expect(result.urlErrorCode == .badServerResponse, "\(result)")
        }
        // Streams use HTTP/1.1.
        let stream = await (try service(url)).GET("/").stream().result
        #expect((stream.error as? URLError)?.code == .badServerResponse)
        let old = try MockServer.forTest { _ in MockResponse("ale") }
        let result = await (try service(old.baseURLString)).GET("/").setTimeout(.seconds(10)).string().result
        #expect(result.urlErrorCode != nil, "\(result)")
        #expect(result.urlErrorCode != .timedOut, "\(result)")
        #expect(try await service(old.baseURLString).GET("/").stream().value.status == 200)
    }

    @Test(
        "Over TLS, the version is negotiated, and a stream uses HTTP/1.1",
        .enabled(if: SecureServer.isAvailable, "openssl is needed"))
    func secure() async throws {
        let server = try SecureServer()
        for (port, version) in [(server.port, "HTTP/2.0"), (server.oldPort, "HTTP/1.1")] {
            let service = WebService(baseURLString: "https://localhost:\(port)")
            service.session = try CurlSession {
                $0.proxy = .none
                $0.httpVersion = .priorKnowledge
                $0.tls.trustedCertificatesFile = server.path("ca.pem")
            }
            #expect(try await service.GET("/").string().value.hasPrefix(version))
            let stream = try await service.GET("/").stream().value
            #expect(try await String(decoding: stream.body.collect(upTo: 100), as: UTF8.self).hasPrefix("HTTP/1.1"))
        }
    }
}
