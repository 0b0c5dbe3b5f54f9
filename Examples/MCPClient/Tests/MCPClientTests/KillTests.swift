import Foundation
import Synchronization
import Testing
import WebServiceCore

@testable import MCPClient

/// A server that is started again whenever its process has ended, behind a proxy with a constant
/// port.
private final class Site: Sendable {
    private struct State {
        var server: Script?
        var isStopped = false
        var restarts = 0
    }

    private let name: String
    private let log: URL
    private let proxy: Script
    private let state = Mutex(State())

    init(_ name: String, log: URL) throws {
        (self.name, self.log) = (name, log)
        proxy = try Script("proxy", log: log)
        try start()
    }

    var url: String { proxy.url }
    var process: pid_t { state.withLock { $0.server?.process.processIdentifier ?? 0 } }
    var restarts: Int { state.withLock(\.restarts) }

    private func start() throws {
        let server = try Script(name, log: log)
        state.withLock { $0.server = server }
        try proxy.send("target \(server.port)")
        server.process.terminationHandler = { _ in
            Thread.detachNewThread { self.restart() }
        }
    }

    private func restart() {
        guard !state.withLock(\.isStopped) else { return }
        do {
            try proxy.send("down")
            try start()
            state.withLock { $0.restarts += 1 }
        } catch {
            Issue.record(error)
        }
    }

    /// Waits until the server has been started again.
    func waitForRestart(_ number: Int) async throws {
        for _ in 0..<6_000 where restarts < number { try await Task.sleep(for: .milliseconds(10)) }
        try #require(restarts >= number)
    }

    @discardableResult
    func send(_ command: String) throws -> String { try proxy.send(command) }

    func stop() {
        let server = state.withLock { state in
            state.isStopped = true
            return state.server
        }
        server?.stop()
        proxy.stop()
    }
}

/// What happens in a round.
private enum Fault: CaseIterable {
    /// The proxy kills the server after some bytes of a response, or with a request.
    case killInResponse, killAtRequest, killBeforeRequest
    /// The test kills the server after some time.
    case killAtAnyTime
    /// A tool ends the server.
    case crashBeforeEffect, crashAfterEffect
    /// The proxy resets all connections.
    case cutInResponse, cutAtRequest, cutBeforeRequest

    var kills: Bool { ![.cutInResponse, .cutAtRequest, .cutBeforeRequest].contains(self) }

    /// The command for the proxy; `nil` if it does nothing.
    func command(_ process: pid_t) -> String? {
        let target = kills ? process : 0
        return switch self {
        case .killInResponse, .cutInResponse: "arm response \(Int.random(in: 0..<2_500)) \(target)"
        case .killAtRequest, .cutAtRequest: "arm request 0 \(target)"
        case .killBeforeRequest, .cutBeforeRequest: "arm swallow 0 \(target)"
        case .killAtAnyTime, .crashBeforeEffect, .crashAfterEffect: nil
        }
    }
}

/// A call and its outcome.
private struct Call: Sendable {
    let tool: Tool
    let id: String
    var outcome: Result<JSONValue, any Error>

    /// Returns what contradicts the log of the server.
    func faults(in lines: [String: Int]) -> [String] {
        let calls = lines["call \(tool.name) \(id)"] ?? 0
        let effects = lines["effect \(tool.name) \(id)"] ?? 0
        var faults: [String] = []
        if !tool.isRepeatable, calls > 1 || effects > 1 { faults.append("called \(calls) times") }
        switch outcome {
        case .success(let result):
            let text = result["content"]?[0]?["text"]?.string
            let expected = tool.name == "echo" ? id : "\(tool.name) \(id)"
            if text != expected { faults.append("the result is '\(text ?? "")'") }
            if tool.name != "echo", effects == 0 { faults.append("a result without an effect") }
        case .failure(let error):
            if tool.isRepeatable || !(error is ResultUnknown) { faults.append("\(error)") }
        }
        return faults.map { "\(tool.name) \(id): \($0)" }
    }
}

@Suite(
    "The server is killed, or the connection is cut, at any instant", .timeLimit(.minutes(30)), .serialized,
    .enabled(if: Servers.packages != nil, "requires the package mcp (WEBSERVICE_MCP)"))
