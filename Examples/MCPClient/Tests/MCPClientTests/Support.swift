import Foundation
import Synchronization
import Testing
import WebServiceCore

@testable import MCPClient

/// Returns the larger amount if the variable WEBSERVICE_SOAK is 1.
func amount(_ short: Int, soak: Int) -> Int {
    ProcessInfo.processInfo.environment["WEBSERVICE_SOAK"] == "1" ? soak : short
}

/// The servers in `Tests/Servers`, which need the package `mcp` of PyPI.
enum Servers {
    /// The folder of the package; `nil` if it is not installed.
    static let packages = ProcessInfo.processInfo.environment["WEBSERVICE_MCP"]
    static let python = ProcessInfo.processInfo.environment["WEBSERVICE_PYTHON"] ?? "python3"
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Servers")
}

/// Runs work that blocks its thread, so that the threads of Swift tasks remain free.
func blocking<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try work() }) }
    }
}

/// Reads a line, and blocks until it is complete.
func readLine(from file: FileHandle) -> String {
    var line = Data()
    while let byte = try? file.read(upToCount: 1), byte != Data("\n".utf8), !byte.isEmpty { line += byte }
    return String(decoding: line, as: UTF8.self)
}

/// Held while the pipes of a process are created and it is started. Otherwise, a process that
/// another thread starts at the same time could inherit them, and keep them open until it ends.
private let start = Mutex(())

/// A process that prints the port that it listens on, and ends with its standard input.
final class Script: Sendable {
    let port: Int
    let process: Process
    private let input: Pipe
    private let output: FileHandle
    private let lines = Mutex(Data())

    /// Starts a script of the folder `Servers`, and blocks until it listens.
    init(_ name: String, log: URL, environment: [String: String] = [:]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [Servers.python, Servers.folder.appendingPathComponent("\(name).py").path]
        process.environment = ProcessInfo.processInfo.environment.merging([
            "PYTHONPATH": Servers.packages ?? "", "PYTHONDONTWRITEBYTECODE": "1", "MCP_LOG": log.path,
        ]) { $1 }.merging(environment) { $1 }
        process.standardError = FileHandle.nullDevice
        let (input, pipe) = try start.withLock { _ in
            let (input, pipe) = (Pipe(), Pipe())
            process.standardInput = input
            process.standardOutput = pipe
            try process.run()
            return (input, pipe)
        }
        (self.process, self.input) = (process, input)
        output = pipe.fileHandleForReading
        let line = readLine(from: output)
        port = try #require(Int(line.dropFirst("listening on ".count)), "\(name) does not start: '\(line)'")
    }

    var url: String { "http://127.0.0.1:\(port)/mcp" }

    /// Sends a command, and returns the response.
    @discardableResult
    func send(_ command: String) throws -> String {
        try lines.withLock { _ in
            try input.fileHandleForWriting.write(contentsOf: Data("\(command)\n".utf8))
            return readLine(from: output)
        }
    }

    func stop() {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}

/// The calls, effects and cancellations that the servers have logged.
struct ServerLog {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("mcp-\(UUID().uuidString).log")

    var lines: [String] {
        // There is no file before the first call.
        String(decoding: (try? Data(contentsOf: file)) ?? Data(), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Waits for a line, for at most 20 seconds.
    func wait(for line: String) async throws {
        for _ in 0..<2_000 where !lines.contains(line) { try await Task.sleep(for: .milliseconds(10)) }
        #expect(lines.contains(line))
    }

    func remove() { try? FileManager.default.removeItem(at: file) }  // the file of a test
}

/// What a client has received.
final class Received: Sendable {
    let notifications = Mutex<[String]>([])
    let progress = Mutex<[JSONValue]>([])

    func add(_ method: String, _ parameters: JSONValue) {
        if method == "notifications/progress" {
            progress.withLock { $0.append(parameters) }
        } else {
            notifications.withLock { $0.append(method) }
        }
    }
}

/// Creates a client in this process, and connects it.
///
/// - Parameter timeout: The timeout of the requests after the connection.
func connectedClient(
    to url: String, wait: Duration = .seconds(60), timeout: Duration = .seconds(60),
    pollInterval: Duration = .seconds(20), received: Received = Received()
) async throws -> Client {
    let service = try Program.service(for: #require(URL(string: url)), wait: wait)
    let transport = Transport(service, pollInterval: pollInterval) { received.add($0, $1) }
    try await Client(service, transport, timeout: .seconds(60)).connect()
    return Client(service, transport, timeout: timeout)
}

/// The built program, started as a process.
struct ProgramRun: Sendable {
    let status: Int32
    let output: String
    let errors: String

    /// Runs the program, and calls a closure with its process and standard error.
    ///
    /// - Parameter onTerminal: Whether the standard output and error are one terminal.
    static func run(
        _ arguments: [String], environment: [String: String] = [:], onTerminal: Bool = false,
        started: @Sendable (_ process: Process, _ errors: FileHandle) async throws -> Void = { _, _ in }
    ) async throws -> ProgramRun {
        let process = Process()
        process.executableURL = products.appendingPathComponent("mcp-client")
        process.arguments = arguments
        if onTerminal {
            let words = [products.appendingPathComponent("mcp-client").path] + arguments
            process.executableURL = URL(fileURLWithPath: "/usr/bin/script")
            process.arguments = ["-qec", words.map { "'\($0)'" }.joined(separator: " "), "/dev/null"]
        }
        process.environment = ProcessInfo.processInfo.environment.merging([
            "no_proxy": "127.0.0.1", "SWIFT_BACKTRACE": "enable=no",
        ]) { $1 }.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
        process.terminationHandler = { _ in continuation.finish() }
        let (output, errors) = try start.withLock { _ in
            let (output, errors) = (Pipe(), Pipe())
            process.standardOutput = output
            process.standardError = errors
            try process.run()
            return (output, errors)
        }
        do {
            try await started(process, errors.fileHandleForReading)
        } catch {
            process.terminate()  // otherwise the test would wait for it
            Issue.record(error)
        }
        for await _ in ends {}
        // The output of each run fits into the buffer of a pipe.
        return try await blocking {
            ProgramRun(
                status: process.terminationStatus,
                output: String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self),
                errors: String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self))
        }
    }

    /// The folder of the built products.
    private static var products: URL {
        let tests = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }
        return tests?.bundleURL.deletingLastPathComponent() ?? Bundle.main.bundleURL
    }
}
