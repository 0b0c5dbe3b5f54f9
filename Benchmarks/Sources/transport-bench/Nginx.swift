import Foundation

/// nginx on loopback, with responses of several lengths, in a folder that is removed when it stops.
struct Nginx {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The path of a response and its length in bytes.
    static let answers = [(name: "empty", length: 2), (name: "1 KB", length: 1035), (name: "100 KB", length: 101_717)]

    /// A port with its protocol and the lifetime of its connections.
    struct Endpoint: Sendable {
        let name: String
        let isSecure: Bool
        var isHTTP2 = false
        /// Whether the server closes every connection after one response.
        var closes = false
        /// Whether a new TLS connection can resume an earlier session (RFC 8446, section 2.2).
        var resumes = true
    }

    static let endpoints = [
        Endpoint(name: "HTTP", isSecure: false),
        Endpoint(name: "HTTPS, HTTP/1.1", isSecure: true),
        Endpoint(name: "HTTPS, HTTP/2", isSecure: true, isHTTP2: true),
        Endpoint(name: "HTTPS, HTTP/1.1, new connections", isSecure: true, closes: true, resumes: false),
        Endpoint(name: "HTTPS, HTTP/1.1, new connections with resumption", isSecure: true, closes: true),
        Endpoint(name: "HTTPS, HTTP/2, new connections", isSecure: true, isHTTP2: true, closes: true, resumes: false),
        Endpoint(name: "HTTPS, HTTP/2, new connections with resumption", isSecure: true, isHTTP2: true, closes: true),
    ]

    private let ports: [Int]
    private let folder: URL
    private let process = Process()

    static var program: String? {
        ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx", "/opt/homebrew/bin/nginx"].first(
            where: FileManager.default.isExecutableFile)
    }

    init() throws {
        guard let program = Self.program else { throw Failure(description: "nginx is not installed") }
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("transport-bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for answer in Self.answers {
            try Data(repeating: UInt8(ascii: "x"), count: answer.length).write(
                to: folder.appendingPathComponent("\(answer.length)"))
        }
        // The user of the nginx workers may have no access to the temporary folder of this user.
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
        try Self.makeCertificates(in: folder)
        ports = try Self.freePorts(Self.endpoints.count)
        try Self.configuration(ports: ports, folder: folder.path).write(
            to: folder.appendingPathComponent("nginx.conf"), atomically: true, encoding: .utf8)
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = ["-p", folder.path, "-c", "nginx.conf", "-e", "error.log"]
        process.standardError = FileHandle.nullDevice
        try process.run()
        let isListening = (0..<500).contains { _ in
            if ports.allSatisfy(Self.connects) { return true }
            poll(nil, 0, 10)
            return false
        }
        guard isListening else {
            // Without a log, the ports are sufficient.
            let log = try? String(contentsOf: folder.appendingPathComponent("error.log"), encoding: .utf8)
            throw Failure(description: "nginx does not listen on the ports \(ports): \(log ?? "")")
        }
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: folder)  // it is in the temporary folder
    }

    func base(_ endpoint: Endpoint) -> String {
        let port = zip(Self.endpoints, ports).first { $0.0.name == endpoint.name }?.1 ?? 0
        return endpoint.isSecure ? "https://localhost:\(port)" : "http://127.0.0.1:\(port)"
    }

    /// The certificates of the system and the authority of the server, so that the cost of parsing
    /// is that of the system's certificates.
    var trusted: String { folder.appendingPathComponent("trusted.pem").path }

    private static func makeCertificates(in folder: URL) throws {
        for command in [
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=benchmark -keyout ca.key -out ca.pem",
            "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr",
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names.txt "
                + "-out server.pem",
        ] {
            try Data("subjectAltName=DNS:localhost\n".utf8).write(to: folder.appendingPathComponent("names.txt"))
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = ["openssl"] + command.split(separator: " ").map(String.init)
            process.currentDirectoryURL = folder
            process.standardError = FileHandle.nullDevice
            process.standardOutput = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            guard process.terminationStatus == 0 else { throw Failure(description: "openssl \(command) failed") }
        }
        let bundles = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"]
        let system = bundles.lazy.compactMap { FileManager.default.contents(atPath: $0) }.first ?? Data()
        let own = try Data(contentsOf: folder.appendingPathComponent("ca.pem"))
        try (system + own).write(to: folder.appendingPathComponent("trusted.pem"))
    }

    private static func configuration(ports: [Int], folder: String) -> String {
        let servers = zip(endpoints, ports).map { endpoint, port in
            var lines =
                "listen 127.0.0.1:\(port)\(endpoint.isSecure ? " ssl" : "")\(endpoint.isHTTP2 ? " http2" : "") "
                + "backlog=4096; root \(folder);"
            if endpoint.isSecure {
                lines += " ssl_certificate server.pem; ssl_certificate_key server.key; ssl_protocols TLSv1.3;"
            }
            if endpoint.isSecure, !endpoint.resumes { lines += " ssl_session_cache off; ssl_session_tickets off;" }
            return "server { \(lines) keepalive_requests \(endpoint.closes ? 1 : 100_000_000); }"
        }
        return """
            \(getuid() == 0 ? "user root;" : "")
            daemon off;
            worker_processes 1;
            pid nginx.pid;
            events { worker_connections 4096; }
            http {
                access_log off;
                sendfile on;
                tcp_nopush off;
                open_file_cache max=16;
                default_type application/json;
                client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
                uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                \(servers.joined(separator: "\n            "))
            }
            """
    }

    private static func freePorts(_ count: Int) throws -> [Int] {
        var ports: [Int] = []
        while ports.count < count {
            let port = try freePort()
            if !ports.contains(port) { ports.append(port) }
        }
        return ports
    }

    private static func freePort() throws -> Int {
        let descriptor = socket(AF_INET, streamType, 0)
        defer { close(descriptor) }
        var address = loopback(port: 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
            }
        }
        guard isBound else { throw Failure(description: "no port is free") }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    private static func connects(to port: Int) -> Bool {
        let descriptor = socket(AF_INET, streamType, 0)
        defer { close(descriptor) }
        var address = loopback(port: UInt16(port))
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    private static func loopback(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        return address
    }

    #if canImport(Glibc)
    private static let streamType = Int32(SOCK_STREAM.rawValue)
    #else
    private static let streamType = SOCK_STREAM
    #endif
}
