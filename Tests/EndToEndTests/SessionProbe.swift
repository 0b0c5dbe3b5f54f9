import Foundation

/// The executable `session-probe`, which runs code that may end its process.
enum SessionProbe {
    struct Run {
        let reason: Process.TerminationReason
        let status: Int32
        let output: String

        /// A Boolean value that indicates whether the environment lacks what the probe needs.
        var isImpossible: Bool { reason == .exit && status == 3 }
    }

    /// Runs the executable and waits for its end.
    ///
    /// - Parameters:
    ///   - arguments: The arguments of the executable.
    ///   - launcher: A command that runs the executable, such as `unshare`, with its arguments.
    ///   - environment: The whole environment, except for the variable that disables backtraces.
    static func run(
        _ arguments: [String], launcher: [String] = [], environment: [String: String] = [:]
    ) async throws -> Run {
        let probe = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(
            "session-probe")
        let command = launcher + [probe.path] + arguments
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        process.environment = environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { own, _ in own }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                do {
                    try process.run()
                    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
                    process.waitUntilExit()
                    continuation.resume(
                        returning: Run(
                            reason: process.terminationReason, status: process.terminationStatus, output: text))
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }
}