struct KillTests {
    @Test(
        "Each call has one result or one error, and only a call that may be repeated is sent again",
        arguments: ["stateful", "stateless"])
    func kills(name: String) async throws {
        let log = ServerLog()
        defer { log.remove() }
        let site = try await blocking { try Site(name, log: log.file) }
        defer { site.stop() }
        let client = try await connectedClient(to: site.url)
        let tools = Dictionary(try await client.tools().map { ($0.name, $0) }) { $1 }
        var calls: [Call] = []
        var (round, count, kills) = (0, 0, 0)
        while count < amount(9, soak: 60) {
            let fault = Fault.allCases[round % Fault.allCases.count]
            let restarts = site.restarts
            round += 1
            let id = "\(round)"
            if let command = fault.command(site.process) { try site.send(command) }
            async let outcomes = Self.outcomes(of: client, tools, fault, id)
            if fault == .killAtAnyTime {
                try await Task.sleep(for: .milliseconds(.random(in: 0...60)))
                kill(site.process, SIGKILL)
            }
            calls += try await outcomes
            let hasFired = try site.send("disarm") == "fired" || fault.command(0) == nil
            if hasFired { count += 1 }
            if hasFired, fault.kills {
                kills += 1
                try await site.waitForRestart(restarts + 1)
            }
        }
        let lines = Dictionary(log.lines.map { ($0, 1) }, uniquingKeysWith: +)
        #expect(calls.flatMap { $0.faults(in: lines) } == [])
        let results = calls.count { (try? $0.outcome.get()) != nil }
        let repeated = calls.count { lines["call \($0.tool.name) \($0.id)", default: 0] > 1 }
        print(
            "\(name): \(kills) kills and \(count - kills) cuts, \(calls.count) calls, \(results) results, "
                + "\(calls.count - results) without a result, \(repeated) repeated")
        #expect(results > 0)
    }

    /// Returns the outcomes of the calls of a round.
    private static func outcomes(
        of client: Client, _ tools: [String: Tool], _ fault: Fault, _ id: String
    ) async throws -> [Call] {
        var arguments: [(String, JSONValue)] = [
            ("count", ["milliseconds": 10]), ("put", ["milliseconds": 20]), ("slow", ["steps": 4, "milliseconds": 10]),
            ("echo", ["text": .string(id)]),
        ]
        if fault == .crashBeforeEffect { arguments.append(("crash", ["after": false])) }
        if fault == .crashAfterEffect { arguments.append(("crash", ["after": true])) }
        return try await withThrowingTaskGroup { group in
            for (name, values) in arguments {
                let tool = try #require(tools[name])
                let values = (values.object ?? [:]).merging(["id": .string(id)]) { $1 }
                group.addTask {
                    do {
                        let result = try await client.call(tool, .object(values))
                        return Call(tool: tool, id: id, outcome: .success(result))
                    } catch {
                        return Call(tool: tool, id: id, outcome: .failure(error))
                    }
                }
            }
            var calls: [Call] = []
            for try await call in group { calls.append(call) }
            return calls
        }
    }

    @Test("A result that the server has stored is fetched, wherever the stream is cut after its first event")
    func stored() async throws {
        let log = ServerLog()
        defer { log.remove() }
        let site = try await blocking { try Site("stateful", log: log.file) }
        defer { site.stop() }
        let client = try await connectedClient(to: site.url)
        let tools = try await client.tools()
        var cuts = 0
        var round = 0
        while cuts < amount(8, soak: 60) {
            round += 1
            let tool = try #require(tools.first { $0.name == (round.isMultiple(of: 2) ? "slow" : "poll") })
            // The head and the first event are shorter.
            try site.send("arm response \(Int.random(in: 450..<1_500)) 0")
            let arguments: JSONValue = ["id": .string("\(round)"), "steps": 8, "milliseconds": 10]
            let result = try await client.call(tool, arguments)
            #expect(result["structuredContent"]?["result"]?.string == "\(tool.name) \(round)")
            #expect(log.lines.filter { $0 == "call \(tool.name) \(round)" }.count == 1)
            if try site.send("disarm") == "fired" { cuts += 1 }
        }
        print("\(cuts) cuts in \(round) calls")
    }

    @Test("A call waits for a server that is being started again")
    func restart() async throws {
        let log = ServerLog()
        defer { log.remove() }
        let site = try await blocking { try Site("stateful", log: log.file) }
        defer { site.stop() }
        try site.send("down")
        kill(site.process, SIGKILL)
        let call = try await ProgramRun.run(["call", site.url, "count", "id=1", "--wait", "60"])
        #expect(call.output == "count 1\n")
        #expect(call.status == 0)
        #expect(log.lines == ["call count 1", "effect count 1"])
    }
}
