import Foundation

/// What one process with one client measured of itself.
struct Sample: Codable, Sendable {
    var requestsPerSecond: Double
    /// User and system time for one request, in microseconds.
    var cpuPerRequest: Double
    /// The most memory that was resident, in MiB.
    var peakMemory: Double
    var threads: Int

    /// Warms the client up and measures it.
    static func measure(_ variant: Variant, _ load: Load) async throws -> Sample {
        var warmUp = load
        warmUp.seconds = load.seconds / 5
        _ = try await variant.run(warmUp)
        let cpu = cpuSeconds()
        let start = ContinuousClock.now
        let answers = try await variant.run(load)
        let elapsed = start.duration(to: .now) / .seconds(1)
        return Sample(
            requestsPerSecond: Double(answers) / elapsed,
            cpuPerRequest: (cpuSeconds() - cpu) / Double(max(1, answers)) * 1e6,
            peakMemory: status("VmHWM:") / 1024, threads: Int(status("Threads:"))
        )
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

    /// A number that the kernel tells of this process.
    private static func status(_ name: String) -> Double {
        // On other systems it is 0.
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
        return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) } ?? 0
    }
}
