import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// The demo as a user runs it: the real program, its output and its exit status.
@Suite("The brewery demo", .permit)
struct BreweryTests {
    private struct Run {
        var status: Int32
        var output: String
        var errors: String
    }

    /// The program is in the folder of the test executable.
    private static var program: URL {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("brewery")
    }

    private func brewery(_ arguments: String..., writingTo file: FileHandle? = nil) async throws -> Run {
        try await run(Self.program, arguments, writingTo: file)
    }

    private func run(_ program: URL, _ arguments: [String], writingTo file: FileHandle? = nil) async throws -> Run {
        let output = Pipe()
        let errors = Pipe()
        let process = ChildProcess(
            program.path, arguments, input: .null, output: file.map { .file($0) } ?? .pipe(output),
            errors: .pipe(errors))
        return try await blocking {
            try process.run()
            if file != nil { try output.fileHandleForWriting.close() }  // otherwise `run` closed it
            let text = try output.fileHandleForReading.readToEnd() ?? Data()
            let complaints = try errors.fileHandleForReading.readToEnd() ?? Data()
            // The dynamic linker's warning about a libcurl of `scripts/test-libcurl`.
            let errors = String(decoding: complaints, as: UTF8.self).split(
                separator: "\n", omittingEmptySubsequences: false
            ).filter { !$0.contains(": no version information available (required by ") }
            return Run(
                status: process.waitUntilExit(), output: String(decoding: text, as: UTF8.self),
                errors: errors.joined(separator: "\n"))
        }
    }

    @Test("Without arguments, every step succeeds and is printed")
    func plain() async throws {
        let run = try await brewery()
        #expect(run.status == 0)
        #expect(run.errors.isEmpty)
        for line in [
            "3 brewers: #1 Long Trail (vermont)", "2 brewers: #2 Brooklyn (new york)",
            "added #4 Trashboat & Söhne (new york)",
            "updated to #4 Trashboat + Daughters (new york)", "deleted", "recovered: no brewer has this id",
            "failed as expected: decoding", "3 brewers\n",
            "3 brewers, from the server", "####..... 20 brewers", "######### 45 brewers", "poster: 1.0 MB",
            "continued where the first download ended",
            "I recommend the Long Trail Ale from Vermont.", "15 tokens",
            "refreshing the token",
            "1 brewer: #1 Long Trail (vermont)", "-> 401", "with a newer credential", "-> 503",
            "Retry-After of 1.0 seconds", "Done.",
            "/brewers?state=new%20york\n",
        ] {
            #expect(run.output.contains(line), "\(line)")
        }
        #expect(!run.output.contains("1 brewers"))
    }

    @Test(
        "Standard output that cannot be written is an error with exit status 74",
        arguments: [[], ["--help"], ["--verbose"], ["--serve"]])
    func fullOutput(arguments: [String]) async throws {
        guard let full = FileHandle(forWritingAtPath: "/dev/full") else { return }  // it exists only on Linux
        let run = try await run(Self.program, arguments, writingTo: full)
        #expect(run.status == 74)
        #expect(run.errors.hasPrefix("brewery: standard output cannot be written: "))
        #expect(run.errors.split(separator: "\n").count == 1)
    }

    @Test("A store that cannot be written is reported with its path, and the demo continues")
    func unusableStore() async throws {
        let run = try await brewery("--store", "/dev/null/nope")
        #expect(run.status == 0)
        #expect(run.output.contains("Done."))
        let lines = run.errors.split(separator: "\n")
        #expect(!lines.isEmpty)
        #expect(lines.allSatisfy { $0.hasPrefix("brewery: the store /dev/null/nope failed: ") })
    }

