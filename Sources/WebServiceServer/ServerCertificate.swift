import Foundation
import WebServiceCore

/// A certificate for 127.0.0.1 and localhost, which the command `openssl` creates in a temporary
/// folder.
final class ServerCertificate: Sendable {
    let folder: URL
    var certificate: URL { folder.appendingPathComponent("certificate.pem") }
    var key: URL { folder.appendingPathComponent("key.pem") }

    /// The paths where the command may be installed.
    static let commands = ["/usr/bin/openssl", "/usr/local/bin/openssl", "/opt/homebrew/bin/openssl"]

    /// Creates a certificate with the first command that exists.
    ///
    /// - Throws: `WebServiceError.Code.tlsUnavailable`.
    init(commands: [String] = ServerCertificate.commands) throws {
        guard let command = commands.first(where: FileManager.default.isExecutableFile) else {
            throw WebServiceError(
                .tlsUnavailable, "the openssl command was not found; install OpenSSL, or use a server without TLS")
        }
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("mock-server-\(UUID().uuidString)")
        do {
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try create(with: command)
        } catch {
            remove()
            throw WebServiceError(
                .tlsUnavailable, "openssl could not create a certificate; see the underlying error", underlying: error)
        }
    }

    deinit {
        remove()
    }

    private func remove() {
        try? FileManager.default.removeItem(at: folder)  // in the temporary folder; it may not exist
    }

    private func create(with command: String) throws {
        #if os(macOS) || os(Linux)
        let process = ChildProcess(
            command,
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-keyout", key.path, "-out", certificate.path,
            ], input: .null, output: .null, errors: .null)
        try process.run()
        let status = process.waitUntilExit()
        guard status == 0 else { throw WebServiceError(.tlsUnavailable, "openssl exited with status \(status)") }
        #else
        throw WebServiceError(.tlsUnavailable, "this system cannot run openssl; use a server without TLS")
        #endif
    }
}

/// TLS for the connections of one server.
struct ServerTLS: Sendable {
    let certificate: ServerCertificate
    let context: TLSContext

    /// - Parameter clients: The verification of clients. Defaults to `nil`: no verification.
    /// - Throws: `WebServiceError.Code.tlsUnavailable`.
    init(clients: TLSContext.Clients? = nil) throws {
        certificate = try ServerCertificate()
        context = try TLSContext(
            certificate: certificate.certificate.path, key: certificate.key.path, clients: clients)
    }
}
