import Foundation

/// The result tables in Markdown.
struct Report {
    private(set) var text: String

    init(repetitions: Int, seconds: Double) {
        text = """
            # Transports over loopback

            Written by `./scripts/bench transport --write Benchmarks/RESULTS.md` on \(Self.date), with \(repetitions)
            interleaved repetitions of \(seconds) s each. Every client runs in a separate process against nginx
            with one worker on the same machine. Values are medians, and a ratio is the median of the ratios
            within each repetition. The machine is shared, so the ratios are more reliable than the absolute
            values.

            Machine: \(Self.machine)


            """
    }

    /// Adds a table with one line for each variant.
    ///
    /// - Parameter variants: The clients. Those over TLS are compared with libcurl, because the
    ///   others cannot be configured with the trusted certificates.
    ///
    /// - Returns: The table.
    mutating func add(_ title: String, _ variants: [String], _ samples: [[Sample]]) -> String {
        guard variants.contains(Variant.urlSession) else { return addSecure(title, variants, samples) }
        var table = "## \(title)\n\n"
        table +=
            "| client | requests/s | × URLSession | × AsyncHTTPClient "
            + "| CPU µs/request | × URLSession | × AsyncHTTPClient | peak MiB | threads |\n"
        table += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        let first = variants.firstIndex(of: Variant.urlSession)
        let second = variants.firstIndex(of: Variant.asyncHTTPClient)
        for (index, name) in variants.enumerated() {
            func ratio(_ base: Int?, _ value: (Sample) -> Double) -> String {
                base.map { base in
                    String(format: "%.2f", median(zip(samples[index], samples[base]).map { value($0) / value($1) }))
                } ?? ""
            }
            let own = samples[index]
            table += "| \(name) | \(Int(median(own.map(\.requestsPerSecond)))) "
            table += "| \(ratio(first, \.requestsPerSecond)) | \(ratio(second, \.requestsPerSecond)) "
            table += String(format: "| %.1f ", median(own.map(\.cpuPerRequest)))
            table += "| \(ratio(first, \.cpuPerRequest)) | \(ratio(second, \.cpuPerRequest)) "
            table += String(
                format: "| %.1f | %d |\n", median(own.map(\.peakMemory)), Int(median(own.map { Double($0.threads) })))
        }
        text += table + "\n"
        return table
    }

    private mutating func addSecure(_ title: String, _ variants: [String], _ samples: [[Sample]]) -> String {
        var table =
            "## \(title)\n\n| client | requests/s | × libcurl | CPU µs/request | × libcurl | peak MiB | threads |\n"
        table += "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        let floor = variants.firstIndex(of: Variant.libcurl).map { samples[$0] } ?? []
        for (name, own) in zip(variants, samples) {
            func ratio(_ value: (Sample) -> Double) -> String {
                String(format: "%.2f", median(zip(own, floor).map { value($0) / value($1) }))
            }
            table += "| \(name) | \(Int(median(own.map(\.requestsPerSecond)))) | \(ratio(\.requestsPerSecond)) "
            table += String(format: "| %.1f ", median(own.map(\.cpuPerRequest))) + "| \(ratio(\.cpuPerRequest)) "
            table += String(
                format: "| %.1f | %d |\n", median(own.map(\.peakMemory)), Int(median(own.map { Double($0.threads) })))
        }
        text += table + "\n"
        return table
    }

    private func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return 0 }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    private static var date: String { Date().formatted(Date.ISO8601FormatStyle().year().month().day()) }

    private static var machine: String {
        let cpu = shell("sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1")
        let parts = [
            "\(ProcessInfo.processInfo.activeProcessorCount) cores", cpu, shell("uname -sr"),
            shell("swift --version 2>/dev/null | sed -n 's/.*\\(Swift version [0-9.]*\\).*/\\1/p' | head -n 1"),
            "libcurl " + shell("pkg-config --modversion libcurl"), shell("nginx -v 2>&1 | sed 's/.*: //'"),
        ]
        return parts.filter { !$0.isEmpty }.joined(separator: ", ") + "."
    }

    private static func shell(_ command: String) -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", command]
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        // The part is then omitted from the line.
        guard (try? process.run()) != nil, let data = try? output.fileHandleForReading.readToEnd() else { return "" }
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
