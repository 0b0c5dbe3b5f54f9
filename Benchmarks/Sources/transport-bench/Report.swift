import Foundation

/// The result tables in Markdown.
struct Report {
    /// The results of one client.
    struct Row {
        var variant: Variant
        var samples: [Sample] = []
        var allocations: Allocations?
    }

    private let introduction: String
    private var tables = ""
    /// The medians of the ratios of each client to each peer, by groups of tables.
    private var ratios: [(group: String, client: String, peer: String, requests: Double, cpu: Double)] = []

    init(repetitions: Int, seconds: Double) {
        introduction = """
            # Transports over loopback

            The command `./scripts/bench transport --write Benchmarks/RESULTS.md` wrote this page on \(Self.date),
            with \(repetitions) interleaved repetitions of \(seconds) s each. Each client runs in a separate
            process and sends its requests to nginx with one worker on the same machine. The values are medians. A ratio is the median
            of the ratios in the individual repetitions. In each cell with two ratios, the first compares the
            requests per second, and the second compares the processor time per request. The machine is shared,
            so the ratios are more reliable than the absolute values.

            The columns "allocations" and "KiB allocated" contain the calls of `malloc` and similar functions
            per request, and the memory that these calls request. They are measured in a separate process, and
            include the allocations of the benchmark itself. The cells of Go are empty, because Go does not use
            `malloc`. The tables for HTTPS do not contain URLSession, because it cannot be configured with the
            trusted certificates. AsyncHTTPClient does not resume TLS sessions.

            Machine: \(Self.machine)


            """
    }

    /// Adds a table with one line for each client, and returns it.
    mutating func add(_ table: Table, _ rows: [Row]) -> String {
        let peers = Variant.peers.compactMap { name in rows.first { $0.variant.name == name } }
        var text = "## \(table.title)\n\n| client | requests/s | CPU µs/request "
        text += peers.map { "| × \($0.variant.shortName) " }.joined()
        text += "| allocations | KiB allocated | peak MiB | threads |\n|"
        text += " --- |" + String(repeating: " ---: |", count: peers.count + 6) + "\n"
        for row in rows {
            let (name, samples) = (row.variant.name, row.samples)
            text += "| \(name) | \(Int(median(samples.map(\.requestsPerSecond)))) "
            text += String(format: "| %.1f ", median(samples.map(\.cpuPerRequest)))
            for peer in peers {
                func ratio(_ value: (Sample) -> Double) -> Double {
                    median(zip(samples, peer.samples).map { value($0) / value($1) })
                }
                let (requests, cpu) = (ratio(\.requestsPerSecond), ratio(\.cpuPerRequest))
                ratios.append((table.group, name, peer.variant.shortName, requests, cpu))
                text += String(format: "| %.2f; %.2f ", requests, cpu)
            }
            text +=
                row.allocations.map {
                    String(format: "| %.1f | %.1f ", $0.perRequest, $0.bytesPerRequest / 1024)
                } ?? "| | "
            text += String(format: "| %.1f ", median(samples.map(\.peakMemory)))
            text += "| \(Int(median(samples.map { Double($0.threads) }))) |\n"
        }
        tables += text + "\n"
        return text
    }

    /// The ranges of the ratios over all tables of a group, as one table.
    var ranges: String {
        let peers = Variant.peers.map(Variant.shortName)
        var text = "## Ranges of the ratios over all tables\n\n| tables | client "
        text += peers.map { "| × \($0) " }.joined() + "|\n| --- | --- |"
        text += String(repeating: " ---: |", count: peers.count) + "\n"
        for group in unique(ratios.map(\.group)) {
            let ratios = ratios.filter { $0.group == group && $0.client.contains("CurlSession") }
            for client in unique(ratios.map(\.client)) {
                text += "| \(group) | \(client) "
                for peer in peers {
                    let cells = ratios.filter { $0.client == client && $0.peer == peer }
                    text += "| \(range(cells.map(\.requests)))\(cells.isEmpty ? "" : "; ")\(range(cells.map(\.cpu))) "
                }
                text += "|\n"
            }
        }
        return text
    }

    /// Replaces the part of a file about transports. Other benchmarks follow, each after a heading
    /// of the first level.
    func write(to path: String) throws {
        let former = FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
        let others = former.range(of: "\n# ").map { former[$0.lowerBound...] } ?? ""
        try (introduction + ranges + "\n" + tables.dropLast() + others).write(
            toFile: path, atomically: true, encoding: .utf8)
    }

    private func range(_ values: [Double]) -> String {
        guard let least = values.min(), let most = values.max() else { return "" }
        return String(format: "%.2f–%.2f", least, most)
    }

    private func unique(_ names: [String]) -> [String] {
        names.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
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
            shell("go version 2>/dev/null | cut -d' ' -f3"),
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
