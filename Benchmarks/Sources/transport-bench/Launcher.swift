import Foundation

/// Starts the processes that take samples.
struct Launcher {
    var nginx: Nginx
    var seconds: Double
    /// The path of the library that counts allocations; `nil` if they are not counted.
    var counter: String?

    func sample(_ variant: Variant, _ table: Table) throws -> Sample {
        try JSONDecoder().decode(Sample.self, from: run(variant, table))
    }

    /// Returns the allocations of a client; `nil` for a program that does not use malloc.
    func allocations(_ variant: Variant, _ table: Table) throws -> Allocations? {
        guard let counter, variant.program == nil else { return nil }
        let output = try run(variant, table, ["--count"], ["LD_PRELOAD": counter])
        return try JSONDecoder().decode(Allocations.self, from: output)
    }

    private func run(
        _ variant: Variant, _ table: Table, _ options: [String] = [], _ environment: [String: String] = [:]
    ) throws -> Data {
        var command = [
            variant.program ?? ProcessInfo.processInfo.arguments[0],
            "--base", nginx.base(table.endpoint), "--path", "/\(table.answer.length)",
            "--length", "\(table.answer.length)", "--in-flight", "\(table.inFlight)", "--seconds", "\(seconds)",
        ]
        if variant.program == nil { command += ["--sample", variant.name] + options }
        if table.endpoint.isSecure { command += ["--trusted", nginx.trusted] }
        if table.endpoint.isHTTP2 { command += ["--http2"] }
        if table.isOnOneCore { command = ["taskset", "--cpu-list", "0"] + command }
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = environment.map { "\($0)=\($1)" } + command
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Nginx.Failure(description: "\(variant.name) failed") }
        return data
    }
}
