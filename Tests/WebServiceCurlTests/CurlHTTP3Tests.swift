import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking
import WebServiceServer

/// HTTP/3, with a libcurl that supports it.
@Suite(
    "Curl session: HTTP/3", .permit,
    .enabled(
        if: CurlSession.library.supportsHTTP3 && HTTP3Server.modules != nil && SecureServer.isAvailable,
        "needs a libcurl with HTTP/3, and hypercorn"))
struct CurlHTTP3Tests {
    private static let identity = Result { try SecureServer() }

    private let identity: SecureServer
    private let clock = TestClock()

    init() throws {
        identity = try Self.identity.get()
    }

    private func service(
        _ server: HTTP3Server, _ change: (inout CurlSession.Configuration) -> Void = { _ in }
    ) throws -> WebService {
        let service = WebService(baseURLString: "https://localhost:\(server.port)", clock: clock)
        var configuration = CurlSession.Configuration()
        configuration.proxy = .none
        configuration.httpVersion = .http3
        configuration.addresses = ["localhost:\(server.port)": ["127.0.0.1"]]
        configuration.tls.trustedCertificatesFile = identity.path("ca.pem")
        change(&configuration)
        service.session = try CurlSession(configuration: configuration, timekeeper: clock)
        return service
    }

    /// Advances the clock until a condition is true.
    private func advance(until holds: () -> Bool) async {
        while !holds() {
            await clock.advance(by: .seconds(1))
            await Task.yield()
        }
    }

    private static func content(_ count: Int) -> Data { Data((0..<count).map { UInt8($0 % 251) }) }

