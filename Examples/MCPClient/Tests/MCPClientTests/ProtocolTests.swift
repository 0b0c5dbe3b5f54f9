import Foundation
import Synchronization
import Testing
import WebServiceCore
import WebServiceMocking

@testable import MCPClient

private let tool = Tool(["name": "brew"])
private let repeatable = Tool(["name": "look", "annotations": ["readOnlyHint": true]])

@Suite("The protocol", .timeLimit(.minutes(5)))
struct ProtocolTests {
    @Test("A session is begun with a request without an ID, and each further request contains the ID and the revision")
    func session() async throws {
        let scripted = try ScriptedServer { _, _, _ in nil }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        _ = try await client.tools()
        await client.close()

        let requests = scripted.server.receivedRequests
        #expect(requests.map(\.method) == [.POST, .POST, .POST, .DELETE])
        #expect(requests.map { $0.headers["Mcp-Session-Id"] } == [nil, "session-1", "session-1", "session-1"])
        let versions = requests.map { $0.headers["MCP-Protocol-Version"] }
        #expect(versions == [nil, "2025-11-25", "2025-11-25", "2025-11-25"])
        #expect(requests[0].headers["Accept"] == "application/json, text/event-stream")
        let first = try requests[0].json()
        #expect(first["params"]?["protocolVersion"]?.string == "2025-11-25")
        #expect(try requests[1].json()["method"]?.string == "notifications/initialized")
        #expect(try requests[1].json()["id"] == nil)
    }

    @Test("The revision of the server is used, and without a session ID, none is sent and no session is ended")
    func stateless() async throws {
        let scripted = try ScriptedServer(session: nil, version: "2025-06-18") { _, _, _ in nil }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        _ = try await client.tools()
        await client.close()
        let requests = scripted.server.receivedRequests
        #expect(requests.map { $0.headers["MCP-Protocol-Version"] } == [nil, "2025-06-18", "2025-06-18"])
        #expect(requests.allSatisfy { $0.headers["Mcp-Session-Id"] == nil })
    }

    @Test("A server with another revision is refused")
    func version() async throws {
        let scripted = try ScriptedServer(version: "2024-11-05") { _, _, _ in nil }
        defer { scripted.server.stop() }
        let error = await #expect(throws: Failure.self) { try await connectedClient(to: scripted.url) }
        #expect(error?.reason == "the server requires revision '2024-11-05' of the protocol, which is not supported")
    }

