import Foundation
import TestSupport
import WebServiceMocking
import WebServiceServer

/// hypercorn on loopback, until the end of the test: HTTP/3 over UDP, and HTTP/2 and HTTP/1.1 on the
/// TCP port with the same number.
///
/// `scripts/test-libcurl` installs it if the libcurl under test supports HTTP/3. `http3-server.py`
/// describes the responses.
final class HTTP3Server: Sendable {
    /// The folder of hypercorn's modules; `nil` if it is not installed.
    static let modules = ProcessInfo.processInfo.environment["WEBSERVICE_HYPERCORN"]

    let port: Int
    private let process: ChildProcess
    private let input = Pipe()

    /// - Parameters:
    ///   - identity: The server whose certificate and key are used.
    ///   - port: The port; 0 lets the system select one.
    ///   - protocols: The protocols to listen for: `udp`, `tcp` or `udp,tcp`. With TCP, HTTP/2 is
    ///     used if the machine is so busy that its connection is established first.
    init(_ identity: SecureServer, port: Int = 0, protocols: String = "udp") async throws {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
            "http3-server.py")
        var environment = ProcessInfo.processInfo.environment
        environment["PYTHONPATH"] = Self.modules
        let output = Pipe()
        let process = ChildProcess(
            "/usr/bin/env",
            ["python3", script.path, identity.path("server.pem"), identity.path("server.key"), "\(port)", protocols],
            environment: environment, input: .pipe(input), output: .pipe(output), errors: .null)
        self.process = process
        let line = try await blocking {
            try process.run()
            var line = Data()
            while line.last != 0x0A, let byte = try output.fileHandleForReading.read(upToCount: 1) { line += byte }
            return String(decoding: line.dropLast(), as: UTF8.self)
        }
        guard let port = Int(line) else { throw SecureServer.Failure(description: "hypercorn does not start") }
        self.port = port
        Permit.atEnd { self.kill() }
    }

    /// Kills the process, which does not close its connections.
    func kill() {
        process.send(SIGKILL)
        process.waitUntilExit()
    }
}
