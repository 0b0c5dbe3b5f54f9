import Dispatch
import Foundation
import Testing

/// The program `todo`, started as a process with a separate folder.
struct TodoProcess {
    struct Run: Sendable {
        let status: Int32
        let output: String
        let errors: String

        var lines: [String] { output.split(separator: "\n").map(String.init) }
        /// The identifiers and texts of a list, such as `[x] Tap`.
        var todos: [(id: String, text: String)] { lines.map { (String($0.prefix(36)), String($0.dropFirst(38))) } }
    }

    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("todo-\(UUID().uuidString)")

    /// Runs a command.
    ///
    /// - Parameters:
    ///   - delay: The duration after which the process is killed; `nil` to let it end.
    ///   - started: Receives the identifier of the process.
    @discardableResult
    func run(
        _ arguments: String..., password: String? = nil, killedAfter delay: Duration? = nil,
        started: @escaping @Sendable (_ process: pid_t) -> Void = { _ in }
    ) async throws -> Run {
        try await run(arguments, password: password, killedAfter: delay, started: started)
    }

    @discardableResult
    func run(
        _ arguments: [String], password: String? = nil, killedAfter delay: Duration? = nil,
        started: @escaping @Sendable (_ process: pid_t) -> Void = { _ in }
    ) async throws -> Run {
        let folder = folder
        return try await withCheckedThrowingContinuation { continuation in
            // The exploration beside these tests needs the threads of the queues.
            Thread.detachNewThread {
                continuation.resume(with: Result { try Self.run(arguments, folder, password, delay, started) })
            }
        }
    }

    private static func run(
        _ arguments: [String], _ folder: URL, _ password: String?, _ delay: Duration?, _ started: (pid_t) -> Void
    ) throws -> Run {
        let process = Process()
        process.executableURL = products.appendingPathComponent("todo")
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging([
            "TODO_FOLDER": folder.path, "TODO_PASSWORD": password ?? "", "no_proxy": "127.0.0.1",
            "SWIFT_BACKTRACE": "enable=no",
        ]) { $1 }
        let (output, errors) = (Pipe(), Pipe())
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let id = process.processIdentifier
        started(id)
        if let delay {
            let microseconds = Int(delay / .microseconds(1))
            DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(microseconds)) {
                if process.isRunning { kill(id, SIGKILL) }
            }
        }
        let printed = output.fileHandleForReading.readDataToEndOfFile()
        let complaints = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Run(
            status: process.terminationStatus, output: String(decoding: printed, as: UTF8.self),
            errors: String(decoding: complaints, as: UTF8.self))
    }

    /// The folder of the built products.
    private static var products: URL {
        let tests = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }
        return tests?.bundleURL.deletingLastPathComponent() ?? Bundle.main.bundleURL
    }

    func remove() {
        try? FileManager.default.removeItem(at: folder)  // the files of a test
    }

    /// The paths of all files, and of those that contain one of several strings.
    func files(containing strings: [String]) throws -> (all: [String], matching: [String]) {
        let all = try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
        let matching = try all.filter { path in
            let url = folder.appendingPathComponent(path)
            guard try url.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else { return false }
            let data = try Data(contentsOf: url)
            return strings.contains { data.range(of: Data($0.utf8)) != nil }
        }
        return (all, matching)
    }
}
