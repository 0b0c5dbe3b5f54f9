import Foundation
import TestSupport
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// `openssl s_server` on loopback, whose connection is its standard input and output.
///
/// The input is sent, except a command at its beginning: `k` or `K` updates the keys of TLS 1.3, and
/// `r` or `R` renegotiates TLS 1.2. A command discards the input that the server reads with it.
final class OpenSSLServer: Sendable {
    let port: Int
    private let process: ChildProcess
    private let input = Pipe()
    private let output = Pipe()
    private let text = Box("")

    /// - Parameter folder: The folder with `server.pem` and `server.key`.
    init(_ folder: URL, _ options: [String]) throws {
        // Below the ports that the system assigns automatically.
        let ports = (0..<100).lazy.compactMap { _ in try? LoopbackListener(port: .random(in: 12_000..<32_000)).port }
        guard let port = ports.first else { throw SecureServer.Failure(description: "no port is available") }
        self.port = port
        process = ChildProcess(
            SecureServer.openssl ?? "",
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", folder.appendingPathComponent("server.pem").path,
                "-key", folder.appendingPathComponent("server.key").path,
            ] + options, input: .pipe(input), output: .pipe(output), errors: .null)
        try process.run()
        Thread.detachNewThread { [output, text] in
            while case let bytes = output.fileHandleForReading.availableData, !bytes.isEmpty {
                text.change { $0 += String(decoding: bytes, as: UTF8.self) }
            }
        }
    }

    deinit {
        process.send(SIGKILL)
        process.waitUntilExit()
    }

    /// What the server has received and reported.
    var received: String { text.value }

    /// Whether the server has read its input.
    var hasReadInput: Bool {
        var count: Int32 = 0
        return ioctl(input.fileHandleForWriting.fileDescriptor, UInt(FIONREAD), &count) == 0 && count == 0
    }

    func write(_ line: String) throws { try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8)) }

    func send(_ signal: Int32) { process.send(signal) }
}
