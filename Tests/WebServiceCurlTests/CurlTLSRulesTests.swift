import CCurl
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCurl

/// Rules for certificates, for the end of a connection and for the trust store.
@Suite(
    "Curl session: rules of TLS", .serialized, .permit,
    .enabled(if: SecureServer.isAvailable, "nginx and openssl are needed"))
struct CurlTLSRulesTests {
    private func service(
        _ server: SecureServer, port: Int? = nil, host: String = "localhost",
        _ change: (inout CurlSession.Configuration) -> Void = { _ in }
    ) throws -> WebService {
        let service = WebService(baseURLString: "https://\(host):\(port ?? server.port)")
        service.session = try CurlSession {
            $0.proxy = .none
            $0.tls.trustedCertificatesFile = server.path("ca.pem")
            change(&$0)
        }
        return service
    }

    @Test(
        "A certificate that is expired or not yet valid is untrusted, and the request is not sent again",
        arguments: [SecureServer.Certificate.valid, .expired, .notYetValid])
    func validity(certificate: SecureServer.Certificate) async throws {
        try await certificates(certificate: certificate)
    }

    @Test(
        "A certificate that is signed with SHA-1 is untrusted, and the request is not sent again",
        .enabled(if: LinkedLibrary.hasOpenSSL3, "OpenSSL accepts such certificates before version 3.0"))
    func weakSignature() async throws {
        try await certificates(certificate: .signedWithSHA1)
    }

    @Test("A certificate without subjectAltName is accepted for its common name")
    func commonName() async throws {
        try await certificates(certificate: .commonName)
    }

    private func certificates(certificate: SecureServer.Certificate) async throws {
        let server = try SecureServer(certificate: certificate)
        let service = try service(server)
        service.interceptors = [RetryPolicy(maximumAttempts: 5, baseDelay: .zero)]
        let task = service.GET("/")
        let result = await task.string().result
        switch certificate {
        case .valid, .commonName: #expect(try result.get().hasPrefix("HTTP/2.0"))
        case .expired, .notYetValid, .signedWithSHA1:
            #expect(result.urlErrorCode == .serverCertificateUntrusted, "\(result)")
        }
        let text = result.error?.localizedDescription ?? ""
        switch certificate {
        case .valid, .commonName: #expect(text.isEmpty)
        case .expired: #expect(text.contains("expired"), "\(text)")
        case .notYetValid: #expect(text.contains("not yet valid"), "\(text)")
        case .signedWithSHA1: #expect(text.contains("weak"), "\(text)")
        }
        let events = task.timeline.events
        #expect(events.count { $0.kind == .attempt } == 1, "\(events)")
        #expect(!events.contains { $0.kind == .retry }, "\(events)")
    }

