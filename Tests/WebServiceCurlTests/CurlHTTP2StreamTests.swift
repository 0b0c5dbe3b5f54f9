import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// Streams over HTTP/2, which share a connection with other exchanges.
@Suite(
    "Curl session: streams over HTTP/2", .permit,
    .enabled(if: SecureServer.nginx != nil && ccurl_pauses_http2() != 0, "nginx and libcurl 8.17 are needed"))
struct CurlHTTP2StreamTests {
    private func service(_ server: PlainServer) throws -> WebService {
        let service = WebService(baseURLString: "http://127.0.0.1:\(server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.httpVersion = .priorKnowledge
            $0.maximumConnectionsPerHost = 1
            $0.multiplexesStreams = true
        }
        return service
    }

    private static let content = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) })

    @Test("Bodies are complete, with several streams at once, whatever the order of reading")
    func bodies() async throws {
        let backend = try MockServer.forTest { _ in MockResponse(Self.content) }
        let server = try PlainServer(backend: backend.baseURLString)
        defer { withExtendedLifetime(server) {} }
        let service = try service(server)
        let responses = try await withThrowingTaskGroup(of: StreamedResponse.self) { group in
            for _ in 0..<8 { group.addTask { try await service.GET("/backend").stream(bufferSize: 65_536).value } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        for response in responses.reversed() {
            var body = Data()
            for try await piece in response.body { body.append(piece) }
            #expect(body == Self.content)

        }
    }

    @Test("A stream that is not read delays no other exchange, and its server is held back")
    func holdingBack() async throws {
        let written = Box(0)
        let backend = try MockServer.forTest { request in
            guard request.url?.path == "/backend/endless" else { return MockResponse("ale") }
            var response = MockResponse(statusCode: 200) { body in
                while true {
                    try body.write(Data(count: 16_384))
                    written.change { $0 += 16_384 }
                }
            }
            response.headers["X-Accel-Buffering"] = "no"
            return response
        }
        let server = try PlainServer(backend: backend.baseURLString)
        defer { withExtendedLifetime(server) {} }
        let service = try service(server)
        let stream = try await service.GET("/backend/endless").stream(bufferSize: 65_536).value
        for _ in 0..<1_600 { #expect(try await service.GET("/backend/other").string().value == "ale") }
        // The buffers of the backend's connection, of nginx and of libcurl.
        #expect(written.value < 48 << 20)
        withExtendedLifetime(stream) {}
        stream.body.cancel()
        #expect(try await service.GET("/").string().value.hasPrefix("HTTP/2.0"))
    }
}
