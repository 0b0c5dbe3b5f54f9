import Foundation
import Synchronization
import Testing
import WebServiceCore
import WebServiceFaults
import WebServiceMocking

@testable import MCPClient

/// How a server responds to a call of a tool.
private enum Style: CaseIterable {
    /// With a JSON object.
    case json
    /// With the events of a stream.
    case events
    /// With the first event of a stream, whose other events are requested one at a time.
    case polled
}

/// A server with one tool, which counts the effects of the calls.
private final class ModelServer: Sendable {
    private struct State {
        var sessions: Set<String> = []
        var sessionCount = 0
        /// The IDs of the requests that called the tool, and the numbers in their arguments.
        var calls: [(id: String, number: Int)] = []
        var cancelled: Set<String> = []
        /// The events of each call.
        var streams: [[ServerSentEvent]] = []
    }

    private let style: Style
    private let isIdempotent: Bool
    private let state = Mutex(State())

    init(_ style: Style, isIdempotent: Bool) {
        (self.style, self.isIdempotent) = (style, isIdempotent)
    }

    /// The numbers of the calls that had an effect, once for each effect.
    var effects: [Int] { state.withLock { $0.calls.map(\.number) } }
    /// Whether the client has asked the server to cancel all calls.
    var isCancelled: Bool { state.withLock { $0.cancelled == Set($0.calls.map(\.id)) } }
    var sessions: Set<String> { state.withLock(\.sessions) }

    func respond(to request: ReceivedRequest) throws -> MockResponse {
        let session = request.headers["Mcp-Session-Id"]
        let message = request.method == .POST ? try request.json() : [:]
        let method = message["method"]?.string ?? ""
        return state.withLock { state in
            if method == "initialize" {
                state.sessionCount += 1
                state.sessions.insert("session-\(state.sessionCount)")
                let result: JSONValue = ["protocolVersion": "2025-11-25", "capabilities": [:], "serverInfo": [:]]
                return ScriptedServer.result(of: message, result)
                    .header("Mcp-Session-Id", "session-\(state.sessionCount)")
            }
            guard let session, state.sessions.contains(session) else { return .status(404) }
            switch (request.method, method) {
            case (.DELETE, _):
                state.sessions.remove(session)
                return .status(204)
            case (.GET, _): return events(after: request.headers["Last-Event-ID"] ?? "", state)
            case (_, "tools/list"):
                let tool: JSONValue = ["name": "brew", "annotations": ["idempotentHint": .bool(isIdempotent)]]
                return ScriptedServer.result(of: message, ["tools": [tool]])
            case (_, "tools/call"): return call(message, &state)
            case (_, "notifications/cancelled"):
                state.cancelled.insert(message["params"]?["requestId"]?.string ?? "")
                return .status(202)
            default: return .status(202)
            }
        }
    }

    private func call(_ message: JSONValue, _ state: inout State) -> MockResponse {
        let arguments = message["params"]?["arguments"] ?? nil
        state.calls.append((message["id"]?.string ?? "", arguments["number"]?.int ?? -1))
        guard style != .json else { return ScriptedServer.result(of: message, arguments) }
        let token = message["params"]?["_meta"]?["progressToken"] ?? nil
        let progress: JSONValue = [
            "method": "notifications/progress", "params": ["progressToken": token, "progress": 1],
        ]
        let ping = #"{"id": 1, "method": "ping"}"#
        let data = ["", progress.description, ping, ScriptedServer.resultText(of: message, arguments)]
        let stream = state.streams.count
        state.streams.append(data.enumerated().map { ServerSentEvent(data: $1, id: "\(stream)-\($0)") })
        return .events(style == .events ? state.streams[stream] : [state.streams[stream][0]])
    }

    private func events(after id: String, _ state: State) -> MockResponse {
        let parts = id.split(separator: "-").compactMap { Int($0) }
        guard parts.count == 2, parts[0] < state.streams.count else { return .status(405) }
        let rest = state.streams[parts[0]].dropFirst(parts[1] + 1)
        return .events(style == .events ? Array(rest) : Array(rest.prefix(1)))
    }
}

@Suite("The client with each fault of each request", .timeLimit(.minutes(5)), .serialized)
struct FaultTests {
    private struct Outcome: Sendable {
        var results: [Result<JSONValue, any Error>]
        var progress: [Int]

        var isSuccess: Bool { results.allSatisfy { (try? $0.get()) != nil } }
    }

    /// The standard faults, the end of the session, a connection that was refused before anything was
    /// sent, and a proxy that has lost the server.
    private static let faults =
        Fault.standard + [
            Fault("404", afterEffect: false) { _ in .status(404) },
            Fault("unsent", afterEffect: false) { _ in .error(URLError(.cannotConnectToHost).markingRequestNotSent()) },
            Fault("502After", afterEffect: true) { _ in .status(502) },
        ]

