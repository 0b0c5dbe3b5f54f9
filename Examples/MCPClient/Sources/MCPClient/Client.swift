import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A client of one server.
///
/// Each request ends with exactly one result or error. It is sent again only
/// - if the server cannot have processed it, because it was not sent or its session was unknown,
/// - or if a repetition has no further effect.
///
/// A result that the server has stored is fetched, and not computed again.
struct Client: Sendable {
    let transport: Transport
    private let service: WebService
    private let session: Authentication
    private let timeout: Duration

    /// - Parameters:
    ///   - service: The service, whose base URL is that of the server.
    ///   - timeout: The timeout of each request.
    init(_ service: WebService, _ transport: Transport, timeout: Duration) {
        (self.service, self.transport, self.timeout) = (service, transport, timeout)
        // A new session may have to wait for a server that is being started again.
        session = Authentication(transport, refreshLimit: max(timeout, .seconds(30)), maximumRefreshes: 1_000)
    }

    /// Begins the first session.
    func connect() async throws { _ = try await limited { try await transport.refresh(nil) } }

    /// Sends a request, and returns its result.
    func request(
        _ method: String, _ parameters: [String: JSONValue] = [:], isRepeatable: Bool = true
    ) async throws -> JSONValue {
        do {
            return try await limited { try await result(of: method, parameters, isRepeatable) }
        } catch  where !isRepeatable && Self.leavesResultUnknown(error) {
            throw ResultUnknown(underlying: error)
        }
    }

    /// Whether the server may have processed a request. A repetition would not help after most of
    /// these errors.
    private static func leavesResultUnknown(_ error: any Error) -> Bool {
        guard let error = error as? WebServiceError else { return error is TimedOut }
        let codes: Set<WebServiceError.Code> = [.deadline, .decoding, .elementTooLarge, .responseTooLarge]
        return codes.contains(error.code) || error.status ?? 0 >= 500
    }

    private func result(
        of method: String, _ parameters: [String: JSONValue], _ isRepeatable: Bool
    ) async throws -> JSONValue {
        try await service.repeating(after: { $0 is SessionEnded || $0 is ResultUnknown && isRepeatable }) {
            let id = UUID().uuidString  // each attempt has an ID of its own
            let parameters = JSONValue.object(parameters.merging(["_meta": ["progressToken": .string(id)]]) { $1 })
            do {
                return try await inSession { try await transport.result(of: method, parameters, id: id, in: $0).0 }
            } catch {
                if Task.isCancelled { await cancel(id) }
                throw error
            }
        }
    }

    /// Runs work for at most ``timeout``, and then cancels it.
    private func limited<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        try await withThrowingTaskGroup { group in
            group.addTask { try await work() }
            group.addTask {
                try await service.clock.sleep(for: timeout)
                throw TimedOut(timeout: timeout)
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }

    /// Runs work in a session, which is replaced if the server has ended it.
    private func inSession<Value: Sendable>(
        _ work: @Sendable (_ session: Credential?) async throws -> Value
    ) async throws -> Value {
        try await session.withCredential(refreshingAfter: { $0 is SessionEnded }, work)
    }

    /// Cancels a request at the server. Closing the connection would not.
    private func cancel(_ id: String) async {
        let message: [String: JSONValue] = [
            "method": "notifications/cancelled", "params": ["requestId": .string(id), "reason": "no longer awaited"],
        ]
        await unconditionally { try await transport.send(message, in: $0) }
    }

    /// Ends the session.
    func close() async {
        session.clear()  // the beginning of a new session may outlive the call that needs it
        await unconditionally { try await transport.end(in: $0) }
    }

    /// Sends something for at most two seconds, even if the Swift task is cancelled or its deadline
    /// has passed.
    private func unconditionally(_ work: @escaping @Sendable (Credential?) async throws -> Void) async {
        let task = Task.detached { [service, transport] in
            try await service.withDeadline(.seconds(2)) { try await work(try await transport.credential()) }
        }
        _ = await task.result  // without it, the server ends the request or the session later
    }

    // MARK: Tools

    /// Returns the tools of all pages.
    func tools() async throws -> [Tool] {
        var (tools, cursors) = ([Tool](), Set<String>())
        var cursor: String?
        repeat {
            let page = try await request("tools/list", cursor.map { ["cursor": .string($0)] } ?? [:])
            tools += page["tools"]?.array?.compactMap(Tool.init) ?? []
            cursor = page["nextCursor"]?.string
        } while cursor.map { cursors.count < 1_000 && cursors.insert($0).inserted } ?? false
        return tools
    }

    /// Returns the tool with a name.
    func tool(_ name: String) async throws -> Tool {
        let tools = try await tools()
        guard let tool = tools.first(where: { $0.name == name }) else {
            throw Failure.usage("the server has no tool '\(name)'; it has \(tools.map(\.name).joined(separator: ", "))")
        }
        return tool
    }

    func call(_ tool: Tool, _ arguments: JSONValue) async throws -> JSONValue {
        try await request(
            "tools/call", ["name": .string(tool.name), "arguments": arguments], isRepeatable: tool.isRepeatable)
    }

    /// Receives the notifications that belong to no request, until the Swift task is cancelled.
    func listen(onOpen: @escaping @Sendable () -> Void) async throws {
        try await service.repeating(after: { $0 is SessionEnded }) {
            try await inSession { try await transport.listen(in: $0, onOpen: onOpen) }
        }
    }
}
