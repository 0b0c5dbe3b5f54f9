import Foundation

/// nginx on loopback, with one sparse file.
struct FileServer {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    let folder: URL
    let url: String
    private let process = Process()

    init(size: Int) throws {
        guard
            let program = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx", "/opt/homebrew/bin/nginx"]
                .first(where: FileManager.default.isExecutableFile)
        else { throw Failure(description: "nginx is not installed") }
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("transfer-bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
        let file = folder.appendingPathComponent("file").path
        guard FileManager.default.createFile(atPath: file, contents: nil), truncate(file, off_t(size)) == 0 else {
            throw Failure(description: "the file of \(size) bytes cannot be created")
        }
        let port = Int.random(in: 20_000..<30_000)
        url = "http://127.0.0.1:\(port)/file"
        let configuration = """
            \(getuid() == 0 ? "user root;" : "")
            daemon off;
            worker_processes 1;
            pid nginx.pid;
            events { worker_connections 16384; }
            http {
                access_log off;
                sendfile on;
                client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
                uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                server { listen 127.0.0.1:\(port); root \(folder.path); }
            }
            """
        try configuration.write(
            to: folder.appendingPathComponent("nginx.conf"), atomically: true, encoding: .utf8)
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = ["-p", folder.path, "-c", "nginx.conf", "-e", "error.log"]
        process.standardError = FileHandle.nullDevice
        try process.run()
        poll(nil, 0, 500)
        guard process.isRunning else { throw Failure(description: "nginx does not run") }
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: folder)  // it is in the temporary folder
    }
}
