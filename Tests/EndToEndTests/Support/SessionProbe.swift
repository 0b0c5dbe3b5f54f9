import Foundation
import TestSupport
import WebServiceMocking
import WebServiceServer

/// The executable `session-probe`, which runs code that may end its process.
enum SessionProbe {
    struct Run {
        /// The exit status, or the negative number of a signal.
        let status: Int32
        let output: String

        /// Whether the environment lacks what the probe needs.
        var isImpossible: Bool { status == 3 }
    }

    /// The path of the executable, which is in the folder of the test executable.
    static let path = programPath("session-probe")

    /// Runs the executable and waits for its end.
    ///
    /// - Parameters:
    ///   - arguments: The arguments of the executable.
    ///   - launcher: A command that runs the executable, such as `unshare`, with its arguments.
    ///   - environment: The whole environment, except for the variable that disables backtraces.
    static func run(
        _ arguments: [String], launcher: [String] = [], environment: [String: String] = [:]
    ) async throws -> Run {
        let command = launcher + [path] + arguments
        let output = Pipe()
        let process = ChildProcess(
            command[0], Array(command.dropFirst()),
            environment: environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { own, _ in own }, input: .null,
            output: .pipe(output), errors: .pipe(output))
        let (status, text) = try await process.finish(reading: output)
        return Run(status: status, output: text)
    }
}