    @Test("Of the scopes that the server requires, only those that a shell does not interpret are suggested")
    func scopes() async throws {
        let challenge = #"Bearer error="insufficient_scope", scope="tools:read a';id $(b)""#
        let scripted = try ScriptedServer { method, _, _ in
            method == "tools/list" ? .status(403).header("WWW-Authenticate", challenge) : nil
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        let error = await #expect(throws: WebServiceError.self) { try await client.tools() }
        let expected = "the server requires a log-in; run 'mcp-client login URL' with --scope 'tools:read'"
        #expect(error.map { Failure($0).reason } == expected)
    }

    @Test("All pages of the list are read, and a repeated cursor ends it")
    func pages() async throws {
        let scripted = try ScriptedServer { method, message, _ in
            guard method == "tools/list" else { return nil }
            let cursor = message["params"]?["cursor"]?.string
            let page: JSONValue = ["tools": [["name": .string(cursor ?? "first")]], "nextCursor": "second"]
            return ScriptedServer.result(of: message, page)
        }
        defer { scripted.server.stop() }
        let tools = try await connectedClient(to: scripted.url).tools()
        #expect(tools.map(\.name) == ["first", "second"])
    }

    @Test("The result of a call is an event, after notifications of progress, a ping and an unsupported request")
    func events() async throws {
        let scripted = try ScriptedServer { method, message, _ in
            guard method == "tools/call" else { return nil }
            let token = message["params"]?["_meta"]?["progressToken"] ?? nil
            let progress: JSONValue = [
                "method": "notifications/progress", "params": ["progressToken": token, "progress": 1],
            ]
            let earlier: JSONValue = ["id": "another", "result": ["content": []]]
            return .events([
                ServerSentEvent(data: "", id: "0"), ServerSentEvent(data: progress.description),
                ServerSentEvent(data: #"{"id": 7, "method": "ping"}"#),
                ServerSentEvent(data: #"{"id": "a", "method": "sampling/createMessage", "params": {}}"#),
                ServerSentEvent(data: earlier.description),
                ServerSentEvent(data: ScriptedServer.resultText(of: message, ["text": "ale"])),
            ])
        }
        defer { scripted.server.stop() }
        let received = Received()
        let client = try await connectedClient(to: scripted.url, received: received)
        let result = try await client.call(try #require(tool), [:])
        #expect(result == ["text": "ale"])
        #expect(received.progress.withLock(\.self).map { $0["progress"]?.int } == [1])
        let replies = try scripted.server.receivedRequests.filter { $0.method == .POST }.map { try $0.json() }
            .filter { $0["method"] == nil }
        #expect(replies.map { $0["id"] } == [7, "a"])
        #expect(replies.first?["result"] == [:])
        #expect(replies.last?["error"]?["code"]?.int == -32601)
    }

    @Test("The error of a message is that of the call")
    func remoteError() async throws {
        let scripted = try ScriptedServer { method, message, _ in
            guard method == "tools/call" else { return nil }
            let error: JSONValue = ["code": -32602, "message": "no such tool"]
            return .json(["id": message["id"] ?? nil, "error": error] as JSONValue)
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        let error = await #expect(throws: RemoteError.self) { try await client.call(try #require(tool), [:]) }
        #expect(error?.code == -32602)
        #expect(scripted.requests("tools/call").count == 1)
    }

    @Test("A broken stream is continued after its last event, not before the time that the server sets")
    func continuation() async throws {
        let call = Mutex<(message: JSONValue, time: ContinuousClock.Instant)?>(nil)
        let waited = Mutex<[Duration]>([])
        let scripted = try ScriptedServer { method, message, request in
            switch method {
            case "tools/call":
                call.withLock { $0 = (message, .now) }
                return ScriptedServer.event("id: e1\nretry: 400\ndata:\n\n") { _ in
                    throw URLError(.networkConnectionLost)
                }
            case "GET":
                guard let (message, time) = call.withLock(\.self) else { return .status(500) }
                waited.withLock { $0.append(time.duration(to: .now)) }
                let id = request.headers["Last-Event-ID"]
                guard id == "e2" else {
                    return .events([ServerSentEvent(data: "", id: "e2", retry: .milliseconds(200))])
                }
                let text = ScriptedServer.resultText(of: message, ["text": "ale"])
                return .events([ServerSentEvent(data: text, id: "e3")])
            default: return nil
            }
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        let result = try await client.call(try #require(tool), [:])
        #expect(result == ["text": "ale"])
        #expect(scripted.requests("tools/call").count == 1)
        let gets = scripted.requests("GET")
        #expect(gets.map { $0.headers["Last-Event-ID"] } == ["e1", "e2"])
        #expect(gets.allSatisfy { $0.headers["Mcp-Session-Id"] == "session-1" })
        #expect(gets.allSatisfy { $0.headers["Accept"] == "text/event-stream" })
        let times = waited.withLock(\.self)
        #expect(try #require(times.first) >= .milliseconds(400))
        #expect(try #require(times.last) - #require(times.first) >= .milliseconds(200))
    }

    @Test("A stream that the server still considers open is continued later")
    func conflict() async throws {
        let call = Mutex<(message: JSONValue, count: Int)>((nil, 0))
        let scripted = try ScriptedServer { method, message, _ in
            switch method {
            case "tools/call":
                call.withLock { $0.message = message }
                return .events([ServerSentEvent(data: "", id: "e1")])
            case "GET":
                let (message, count) = call.withLock { call in
                    call.count += 1
                    return call
                }
                guard count > 2 else { return .status(409) }
                let text = ScriptedServer.resultText(of: message, ["text": "ale"])
                return .events([ServerSentEvent(data: text, id: "e2")])
            default: return nil
            }
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        #expect(try await client.call(try #require(tool), [:]) == ["text": "ale"])
        #expect(scripted.requests("tools/call").count == 1)
    }

    @Test("If the log-in ends while a stream is continued, the result of the call is unknown")
    func logInEnded() async throws {
        let scripted = try ScriptedServer { method, _, _ in
            switch method {
            case "tools/call": .events([ServerSentEvent(data: "", id: "e1")])
            case "GET": .status(401)
            default: nil
            }
        }
        defer { scripted.server.stop() }
        let service = try Program.service(for: #require(URL(string: scripted.url)), wait: .seconds(60))
        let token = Credential.bearer("a")
        let tokens = TokenSource({ token }) { _ -> Credential? in throw Failure(.noPermission, "refused") }
        service.interceptors.append(Authentication(tokens))
        let client = Client(service, Transport(service) { _, _ in }, timeout: .seconds(60))
        try await client.connect()
        await #expect(throws: ResultUnknown.self) { try await client.call(try #require(tool), [:]) }
    }

    @Test("A continued stream that sends nothing is opened again")
    func silence() async throws {
        let call = Mutex<JSONValue>(nil)
        let scripted = try ScriptedServer { method, message, request in
            switch method {
            case "tools/call":
                call.withLock { $0 = message }
                return .events([ServerSentEvent(data: "", id: "e1")])
            case "GET" where request.headers["Last-Event-ID"] == "e1":
                return ScriptedServer.event("id: e2\ndata:\n\n") { $0.pause(for: .seconds(60)) }
            case "GET":
                let text = ScriptedServer.resultText(of: call.withLock(\.self), ["text": "ale"])
                return .events([ServerSentEvent(data: text, id: "e3")])
            default: return nil
            }
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url, pollInterval: .milliseconds(300))
        #expect(try await client.call(try #require(tool), [:]) == ["text": "ale"])
        // A request whose response takes longer than the interval is sent again.
        let ids = scripted.requests("GET").compactMap { $0.headers["Last-Event-ID"] }
        #expect(ids == ids.sorted())
        #expect(Set(ids) == ["e1", "e2"])
    }

    @Test("A call whose response is lost is not sent again, unless a repetition has no further effect")
    func lost() async throws {
        let scripted = try ScriptedServer { method, _, _ in
            guard method == "tools/call" else { return nil }
            var response = MockResponse.status(200)
            response.wire = .disconnect
            return response
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        await #expect(throws: ResultUnknown.self) { try await client.call(try #require(tool), [:]) }
        #expect(scripted.requests("tools/call").count == 1)
        let repeating = Task { try await client.call(try #require(repeatable), [:]) }
        while scripted.requests("tools/call").count < 3 { _ = try await scripted.server.nextRequest() }
        repeating.cancel()
        await #expect(throws: (any Error).self) { try await repeating.value }
        let calls = scripted.requests("tools/call").dropFirst()
        #expect(Set(try calls.map { try $0.json()["id"]?.string }).count == calls.count)
        let impatient = try await connectedClient(to: scripted.url, timeout: .seconds(1))
        await #expect(throws: TimedOut.self) { try await impatient.call(try #require(repeatable), [:]) }
    }

    @Test("A stream without IDs cannot be continued")
    func withoutIDs() async throws {
        let scripted = try ScriptedServer { method, _, _ in
            method == "tools/call" ? .events([ServerSentEvent(data: #"{"method": "notifications/message"}"#)]) : nil
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        await #expect(throws: ResultUnknown.self) { try await client.call(try #require(tool), [:]) }
        #expect(scripted.requests("tools/call").count == 1)
        #expect(scripted.requests("GET").isEmpty)
    }

    @Test("If the confirmation of a session is lost, another session is begun")
    func lostConfirmation() async throws {
        let confirmations = Mutex(0)
        let scripted = try ScriptedServer { method, _, _ in
            guard method == "notifications/initialized" else { return nil }
            let number = confirmations.withLock { count in
                count += 1
                return count
            }
            var response = MockResponse.status(number == 2 ? 404 : 202)
            if number == 1 { response.wire = .disconnect }
            return response
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        _ = try await client.tools()
        #expect(scripted.requests("initialize").count == 3)
        #expect(scripted.requests("tools/list").map { $0.headers["Mcp-Session-Id"] } == ["session-3"])
    }

    @Test("After status 404, all calls wait for one new session and are then sent again")
    func newSession() async throws {
        let scripted = try ScriptedServer { method, message, request in
            guard method == "tools/call" else { return nil }
            return request.headers["Mcp-Session-Id"] == "session-1"
                ? .status(404) : ScriptedServer.result(of: message, message["params"]?["arguments"] ?? nil)
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        let results = try await withThrowingTaskGroup { group in
            for number in 0..<5 {
                group.addTask { try await client.call(try #require(tool), ["number": JSONValue(number)]) }
            }
            var results: [Int] = []
            for try await result in group { results.append(try #require(result["number"]?.int)) }
            return results
        }
        #expect(results.sorted() == [0, 1, 2, 3, 4])
        let starts = scripted.requests("initialize")
        #expect(starts.map { $0.headers["Mcp-Session-Id"] } == [nil, nil])
        #expect(starts.map { $0.headers["MCP-Protocol-Version"] } == [nil, nil])
        let confirmations = scripted.requests("notifications/initialized")
        #expect(confirmations.map { $0.headers["Mcp-Session-Id"] } == ["session-1", "session-2"])
    }

    @Test(
        "While a session is begun, other requests are still sent in the earlier one",
        arguments: ["initialize", "notifications/initialized"])
    func unfinishedSession(refused: String) async throws {
        let count = Mutex(0)
        let scripted = try ScriptedServer { method, _, request in
            switch method {
            case refused:
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                // The second session stays unfinished.
                return number == 2 ? .status(503) : nil
            case "tools/list" where ["session-1", nil].contains(request.headers["Mcp-Session-Id"]): return .status(404)
            default: return nil
            }
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        await #expect(throws: WebServiceError.self) { try await client.tools() }
        _ = try await client.tools()
        let lists = scripted.requests("tools/list")
        #expect(lists.allSatisfy { $0.headers["MCP-Protocol-Version"] == "2025-11-25" })
        let sessions = lists.map { $0.headers["Mcp-Session-Id"] }
        #expect(sessions == ["session-1", "session-1", refused == "initialize" ? "session-2" : "session-3"])
    }

    @Test("If the session ends while a stream is continued, the call is not sent again")
    func sessionEnded() async throws {
        let scripted = try ScriptedServer { method, _, _ in
            switch method {
            case "tools/call": .events([ServerSentEvent(data: "", id: "e1")])
            case "GET": .status(404)
            default: nil
            }
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url)
        await #expect(throws: ResultUnknown.self) { try await client.call(try #require(tool), [:]) }
        #expect(scripted.requests("tools/call").count == 1)
    }

    @Test("A call that is no longer awaited is cancelled at the server", arguments: [false, true])
    func cancellation(byTimeout: Bool) async throws {
        let scripted = try ScriptedServer { method, _, _ in
            guard method == "tools/call" else { return nil }
            var response = MockResponse.status(200)
            response.wire = .noResponse
            return response
        }
        defer { scripted.server.stop() }
        let client = try await connectedClient(to: scripted.url, timeout: .seconds(byTimeout ? 10 : 60))
        let task = Task { try await client.call(try #require(tool), [:]) }
        while scripted.requests("tools/call").isEmpty { _ = try await scripted.server.nextRequest() }
        if byTimeout {
            await #expect(throws: ResultUnknown.self) { try await task.value }
        } else {
            task.cancel()
            await #expect(throws: (any Error).self) { try await task.value }
        }
        let cancellation = try #require(try scripted.requests("notifications/cancelled").first?.json())
        let id = try #require(try scripted.requests("tools/call").first?.json()["id"])
        #expect(cancellation["params"]?["requestId"] == id)
    }

    @Test("Notifications are received on a stream, which is continued, and begun anew in a new session")
    func listening() async throws {
        let count = Mutex(0)
        let scripted = try ScriptedServer { method, _, request in
            guard method == "GET" else { return nil }
            let number = count.withLock { count in
                count += 1
                return count
            }
            let event = ServerSentEvent(data: #"{"method": "notifications/tools/list_changed"}"#, id: "e\(number)")
            let stray = ServerSentEvent(data: #"{"id": null, "error": {"code": -32700, "message": "a reply"}}"#)
            return [2: .status(409), 4: .status(404), 6: .status(405)][number] ?? .events([stray, event])
        }
        defer { scripted.server.stop() }
        let received = Received()
        let client = try await connectedClient(to: scripted.url, received: received)
        let opened = Mutex(0)
        let error = await #expect(throws: WebServiceError.self) {
            try await client.listen { opened.withLock { $0 += 1 } }
        }
        #expect(error?.status == 405)
        #expect(received.notifications.withLock(\.count) == 3)
        #expect(opened.withLock(\.self) == 3)
        let gets = scripted.requests("GET")
        #expect(gets.map { $0.headers["Last-Event-ID"] } == [nil, "e1", "e1", "e3", nil, "e5"])
        #expect(gets.suffix(2).allSatisfy { $0.headers["Mcp-Session-Id"] == "session-2" })
    }
}
