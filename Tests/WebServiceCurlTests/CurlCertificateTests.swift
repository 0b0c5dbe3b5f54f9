import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import WebServiceCurl

/// Certificates and keys in PEM, DER and PKCS #12, from files and from memory.
@Suite(
    "Curl session: formats of certificates", .serialized, .permit,
    .enabled(if: SecureServer.isAvailable, "nginx or openssl is not installed"))
struct CurlCertificateTests {
    typealias Certificate = CurlSession.TLS.ClientCertificate

    private static let server = Result {
        let server = try SecureServer()
        try server.openssl(
            """
            x509 -in ca.pem -outform DER -out ca.der
            x509 -in client.pem -outform DER -out client.der
            pkey -in client.key -outform DER -out key.der
            pkey -in client.key -aes256 -passout pass:key-secret -out encrypted.key
            pkcs12 -export -in client.pem -inkey client.key -passout pass:key-secret -out client.p12
            pkcs12 -export -in client.pem -inkey client.key -passout pass: -out open.p12
            """)
        let both =
            try Data(contentsOf: server.folder.appendingPathComponent("client.pem"))
            + Data(contentsOf: server.folder.appendingPathComponent("client.key"))
        try both.write(to: server.folder.appendingPathComponent("both.pem"))
        try Data("ale".utf8).write(to: server.folder.appendingPathComponent("text"))
        try (Data("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n".utf8)).write(
            to: server.folder.appendingPathComponent("damaged.pem"))
        return server
    }

    private let server: SecureServer

    init() throws {
        server = try Self.server.get()
    }

    private func data(_ name: String) throws -> Data {
        try Data(contentsOf: server.folder.appendingPathComponent(name))
    }

    private func result(
        _ port: Int, _ change: (inout CurlSession.TLS) throws -> Void
    ) async throws -> Result<String, any Error> {
        var configuration = CurlSession.Configuration()
        configuration.proxy = .none
        configuration.tls.trustedCertificatesFile = server.path("ca.pem")
        try change(&configuration.tls)
        let service = WebService(
            baseURLString: "https://localhost:\(port)")
        service.session = try CurlSession(configuration: configuration)
        return await service.GET("/").string().result
    }

    @Test("Trusted certificates are read in PEM and DER, from files and from memory")
    func authorities() async throws {
        for name in ["ca.pem", "ca.der"] {
            let file = try await result(server.port) { $0.trustedCertificatesFile = server.path(name) }
            #expect(try file.get().hasPrefix("HTTP/2.0"))
            let memory = try await result(server.port) {
                $0.trustedCertificatesFile = nil
                $0.trustedCertificates = try data(name)
            }
            #expect(try memory.get().hasPrefix("HTTP/2.0"))
            let added = try await result(server.port) {
                $0.trustedCertificatesFile = server.path("client.pem")
                $0.trustedCertificates = try data(name)
            }
            #expect(try added.get().hasPrefix("HTTP/2.0"))
        }
        for name in ["client.pem", "client.der"] {
            let other = try await result(server.port) {
                $0.trustedCertificatesFile = nil
                $0.trustedCertificates = try data(name)
            }
            #expect(other.urlErrorCode == .serverCertificateUntrusted, "\(other)")
        }
    }

