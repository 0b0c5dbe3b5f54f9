import Foundation

/// nginx with TLS on loopback: certificates made by openssl for this run, HTTP/2, and a port that asks for a client's certificate.
///
/// @unchecked: all of it is set before anybody else has it.
final class SecureServer: @unchecked Sendable {
    struct Failure: Error, CustomStringConvertible { let description: String }

    let folder: URL
    /// Speaks TLS 1.2 and 1.3 and HTTP/2.
    let port: Int
    /// Speaks TLS 1.2 only.
    let oldPort: Int
    /// Asks for the certificate of a client.
    let askingPort: Int
    private let process = Process()

    static let nginx = ["/usr/sbin/nginx", "/usr/bin/nginx"].first(where: FileManager.default.isExecutableFile)
    static let openssl = ["/usr/bin/openssl", "/usr/local/bin/openssl"].first(where: FileManager.default.isExecutableFile)
    static var isAvailable: Bool { nginx != nil && openssl != nil }

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("secure-server-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Self.run(
            Self.openssl,
            """
            req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-authority -keyout ca.key -out ca.pem
            req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr
            x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names.txt -out server.pem
            req -newkey rsa:2048 -nodes -subj /CN=client -keyout client.key -out client.csr
            x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out client.pem
            pkey -in server.key -pubout -outform DER -out server.der
            dgst -sha256 -binary -out server.sha server.der
            """, in: folder, writing: ["names.txt": "subjectAltName=DNS:localhost\n"])
        // Below the ports that the system picks for others, so that nobody takes one before nginx does.
        let ports = (0..<1_000).lazy.compactMap { _ in try? FullListener(backlog: 1, port: .random(in: 12_000..<32_000)).port }.prefix(3)
        let chosen = Array(ports)
        guard Set(chosen).count == 3 else { throw Failure(description: "there are no free ports") }
        (port, oldPort, askingPort) = (chosen[0], chosen[1], chosen[2])
        try configuration.write(to: folder.appendingPathComponent("nginx.conf"), atomically: true, encoding: .utf8)
        process.executableURL = URL(fileURLWithPath: Self.nginx ?? "")
        process.arguments = ["-p", folder.path, "-c", "nginx.conf", "-e", "error.log"]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    deinit {
        process.terminate()
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: folder)  // it lies in the folder for temporary files
    }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    /// The pin of the server's key.
    var pin: String {
        let hash = (try? Data(contentsOf: folder.appendingPathComponent("server.sha"))) ?? Data()
        return "sha256//" + hash.base64EncodedString()
    }

    private var configuration: String {
        let tls = "ssl_certificate server.pem; ssl_certificate_key server.key; ssl_protocols"
        let answer = #"location / { return 200 "$server_protocol $ssl_protocol $ssl_client_s_dn"; }"#
        return """
            daemon off; worker_processes 1; pid nginx.pid;
            events { worker_connections 512; }
            http {
                access_log off; ssl_session_cache shared:s:1m;
                client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                server { listen 127.0.0.1:\(port) ssl http2; \(tls) TLSv1.2 TLSv1.3; \(answer) }
                server { listen 127.0.0.1:\(oldPort) ssl; \(tls) TLSv1.2; \(answer) }
                server {
                    listen 127.0.0.1:\(askingPort) ssl; \(tls) TLSv1.2 TLSv1.3; ssl_client_certificate ca.pem; ssl_verify_client on; \(answer)
                }
            }
            """
    }

    private static func run(_ program: String?, _ commands: String, in folder: URL, writing files: [String: String]) throws {
        for (name, text) in files { try text.write(to: folder.appendingPathComponent(name), atomically: true, encoding: .utf8) }
        for command in commands.split(separator: "\n") {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: program ?? "")
            process.arguments = command.split(separator: " ").map(String.init)
            process.currentDirectoryURL = folder
            process.standardError = FileHandle.nullDevice
            process.standardOutput = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            guard process.terminationStatus == 0 else { throw Failure(description: "openssl \(command) failed") }
        }
    }
}
