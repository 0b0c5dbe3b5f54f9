import Dispatch
import Foundation
import TestSupport
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

#if os(Linux)
/// The demo on a terminal: the program is connected to a pseudo-terminal of the system.
@Suite("The brewery demo on a terminal", .permit)
struct BreweryTerminalTests {
    /// The side of a pseudo-terminal that a person sees, and that of the program.
    private struct Terminal {
        let person: FileHandle
        let program: FileHandle

        init(columns: UInt16) throws {
            let number = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
            try #require(number >= 0)
            person = FileHandle(fileDescriptor: number, closeOnDealloc: true)
            var (isLocked, index): (Int32, Int32) = (0, 0)
            // TIOCSPTLCK and TIOCGPTN, which are too complex for Swift to import them.
            try #require(ioctl(number, 0x4004_5431, &isLocked) == 0 && ioctl(number, 0x8004_5430, &index) == 0)
            let other = open("/dev/pts/\(index)", O_RDWR | O_NOCTTY | O_CLOEXEC)
            try #require(other >= 0)
            program = FileHandle(fileDescriptor: other, closeOnDealloc: true)
            resize(columns)
        }

        func resize(_ columns: UInt16) {
            var size = winsize(ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
            _ = ioctl(person.fileDescriptor, UInt(TIOCSWINSZ), &size)
        }
    }

    /// Runs the demo with both of its outputs on a terminal.
    ///
    /// - Returns: The exit status, and what the terminal received.
    private func run(
        _ arguments: String..., columns: UInt16, variables: [String: String] = [:],
        while body: @escaping @Sendable (Terminal) async throws -> Void = { _ in }
    ) async throws -> (status: Int32, screen: String) {
        let terminal = try Terminal(columns: columns)
        let process = ChildProcess(
            programPath("brewery"), arguments, environment: Self.environment(variables), input: .null,
            output: .file(terminal.program), errors: .file(terminal.program))
        try process.run()
        try terminal.program.close()
        async let screen = blocking {
            var screen: [UInt8] = []
            var part = [UInt8](repeating: 0, count: 1 << 16)
            // At the end of the program, the terminal reports an error.
            while case let count = read(terminal.person.fileDescriptor, &part, part.count), count > 0 {
                screen += part[..<count]
            }
            return screen
        }
        try await body(terminal)
        let status = try await blocking { process.waitUntilExit() }
        let text = String(decoding: try await screen, as: UTF8.self).replacingOccurrences(of: "\r\n", with: "\n")
        return (status, text)
    }

    private static func environment(_ variables: [String: String]) -> [String: String] {
        let inherited = ProcessInfo.processInfo.environment.filter {
            !["NO_COLOR", "CLICOLOR_FORCE"].contains($0.key)
        }
        return inherited.merging(["TERM": "xterm"]) { $1 }.merging(variables) { $1 }
    }

    private static func plain(_ text: String) -> String {
        text.replacing(/\u{1B}\[[0-9]*[mK]/, with: "")
    }

    @Test("Lines are broken at spaces, at the width of the terminal", arguments: [20, 40, 80, 200])
    func width(columns: UInt16) async throws {
        let run = try await run(columns: columns)
        #expect(run.status == 0)
        let lines = Self.plain(run.screen).split(separator: "\n")
        let long = lines.filter { $0.count > columns && $0.drop { $0 == " " }.contains(" ") }
        #expect(long == [])
        #expect(lines.contains("Done."))
        #expect(lines.contains { $0.count > columns / 2 })
    }

    @Test("A terminal without columns has 80")
    func noColumns() async throws {
        let run = try await run("--help", columns: 0)
        #expect(run.status == 0)
        #expect(run.screen.split(separator: "\n").allSatisfy { $0.count <= 80 })
        #expect(run.screen.contains("Sends requests to a small brewery API, one at a time, and prints the results."))
    }

    @Test("Output is colored on a terminal only, unless NO_COLOR, TERM=dumb or CLICOLOR_FORCE says otherwise")
    func colors() async throws {
        let bold = "\u{1B}[1mList all brewers"
        #expect(try await run(columns: 80).screen.contains(bold))
        #expect(try await !run(columns: 80, variables: ["NO_COLOR": "1"]).screen.contains("\u{1B}"))
        #expect(try await !run(columns: 80, variables: ["TERM": "dumb"]).screen.contains("\u{1B}"))
        let pipe = Pipe()
        let process = ChildProcess(
            programPath("brewery"), environment: Self.environment(["CLICOLOR_FORCE": "1"]), input: .null,
            output: .pipe(pipe))
        #expect(try await process.finish(reading: pipe).output.contains(bold))
    }

    @Test("Progress stays on one line while the terminal becomes narrower, and is removed at the end")
    func progress() async throws {
        let server = try MockServer.forTest()
        let isNarrow = DispatchSemaphore(value: 0)
        var response = MockResponse(statusCode: 200) { body in
            try body.write(Data(count: 1_000_000))
            isNarrow.wait()
            try body.write(Data(count: 2_000_000))
        }
        response.headers[.contentLength] = "3000000"
        server.on(.GET, "/file", response)
        let file = TemporaryFolder.forTest().url.appendingPathComponent("ale.bin")
        let run = try await run("fetch", server.baseURLString + "/file", "--to", file.path, columns: 80) { terminal in
            _ = try await server.nextRequest()
            terminal.resize(24)
            isNarrow.signal()
        }
        #expect(run.status == 0)
        let lines = run.screen.split(separator: "\n")
        #expect(lines.count == 1, "\(run.screen.debugDescription)")
        #expect(lines.last?.hasSuffix("\r\u{1B}[Kale.bin: 3.0 MB") == true, "\(run.screen.debugDescription)")
        #expect(run.screen.contains("100 %"))
    }

    @Test("A terminal that disappears ends the program")
    func disappearing() async throws {
        let terminal = try Terminal(columns: 80)
        let process = ChildProcess(
            programPath("brewery"), ["--verbose"], input: .null, output: .file(terminal.program),
            errors: .file(terminal.program))
        try process.run()
        try terminal.program.close()
        var byte: UInt8 = 0
        #expect(read(terminal.person.fileDescriptor, &byte, 1) == 1)
        try terminal.person.close()
        #expect(try await blocking { process.waitUntilExit() } == 74)
    }
}
#endif
