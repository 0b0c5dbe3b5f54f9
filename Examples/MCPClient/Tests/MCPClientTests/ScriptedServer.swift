import Foundation
import Synchronization
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// A server whose responses a test defines.
final class ScriptedServer: Sendable {
    /// Returns the response to a message, or to a GET request; `nil` for the default.
    typealias Script = @Sendable (_ method: String, _ message: JSONValue, _ request: ReceivedRequest) -> MockResponse?

    let server: MockServer
    private let session: Mutex<(id: String?, count: Int)>

    init(session: String? = "session", version: String = "2025-11-25", _ script: @escaping Script) throws {
        server = try MockServer()
        self.session = Mutex((session, 0))
        server.on(.POST, "/mcp") { [weak self] request in
            let message = try request.json()
            let method = message["method"]?.string ?? ""
            if let response = script(method, message, request) { return response }
            if method == "initialize" {
                let response = Self.result(
                    of: message, ["protocolVersion": .string(version), "capabilities": [:], "serverInfo": [:]])
                guard let id = self?.newSession() else { return response }
                return response.headers(["Mcp-Session-Id": id])
            }
            return method.hasPrefix("notifications/") || method.isEmpty ? .status(202) : Self.result(of: message, [:])
        }
        server.on(.GET, "/mcp") { request in script("GET", [:], request) ?? .status(405) }
        server.on(.DELETE, "/mcp") { request in script("DELETE", [:], request) ?? .status(405) }
    }

    /// The identifier of the next session, such as `session-1`.
    private func newSession() -> String? {
        session.withLock { session in
            session.count += 1
            return session.id.map { "\($0)-\(session.count)" }
        }
    }

    var url: String { "\(server.baseURLString)/mcp" }

    /// The requests with a method of JSON-RPC, or with GET or DELETE.
    func requests(_ method: String) -> [ReceivedRequest] {
        server.receivedRequests.filter {
            let name = (try? $0.json())?["method"]?.string ?? $0.method.rawValue  // other requests have no body
            return name == method
        }
    }

    /// Returns the response to a message, as JSON.
    static func result(of message: JSONValue, _ result: JSONValue) -> MockResponse {
        .text(resultText(of: message, result)).headers(["Content-Type": "application/json"])
    }

    /// Returns a stream with an event, followed by what a closure does.
    static func event(
        _ event: String, then end: @escaping @Sendable (MockResponse.BodyWriter) throws -> Void
    ) -> MockResponse {
        let response = MockResponse(statusCode: 200) { body in
            try body.write(Data(event.utf8))
            try end(body)
        }
        return response.headers(["Content-Type": "text/event-stream"])
    }

    /// Returns the response to a message, as the data of an event.
    static func resultText(of message: JSONValue, _ result: JSONValue) -> String {
        (["jsonrpc": "2.0", "id": message["id"] ?? nil, "result": result] as JSONValue).description
    }
}
