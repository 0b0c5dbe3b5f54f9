import Foundation
import Testing

/// A process that forks while it uses sessions and storages.
@Suite("Fork", .timeLimit(.minutes(2)))
struct ForkTests {
    private static let sessions: [String] = {
        #if WEBSERVICE_CURL
        ["foundationSession", "curlSession"]
        #else
        ["foundationSession"]
        #endif
    }()

    /// Runs `session-probe` in a process of its own, because the test process has threads that must not be forked.
    private func probe(_ arguments: [String]) async throws -> (status: Int32, lines: [String]) {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("session-probe")
        process.arguments = arguments
        process.environment = ["SWIFT_BACKTRACE": "enable=no"]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                do {
                    try process.run()
                    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
                    process.waitUntilExit()
                    let status = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
                    continuation.resume(returning: (status, text.split(separator: "\n").map(String.init)))
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }

    @Test(
        "after a fork the parent completes its requests and stores, and the child ends without a hang",
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd")), arguments: sessions, ["exec", "exit", "release"])
    func fork(session: String, ending: String) async throws {
        let run = try await probe(["fork", session, ending])
        #expect(run.status == 0)
        let own = run.lines.filter { line in ["before: ", "child: ", "parent: ", "stored: "].contains { line.hasPrefix($0) } }
        #expect(own == ["before: /fast", "child: status 0", "parent: /slow /fast", "stored: newer"], "\(run.lines)")
    }

    @Test(
        "a program that a child runs inherits no socket, no event queue and no file of a storage",
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd")), arguments: sessions)
    func descriptors(session: String) async throws {
        let run = try await probe(["fork", session, "exec"])
        let inherited = run.lines.filter { $0.hasPrefix("/") || $0.contains(":[") || $0.hasPrefix("anon_inode") }
        #expect(inherited.contains { $0.hasPrefix("pipe:[") }, "standard output is in the list: \(run.lines)")
        #expect(inherited.filter { $0.contains("socket:") || $0.contains("anon_inode") || $0.contains("fork-") } == [])
        #expect(Set(inherited.filter { $0.hasPrefix("pipe:[") }).count <= 2, "standard output and standard error: \(inherited)")
    }
}
