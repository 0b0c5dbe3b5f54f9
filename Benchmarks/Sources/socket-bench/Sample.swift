import Foundation

/// The measurements of one process with one client.
struct Sample: Codable, Sendable {
    var messagesPerSecond: Double
    /// User and system time per message, in microseconds.
    var cpuPerMessage: Double
    /// The peak of the resident memory, in MiB.
    var peakMemory: Double
    var threads: Int

    /// Warms up the client and measures it.
    static func measure(_ client: Client, _ load: Load) async throws -> Sample {
        var warmUp = load
        warmUp.seconds = load.seconds / 5
        _ = try await client.run(warmUp)
        let cpu = cpuSeconds()
        let start = ContinuousClock.now
        let messages = try await client.run(load)
        let elapsed = start.duration(to: .now) / .seconds(1)
        return Sample(
            messagesPerSecond: Double(messages) / elapsed,
            cpuPerMessage: (cpuSeconds() - cpu) / Double(max(1, messages)) * 1e6,
            peakMemory: status("VmHWM:") / 1024, threads: Int(status("Threads:")))
    }

    private static func cpuSeconds() -> Double {
        var usage = rusage()
        #if canImport(Glibc)
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        #else
        getrusage(RUSAGE_SELF, &usage)
        #endif
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    /// Returns a number that the kernel reports for this process.
    static func status(_ name: String) -> Double {
        // It is 0 on other systems.
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
        return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) } ?? 0
    }
}

/// The load on a client.
struct Load: Sendable {
    var port: Int
    /// The size of the messages, in bytes.
    var length: Int
    var inFlight: Int
    var seconds: Double

    var message: Data { Data(repeating: UInt8(ascii: "x"), count: length) }
}

struct Failure: Error, CustomStringConvertible {
    let description: String
}