    @Test("Requests use HTTP/3 and share a connection, and the metrics describe it")
    func sharing() async throws {
        let server = try await HTTP3Server(identity)
        let service = try service(server)
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 { group.addTask { try await service.GET("/").string().value } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(texts.count == 1)
        #expect(texts.first?.hasPrefix("3 ") == true)
        let task = service.GET("/").string()
        #expect(try await texts.contains(task.value))
        let metrics = try #require(try await task.response.transport)
        #expect(metrics.networkProtocol == "HTTP/3")
        #expect(metrics.isConnectionReused)
        #expect(metrics.remotePort == server.port)
        #expect(metrics.tlsVersion == "TLSv1.3")
    }

    @Test("Bodies of all sizes are sent and received over HTTP/3", arguments: [0, 1, 40_000, 2_000_000])
    func bodies(count: Int) async throws {
        let service = try service(try await HTTP3Server(identity))
        let body = Self.content(count)
        let task = service.POST("/echo").setBody(body).data()
        #expect(try await task.value == body)
        #expect(try await task.response.transport?.networkProtocol == "HTTP/3")
    }

    @Test("If no connection over UDP can be established, HTTP/2 is used")
    func fallback() async throws {
        let service = try service(try await HTTP3Server(identity, protocols: "tcp"))
        for _ in 0..<2 { #expect(try await service.GET("/").string().value.hasPrefix("2 ")) }
    }

    @Test("Without a server, the error is that of a connection that cannot be established")
    func refused() async throws {
        let server = try await HTTP3Server(identity)
        server.kill()
        #expect(await (try service(server)).GET("/").string().result.urlErrorCode == .cannotConnectToHost)
    }

    @Test("Requests for http URLs use HTTP/1.1")
    func withoutTLS() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        let task = try service(try await HTTP3Server(identity)).GET(server.baseURLString).string()
        #expect(try await task.value == "ale")
        #expect(try await task.response.transport?.networkProtocol == "HTTP/1.1")
    }

    @Test("A certificate that is not trusted is refused over HTTP/3")
    func untrusted() async throws {
        let other = try SecureServer()
        let service = try service(try await HTTP3Server(identity)) {
            $0.tls.trustedCertificatesFile = other.path("ca.pem")
        }
        let result = await service.GET("/").string().result
        #expect(result.urlErrorCode == .serverCertificateUntrusted, "\(result)")
    }

    @Test("Pins are verified over HTTP/3, and a failure names the presented key")
    func pins() async throws {
        let server = try await HTTP3Server(identity)
        let pin = identity.pin
        let pinned = try service(server) { $0.tls.pinnedPublicKeys = [pin] }
        #expect(try await pinned.GET("/").string().value.hasPrefix("3 "))
        let wrong = "sha256//" + Data(count: 32).base64EncodedString()
        let refused = try service(server) { $0.tls.pinnedPublicKeys = [wrong] }
        let error = await refused.GET("/").string().result.error as? URLError
        #expect(error?.code == .serverCertificateUntrusted)
        #expect(error?.pinnedKeyMismatch?.presented == pin)
    }

    @Test("Response header fields over the limit are an error over HTTP/3")
    func manyFields() async throws {
        let service = try service(try await HTTP3Server(identity)) { $0.maximumHeaderBytes = 8 << 10 }
        #expect(await service.GET("/fields/200").string().result.code == .responseTooLarge)
        #expect(try await service.GET("/fields/20").string().value.hasPrefix("3 "))
    }

    @Test("Streams use HTTP/1.1, unless the configuration lets them use HTTP/3")
    func streams() async throws {
        let plain = try await service(HTTP3Server(identity, protocols: "udp,tcp")).GET("/").stream().value
        #expect(try await String(decoding: plain.body.collect(upTo: 100), as: UTF8.self).hasPrefix("1.1 "))
        let service = try service(try await HTTP3Server(identity)) { $0.multiplexesStreams = true }
        let responses = try await withThrowingTaskGroup(of: StreamedResponse.self) { group in
            for _ in 0..<8 {
                group.addTask { try await service.GET("/bytes/3000000").stream(bufferSize: 65_536).value }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        // A stream that is not read delays no other exchange.
        for _ in 0..<50 { #expect(try await service.GET("/").string().value.hasPrefix("3 ")) }
        for response in responses.reversed() {
            #expect(try await response.body.collect(upTo: 4_000_000) == Self.content(3_000_000))
        }
    }

    @Test("A cancelled request ends at once, and others on its connection continue")
    func cancellation() async throws {
        let service = try service(try await HTTP3Server(identity))
        #expect(try await service.GET("/").string().value.hasPrefix("3 "))
        async let other = service.GET("/bytes/2000000").data().value
        let silent = service.GET("/silent").data().resume()
        silent.cancel()
        #expect(await silent.result.urlErrorCode == .cancelled)
        #expect(try await other == Self.content(2_000_000))
        #expect(try await service.GET("/").string().value.hasPrefix("3 "))
    }

    @Test("A silent response reaches the idle timeout")
    func silence() async throws {
        let service = try service(try await HTTP3Server(identity))
        let error = Box<URLError.Code?>(nil)
        #expect(try await service.GET("/").string().value.hasPrefix("3 "))
        service.GET("/silent").setTimeout(.seconds(30)).data()
            .onCompletion { result in error.change { $0 = result.urlErrorCode } }.resume()
        await advance { error.value != nil }
        #expect(error.value == .timedOut)
        #expect(clock.elapsed >= .seconds(30))
    }

    @Test("After a server was killed and restarted, requests use a new connection")
    func restart() async throws {
        let server = try await HTTP3Server(identity)
        let service = try service(server)
        #expect(try await service.GET("/").string().value.hasPrefix("3 "))
        server.kill()
        _ = try await HTTP3Server(identity, port: server.port)
        let error = Box<URLError.Code?>(nil)
        service.GET("/").setTimeout(.seconds(30)).data()
            .onCompletion { result in error.change { $0 = result.urlErrorCode } }.resume()
        await advance { error.value != nil }
        #expect(error.value == .timedOut)
        #expect(try await service.GET("/").string().value.hasPrefix("3 "))
    }
}
