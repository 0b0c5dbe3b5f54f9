import Foundation

/// The output and the environment of a command. Tests collect the output.
struct Console: Sendable {
    /// Prints a line of the result.
    var print: @Sendable (_ line: String) -> Void
    /// Prints a line on standard error.
    var complain: @Sendable (_ line: String) -> Void
    /// Shows the state of work in progress on a terminal; `nil` removes it.
    var status: @Sendable (_ text: String?) -> Void
    var environment: [String: String]

    static let standard: Console = {
        let write = { @Sendable (text: String, file: FileHandle) in
            try? file.write(contentsOf: Data(text.utf8))  // a reader such as head(1) may have left
        }
        let isTerminal = isatty(STDERR_FILENO) == 1
        return Console(
            print: { write("\($0)\n", .standardOutput) },
            complain: { write("\($0)\n", .standardError) },
            status: { text in
                if isTerminal { write("\r\(text ?? "")\u{1B}[K", .standardError) }
            },
            environment: ProcessInfo.processInfo.environment)
    }()
}
