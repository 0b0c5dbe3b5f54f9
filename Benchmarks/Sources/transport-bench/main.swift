// Measures transports over loopback against nginx: requests per second, processor time, memory and
// threads. Every client runs in a separate process, in turn and repeatedly, so that changes in the
// speed of the machine affect all of them equally. Ratios are computed within one repetition.
//
//   transport-bench [--repetitions N] [--seconds S] [--only PREFIX] [--in-flight N] [--answer NAME]
//   [--endpoint PREFIX]
//                   [--quick] [--write FILE]

import Foundation

let arguments = CommandLine.arguments

func option(_ name: String) -> String? {
    arguments.firstIndex(of: name).flatMap { arguments.dropFirst($0 + 1).first }
}

// The process that takes one sample.
if let name = option("--sample"), let variant = Variant.all.first(where: { $0.name == name }),
    let base = option("--base"),
    let path = option("--path")
{
    let load = Load(
        base: base, path: path, inFlight: Int(option("--in-flight") ?? "") ?? 1,
        seconds: Double(option("--seconds") ?? "") ?? 1,
        length: Int(option("--length") ?? "") ?? 0, trusted: option("--trusted"), isHTTP2: arguments.contains("--http2")
    )
    do {
        let sample = try await Sample.measure(variant, load)
        FileHandle.standardOutput.write(try JSONEncoder().encode(sample))
        exit(0)
    } catch {
        FileHandle.standardError.write(Data("\(name): \(error)\n".utf8))
        exit(1)
    }
}

let quick = arguments.contains("--quick")
let repetitions = option("--repetitions").flatMap { Int($0) } ?? (quick ? 1 : 5)
let seconds = option("--seconds").flatMap { Double($0) } ?? (quick ? 0.3 : 1)
let variants = Variant.all.filter { variant in
    option("--only").map {
        variant.name.hasPrefix($0) || variant.name == Variant.urlSession || variant.name == Variant.asyncHTTPClient
    } ?? true
}
let answers = Nginx.answers.filter { answer in option("--answer").map { $0 == answer.name } ?? true }
let loads = [1, 16, 64].filter { load in option("--in-flight").map { $0 == "\(load)" } ?? true }

func sample(_ variant: Variant, _ nginx: Nginx, _ endpoint: Int, _ inFlight: Int, _ length: Int) throws -> Sample {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    if !FileManager.default.isExecutableFile(atPath: process.executableURL?.path ?? "") {
        process.executableURL = Bundle.main.executableURL
    }
    process.arguments = [
        "--sample", variant.name, "--base", nginx.base(endpoint), "--path", "/\(length)", "--in-flight", "\(inFlight)",
        "--seconds", "\(seconds)",
        "--length",
        "\(length)",
    ]
    if Nginx.endpoints[endpoint].isSecure { process.arguments? += ["--trusted", nginx.trusted] }
    if Nginx.endpoints[endpoint].isHTTP2 { process.arguments? += ["--http2"] }
    process.standardOutput = output
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Nginx.Failure(description: "\(variant.name) failed") }
    return try JSONDecoder().decode(Sample.self, from: data)
}

do {
    let nginx = try Nginx()
    defer { nginx.stop() }
    signal(SIGINT, SIG_IGN)
    let interrupt = DispatchSource.makeSignalSource(signal: SIGINT)
    interrupt.setEventHandler {
        nginx.stop()
        exit(130)
    }
    interrupt.resume()
    var report = Report(repetitions: repetitions, seconds: seconds)
    for (index, endpoint) in Nginx.endpoints.enumerated() where endpoint.name.hasPrefix(option("--endpoint") ?? "") {
        let variants = variants.filter { !endpoint.isSecure || $0.isSecure }
        // The cost of TLS does not depend on the body. Concurrent streams on a connection that
        // closes after one response interfere with each other.
        for answer in answers where !endpoint.isSecure || answer.name == "1 KB" {
            for inFlight in loads
            where !endpoint.isSecure || inFlight == 1 || inFlight == 16 && !(endpoint.isHTTP2 && endpoint.closes) {
                var samples = variants.map { _ in [Sample]() }
                for _ in 0..<repetitions {
                    for (number, variant) in variants.enumerated() {
                        samples[number].append(try sample(variant, nginx, index, inFlight, answer.length))
                    }
                }
                let start = endpoint.isSecure ? endpoint.name + ", " : ""
                print(report.add("\(start)\(answer.name), \(inFlight) in flight", variants.map(\.name), samples))
                // A run that is ended later has written what it measured.
                if let file = option("--write") {
                    try report.text.write(toFile: file, atomically: true, encoding: .utf8)
                }
            }
        }
    }
} catch {
    FileHandle.standardError.write(Data("transport-bench: \(error)\n".utf8))
    exit(1)
}
