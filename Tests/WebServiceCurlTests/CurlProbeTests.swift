import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// Effects that are visible only in a separate process: `session-probe curl`.
@Suite("Curl session: slow name lookup and exhausted descriptors", .serialized, .permit)
struct CurlProbeTests {
    @Test(
        "During a name lookup, cancellation, deadline, timeout and closing are prompt for every request"
    )
    func lookup() async throws {
        let server = try MockServer.forTest { _ in MockResponse("ale") }
        // The lookup takes a minute. The margin is for the processes that run at the same time.
        let limit = Int(realTimeLimit(.seconds(1)) / .milliseconds(1))
        var measured: [String: Int] = [:]
        // Such a process may delay a request, so the shortest of up to three durations counts.
        for _ in 0..<3 where measured.isEmpty || measured.values.contains(where: { $0 >= limit }) {
            let durations = try await probe("lookup", server)
            measured.merge(durations) { min($0, $1) }
        }
        #expect(
            measured.keys.sorted() == [
                "cancel", "close", "deadline", "other-cancel", "other-deadline", "other-timeout", "timeout",
            ])
        for (what, milliseconds) in measured { #expect(milliseconds < limit, "\(what)") }
    }

    @Test(
        "Without descriptors, requests and sessions fail with a typed error, leave no thread, and recover"
    )
    func descriptors() async throws {
        let server = try MockServer.forTest { request in
            MockResponse(
                "ale", wire: request.path == "/slow" ? .drip(size: 20, pause: .milliseconds(100)) : .fixedLength)
        }
        let measured = try await probe("descriptors", server)
        #expect(measured["thrown"] == nil)
        let (answers, typed) = (measured["answers"] ?? 0, measured["typed"] ?? 0)
        #expect(answers > 0)
        #expect(typed > 0)
        #expect(answers + typed == 200)
        #expect(measured["without"] == 1)
        #expect(measured["later"] == 20)
        #expect(measured["refused"] == 1)
        #expect(measured["threads"] == 0)
    }

    @Test("In a forked child, requests are refused, and the exit does not wait")
    func fork() async throws {
        let server = try MockServer.forTest { _ in MockResponse("x") }
        let measured = try await probe("fork", server)
        #expect(measured["refused"] == 1)
        #expect(measured["status"] == 0)
    }

    @Test(
        "A program can exit while a session opens and closes connections over TLS, and while callers send",
        .enabled(if: SecureServer.isAvailable), arguments: [16, 1]
    )
    func exit(tasks: Int) async throws {
        let server = try SecureServer()
        for _ in 0..<amount(4, thorough: 30, soak: 500) {
            let output = Pipe()
            let process = ChildProcess(
                programPath("session-probe"), ["curl", "exit", "https://localhost:\(server.port)"],
                environment: ["TRUSTED": server.folder.appendingPathComponent("ca.pem").path, "TASKS": "\(tasks)"],
                input: .null,
                output: .pipe(output))
            #expect(try await process.finish(reading: output).status == 0)
        }
    }

    private func probe(_ name: String, _ server: MockServer) async throws -> [String: Int] {
        let output = Pipe()
        let process = ChildProcess(
            programPath("session-probe"), ["curl", name, server.baseURLString], input: .null,
            output: .pipe(output))
        let (status, text) = try await process.finish(reading: output)
        #expect(status == 0, "\(text)")
        return text.split(separator: "\n").reduce(into: [:]) { measured, line in
            let words = line.split(separator: " ")
            if words.count >= 2, let number = Int(words[1]) { measured[String(words[0])] = number }
        }
    }
}
