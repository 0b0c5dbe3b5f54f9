import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceCurl
import WebServiceMocking

/// HTTP/2 servers that send large heads, or frames without end.
@Suite(
    "Curl session: hostile HTTP/2 servers", .permit,
    .enabled(if: StrayServer.python != nil && SecureServer.isAvailable, "python3, nginx or openssl is missing"))
struct CurlHostileFrameTests {
    /// Created once, because the keys take time.
    private static let certificates = Result { try SecureServer() }

    private func service(
        _ behavior: FrameServer.Behavior, _ fields: FrameServer.Fields? = nil, isSecure: Bool = true, skipped: Int = 0,
        change: (inout CurlSession.Configuration) -> Void = { _ in }
    ) throws -> (WebService, FrameServer) {
        let certificates = try Self.certificates.get()
        let server = try FrameServer(behavior, isSecure ? certificates : nil, skipped: skipped, fields)
        let session = try CurlSession {
            if isSecure {
                $0.tls.trustedCertificatesFile = certificates.path("ca.pem")
            } else {
                ($0.proxy, $0.httpVersion) = (.none, .priorKnowledge)
            }
            change(&$0)
        }
        let base = isSecure ? "https://localhost:\(server.port)" : "http://127.0.0.1:\(server.port)"
        return (WebService(base, session: session), server)
    }

    // MARK: Heads

    private static let accepted = [60_000, 66_000, 100_000, 130_000].flatMap { size in
        FrameServer.Fields.End.allCases.flatMap { end in
            [0, 1_000].map { FrameServer.Fields(size: size, end: end, pieceSize: $0) }
        }
    }

    @Test(
        "A head below the maximum is delivered with its body over HTTP/2", arguments: [true, false])
    func accepted(isSecure: Bool) async throws {
        for fields in sample(Self.accepted, every: 3) {
            let (service, server) = try service(.fields, fields, isSecure: isSecure)
            let response = try await service.GET("/").setTimeout(.seconds(10)).data().response
            let bytes = response.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
            #expect((fields.size..<fields.size + 8).contains(bytes), "\(fields)")
            let length =
                switch fields.end {
                case .withHead, .empty: 0
                case .together, .later: 3
                case .long: 40_000
                }
            #expect(response.data.count == length, "\(fields)")
            withExtendedLifetime(server) {}
        }
    }

    @Test("A head below the maximum is delivered with a limited rate")
    func limitedRate() async throws {
        let fields = FrameServer.Fields(size: 66_000, end: .together)
        let (service, server) = try service(.fields, fields) { $0.maximumBytesPerSecondReceived = 1 << 20 }
        let response = try await service.GET("/").setTimeout(.seconds(10)).data().response
        #expect(response.data == Data("ale".utf8))
        withExtendedLifetime(server) {}
    }

    @Test(
        "A head above the maximum is responseTooLarge over HTTP/2, and its request is not sent again",
        arguments: [(135_000, 128 << 10), (140_000, 128 << 10), (200_000, 300 << 10)], [0, 1])
    func rejected(_ sizes: (head: Int, maximum: Int), skipped: Int) async throws {
        for end in [FrameServer.Fields.End.withHead, .together, .later] {
            let fields = FrameServer.Fields(size: sizes.head, end: end)
            let (service, server) = try service(.fields, fields, skipped: skipped) {
                $0.maximumHeaderBytes = sizes.maximum
            }
            for _ in 0..<skipped { #expect(try await service.GET("/").string().value == "1") }
            let result = await service.GET("/").setTimeout(.seconds(10)).data().result
            // The server would respond to another attempt.
            #expect(result.code == .responseTooLarge, "\(end): \(result)")
            let text = try await service.GET("/").string().value
            #expect(text != "1", "\(end)")
            withExtendedLifetime(server) {}
        }
    }

    @Test("A head in too many frames for libcurl is responseTooLarge", arguments: [0, 1])
    func fragments(skipped: Int) async throws {
        let fields = FrameServer.Fields(size: 60_000, end: .together, fragmentSize: 1_000)
        let (service, server) = try service(.fields, fields, skipped: skipped)
        for _ in 0..<skipped { #expect(try await service.GET("/").string().value == "1") }
        let result = await service.GET("/").setTimeout(.seconds(10)).string().result
        // Old versions of nghttp2 accept any number of frames.
        #expect(result.code == .responseTooLarge || (try? result.get()) == "ale", "\(result)")
        withExtendedLifetime(server) {}
    }

    @Test(
        "A head above the limit of libcurl is the error of its own request only",
        .enabled(
            if: LinkedLibrary.exportsOpenSSL && ccurl_has_first_http2_filter() == 0,
            "this libcurl does not share TLS connections, or does not report the cause"))
    func beside() async throws {
        let fields = FrameServer.Fields(size: 200_000, end: .together)
        let (service, server) = try service(.fieldsBeside, fields, skipped: 1) { $0.maximumHeaderBytes = 300 << 10 }
        let other = service.GET("/").setTimeout(.seconds(10)).string().resume()
        let result = await service.GET("/").setTimeout(.seconds(10)).data().result
        #expect(result.code == .responseTooLarge, "\(result)")
        #expect(try await other.value != "1")
        #expect(try await service.GET("/").string().value != "1")
        withExtendedLifetime(server) {}
    }

    // MARK: Floods

    @Test(
        "After a flood of frames that require a response, the connection is not used again",
        arguments: [FrameServer.Behavior.floodPing, .floodSettings], [0, 1])
    func failed(_ behavior: FrameServer.Behavior, skipped: Int) async throws {
        let (service, server) = try service(behavior, skipped: skipped)
        for _ in 0..<skipped { #expect(try await service.GET("/").string().value == "1") }
        let result = await service.POST("/").setTimeout(.seconds(2)).data().result
        #expect([.networkConnectionLost, .timedOut].contains(result.urlErrorCode), "\(result)")
        for _ in 0..<3 { #expect(try await service.POST("/").setTimeout(.seconds(30)).string().value != "1") }
        withExtendedLifetime(server) {}
    }
}
