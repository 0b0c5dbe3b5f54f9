package import Foundation
import WebServiceMocking
import WebServiceServer

/// The certificate of a client, and of the authority that signs it, which openssl creates.
package final class ClientCertificates: Sendable {
    private let temporary = TemporaryFolder()

    package static var isAvailable: Bool { FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl") }

    /// The PEM file of the certificate of the authority.
    package var authority: URL { file("ca.pem") }
    /// The PEM file of the certificate of the client.
    package var certificate: URL { file("client.pem") }
    /// The PEM file of the key of the client.
    package var key: URL { file("client.key") }

    /// The certificate of the client in DER.
    package var der: Data {
        get throws {
            try openssl(["x509", "-in", certificate.path, "-outform", "DER", "-out", file("client.der").path])
            return try Data(contentsOf: file("client.der"))
        }
    }

    /// - Parameter subject: The subject of the client, such as `/O=Brewery/CN=ann`.
    package init(subject: String) throws {
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-utf8"]
        try openssl(
            ["req", "-x509"] + key
                + ["-days", "2", "-subj", "/CN=authority", "-keyout", file("ca.key").path, "-out", authority.path])
        let request = file("client.csr").path
        try openssl(["req"] + key + ["-subj", subject, "-keyout", self.key.path, "-out", request])
        try openssl([
            "x509", "-req", "-in", request, "-CA", authority.path, "-CAkey", file("ca.key").path, "-CAcreateserial",
            "-days", "2", "-out", certificate.path,
        ])
    }

    private func file(_ name: String) -> URL { temporary.url.appendingPathComponent(name) }

    private func openssl(_ arguments: [String]) throws {
        struct Failure: Error { let arguments: [String] }
        let process = ChildProcess("/usr/bin/openssl", arguments, input: .null, output: .null, errors: .null)
        try process.run()
        guard process.waitUntilExit() == 0 else { throw Failure(arguments: arguments) }
    }
}
