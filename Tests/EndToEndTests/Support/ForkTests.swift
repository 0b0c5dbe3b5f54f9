import Foundation
import TestSupport
import Testing
import WebServiceMocking
import WebServiceServer

/// A process that forks while it uses sessions and storages.
@Suite("Fork", .permit)
struct ForkTests {
    private static let sessions: [String] = {
        #if WEBSERVICE_CURL
        ["foundationSession", "curlSession"]
        #else
        ["foundationSession"]
        #endif
    }()

    /// Runs `session-probe` in a separate process, because the test process has threads that must
    /// not be forked.
    private func probe(_ arguments: [String]) async throws -> (status: Int32, lines: [String]) {
        let output = Pipe()
        let process = ChildProcess(
            SessionProbe.path, arguments,
            environment: ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 },
            input: .null, output: .pipe(output))
        let (status, text) = try await process.finish(reading: output)
        return (status, text.split(separator: "\n").map(String.init))
    }

    @Test(
        "After a fork, the parent completes its requests and stores data, and the child ends without a hang",
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd")), arguments: sessions, ["exec", "exit"])
    func fork(session: String, ending: String) async throws {
        let run = try await probe(["fork", session, ending])
        #expect(run.status == 0)
        let own = run.lines.filter { line in
            ["before: ", "child: ", "parent: ", "stored: "].contains { line.hasPrefix($0) }
        }
        #expect(own == ["before: /fast", "child: status 0", "parent: /slow /fast", "stored: newer"], "\(run.lines)")
    }

    #if WEBSERVICE_CURL
    /// The socket pairs with which libcurl wakes its threads are inherited. Foundation does not
    /// close its connections on exec.
    @Test(
        "A program run by the child inherits no connection of a CurlSession or a server, and no file of a storage",
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd")))
    func descriptors() async throws {
        let lines = try await probe(["fork", "curlSession", "exec"]).lines
        let connections = Set(lines.filter { $0.hasPrefix("tcp:[") }.map { "socket" + $0.dropFirst(3) })
        #expect(connections.count >= 3, "a listener and both ends of a connection: \(lines)")
        #expect(lines.contains { $0.hasPrefix("pipe:[") }, "standard output is in the list: \(lines)")
        #expect(connections.intersection(lines) == [])
        #expect(lines.filter { $0.contains("anon_inode") || $0.contains("/fork-") } == [])
    }
    #endif
}
