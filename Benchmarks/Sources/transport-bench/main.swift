// Measures transports over loopback against nginx: requests per second, processor time, memory,
// threads and allocations. Every client runs in a separate process, in turn and repeatedly, so that
// changes in the speed of the machine affect all of them equally. Ratios are computed within one
// repetition.
//
//   transport-bench [--repetitions N] [--seconds S] [--only PREFIX] [--in-flight N] [--answer NAME]
//                   [--endpoint PREFIX] [--cores one|all] [--quick] [--write FILE]
//                   [--go PROGRAM] [--counter LIBRARY]
//
// `./scripts/bench transport` builds and passes the client in Go and the library that counts
// allocations.

import Foundation

let arguments = CommandLine.arguments

func option(_ name: String) -> String? {
    arguments.firstIndex(of: name).flatMap { arguments.dropFirst($0 + 1).first }
}

// The process that takes one sample, or counts the allocations of a client.
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
        let output =
            arguments.contains("--count")
            ? try JSONEncoder().encode(await Allocations.count(variant, load))
            : try JSONEncoder().encode(await Sample.measure(variant, load))
        FileHandle.standardOutput.write(output)
        exit(0)
    } catch {
        FileHandle.standardError.write(Data("\(name): \(error)\n".utf8))
        exit(1)
    }
}

let quick = arguments.contains("--quick")
let repetitions = option("--repetitions").flatMap { Int($0) } ?? (quick ? 1 : 5)
let seconds = option("--seconds").flatMap { Double($0) } ?? (quick ? 0.3 : 0.5)
let variants = (Variant.all + (option("--go").map { [Variant.goHTTP(program: $0)] } ?? [])).filter { variant in
    option("--only").map { variant.name.hasPrefix($0) || Variant.peers.contains(variant.name) } ?? true
}

let tables = Table.all.filter { table in
    (option("--answer").map { $0 == table.answer.name } ?? true)
        && (option("--in-flight").map { $0 == "\(table.inFlight)" } ?? true)
        && (option("--cores").map { $0 == (table.isOnOneCore ? "one" : "all") } ?? true)
        && table.endpoint.name.hasPrefix(option("--endpoint") ?? "")
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
    let launcher = Launcher(nginx: nginx, seconds: seconds, counter: option("--counter"))
    var report = Report(repetitions: repetitions, seconds: seconds)
    for (number, table) in tables.enumerated() {
        FileHandle.standardError.write(Data("Table \(number + 1) of \(tables.count): \(table.title)\n".utf8))
        var rows = variants.filter(table.includes).map { Report.Row(variant: $0) }
        for _ in 0..<repetitions {
            for index in rows.indices { rows[index].samples.append(try launcher.sample(rows[index].variant, table)) }
        }
        for index in rows.indices { rows[index].allocations = try launcher.allocations(rows[index].variant, table) }
        print(report.add(table, rows))
        // A run that is ended later has written what it measured.
        if let file = option("--write") { try report.write(to: file) }
    }
    print(report.ranges)
} catch {
    FileHandle.standardError.write(Data("transport-bench: \(error)\n".utf8))
    exit(1)
}