    private static func explorer(_ style: Style, isIdempotent: Bool) -> FaultExplorer<ModelServer> {
        var budget = FaultExplorer<ModelServer>.Budget()
        budget.runs = amount(300, soak: 3_000)
        budget.depth = 2
        var explorer = FaultExplorer(faults: faults, budget: budget) { mock in
            let server = ModelServer(style, isIdempotent: isIdempotent)
            mock.on(.where("any request") { _ in true }) { try server.respond(to: $0) }
            return server
        }
        explorer.baseURLString = "https://mock.test/mcp"
        explorer.name = { request in
            let place = request.url?.host == "mock.test" ? "" : "elsewhere: "
            guard request.method == .POST else { return "\(place)\(request.method)" }
            let message = try? request.json()
            let number = message?["params"]?["arguments"]?["number"]?.int
            return place + (message?["method"]?.string ?? "reply") + (number.map { "/\($0)" } ?? "")
        }
        return explorer
    }

    @Test(
        "Each call ends with one result or error, which agrees with the effects on the server",
        arguments: Style.allCases.flatMap { [($0, false, 1), ($0, true, 1)] } + [(.json, false, 2), (.events, true, 2)])
    private func calls(style: Style, isIdempotent: Bool, count: Int) async {
        let report = await Self.explorer(style, isIdempotent: isIdempotent).explore { mock in
            let url = try #require(mock.service.baseURL)
            mock.service.interceptors = try Program.service(for: url, wait: .seconds(10)).interceptors
            let received = Received()
            let transport = Transport(mock.service) { received.add($0, $1) }
            let client = Client(mock.service, transport, timeout: .seconds(20))
            do {
                try await client.connect()
                let tool = try await client.tool("brew")
                let results = await Self.results(of: client, tool, count)
                await client.close()
                let progress = received.progress.withLock { $0.compactMap { $0["progress"]?.int } }
                return Outcome(results: results, progress: progress)
            } catch {
                await client.close()
                throw error
            }
        } check: { run in
            try Self.check(run, isIdempotent)
            try Self.checkRecovery(run)
            guard style != .json, !isIdempotent, count == 1, let output = run.output else { return }
            let limits = output.isSuccess ? 1...1 : 0...1
            try run.require(limits.contains(output.progress.count), "the progress is reported more or less than once")
        }
        print("\(style), \(isIdempotent ? "idempotent" : "not idempotent"), \(count) at once: \(report)")
        #expect(report.failures.isEmpty, "\(report)")
        #expect(report.problems == [])
        #expect(report.runs > 30)
    }

    /// Returns the results of calls that are made at the same time.
    private static func results(of client: Client, _ tool: Tool, _ count: Int) async -> [Result<JSONValue, any Error>] {
        await withTaskGroup { group in
            for number in 0..<count {
                group.addTask { (number, await result { try await client.call(tool, ["number": JSONValue(number)]) }) }
            }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    private static func result(of call: () async throws -> JSONValue) async -> Result<JSONValue, any Error> {
        do { return .success(try await call()) } catch { return .failure(error) }
    }

    private static func check(_ run: FaultRun<ModelServer, Outcome>, _ isIdempotent: Bool) throws {
        try run.require(.everyCallEnds)
        try run.require(!run.requests.contains(where: \.isAfterEnd), "a request follows the end of the client")
        try run.require(.noCredential(after: .DELETE, "/mcp", fields: ["Mcp-Session-Id"]))
        try run.require(.noCredentialElsewhere(fields: ["Mcp-Session-Id"]))
        try run.require(.atMost(120))
        let effects = run.model.effects
        if !isIdempotent { try run.require(Set(effects).count == effects.count, "the tool was called twice") }
        for (number, result) in (run.output?.results ?? []).enumerated() {
            let hadEffect = effects.contains(number)
            switch result {
            case .success(let value):
                try run.require(value == ["number": JSONValue(number)], "the result is that of another call")
                try run.require(hadEffect, "success without an effect")
            case .failure(let error) where hadEffect && !isIdempotent:
                let isUnknown = [.unknown, .interrupted].contains(Failure(error).status)
                try run.require(isUnknown, "the tool was called, but the error is \(error)")
            case .failure: break
            }
        }
    }

    /// Checks what must follow if there is no fault, or a single one.
    private static func checkRecovery(_ run: FaultRun<ModelServer, Outcome>) throws {
        let hasResults = run.output?.isSuccess == true
        if run.plan.steps.isEmpty {
            try run.require(hasResults, "no result without a fault")
            try run.require(run.model.sessions.isEmpty, "the session is not ended")
        }
        guard run.plan.steps.count == 1, let step = run.plan.steps.first, !step.isLasting else { return }
        switch (String(step.exchange.prefix { $0 != "#" }), step.fault) {
        case ("tools/call/0", "slow"), ("tools/call/0", "stalledAfter"), ("tools/call/0", "cancelledAfter"):
            if run.output?.results.count == 1 {
                try run.require(run.model.isCancelled, "the server is not asked to cancel the call")
            }
        case ("tools/call/0", "404"), (_, "unsent"), ("GET", "refused"), ("GET", "lost"), ("GET", "503"):
            try run.require(hasResults, "a fault without a consequence is not recovered from")
        case ("GET", let fault) where fault.hasPrefix("cut"):
            try run.require(hasResults, "the events are not requested again")
        case ("reply", let fault) where !["cancelled", "cancelledAfter"].contains(fault):
            try run.require(hasResults, "a call has no result because of the reply to another message")
        default: break
        }
    }
}
