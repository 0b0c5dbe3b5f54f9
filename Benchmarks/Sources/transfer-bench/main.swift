import AsyncHTTPClient
import Foundation
import NIOCore
import WebServiceCore
import WebServiceCurl

// Compares streamed transfers with curl and AsyncHTTPClient over loopback, in one interleaved run.
//
//   transfer-bench [--size MIB] [--rounds N]
//
// Each transfer runs in a process of its own, so that its processor time and its largest memory are
// those of the transfer.

let arguments = Array(CommandLine.arguments.dropFirst())

if arguments.first == "--child", arguments.count >= 2 {
    try await Child.run(arguments[1], Array(arguments.dropFirst(2)))
    exit(0)
}

func option(_ name: String, _ value: Int) -> Int {
    arguments.firstIndex(of: name).flatMap { $0 + 1 < arguments.count ? Int(arguments[$0 + 1]) : nil } ?? value
}

let size = option("--size", 1024) << 20
let rounds = option("--rounds", 3)
let server = try FileServer(size: size)
defer { server.stop() }
let target = server.folder.appendingPathComponent("target").path

var runs: [(name: String, samples: [Sample])] = [
    ("curl -o", []), ("WebService over CurlSession: download", []),
    ("WebService over CurlSession: stream to a file", []),
    ("AsyncHTTPClient: body to a file", []), ("WebService over CurlSession: stream, discarded", []),
    ("nothing", []),
]
for _ in 0..<rounds {
    for index in runs.indices {
        let sample =
            switch index {
            case 0: try Sample.measure("/usr/bin/env", ["curl", "-s", "-o", target, server.url])
            case 1: try Sample.child("download", server.url, target)
            case 2: try Sample.child("stream-to-file", server.url, target)
            case 3: try Sample.child("peer-to-file", server.url, target)
            case 4: try Sample.child("stream", server.url)
            default: try Sample.child("nothing")
            }
        runs[index].samples.append(sample)
    }
}
let floor = runs[0].samples.map(\.seconds).sorted()[rounds / 2]
let floorTime = runs[0].samples.map(\.processorSeconds).sorted()[rounds / 2]
let nothing = runs[5].samples.map(\.kilobytes).sorted()[rounds / 2]
print("| \(size >> 20) MiB over loopback | MiB/s | throughput / curl | processor time / curl | memory above idle |")
print("| --- | --- | --- | --- | --- |")
for (name, samples) in runs.dropLast() {
    let seconds = samples.map(\.seconds).sorted()[rounds / 2]
    let time = samples.map(\.processorSeconds).sorted()[rounds / 2]
    let memory = samples.map(\.kilobytes).sorted()[rounds / 2] - nothing
    print(
        "| \(name) | \(Int(Double(size >> 20) / seconds)) | \(text(floor / seconds)) | \(text(time / floorTime)) "
            + "| \(name.hasPrefix("curl") ? "" : "\(memory) KiB") |")
}
print("")
for check in ["slow-reader", "cancel", "events", "tokens", "idle-streams"] {
    let sample = try Sample.child(check, server.url)
    print(sample.output.trimmingCharacters(in: .newlines))
}

func text(_ ratio: Double) -> String { String(format: "%.2f", ratio) }
