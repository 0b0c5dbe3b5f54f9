// Measures WebSocket clients over loopback against an echo server over libwebsockets: messages per
// second, processor time and memory. Every client runs in a separate process, in turn and
// repeatedly, so that changes in the speed of the machine affect all of them equally. Ratios are
// computed within one repetition.
//
//   socket-bench --server PROGRAM --websockets SCRIPT [--quick] [--repetitions N] [--seconds S]
//                [--length BYTES] [--in-flight N]
//   socket-bench --server PROGRAM --idle CONNECTIONS [--repetitions N]
//
// The server is Peers/echo-server.c, and the script Peers/websockets-client.py. The second form
// measures the memory of open connections beside that of libcurl's handles.

import Foundation

let arguments = CommandLine.arguments

func option(_ name: String) -> String? {
    arguments.firstIndex(of: name).flatMap { arguments.dropFirst($0 + 1).first }
}

func number(_ name: String) -> Int? { option(name).flatMap { Int($0) } }

let quick = arguments.contains("--quick")
let repetitions = number("--repetitions") ?? (quick ? 1 : 5)
let seconds = option("--seconds").flatMap { Double($0) } ?? (quick ? 0.3 : 1)

/// Prints a value as JSON, for the process that starts this one.
func write(_ value: some Encodable) throws {
    FileHandle.standardOutput.write(try JSONEncoder().encode(value))
}

func compare(_ server: EchoServer, _ script: String) throws {
    let names = [Client.own, Client.websockets, Client.nio]
    for length in [64, 1 << 10, 64 << 10] where number("--length") ?? length == length {
        for inFlight in [1, 16] where number("--in-flight") ?? inFlight == inFlight {
            var samples = names.map { _ in [Sample]() }
            for _ in 0..<repetitions {
                for (index, name) in names.enumerated() {
                    let sample =
                        name == Client.websockets
                        ? try value(
                            Sample.self, of: "/usr/bin/python3",
                            [script, "ws://127.0.0.1:\(server.port)/", "\(length)", "\(inFlight)", "\(seconds)"])
                        : try value(
                            Sample.self, of: ownProgram,
                            [
                                "--sample", name, "--port", "\(server.port)", "--length", "\(length)", "--in-flight",
                                "\(inFlight)", "--seconds", "\(seconds)",
                            ])
                    samples[index].append(sample)
                }
            }
            let size = length < 1 << 10 ? "\(length) bytes" : "\(length >> 10) KB"
            print("## \(size), \(inFlight) in flight\n\n\(table(names, samples))")
        }
    }
}

func table(_ names: [String], _ samples: [[Sample]]) -> String {
    var table = "| client | messages/s | × websockets | × swift-nio | CPU µs/message | × websockets | × swift-nio "
    table += "| peak MiB | threads |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    for (name, own) in zip(names, samples) {
        func ratio(_ base: [Sample], _ value: (Sample) -> Double) -> String {
            String(format: "%.2f", median(zip(own, base).map { value($0) / value($1) }))
        }
        table += "| \(name) | \(Int(median(own.map(\.messagesPerSecond)))) "
        table += "| \(ratio(samples[1], \.messagesPerSecond)) | \(ratio(samples[2], \.messagesPerSecond)) "
        table += String(format: "| %.1f ", median(own.map(\.cpuPerMessage)))
        table += "| \(ratio(samples[1], \.cpuPerMessage)) | \(ratio(samples[2], \.cpuPerMessage)) "
        table += String(
            format: "| %.1f | %d |\n", median(own.map(\.peakMemory)), Int(median(own.map { Double($0.threads) })))
    }
    return table
}

func measureIdle(_ server: EchoServer, _ count: Int) throws {
    let names = [Idle.own, Idle.libcurl]
    var samples = names.map { _ in [Double]() }
    for _ in 0..<repetitions {
        for (index, name) in names.enumerated() {
            samples[index].append(
                try value(
                    Double.self, of: ownProgram,
                    ["--idle-sample", name, "--port", "\(server.port)", "--connections", "\(count)"]))
        }
    }
    let difference = median(zip(samples[0], samples[1]).map { $0 - $1 })
    print("## \(count) idle connections\n\n| | KiB of resident memory each |\n| --- | ---: |")
    print(String(format: "| %@ | %.1f |", Client.own, median(samples[0])))
    print(String(format: "| libcurl alone, in C | %.1f |", median(samples[1])))
    print(String(format: "| difference | %.1f |\n", difference))
}

do {
    if let name = option("--sample"), let client = Client.all.first(where: { $0.name == name }) {
        let load = Load(
            port: number("--port") ?? 0, length: number("--length") ?? 0, inFlight: number("--in-flight") ?? 1,
            seconds: seconds)
        try write(try await Sample.measure(client, load))
        exit(0)
    }
    if let name = option("--idle-sample") {
        try write(
            try await Idle.measure(name, port: number("--port") ?? 0, count: number("--connections") ?? 0))
        exit(0)
    }
    let server = try EchoServer(option("--server") ?? "")
    defer { server.stop() }
    if let count = number("--idle") {
        try measureIdle(server, count)
    } else {
        try compare(server, option("--websockets") ?? "")
    }
} catch {
    FileHandle.standardError.write(Data("socket-bench: \(error)\n".utf8))
    exit(1)
}
