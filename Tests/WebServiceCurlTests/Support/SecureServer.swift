import Foundation
import TestSupport
import WebServiceMocking
import WebServiceServer

/// nginx with TLS on loopback: certificates that openssl creates for this run, HTTP/2, and a port
/// that requests a client certificate.
///
/// @unchecked: all state is set before the instance is shared.
final class SecureServer: @unchecked Sendable {
    struct Failure: Error, CustomStringConvertible { let description: String }

    let folder: URL
    /// The port for TLS 1.2, TLS 1.3 and HTTP/2.
    private(set) var port = 0
    /// The port for TLS 1.2 only.
    private(set) var oldPort = 0
    /// The port that requests a client certificate.
    private(set) var askingPort = 0
    private let backend: String?
    private let certificate: Certificate
    private let address: String
    private var process: ChildProcess?

    /// The certificate of the server.
    enum Certificate: String, CaseIterable {
        case valid, expired, notYetValid, signedWithSHA1
        /// Without a `subjectAltName`.
        case commonName
    }

    static let nginx = ["/usr/sbin/nginx", "/usr/bin/nginx"].first(where: FileManager.default.isExecutableFile)
    static let openssl = ["/usr/bin/openssl", "/usr/local/bin/openssl"].first(
        where: FileManager.default.isExecutableFile)
    static var isAvailable: Bool { nginx != nil && openssl != nil }

    /// - Parameters:
    ///   - backend: The URL of the server that responds. If it is `nil`, nginx responds with the
    ///     protocol in use.
    ///   - certificate: The certificate of the server.
    ///   - address: The address to listen on.
    init(backend: String? = nil, certificate: Certificate = .valid, address: String = "127.0.0.1") throws {
        self.backend = backend
        self.certificate = certificate
        self.address = address
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("secure-server-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Self.run(
            Self.openssl,
            """
            req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-authority -keyout ca.key -out ca.pem
            req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr
            \(signing)
            req -newkey rsa:2048 -nodes -subj /CN=client -keyout client.key -out client.csr
            x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out client.pem
            pkey -in server.key -pubout -outform DER -out server.der
            dgst -sha256 -binary -out server.sha server.der
            """, in: folder,
            writing: [
                "names.txt": "subjectAltName=DNS:localhost,DNS:brewery.example,DNS:*.brewery.example,IP:::1\n",
                "ca.cnf": Self.authority, "index.txt": "",
                "serial": "01\n",
            ])
        for _ in 0..<5 where try start() { return }
        let log = (try? String(contentsOfFile: path("error.log"), encoding: .utf8)) ?? "nothing"
        throw Failure(description: "nginx does not start; its log: \(log)")
    }

    deinit {
        if let process {
            process.send(SIGTERM)
            process.waitUntilExit()
        }
        try? FileManager.default.removeItem(at: folder)  // it is in the temporary folder
    }

    /// The openssl command that signs the certificate of the server. Only `openssl ca` sets a start
    /// date.
    private var signing: String {
        let sign =
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names.txt -out server.pem -days 2"
        let dated =
            "ca -batch -notext -config ca.cnf -cert ca.pem -keyfile ca.key -in server.csr -extfile names.txt -out server.pem"
        return switch certificate {
        case .valid: sign
        case .expired: dated + " -startdate 20200101000000Z -enddate 20210101000000Z"
        case .notYetValid: dated + " -startdate 20900101000000Z -enddate 20910101000000Z"
        case .signedWithSHA1: sign + " -sha1"
        case .commonName: sign.replacingOccurrences(of: "-extfile names.txt ", with: "")
        }
    }

    private static let authority = """
        [ca]
        default_ca = authority
        [authority]
        database = index.txt
        serial = serial
        new_certs_dir = .
        default_md = sha256
        policy = names
        [names]
        commonName = supplied

        """

    /// - Returns: Whether the server listens. It does not if another process took a port before
    ///   nginx did.
    private func start() throws -> Bool {
        // Below the ports that the system assigns automatically.
        let ports = (0..<1_000).lazy.compactMap { _ in
            try? LoopbackListener(port: .random(in: 12_000..<32_000)).port
        }.prefix(3)
        let chosen = Array(ports)
        guard Set(chosen).count == 3 else { return false }
        (port, oldPort, askingPort) = (chosen[0], chosen[1], chosen[2])
        try configuration.write(toFile: path("nginx.conf"), atomically: true, encoding: .utf8)
        let process = try Self.launch(Self.nginx, ["-p", ".", "-c", "nginx.conf", "-e", "error.log"], in: folder)
        self.process = process
        // nginx writes this file after it has opened its ports.
        while process.isRunning, !FileManager.default.fileExists(atPath: path("nginx.pid")) { sched_yield() }
        return process.isRunning
    }

    /// Runs commands of openssl in the folder, one per line.
    func openssl(_ commands: String) throws {
        try Self.run(Self.openssl, commands, in: folder, writing: [:])
    }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    /// The pin of the server's key.
    var pin: String {
        let hash = (try? Data(contentsOf: folder.appendingPathComponent("server.sha"))) ?? Data()
        return "sha256//" + hash.base64EncodedString()
    }

    private var configuration: String {
        let tls =
            "\(certificate == .signedWithSHA1 ? "ssl_ciphers ALL:@SECLEVEL=0; " : "")ssl_certificate server.pem; ssl_certificate_key server.key; ssl_protocols"
        let answer =
            backend.map { "location / { proxy_pass \($0); chunked_transfer_encoding off; client_max_body_size 64m; }" }
            ?? #"location / { return 200 "$server_protocol $ssl_protocol $ssl_client_s_dn"; }"#
        return """
            daemon off; worker_processes 1; pid nginx.pid;
            events { worker_connections 512; }
            http {
                access_log off; ssl_session_cache shared:s:1m;
                client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                server { listen \(address):\(port) ssl http2; \(tls) TLSv1.2 TLSv1.3; \(answer) }
                server { listen \(address):\(oldPort) ssl; \(tls) TLSv1.2; \(answer) }
                server {
                    listen \(address):\(askingPort) ssl; \(tls) TLSv1.2 TLSv1.3; ssl_client_certificate ca.pem; ssl_verify_client on; \(answer)
                }
            }
            """
    }

    private static func run(_ program: String?, _ commands: String, in folder: URL, writing files: [String: String])
        throws
    {
        for (name, text) in files {
            try text.write(to: folder.appendingPathComponent(name), atomically: true, encoding: .utf8)
        }
        for command in commands.split(separator: "\n") {
            let process = try launch(program, command.split(separator: " ").map(String.init), in: folder)
            guard process.waitUntilExit() == 0 else { throw Failure(description: "openssl \(command) failed") }
        }
    }

    private static func launch(_ program: String?, _ arguments: [String], in folder: URL) throws -> ChildProcess {
        let process = ChildProcess(
            "/usr/bin/env", ["-C", folder.path, program ?? ""] + arguments, output: .null, errors: .null)
        try process.run()
        return process
    }
}