    @Test("scripts/demo --help prints the help of the program and builds nothing")
    func helpOfTheScript() async throws {
        let script = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../scripts/demo").standardized
        let folder = TemporaryFolder.forTest().url
        let swift = folder.appendingPathComponent("swift")
        try Data("#!/bin/sh\necho built >&2\nexit 9\n".utf8).write(to: swift)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: swift.path)
        let env = URL(fileURLWithPath: "/usr/bin/env")
        let run = try await run(env, ["PATH=\(folder.path):/usr/bin:/bin", script.path, "--help"])
        #expect(run.status == 0)
        #expect(run.errors.isEmpty)
        #expect(try await run.output == brewery("--help").output)
    }

    #if WEBSERVICE_CURL
    @Test("--transport curl runs the demo over libcurl")
    func curl() async throws {
        let run = try await brewery("--transport", "curl")
        #expect(run.status == 0)
        #expect(run.errors.isEmpty)
        #expect(run.output.contains("Transport: CurlSession."))
        #expect(run.output.contains("refreshing the token"))
        #expect(run.output.contains("Done."))
    }
    #endif

    @Test("--verbose logs every request and response to standard error")
    func verbose() async throws {
        let run = try await brewery("--verbose")
        #expect(run.status == 0)
        let requests = run.errors.components(separatedBy: "--> ")
        let responses = run.errors.components(separatedBy: "<-- ").filter { !$0.hasPrefix("head ") }
        // On a busy machine, a request starts after the one that it would have joined has ended.
        #expect([21, 22].contains(requests.count))
        #expect(responses.count == requests.count)
        #expect(run.errors.contains(" failure: "))
        #expect(!run.output.contains("--> "))
    }

    @Test(
        "An invalid argument is named in an error with the command for help and exit status 64",
        arguments: [
            (["--nonsense"], "unknown argument '--nonsense'"), (["x"], "unknown argument 'x'"),
            (["--verbose", "-v"], "unknown argument '-v'"),
            (["--verbos"], "unknown argument '--verbos'; did you mean '--verbose'?"),
            (["fecth"], "unknown argument 'fecth'; did you mean 'fetch'?"),
            ([""], "unknown argument ''"), (["a\nb"], #"unknown argument 'a\nb'"#),
            (["--server"], "--server needs a value"),
            (["--store"], "--store needs a value"), (["--store", ""], "--store needs a value"),
            (["--transport"], "--transport needs a value"),
            (["--server", "ftp://h"], "--server needs an http or https URL, not 'ftp://h'"),
            (["--transport", "pigeon"], "--transport needs 'foundation' or 'curl', not 'pigeon'"),
            (["--serve", "--server", "http://h"], "--serve and --server exclude each other"),
        ])
    func usage(arguments: [String], message: String) async throws {
        let run = try await run(Self.program, arguments)
        #expect(run.status == 64)
        #expect(run.output.isEmpty)
        #expect(run.errors == "brewery: \(message)\n'brewery --help' lists the options.\n")
    }

    @Test("brewery chat prints the tokens of the reply, and fails if the reply is cut or the server is another one")
    func chat() async throws {
        let run = try await brewery("chat", "Which one?")
        #expect(run.status == 0)
        #expect(run.errors.isEmpty)
        #expect(
            run.output == "I recommend the Long Trail Ale from Vermont. It is malty, mild and served fresh.\n")
        let server = try MockServer { _ in
            var response = MockResponse(statusCode: 200, data: Data("data: {\"token\":\"cut\"}\n\n".utf8))
            response.headers[.contentType] = "text/event-stream"
            return response
        }
        let cut = try await brewery("chat", "--server", server.baseURLString, "--transport", "foundation")
        #expect(cut.status == 1)
        #expect(cut.output == "cut\n")
        #expect(cut.errors.hasPrefix("brewery: the reply is not complete: "))
        #expect(!cut.errors.contains("streamEndedEarly"))
        #expect(server.receivedRequests.first?.body == Data(#"{"question":"Which beer do you recommend?"}"#.utf8))
        server.stop()
        #expect(try await brewery("chat", "--server", server.baseURLString).status == 69)
        #expect(try await brewery("chat", "a", "b").status == 64)
    }

    @Test("--help explains the options")
    func help() async throws {
        let run = try await brewery("--help")
        #expect(run.status == 0)
        #expect(run.output.contains("--server URL"))
        #expect(try await brewery("fetch", "-h").output.hasPrefix("usage: brewery fetch URL"))
    }

    @Test("--version prints the version of the changelog")
    func version() async throws {
        let file = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../CHANGELOG.md").standardized
        let run = try await brewery("--version")
        #expect(run.status == 0)
        let version = try #require(run.output.wholeMatch(of: /brewery ([0-9.]+)\n/)?.1)
        #expect(try String(contentsOf: file, encoding: .utf8).contains("\n## \(version) "))
    }

    @Test("A response that reports an error is printed with its reason and the problem of the server")
    func problem() async throws {
        let server = try MockServer.forTest()
        server.on(.GET, "/file", .problem(404, title: "No such file", detail: "It was removed."))
        let run = try await brewery("fetch", server.baseURLString + "/file")
        #expect(run.status == 1)
        #expect(
            run.errors == "brewery: The server responded with 404 Not Found: No such file. It was removed.\n")
        #expect(run.output.isEmpty)
    }

    @Test("A download whose server cannot be reached has exit status 69")
    func unreachableDownload() async throws {
        let server = try MockServer()
        server.stop()
        let run = try await brewery("fetch", server.baseURLString + "/file")
        #expect(run.status == 69)
        #expect(run.errors.hasSuffix("; the same command continues the download\n"))
    }

    @Test("With a store, a second run without the server shows the list that the first run stored, with its age")
    func offline() async throws {
        let folder = TemporaryFolder.forTest().url.appendingPathComponent("brewery")
        let server = try MockServer()
        let address = server.baseURLString
        server.stop()

        let empty = try await brewery("--server", address, "--store", folder.path)
        #expect(empty.status == 69)
        #expect(empty.errors.contains("no list of brewers is stored in \(folder.path). "))

        #expect(try await brewery("--store", folder.path).status == 0)
        let run = try await brewery("--server", address, "--store", folder.path)
        #expect(run.status == 0)
        #expect(run.errors.hasPrefix("brewery: the server at \(address) cannot be reached"))
        #expect(
            run.output.contains(#/Offline. The list of brewers, stored \d+ s ago:\n    #1 Long Trail \(vermont\)\n/#))
    }

    @Test("A server that cannot be reached results in one error sentence and exit status 69")
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

    @Test("--server uses a running server, and a server that is not a brewery server is reported")
    func otherServer() async throws {
        let server = try MockServer.forTest()
        let run = try await brewery("--server", server.baseURLString)
        #expect(run.status == 1)
        #expect(server.receivedRequests.count == 8)
        #expect(server.receivedRequests.first?.path == "/brewers")
        #expect(run.errors.contains("is a brewery server"))
    }
}
