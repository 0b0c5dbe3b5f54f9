import Foundation

/// The measurements of one process.
struct Sample {
    let seconds: Double
    let processorSeconds: Double
    /// The largest resident memory.
    let kilobytes: Int
    let output: String

    struct Failure: Error { let status: Int32 }

    /// Runs this program as a child.
    static func child(_ arguments: String...) throws -> Sample {
        try measure(CommandLine.arguments[0], ["--child"] + arguments)
    }

    static func measure(_ program: String, _ arguments: [String]) throws -> Sample {
        let output = FileManager.default.temporaryDirectory.appendingPathComponent("transfer-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: output) }  // it is in the temporary folder
        let start = ContinuousClock.now
        let line = ([program] + arguments).map { "'\($0)'" }.joined(separator: " ") + " > '\(output.path)'"
        var process = pid_t()
        let command: [String] = ["/bin/sh", "-c", "exec \(line)"]
        var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        guard posix_spawn(&process, "/bin/sh", nil, nil, &words, environ) == 0 else { throw Failure(status: errno) }
        var (status, usage) = (Int32(0), rusage())
        wait4(process, &status, 0, &usage)
        guard status == 0 else { throw Failure(status: status) }
        let elapsed = start.duration(to: .now).components
        return Sample(
            seconds: Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18,
            processorSeconds: seconds(usage.ru_utime) + seconds(usage.ru_stime), kilobytes: usage.ru_maxrss,
            output: (try? String(contentsOf: output, encoding: .utf8)) ?? "")  // empty without output
    }

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
}
