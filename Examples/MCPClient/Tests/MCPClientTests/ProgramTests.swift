import Foundation
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import MCPClient

@Suite("The program", .timeLimit(.minutes(5)))
struct ProgramTests {
    @Test(
        "Wrong arguments are named, with exit status 64",
        arguments: [
            ([], "a command is missing"), (["lst", "http://h"], "there is no command 'lst'"),
            (["tools"], "tools has too few arguments"), (["listen", "http://h", "x"], "listen has too many arguments"),
            (["tools", "h"], "'h' is not an http or https URL"),
            (["tools", "http://h", "--wait"], "--wait needs a number of seconds"),
            (["tools", "http://h", "--wat", "1"], "there is no option '--wat'"),
        ])
    func usage(arguments: [String], reason: String) async throws {
        let run = try await ProgramRun.run(arguments)
        #expect(run.status == 64)
        #expect(run.errors == "mcp-client: \(reason); 'mcp-client --help' lists the commands\n")
        #expect(run.output == "")
    }

    @Test("The help and the version are printed on standard output")
    func help() async throws {
        let help = try await ProgramRun.run(["--help"])
        #expect(help.status == 0)
        #expect(help.output.hasPrefix("usage: mcp-client tools URL"))
        #expect(try await ProgramRun.run(["--version"]).output == "mcp-client 0.1.0\n")
    }

    @Test(
        "Errors of the server have an exit status for each kind",
        arguments: [(401, 77), (403, 77), (404, 1), (500, 1)])
    func statuses(status: Int, exitStatus: Int32) async throws {
        let server = try MockServer { _ in .status(status) }
        defer { server.stop() }
        #expect(try await ProgramRun.run(["tools", server.baseURLString]).status == exitStatus)
    }

    @Test("A server that cannot be reached has exit status 69")
    func unavailable() async throws {
        let server = try MockServer()
        server.stop()
        let run = try await ProgramRun.run(["tools", server.baseURLString, "--wait", "0"])
        #expect(run.status == 69)
        #expect(run.errors.hasPrefix("mcp-client: the server cannot be reached"))
    }

    @Test("The arguments of a tool are strings or JSON, by their type")
    func arguments() throws {
        let schema: JSONValue = [
            "properties": ["text": ["type": "string"], "count": ["type": "integer"], "any": [:]], "required": ["text"],
        ]
        let tool = try #require(Tool(["name": "brew", "inputSchema": schema]))
        #expect(try tool.arguments(["text=1", "count=1", "any=a"]) == ["text": "1", "count": 1, "any": "a"])
        #expect(throws: Failure.self) { try tool.arguments(["count=1"]) }
        #expect(throws: Failure.self) { try tool.arguments(["text=1", "kegs=1"]) }
        #expect(throws: Failure.self) { try tool.arguments(["text"]) }
    }

    @Test("Control characters of the server are replaced on a terminal, and not in a pipe")
    func terminal() async throws {
        let scripted = try ScriptedServer { method, message, _ in
            switch method {
            case "tools/list": ScriptedServer.result(of: message, ["tools": [["name": "brew"]]])
            case "tools/call":
                ScriptedServer.result(
                    of: message, ["content": [["type": "text", "text": "pale\u{1B}[31m ale\nstout\u{9B}2J"]]])
            default: nil
            }
        }
        defer { scripted.server.stop() }
        let words = ["call", scripted.url, "brew"]
        #expect(try await ProgramRun.run(words).output == "pale\u{1B}[31m ale\nstout\u{9B}2J\n")
        let onTerminal = try await ProgramRun.run(words, onTerminal: true)
        #expect(onTerminal.output.hasSuffix("pale [31m ale\r\nstout 2J\r\n"))
        #expect(onTerminal.status == 0)
    }

    @Test("On a terminal, the progress of a call is shown, and removed before its result")
    func progress() async throws {
        let scripted = try ScriptedServer { method, message, _ in
            switch method {
            case "tools/list": return ScriptedServer.result(of: message, ["tools": [["name": "brew"]]])
            case "tools/call":
                let parameters: JSONValue = ["progress": 1, "total": 4, "message": "mash"]
                let progress: JSONValue = ["method": "notifications/progress", "params": parameters]
                let result: JSONValue = ["content": [["type": "text", "text": "ale"]]]
                return .events([
                    ServerSentEvent(data: progress.description),
                    ServerSentEvent(data: ScriptedServer.resultText(of: message, result)),
                ])
            default: return nil
            }
        }
        defer { scripted.server.stop() }
        let words = ["call", scripted.url, "brew"]
        #expect(try await ProgramRun.run(words, onTerminal: true).output == "\r1/4 mash\u{1B}[K\r\u{1B}[Kale\r\n")
        let run = try await ProgramRun.run(words)
        #expect(run.output == "ale\n")
        #expect(run.errors == "")
    }
}
