import Foundation
import WebServiceConformance
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

// Runs a scenario with one kind of session in a separate process, for scenarios that may end the
// process:
//
//     session-probe foundationSession|urlSession|mock [name of a scenario [limit in seconds]]
//     session-probe probe <name of a probe>
//     session-probe fork …, see probeFork(_:_:)
//     session-probe download <URL> <path of a file> <number of connections>
//     session-probe upload <URL> <path of a file> draft|tus <size of the pieces> <microseconds>
//     session-probe latency <URL of a file> <path> <URL of other requests>
//     session-probe curl version
//     session-probe children
//     session-probe memory upload|read|cache|idle|cancelled <URL> <argument>, see MemoryProbe
//
// Without a name, all scenarios run one after another, and the duration of each is printed. The
// exit status is 0 for success, 1 for a failure, 2 for wrong arguments, and 3 for a probe that is
// not possible in the environment.

let arguments = Array(CommandLine.arguments.dropFirst())
if arguments == ["children"] {
    let children = (0..<2).map { _ in ChildProcess("/bin/sh", ["-c", "echo started; exec sleep 1000"]) }
    for child in children { try child.run() }
    for child in children { child.waitUntilExit() }
    exit(0)
}
if arguments.count == 3, arguments[0] == "fork" {
    do { try await probeFork(arguments[1], arguments[2]) } catch {
        tell("failed: \(error)")
        exit(1)
    }
    exit(0)
}
if arguments.count == 4, arguments[0] == "download", let connections = Int(arguments[3]) {
    do { exit(try await probeDownload(arguments[1], to: arguments[2], connections: connections)) } catch {
        tell("failed: \(error)")
        exit(1)
    }
}
if arguments.count == 6, arguments[0] == "upload", let size = Int(arguments[4]), let life = Int(arguments[5]) {
    do {
        exit(
            try await probeUpload(
                arguments[1], of: arguments[2], resuming: arguments[3] == "tus" ? .tus : .draft, pieceSize: size,
                life: life))
    } catch {
        tell("failed: \(error)")
        exit(1)
    }
}
if arguments.count == 4, arguments[0] == "latency" {
    do { exit(try await probeLatency(arguments[1], to: arguments[2], beside: arguments[3])) } catch {
        tell("failed: \(error)")
        exit(1)
    }
}
#if WEBSERVICE_CURL && os(Linux)
if arguments.count == 4, arguments[0] == "memory" {
    do { exit(try await MemoryProbe.run(arguments[1], arguments[2], arguments[3]) ? 0 : 2) } catch {
        tell("failed: \(error)")
        exit(1)
    }
}
#endif
let sessions: [String: @Sendable () -> any Session] = [
    "foundationSession": { FoundationSession.shared },
    "urlSession": { URLSession(configuration: FoundationSession.defaultConfiguration) },
    "mock": { MockSession() },
]
if arguments.first == "probe", let probe = Probe.all.first(where: { $0.name == arguments.dropFirst().first }) {
    do {
        exit(try await probe.run().rawValue)
    } catch {
        tell("\(error)")
        exit(Probe.Outcome.broken.rawValue)
    }
}
#if WEBSERVICE_CURL
// session-probe curl lookup|descriptors|fork|exit <base URL of a server>
if arguments == ["curl", "version"] {
    print("version", CurlSession.library)
    exit(0)
}
if arguments.first == "curl", arguments.count == 3 { exit(await CurlProbe.run(arguments[1], arguments[2]) ? 0 : 2) }
#endif
let named = SessionScenario.all.filter { arguments.count < 2 || $0.name == arguments[1] }
let limit = arguments.count < 3 ? 5 : Double(arguments[2]) ?? 0
guard limit > 0, (1...3).contains(arguments.count), let makeSession = arguments.first.flatMap({ sessions[$0] }),
    !named.isEmpty
else {
    print("session-probe \(sessions.keys.sorted().joined(separator: "|")) [name of a scenario [limit in seconds]]")
    exit(2)
}
/// Writes a line without buffering, because the process may end before the next one.
func tell(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

let session = makeSession()
var isKept = true
for scenario in named {
    do {
        if arguments.count == 1 { tell("begin  \(scenario)") }
        try await scenario.run(over: session, limit: .seconds(limit))
        tell("passed \(scenario)")
    } catch {
        isKept = false
        tell("failed \(error)")
    }
}
exit(isKept ? 0 : 1)
