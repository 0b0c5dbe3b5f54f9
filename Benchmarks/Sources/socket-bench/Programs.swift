import Foundation

/// The echo server, a process of its own.
struct EchoServer {
    let port: Int
    private let process = Process()

    /// - Parameter program: The path of the compiled `Peers/echo-server.c`.
    init(_ program: String) throws {
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: program)
        process.standardOutput = output
        try process.run()
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        guard let port = Int(line.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            process.terminate()
            throw Failure(description: "the echo server does not listen")
        }
        self.port = port
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
    }
}

/// Runs a program that prints a value as JSON.
func value<Value: Decodable>(_ type: Value.Type, of program: String, _ arguments: [String]) throws -> Value {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.standardOutput = output
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw Failure(description: "\(program) \(arguments.joined(separator: " ")) has failed")
    }
    return try JSONDecoder().decode(type, from: data)
}

/// The path of this program.
var ownProgram: String {
    let path = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
    return FileManager.default.isExecutableFile(atPath: path) ? path : Bundle.main.executablePath ?? ""
}

func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    guard !sorted.isEmpty else { return 0 }
    let middle = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}
