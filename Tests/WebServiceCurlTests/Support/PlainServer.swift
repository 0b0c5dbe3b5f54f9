import Foundation
import TestSupport
import WebServiceMocking
import WebServiceServer

/// nginx without TLS, on loopback and on a Unix domain socket.
///
/// Responds with the protocol, the `Host` field and the number of the connection. `/gone` closes the
/// connection without a response. `/backend` is sent to another server.
///
/// @unchecked: all state is set before the instance is shared.
final class PlainServer: @unchecked Sendable {
    struct Failure: Error, CustomStringConvertible { let description: String }

    private let folder: URL
    /// The port for HTTP/2 without TLS. It supports no other version.
    private(set) var port = 0
    private var process: ChildProcess?

    /// The path of the Unix domain socket, for HTTP/1.1.
    var socket: String { folder.appendingPathComponent("socket").path }

    /// - Parameter backend: The URL of the server that responds below `/backend`.
    init(backend: String = "http://127.0.0.1:9") throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("plain-server-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for _ in 0..<100 where try start(backend) { return }
        let file = folder.appendingPathComponent("error.log").path
        let log = (try? String(contentsOfFile: file, encoding: .utf8)) ?? "nothing"
        throw Failure(description: "nginx does not start; its log: \(log)")
    }

    deinit {
        if let process {
            process.send(SIGTERM)
            process.waitUntilExit()
        }
        try? FileManager.default.removeItem(at: folder)  // it is in the temporary folder
    }

    /// - Returns: Whether the server listens. It does not if another process took the port before
    ///   nginx did.
    private func start(_ backend: String) throws -> Bool {
        // Below the ports that the system assigns automatically.
        guard let free = try? LoopbackListener(port: .random(in: 12_000..<32_000)).port else { return false }
        port = free
        let locations = """
            location / { return 200 "$server_protocol $http_host $connection"; }
            location /gone { return 444; }
            location /backend { proxy_pass \(backend); proxy_http_version 1.1; proxy_request_buffering off; }
            """
        try """
        daemon off; worker_processes 1; pid nginx.pid;
        events { worker_connections 512; }
        http {
            access_log off; client_max_body_size 64m;
            client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
            server { listen 127.0.0.1:\(port) http2; \(locations) }
            server { listen unix:\(socket); \(locations) }
        }
        """.write(to: folder.appendingPathComponent("nginx.conf"), atomically: true, encoding: .utf8)
        let process = ChildProcess(
            SecureServer.nginx ?? "", ["-p", folder.path, "-c", "nginx.conf", "-e", "error.log"], output: .null,
            errors: .null)
        self.process = process
        try process.run()
        // nginx writes this file after it has opened its sockets.
        let pid = folder.appendingPathComponent("nginx.pid").path
        while process.isRunning, !FileManager.default.fileExists(atPath: pid) { sched_yield() }
        return process.isRunning
    }
}
