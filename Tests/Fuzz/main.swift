import Foundation

// Passes mutated inputs to all parsers of bytes from a peer:
//
//     fuzz [INPUTS] [--seed SEED] [--only NAME] [--input BASE64]
//
// INPUTS is the total of all targets and defaults to 100,000. The same seed produces the same
// inputs. `--input` runs one input of one target. The exit status is 1 if an input traps, takes
// more than 10 ms per KB, or violates a property; the report contains the input. It is 2 for wrong
// arguments.

var options: [String: String] = [:]
var words = Array(CommandLine.arguments.dropFirst().reversed())
while let word = words.popLast() {
    if word.hasPrefix("--") { options[word] = words.popLast() ?? "" } else { options["--inputs"] = word }
}
let known: Set = ["--inputs", "--seed", "--only", "--input", "--child", "--file"]
let name = options["--child"] ?? options["--only"]
let targets = FuzzTarget.all.filter { name == nil || $0.name == name }
let bytes = options["--input"].map { Data(base64Encoded: $0) }
guard known.isSuperset(of: options.keys), let inputs = Int(options["--inputs"] ?? "100000"),
    let seed = UInt64(options["--seed"] ?? "20011"),
    let target = targets.first, bytes == nil || (bytes != .some(nil) && targets.count == 1)
else {
    print("fuzz [INPUTS] [--seed SEED] [--only \(FuzzTarget.all.map(\.name).joined(separator: "|"))] [--input BASE64]")
    exit(2)
}
let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
    "fuzz-\(ProcessInfo.processInfo.processIdentifier)")

if options["--child"] != nil || bytes != nil {
    let path = options["--file"] ?? folder.path
    var runner = Runner(target: target, file: try InputFile(path: path))
    guard let bytes = bytes ?? nil else { exit(runner.run(inputs: inputs, seed: seed)) }
    let finding = runner.run(Array(bytes))
    tell("\(target.name): \(finding ?? "clean")")
    if options["--file"] == nil { try FileManager.default.removeItem(atPath: path) }
    exit(finding == nil ? 0 : Runner.findingStatus)
}

try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
let shares = targets.reduce(0) { $0 + $1.share }
tell("\(inputs) inputs, seed \(seed)")
let isClean = Supervisor(folder: folder, seed: seed).run(targets.map { ($0.name, inputs * $0.share / shares) })
try FileManager.default.removeItem(at: folder)
exit(isClean ? 0 : 1)