    @Test("An IPv6 literal is compared with the certificate", .enabled(if: hasIPv6, "the machine has no IPv6"))
    func ipv6() async throws {
        let server = try SecureServer(address: "[::1]")
        #expect(try await service(server, host: "[::1]").GET("/").string().value.hasPrefix("HTTP/2.0"))
        #expect(
            try await service(server, port: server.oldPort, host: "[0:0:0:0:0:0:0:1]").GET("/").string().value
                .hasPrefix("HTTP/1.1"))
        let distrusting = WebService(baseURLString: "https://[::1]:\(server.port)")
        distrusting.session = try CurlSession {
            $0.proxy = .none
            $0.tls.trustedCertificatesFile = server.path("client.pem")
        }
        #expect(await distrusting.GET("/").string().result.urlErrorCode == .serverCertificateUntrusted)
    }

    private static let hasIPv6 =
        (try? String(contentsOfFile: "/proc/net/if_inet6", encoding: .utf8))?.contains(
            "\(String(repeating: "0", count: 31))1") == true

    @Test(
        "A body that ends with the connection is complete only after the close_notify of TLS",
        .enabled(if: LinkedLibrary.exportsOpenSSL, "libcurl contains its OpenSSL without exporting the functions"),
        arguments: [false, true],
        [false, true])
    func truncation(isOld: Bool, dropsAlerts: Bool) async throws {
        let body = Data((0..<40_000).map { UInt8($0 % 251) })
        let backend = try MockServer.forTest {
            $0.path == "/length" ? MockResponse(body) : MockResponse(body, wire: .untilClose)
        }
        let server = try SecureServer(backend: backend.baseURLString)
        let relay = try TLSRelay(to: isOld ? server.oldPort : server.port, dropsAlerts: dropsAlerts)
        let service = try service(server, port: relay.port) { $0.httpVersion = .http1 }
        for _ in 0..<amount(1, thorough: 3) {
            let result = await service.GET("/open").data().result
            if dropsAlerts {
                #expect(result.urlErrorCode == .networkConnectionLost, "\(result)")
            } else {
                #expect(try result.get() == body)
            }
            // A length is equivalent to the alert.
            #expect(try await service.GET("/length").data().value == body)
            let head = service.HEAD("/open").data().validateNothing()
            #expect(try await head.value.isEmpty)
        }
    }

    @Test("A body over HTTP/2 is complete without the alert")
    func http2End() async throws {
        let body = Data((0..<40_000).map { UInt8($0 % 251) })
        let backend = try MockServer.forTest { _ in MockResponse(body, wire: .untilClose) }
        let server = try SecureServer(backend: backend.baseURLString)
        let relay = try TLSRelay(to: server.port, dropsAlerts: true)
        let service = try service(server, port: relay.port)
        for _ in 0..<3 {
            let task = service.GET("/open").data()
            #expect(try await task.value == body)
            #expect(try await task.response.transport?.networkProtocol == "HTTP/2")
        }
    }

    // MARK: The trust store

    /// Returns the processor time of the loop's thread per connection after the first one, in
    /// seconds. Completions run on the loop's thread.
    private func cost(_ session: CurlSession, _ url: String, count: Int) async -> Double {
        func send() async -> Double {
            await withCheckedContinuation { continuation in
                session.responseTask(request: Request(.GET, url: url), progress: nil) { result, _ in
                    let isExpected = result.urlErrorCode == .serverCertificateUntrusted
                    continuation.resume(returning: isExpected ? processorTime() : .infinity)
                }.resume()
            }
        }
        let start = await send()
        var end = start
        for _ in 0..<count { end = await send() }
        return (end - start) / Double(count)
    }

    @Test(
        "The certificates of the system are parsed once, not for each connection",
        .enabled(if: TrustStore.system.isPresent, TrustStore.absence))
    func cachedStore() async throws {
        let server = try SecureServer()
        let bundle = try #require(TrustStore.system.file)
        let given = try CurlSession {
            $0.proxy = .none
            $0.tls.trustedCertificatesFile = bundle
        }
        let standard = try CurlSession { $0.proxy = .none }
        let url = "https://localhost:\(server.port)/"
        let floor = await cost(given, url, count: 20)
        let own = await cost(standard, url, count: 20)
        #expect(floor.isFinite)
        #expect(own.isFinite)
        #expect(
            own <= 1.5 * floor + 0.002, "\(own * 1000) ms for each connection, \(floor * 1000) ms with a file alone")
    }

    private func certificate(_ name: String, in folder: URL) throws -> String {
        let process = ChildProcess(
            SecureServer.openssl ?? "",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                "/CN=\(name)", "-keyout", folder.appendingPathComponent("\(name).key").path,
                "-out", folder.appendingPathComponent("\(name).pem").path,
            ], output: .null, errors: .null)
        try process.run()
        process.waitUntilExit()
        return try String(contentsOf: folder.appendingPathComponent("\(name).pem"), encoding: .utf8)
    }

    @Test("A folder of trusted certificates is skipped only if the file contains all of its certificates")
    func folders() throws {
        let folder = TemporaryFolder()
        let (one, two, three) = (
            try certificate("one", in: folder.url), try certificate("two", in: folder.url),
            try certificate("three", in: folder.url)
        )
        let bundle = try folder.file(
            "bundle.pem", Data("# trusted\n\(one)\n\(two.replacingOccurrences(of: "\n", with: "\r\n"))".utf8)
        ).path
        func store(_ files: [String: String], file: String? = bundle) throws -> TrustStore {
            let directory = folder.url.appendingPathComponent(UUID().uuidString)
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            for (name, text) in files { try Data(text.utf8).write(to: directory.appendingPathComponent(name)) }
            return TrustStore(file: file, directory: directory.path)
        }
        #expect(try !store([:]).needsDirectory)
        #expect(try !store(["0123abcd.0": one, "0123abcd.1": two]).needsDirectory)
        #expect(try store(["0123abcd.0": one, "abcdef01.0": three]).needsDirectory)
        #expect(try store(["abcdef01.0": one + three]).needsDirectory)
        #expect(
            try store(["abcdef01.0": one.replacingOccurrences(of: "CERTIFICATE", with: "TRUSTED CERTIFICATE")])
                .needsDirectory)
        #expect(try store(["abcdef01.0": "no certificate"]).needsDirectory == false)
        // OpenSSL looks up file names only by their hash.
        #expect(
            try !store(["three.pem": three, "README": "text", "0123abcd": three, "0123abc.0": three]).needsDirectory)
        #expect(try store(["0123abcd.0": one], file: nil).needsDirectory)
        #expect(try store(["0123abcd.0": one], file: folder.url.appendingPathComponent("none.pem").path).needsDirectory)
        #expect(!TrustStore(file: bundle, directory: nil).needsDirectory)
        #expect(!TrustStore(file: bundle, directory: folder.url.appendingPathComponent("none").path).needsDirectory)
    }
}
