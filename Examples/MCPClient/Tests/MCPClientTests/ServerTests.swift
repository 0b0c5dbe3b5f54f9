import Foundation
import Testing
import WebServiceCore

@testable import MCPClient

@Suite(
    "The program with servers of the package mcp", .timeLimit(.minutes(5)),
    .enabled(if: Servers.packages != nil, "requires the package mcp (WEBSERVICE_MCP)"))
struct ServerTests {
    /// Starts a server, and calls a closure with it.
    private func withServer(_ name: String, _ body: (Script, ServerLog) async throws -> Void) async throws {
        let log = ServerLog()
        defer { log.remove() }
        let server = try await blocking { try Script(name, log: log.file) }
        defer { server.stop() }
        try await body(server, log)
    }

    @Test("Every tool is listed, described and called", arguments: ["stateful", "stateless"])
    func tools(name: String) async throws {
        try await withServer(name) { server, log in
            let list = try await ProgramRun.run(["tools", server.url])
            #expect(list.status == 0)
            #expect(list.errors == "")
            let names = list.output.split(separator: "\n").map { $0.prefix { $0 != "\t" } }
            #expect(
                names == [
                    "echo", "add", "mirror", "picture", "fail", "count", "put", "slow", "crash", "poll", "ask", "ping",
                    "grow",
                ])
            let description = try await ProgramRun.run(["tools", server.url, "add"]).output
            #expect(description.hasPrefix("add\tAdds two integers.\n{"))

            // The words of a call, its output and its exit status.
            let calls: [([String], String, Int32)] = [
                (["echo", "text=5"], "5\n", 0), (["echo", "text=a=b"], "a=b\n", 0), (["add", "a=1", "b=2"], "3\n", 0),
                (["mirror", #"point={"x": 1, "y": 2}"#], "{\n  \"x\": -1,\n  \"y\": -2\n}\n", 0),
                (["picture"], "[image, image/png; --json prints it]\n", 0), (["fail", "reason=empty"], "", 1),
                (["count", "id=1"], "count 1\n", 0), (["put", "id=1", "milliseconds=5"], "put 1\n", 0),
                (["slow", "id=1", "steps=3"], "slow 1\n", 0), (["poll", "id=1"], "poll 1\n", 0),
                (["ask"], name == "stateful" ? "error -32601\n" : "error -32600\n", 0),
                (["grow", "name=new"], "new\n", 0), (["new"], "new\n", 0),
            ]
            for (words, output, status) in calls {
                let call = try await ProgramRun.run(["call", server.url] + words)
                #expect(call.output == output)
                #expect(call.status == status, "\(call.errors)")
            }
            for tool in ["count", "put", "slow", "poll"] {
                #expect(log.lines.filter { $0.hasSuffix("\(tool) 1") } == ["call \(tool) 1", "effect \(tool) 1"])
            }
            let json = try await ProgramRun.run(["call", server.url, "mirror", #"point={"x":1,"y":2}"#, "--json"])
            #expect(json.output.contains(#""structuredContent": {"x": -1, "y": -2}"#))
            let failure = try await ProgramRun.run(["call", server.url, "fail", "reason=empty"])
            #expect(failure.errors == "mcp-client: Error executing tool fail: empty\n")

            let crash = try await ProgramRun.run(["call", server.url, "crash", "id=1", "after=true"])
            #expect(crash.status == 75)
            #expect(crash.errors.hasPrefix("mcp-client: there is no result, and the call may have taken effect"))
            #expect(log.lines.filter { $0.hasSuffix("crash 1") } == ["call crash 1", "effect crash 1"])
        }
    }

    @Test("A ping and a change of the list arrive on the stream of the session")
    func stream() async throws {
        try await withServer("stateful") { server, _ in
            let received = Received()
            let client = try await connectedClient(to: server.url, received: received)
            let (openings, continuation) = AsyncStream.makeStream(of: Void.self)
            let listening = Task { try await client.listen { continuation.yield() } }
            for await _ in openings { break }
            let ping = try await client.call(try await client.tool("ping"), [:])
            #expect(ping["structuredContent"]?["result"] == "pong")
            _ = try await client.call(try await client.tool("grow"), ["name": "new"])
            for _ in 0..<1_000 where received.notifications.withLock(\.isEmpty) {
                try await Task.sleep(for: .milliseconds(10))
            }
            #expect(received.notifications.withLock(\.self) == ["notifications/tools/list_changed"])
            listening.cancel()
            await client.close()
        }
    }

    @Test("Progress is received in order")
    func progress() async throws {
        try await withServer("stateful") { server, _ in
            let received = Received()
            let client = try await connectedClient(to: server.url, received: received)
            _ = try await client.call(try await client.tool("slow"), ["id": "1", "steps": 3])
            #expect(received.progress.withLock { $0.map { $0["progress"]?.int } } == [1, 2, 3])
            await client.close()
        }
    }

    @Test("Ctrl-C cancels the call at the server and ends the session")
    func interrupt() async throws {
        try await withServer("stateful") { server, log in
            let call = try await ProgramRun.run(["call", server.url, "slow", "id=1", "steps=3000"]) { process, _ in
                try await log.wait(for: "call slow 1")
                process.interrupt()
            }
            #expect(call.status == 130)
            #expect(call.errors == "mcp-client: interrupted\n")
            try await log.wait(for: "cancel slow 1")
        }
    }

    @Test("A call that takes too long is cancelled at the server, with exit status 75")
    func timeout() async throws {
        try await withServer("stateful") { server, log in
            let words = ["call", server.url, "slow", "id=1", "steps=3000", "--timeout", "10"]
            let call = try await ProgramRun.run(words)
            #expect(call.status == 75)
            try await log.wait(for: "cancel slow 1")
        }
    }
}
