#if os(Linux)
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer
import WebServiceTransfers

/// The program strace, with which system calls of a probe fail or are slow.
private enum Tracer {
    static let path = ["PATH": "/usr/bin:/bin"]

    static let works: Bool = {
        let process = ChildProcess("/usr/bin/strace", ["-o", "/dev/null", "true"], environment: path, errors: .null)
        guard (try? process.run()) != nil else {  // it is not installed
            print("SKIPPED: system calls that fail need strace and the permission to trace (apt-get install strace)")
            return false
        }
        return process.waitUntilExit() == 0
    }()
}

/// Downloads in a process whose system calls fail or are slow, by the program strace.
@Suite(
    "Downloads with failing system calls", .enabled(if: Tracer.works, "requires strace"),
    .permit(minutes: 60))
struct DownloadSystemCallTests {
    /// Runs a probe with an injection into system calls.
    ///
    /// - Parameter files: If not empty, only calls that use one of these files.
    private func probe(
        _ arguments: [String], files: [String], calls: String, _ injection: String
    ) async throws -> (run: SessionProbe.Run, injections: Int) {
        let trace = TemporaryFolder.forTest().url.appendingPathComponent("trace")
        let filter = files.flatMap { ["-P", $0] } + (files.isEmpty ? ["-e", "trace=\(calls)"] : [])
        let run = try await SessionProbe.run(
            arguments,
            launcher: ["/usr/bin/timeout", "-s", "KILL", "120", "strace", "-f", "-qq", "-o", trace.path] + filter
                + ["-e", "inject=\(calls):\(injection)"],
            environment: Tracer.path)
        let lines = try String(contentsOf: trace, encoding: .utf8).split(separator: "\n")
        return (run, lines.count { $0.hasSuffix("(INJECTED)") || $0.hasSuffix("(DELAYED)") })
    }

    @Test(
        "After any failed system call, the file is the old one or the new one, and the next download succeeds",
        arguments: ["EIO", "EINTR", "EDQUOT", "EMFILE"])
    func failures(error: String) async throws {
        let fixture = try DownloadFixture(300_000)
        let content = fixture.content
        fixture.serve { request, _ in MockResponse(file: content, eTag: DownloadFixture.tag, for: request) }
        let folder = fixture.folder
        let (old, destination) = (Data("old".utf8), fixture.destination)
        let files = ["", "a.iso", ".a.iso.webservice-part", ".a.iso.webservice-state", ".a.iso.webservice-new"]
            .map { $0.isEmpty ? folder.path : folder.appendingPathComponent($0).path }
        let calls =
            "openat,pwrite64,write,fsync,fdatasync,renameat,renameat2,rename,flock,ftruncate,fstat,newfstatat,"
            + "unlinkat,fallocate,linkat,fstatfs"
        var number = 1
        var (runs, failures) = (0, 0)
        while number <= 100 {
            for name in try fixture.names {
                try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
            }
            try old.write(to: destination)
            let (run, injections) = try await probe(
                ["download", fixture.server.baseURLString + "/a.iso", destination.path, "1"], files: files,
                calls: calls, "error=\(error):when=\(number)")
            try #require([0, 1].contains(run.status), "\(number): \(run)")
            let file = try Data(contentsOf: destination)
            let isNew = file == content
            #expect(isNew || run.status == 1 && file == old, "\(error), call \(number): \(run.output)")
            failures += run.status == 1 ? 1 : 0
            runs += 1
            _ = try await fixture.download(existing: .replace).value
            try #require(try fixture.fileHas(content))
            #expect(try fixture.names == ["a.iso"], "\(error), call \(number)")
            guard injections > 0 else { break }
            number += isSoak ? 1 : 4
        }
        print("\(error): \(runs) downloads with a system call that failed, \(failures) of them ended with an error")
        #expect(runs >= 3)
    }

    @Test("A disk whose writes take a second does not delay other requests of the session")
    func slowDisk() async throws {
        let fixture = try DownloadFixture(700_000)
        let content = fixture.content
        fixture.serve { request, _ in
            request.path == "/other"
                ? MockResponse(statusCode: 200) : MockResponse(file: content, eTag: DownloadFixture.tag, for: request)
        }
        let part = fixture.folder.appendingPathComponent(".a.iso.webservice-part").path
        let base = fixture.server.baseURLString
        let limit = realTimeLimit(.milliseconds(900)) / .milliseconds(1)
        var longest = Double.infinity
        // Other processes may delay a request, so the best of up to three downloads counts.
        for _ in 0..<3 where longest >= limit {
            try? FileManager.default.removeItem(at: fixture.destination)
            let (run, writes) = try await probe(
                ["latency", base + "/a.iso", fixture.destination.path, base + "/other"], files: [part],
                calls: "pwrite64", "delay_enter=1000000")
            try #require(run.status == 0, "\(run.output)")
            let numbers = run.output.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
            print("longest request beside \(writes) writes to a slow disk: \(numbers) ms and requests")
            try #require(numbers.count == 2)
            #expect(writes > 0)
            longest = numbers[0]
            // A request that waits for the disk ends at most once per write.
            #expect(numbers[1] > 3 * Double(writes))
            #expect(try fixture.fileHas(content))
        }
        #expect(longest < limit)
    }
}
#endif
