import Foundation

/// nginx on loopback, with answers of several lengths, in a folder that goes when it is stopped.
struct Nginx {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// The path of an answer and its length in bytes.
    static let answers = [(name: "empty", length: 2), (name: "1 KB", length: 1035), (name: "100 KB", length: 101_717)]

    let port: Int
    private let folder: URL
    private let process = Process()

    static var program: String? {
        ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx", "/opt/homebrew/bin/nginx"].first(where: FileManager.default.isExecutableFile)
    }

    init() throws {
        guard let program = Self.program else { throw Failure(description: "nginx is not installed") }
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("transport-bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for answer in Self.answers {
            try Data(repeating: UInt8(ascii: "x"), count: answer.length).write(to: folder.appendingPathComponent("\(answer.length)"))
        }
        // The folder of a temporary user folder may be closed to nginx's own user.
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
        port = try Self.freePort()
        try Self.configuration(port: port, folder: folder.path).write(
            to: folder.appendingPathComponent("nginx.conf"), atomically: true, encoding: .utf8)
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = ["-p", folder.path, "-c", "nginx.conf", "-e", "error.log"]
        process.standardError = FileHandle.nullDevice
        try process.run()
        let isListening = (0..<500).contains { _ in
            if Self.connects(to: port) { return true }
            poll(nil, 0, 10)
            return false
        }
        guard isListening else {
            // Where there is no log the port says enough.
            let log = try? String(contentsOf: folder.appendingPathComponent("error.log"), encoding: .utf8)
            throw Failure(description: "nginx does not listen on port \(port): \(log ?? "")")
        }
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: folder)  // what stays is in the folder for temporary files
    }

    var base: String { "http://127.0.0.1:\(port)" }

    private static func configuration(port: Int, folder: String) -> String {
        """
        \(getuid() == 0 ? "user root;" : "")
        daemon off;
        worker_processes 1;
        pid nginx.pid;
        events { worker_connections 4096; }
        http {
            access_log off;
            sendfile on;
            tcp_nopush off;
            keepalive_requests 100000000;
            open_file_cache max=16;
            default_type application/json;
            client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
            server { listen 127.0.0.1:\(port) backlog=4096; root \(folder); }
        }
        """
    }

    private static func freePort() throws -> Int {
        let descriptor = socket(AF_INET, streamType, 0)
        defer { close(descriptor) }
        var address = loopback(port: 0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0 }
        }
        guard isBound else { throw Failure(description: "there is no free port") }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    private static func connects(to port: Int) -> Bool {
        let descriptor = socket(AF_INET, streamType, 0)
        defer { close(descriptor) }
        var address = loopback(port: UInt16(port))
        return withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
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