    @Test(
        "The system's certificates are trusted in addition if requested",
        .enabled(if: TrustStore.system.isPresent, TrustStore.absence))
    func systemCertificates() async throws {
        let result = try await result(server.port) { $0.includesSystemCertificates = true }
        #expect(try result.get().hasPrefix("HTTP/2.0"))
        var tls = CurlSession.TLS()
        tls.trustedCertificates = try data("ca.der")
        tls.includesSystemCertificates = true
        guard case .data(let pem, let usesDirectory) = try TLSRules(tls).authorities else {
            Issue.record("The certificates are not in memory.")
            return
        }
        let system = try Data(contentsOf: URL(fileURLWithPath: try #require(TrustStore.system.file)))
        #expect(usesDirectory == TrustStore.system.hasCompleteDirectory || TrustStore.system.needsDirectory)
        #expect((pem.firstRange(of: system) != nil) == !TrustStore.system.hasCompleteDirectory)
        tls.trustedCertificates = nil
        guard case .system = try TLSRules(tls).authorities else {
            Issue.record("The system's certificates alone are trusted.")
            return
        }
    }

    @Test("A client certificate is read in PEM, DER and PKCS #12, from files and from memory")
    func identities() async throws {
        let password = "key-secret"
        let certificates: [(String, Certificate)] = [
            ("PEM files", Certificate(certificateFile: server.path("client.pem"), keyFile: server.path("client.key"))),
            ("one PEM file", Certificate(certificateFile: server.path("both.pem"))),
            ("DER files", Certificate(certificateFile: server.path("client.der"), keyFile: server.path("key.der"))),
            (
                "an encrypted key",
                Certificate(
                    certificateFile: server.path("client.pem"), keyFile: server.path("encrypted.key"),
                    keyPassword: password)
            ),
            ("PKCS #12", Certificate(certificateFile: server.path("client.p12"), keyPassword: password)),
            ("PKCS #12 without a password", Certificate(certificateFile: server.path("open.p12"))),
            ("PEM in memory", Certificate(certificate: try data("client.pem"), key: try data("client.key"))),
            ("one PEM in memory", Certificate(certificate: try data("both.pem"))),
            ("DER in memory", Certificate(certificate: try data("client.der"), key: try data("key.der"))),
            ("PEM and DER", Certificate(certificate: try data("client.pem"), key: try data("key.der"))),
            (
                "an encrypted key in memory",
                Certificate(
                    certificate: try data("client.pem"), key: try data("encrypted.key"), keyPassword: password)
            ),
            ("PKCS #12 in memory", Certificate(certificate: try data("client.p12"), keyPassword: password)),
        ]
        for (name, certificate) in certificates {
            let result = try await result(server.askingPort) { $0.clientCertificate = certificate }
            #expect((try? result.get())?.hasSuffix("CN=client") == true, "\(name): \(result)")
        }
    }

    @Test("A missing or damaged file, and a wrong password, is an error that names the file")
    func errors() throws {
        func expect(
            _ fragments: String..., line: Int = #line, _ change: (inout CurlSession.TLS) throws -> Void
        ) throws {
            var configuration = CurlSession.Configuration()
            try change(&configuration.tls)
            let error = #expect(throws: WebServiceError.self) { try CurlSession(configuration: configuration) }
            #expect(error?.code == .curl)
            for fragment in fragments {
                #expect(error?.message.contains(fragment) == true, "line \(line): \(error?.message ?? "")")
            }
            #expect(error?.message.contains("secret") == false)
        }
        let (pem, key) = (server.path("client.pem"), server.path("client.key"))
        try expect("trusted certificates, '\(server.path("none"))', does not exist") {
            $0.trustedCertificatesFile = server.path("none")
        }
        try expect("trusted certificates", "could not be read") { $0.trustedCertificatesFile = server.folder.path }
        try expect(server.path("text"), "PEM, DER or PKCS #12") { $0.trustedCertificatesFile = server.path("text") }
        try expect("data of the trusted certificates", "PEM, DER or PKCS #12") { $0.trustedCertificates = Data() }
        try expect(server.path("damaged.pem"), "certificate 1", "damaged") {
            $0.trustedCertificatesFile = server.path("damaged.pem")
        }
        try expect("certificate 2", "damaged") {
            $0.trustedCertificates = try data("ca.pem") + data("damaged.pem")
        }
        try expect("certificate 2", "damaged") {
            $0.trustedCertificates = try data("ca.pem") + data("ca.pem").dropLast(30)
        }
        try expect("not a DER certificate") { $0.trustedCertificates = try data("ca.der").dropLast() }
        try expect("not a DER certificate") { $0.trustedCertificates = try data("key.der") }
        try expect(key, "contains no certificate") { $0.trustedCertificatesFile = key }
        try expect("PKCS #12", "use PEM or DER") { $0.trustedCertificates = try data("client.p12") }
        try expect("client certificate, '\(server.path("none"))', does not exist") {
            $0.clientCertificate = Certificate(certificateFile: server.path("none"), keyFile: key)
        }
        try expect("private key, '\(server.path("none"))', does not exist") {
            $0.clientCertificate = Certificate(certificateFile: pem, keyFile: server.path("none"))
        }
        try expect(pem, "contains no private key") { $0.clientCertificate = Certificate(certificateFile: pem) }
        try expect("no private key") { $0.clientCertificate = Certificate(certificate: try data("client.der")) }
        try expect("no private key") {
            $0.clientCertificate = Certificate(certificate: try data("client.der"), key: try data("client.der"))
        }
        try expect("encrypted", "set keyPassword") {
            $0.clientCertificate = Certificate(certificateFile: pem, keyFile: server.path("encrypted.key"))
        }
        try expect("PKCS #12", "pass it as the certificate") {
            $0.clientCertificate = Certificate(certificateFile: pem, keyFile: server.path("client.p12"))
        }
    }

    @Test(
        "A wrong password of PKCS #12 is an error that names the file",
        .enabled(if: LinkedLibrary.exportsOpenSSL, "libcurl contains its OpenSSL without exporting the functions"))
    func passwords() throws {
        for (password, text) in [(nil, "encrypted; set keyPassword"), ("other-secret", "has a different password")] {
            for certificate in [
                Certificate(certificateFile: server.path("client.p12"), keyPassword: password),
                Certificate(certificate: try data("client.p12"), keyPassword: password),
            ] {
                let error = #expect(throws: WebServiceError.self) {
                    try CurlSession { $0.tls.clientCertificate = certificate }
                }
                #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
                #expect(error?.message.contains("secret") == false)
            }
        }
        let damaged = Certificate(certificate: try data("client.p12").dropLast(40))
        let error = #expect(throws: WebServiceError.self) { try CurlSession { $0.tls.clientCertificate = damaged } }
        #expect(error?.message.contains("damaged") == true, "\(error?.message ?? "")")
    }

    @Test("A key that cannot be decrypted, or does not belong to the certificate, fails the request")
    func keys() async throws {
        for (key, password) in [("encrypted.key", "wrong"), ("server.key", nil)] as [(String, String?)] {
            for certificate in [
                Certificate(
                    certificateFile: server.path("client.pem"), keyFile: server.path(key), keyPassword: password),
                Certificate(certificate: try data("client.pem"), key: try data(key), keyPassword: password),
            ] {
                let result = try await result(server.askingPort) { $0.clientCertificate = certificate }
                #expect(result.urlErrorCode == .clientCertificateRejected, "\(result)")
                let text = result.error?.localizedDescription ?? ""
                #expect(text.contains("password is wrong, or the key does not belong to the certificate"), "\(text)")
                #expect(text.contains(key) || certificate.key?.path == nil, "\(text)")
            }
        }
    }

    @Test("A description contains no data in memory and no password")
    func descriptions() throws {
        let certificate = Certificate(certificate: Data("secret".utf8), key: Data("secret".utf8), keyPassword: "secret")
        var text = "\(certificate) \(String(reflecting: certificate))"
        dump(certificate, to: &text)
        #expect(!text.contains("secret"))
        #expect("\(certificate)" == "certificate in memory, key in memory")
        #expect("\(Certificate(certificateFile: "/a"))" == "certificate /a, key /a")
    }
}
