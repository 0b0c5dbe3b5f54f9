import Foundation
import Testing
import WebServiceMocking
import WebServiceServer

/// The built program, started as a process.
@Suite("The program", .timeLimit(.minutes(2)))
struct ProgramTests {
    private struct Run {
        let status: Int32
        let output: String
        let errors: String
    }

    /// Starts the program, calls a closure with its process, and waits for the end.
    private func run(
        _ arguments: [String], token: String? = nil, started: (Process) async throws -> Void = { _ in }
    ) async throws -> Run {
        let process = Process()
        process.executableURL = Self.folder.appendingPathComponent("brewery-cli")
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["BREWERY_TOKEN": token ?? "", "no_proxy": "127.0.0.1"]
        ) { $1 }
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
        process.terminationHandler = { _ in continuation.finish() }
        try process.run()
        try await started(process)
        for await _ in ends {}
        // The output of each run fits into the buffer of a pipe.
        return Run(
            status: process.terminationStatus,
            output: String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self),
            errors: String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self))
    }

    /// The folder of the built products.
    private static var folder: URL {
        let tests = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }
        return tests?.bundleURL.deletingLastPathComponent() ?? Bundle.main.bundleURL
    }

    @Test("With --demo, the program needs no network")
    func demo() async throws {
        let list = try await run(["list", "--demo", "--state", "maine"])
        #expect(list.status == 0)
        #expect(list.output.split(separator: "\n").count == 15)
        #expect(list.errors == "")

        let order = try await run(["order", "3", "--demo"], token: "demo")
        #expect(order.output == "order 1003\n")

        let watch = try await run(["watch", "--demo"])
        #expect(watch.status == 0)
        #expect(watch.output.hasSuffix("tap 5: Lager\n"))
    }

    @Test("A download is written to the file")
    func download() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("poster-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }  // the file of a test
        let download = try await run(["download", "--demo", "--to", file.path])
        #expect(download.status == 0)
        #expect(download.output == "\(file.lastPathComponent): 1000000 bytes\n")
        #expect(try Data(contentsOf: file).count == 1_000_000)
    }

    @Test("Errors are printed on standard error, with an exit status for each kind")
    func errors() async throws {
        let unknown = try await run(["show", "99", "--demo"])
        #expect(unknown.status == 1)
        #expect(unknown.errors == "brewery-cli: The server responded with 404 Not Found: There is no such brewer.\n")
        #expect(unknown.output == "")
        #expect(try await run(["order", "3", "--demo"], token: "wrong").status == 77)
        #expect(try await run(["order", "3", "--demo", "--kegs", "50"], token: "demo").status == 1)
        #expect(try await run(["list", "--base-url", "example"]).status == 64)
    }

    @Test("Ctrl-C cancels the request")
    func interrupt() async throws {
        let server = try MockServer()
        defer { server.stop() }
        var silence = MockResponse.status(200)
        silence.wire = .noResponse
        server.on(.GET, "/brewers/1", silence)
        let show = try await run(["show", "1", "--base-url", server.baseURLString]) { process in
            _ = try await server.nextRequest()
            process.interrupt()
        }
        #expect(show.status == 130)
        #expect(show.errors == "brewery-cli: interrupted\n")
    }
}
