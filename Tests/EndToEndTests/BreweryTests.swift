import Foundation
import Testing
import WebServiceMocking

/// The demo as its user runs it: the real program, its output and its exit status.
@Suite("brewery", .timeLimit(.minutes(10)))
struct BreweryTests {
    private struct Run {
        var status: Int32
        var output: String
        var errors: String
    }

    /// The program lies beside the tests.
    private static var program: URL {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("brewery")
    }

    private func brewery(_ arguments: String...) async throws -> Run {
        let process = Process()
        let output = Pipe()
        let errors = Pipe()
        process.executableURL = Self.program
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                do {
                    try process.run()
                    let text = try output.fileHandleForReading.readToEnd() ?? Data()
                    let complaints = try errors.fileHandleForReading.readToEnd() ?? Data()
                    process.waitUntilExit()
                    let run = Run(
                        status: process.terminationStatus,
                        output: String(decoding: text, as: UTF8.self),
                        errors: String(decoding: complaints, as: UTF8.self)
                    )
                    continuation.resume(returning: run)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }

    @Test("without arguments every step is printed and goes as it should")
    func plain() async throws {
        let run = try await brewery()
        #expect(run.status == 0)
        #expect(run.errors.isEmpty)
        for line in [
            "3 brewers: #1 Long Trail (vermont)", "2 brewers: #2 Brooklyn (new york)", "now there is #4 Trashboat & Söhne (new york)",
            "now it is #4 Trashboat + Daughters (new york)", "gone", "nobody by that number", "failed, as it should: decoding", "3 brewers\n",
            "3 brewers, from the server", "####..... 20 brewers", "######### 45 brewers", "refreshing the token",
            "1 brewers: #1 Long Trail (vermont)", "-> 401", "with a newer credential", "-> 503", "Retry-After asks for 1.0 seconds", "Done.",
        ] {
            #expect(run.output.contains(line), "\(line)")
        }
    }

    #if WEBSERVICE_CURL
    @Test("--transport curl gives the same over libcurl")
    func curl() async throws {
        let run = try await brewery("--transport", "curl")
        #expect(run.status == 0 && run.errors.isEmpty)
        #expect(run.output.contains("Transport: CurlSession.") && run.output.contains("refreshing the token") && run.output.contains("Done."))
    }
    #endif

    @Test("--verbose logs every message through the delegate")
    func verbose() async throws {
        let run = try await brewery("--verbose")
        #expect(run.status == 0)
        #expect(run.output.components(separatedBy: "--> ").count == 17)
        #expect(run.output.components(separatedBy: "<-- ").count == 17)
        #expect(run.output.contains("!!! "))
    }

    @Test(
        "wrong arguments give a usage line and the status 64",
        arguments: [["--nonsense"], ["--server"], ["--store"], ["--server", "ftp://h"], ["--transport", "pigeon"], ["x"]])
    func usage(arguments: [String]) async throws {
        let run: Run
        switch arguments.count {
        case 1: run = try await brewery(arguments[0])
        default: run = try await brewery(arguments[0], arguments[1])
        }
        #expect(run.status == 64)
        #expect(run.output.isEmpty)
        #expect(run.errors.hasPrefix("usage: brewery"))
        #expect(run.errors.split(separator: "\n").count == 1)
    }

    @Test("--help explains the options")
    func help() async throws {
        let run = try await brewery("--help")
        #expect(run.status == 0)
        #expect(run.output.contains("--server URL"))
    }

    @Test("with a store, a second run without the server shows the list that the first one has stored, with its age")
    func offline() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("brewery-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }  // a leftover in the temporary folder
        let server = try MockServer()
        let address = server.baseURLString
        server.stop()

        let empty = try await brewery("--server", address, "--store", folder.path)
        #expect(empty.status == 69)
        #expect(empty.errors.contains("and nothing is stored: noStoredData"))

        #expect(try await brewery("--store", folder.path).status == 0)
        let run = try await brewery("--server", address, "--store", folder.path)
        #expect(run.status == 0)
        #expect(run.errors.hasPrefix("brewery: the server at \(address) cannot be reached"))
        #expect(run.output.contains(#/Offline. The list of brewers, stored \d+ s ago:\n    #1 Long Trail \(vermont\)\n/#))
    }

    @Test("a server that cannot be reached gives one clear sentence and a status that is not zero")
    func unreachable() async throws {
        let server = try MockServer()
        let address = server.baseURLString
        server.stop()
        let run = try await brewery("--server", address)
        #expect(run.status == 69)
        #expect(run.errors.hasPrefix("brewery: the server at \(address) cannot be reached"))
        #expect(run.errors.split(separator: "\n").count == 1)
        #expect(!run.output.contains("Done."))
    }

    @Test("--server uses a server that is running, and a server that is no brewery is told apart")
    func otherServer() async throws {
        let server = try MockServer()
        defer { server.stop() }
        let run = try await brewery("--server", server.baseURLString)
        #expect(run.status == 1)
        #expect(server.receivedRequests.count == 8)
        #expect(server.receivedRequests.first?.path == "/brewers")
        #expect(run.errors.contains("is that a brewery"))
    }
}
