import Foundation
import Synchronization
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The messages to and from one server, over streamable HTTP (revision 2025-11-25, "Transports").
///
/// The session ID is a credential: each request of a session contains it, and after a response with
/// status 404, the client begins a new session. So the transport is the token provider of an
/// `Authentication`, which begins one new session for all requests that need it.
final class Transport: TokenProvider {
    /// The supported revisions of the protocol, the preferred one first.
    static let versions = ["2025-11-25", "2025-06-18"]

    /// The results of the last initialization.
    private struct Session: Sendable {
        /// The session ID. During a new initialization, it is the ID of the earlier session, so that
        /// concurrent requests are rejected as requests of that session.
        var credential: Credential?
        /// The revision; `nil` until the server has chosen one.
        var version: String?
    }

    /// The shortest time before a stream is opened again.
    private static let minimumDelay = Duration.milliseconds(100)
    /// The time after which a continued stream without the response is opened again. A server may
    /// have stored the response while it opened the stream, and not have sent it.
    private let pollInterval: Duration
    private let service: WebService
    private let onNotification: @Sendable (_ method: String, _ parameters: JSONValue) -> Void
    private let session = Mutex(Session())

    init(
        _ service: WebService, pollInterval: Duration = .seconds(20),
        onNotification: @escaping @Sendable (_ method: String, _ parameters: JSONValue) -> Void
    ) {
        (self.service, self.pollInterval, self.onNotification) = (service, pollInterval, onNotification)
    }

    // MARK: Sessions

    func credential() async throws -> Credential? { session.withLock(\.credential) }

    /// Begins a session. If a part of that is lost, begins another one; the first ends unused.
    func refresh(_ rejected: Credential?) async throws -> Credential? {
        try await service.repeating(after: { $0 is ResultUnknown || $0 is SessionEnded }) { try await begin() }
    }

    private func begin() async throws -> Credential? {
        let parameters: JSONValue = [
            "protocolVersion": .string(Self.versions[0]), "capabilities": [:],
            "clientInfo": ["name": "mcp-client", "version": .string(Arguments.version)],
        ]
        let (result, headers) = try await result(of: "initialize", parameters, id: UUID().uuidString, in: nil)
        let version = result["protocolVersion"]?.string ?? ""
        guard Self.versions.contains(version) else {
            throw Failure(.failure, "the server requires revision '\(version)' of the protocol, which is not supported")
        }
        let credential = headers["Mcp-Session-Id"].map { Credential(header: "Mcp-Session-Id", value: $0) }
        session.withLock { $0.version = version }
        try await send(["method": "notifications/initialized"], in: credential)
        session.withLock { $0.credential = credential }
        return credential
    }

    /// Ends the session, if the server has sessions and lets a client end them.
    func end(in credential: Credential?) async throws {
        if credential != nil { try await request(.DELETE, in: credential).empty().value }
    }

    // MARK: Requests

    /// Sends a notification or a response.
    func send(_ message: [String: JSONValue], in credential: Credential?) async throws {
        do {
            try await post(message, in: credential).empty().value
        } catch {
            throw Self.failure(error, in: credential)
        }
    }

    /// Sends a request once, and returns its result and the header fields of the response.
    ///
    /// If the connection breaks, the rest of the response is requested with the ID of the last
    /// event.
    ///
    /// - Throws: ``SessionEnded`` if the server has not processed the request, ``ResultUnknown``,
    ///   ``RemoteError``, or an error of the library.
    func result(
        of method: String, _ parameters: JSONValue, id: String, in credential: Credential?
    ) async throws -> (JSONValue, Headers) {
        let response: StreamedResponse
        do {
            let message: [String: JSONValue] = ["id": .string(id), "method": .string(method), "params": parameters]
            response = try await post(message, in: credential).stream().value
        } catch {
            throw Self.failure(error, in: credential)
        }
        var (lastEventID, delay) = ("", Self.minimumDelay)
        do {
            if response.headers[.contentType]?.lowercased().hasPrefix("text/event-stream") == true {
                for try await event in response.body.events() {
                    (lastEventID, delay) = (event.id, event.retry.map { max($0, Self.minimumDelay) } ?? delay)
                    if let result = try await receive(event, id, credential) { return (result, response.headers) }
                }
            } else {
                // A JSON object is a message, like the data of an event.
                let data = try await response.body.collect(upTo: 64 << 20)
                let event = ServerSentEvent(data: String(decoding: data, as: UTF8.self))
                if let result = try await receive(event, id, credential) { return (result, response.headers) }
            }
        } catch let error as URLError where error.code != .cancelled {
            guard !lastEventID.isEmpty else { throw ResultUnknown(underlying: error) }
        }
        guard !lastEventID.isEmpty else { throw ResultUnknown() }
        try await service.clock.sleep(for: delay)
        return (try await continued(after: lastEventID, delay, id, credential), response.headers)
    }

    /// Returns the result of a request whose stream has ended too early.
    private func continued(
        after lastEventID: String, _ delay: Duration, _ id: String, _ credential: Credential?
    ) async throws -> JSONValue {
        var lastEventID = lastEventID
        while true {
            let events = request(.GET, in: credential).setDeadline(pollInterval).events(
                Self.reconnection(after: delay), lastEventID: lastEventID)
            do {
                for try await event in events {
                    if let result = try await receive(event, id, credential) { return result }
                }
                throw ResultUnknown()  // status 204
            } catch let error as WebServiceError where error.code == .deadline {
                lastEventID = events.lastEventID  // of the poll interval
            } catch let error as WebServiceError where error.status != nil || Self.isRefresh(error) {
                throw ResultUnknown(underlying: error)  // for example, the session or the log-in has ended
            }
        }
    }

    /// Receives the messages that belong to no request, until the Swift task is cancelled.
    ///
    /// - Parameter onOpen: A closure that is called whenever the stream was opened. Earlier messages
    ///   may have been lost.
    /// - Throws: ``SessionEnded``, or an error of the library.
    func listen(in credential: Credential?, onOpen: @escaping @Sendable () -> Void) async throws {
        let events = request(.GET, in: credential).events(Self.reconnection(after: Self.minimumDelay))
        do {
            for try await event in events.onOpen({ _ in onOpen() }) {
                _ = try await receive(event, nil, credential)
            }
        } catch {
            throw Self.failure(error, in: credential)
        }
    }

    private static func reconnection(after delay: Duration) -> ServerSentEvent.Reconnection {
        .reconnecting(baseDelay: delay, maximumDelay: .seconds(5)) { error, isTransient in
            // The server has not noticed yet that the connection is lost.
            isTransient || (error as? WebServiceError)?.status == 409
        }
    }

    /// Whether a request has failed because the user's credential could not be refreshed.
    private static func isRefresh(_ error: WebServiceError) -> Bool {
        [.authenticationFailed, .excessiveRefresh].contains(error.code)
    }

    // MARK: Messages

    /// Creates a request with the session ID and the revision.
    private func request(_ method: Request.Method, in credential: Credential?) -> SessionTask {
        var request = service.request(method, path: "")
        request.headers["MCP-Protocol-Version"] = session.withLock(\.version)
        if let credential { request.headers[credential.header] = credential.value }
        return service.sessionTask(request: request)
    }

    private func post(_ message: [String: JSONValue], in credential: Credential?) -> SessionTask {
        let task = request(.POST, in: credential)
            .setJSON(JSONValue.object(message.merging(["jsonrpc": "2.0"]) { $1 }))
            .setHeaderValue("application/json, text/event-stream", forName: .accept)
        // The server chooses the revision in its response to this request.
        return message["method"] == "initialize" ? task.setHeaderValue(nil, forName: "MCP-Protocol-Version") : task
    }

    /// Processes a message, and returns the result if it is the response to a request.
    private func receive(
        _ event: ServerSentEvent, _ id: String?, _ credential: Credential?
    ) async throws -> JSONValue? {
        guard !event.data.isEmpty else { return nil }  // its ID continues the stream
        let message = try event.decode(JSONValue.self)
        switch (message["method"]?.string, message["id"]) {
        case (let method?, let request?):
            let error: JSONValue = ["code": -32601, "message": .string("\(method) is not supported")]
            let reply: [String: JSONValue] = method == "ping" ? ["result": [:]] : ["error": error]
            // Without the reply, the server ends its request. The messages that follow must not wait.
            try? await service.withDeadline(.seconds(2)) {
                try await send(reply.merging(["id": request]) { $1 }, in: credential)
            }
        case (let method?, nil):
            onNotification(method, message["params"] ?? [:])
        case (nil, let response?) where response == id.map(JSONValue.string):
            guard let result = message["result"] else { throw RemoteError(message["error"]) }
            return result
        default: break  // a response to an earlier request
        }
        return nil
    }

    /// Returns the error of a request that has no response, or one that reports an error.
    private static func failure(_ error: any Error, in credential: Credential?) -> any Error {
        switch error {
        case let error as WebServiceError where error.status == 404 && credential != nil: SessionEnded()
        // A proxy does not know whether the server has processed the request.
        case let error as WebServiceError where [502, 504].contains(error.status): ResultUnknown(underlying: error)
        case let error as URLError where error.code != .cancelled && !error.requestWasNotSent:
            ResultUnknown(underlying: error)
        default: error
        }
    }
}

extension WebService {
    /// Runs work until it succeeds or throws another error than those that a closure accepts. The
    /// pauses grow from 0.1 to 2 seconds.
    func repeating<Value: Sendable>(
        after isTransient: (any Error) -> Bool, _ work: () async throws -> Value
    ) async throws -> Value {
        var pause = Duration.milliseconds(100)
        while true {
            do {
                return try await work()
            } catch  where isTransient(error) {
                try await clock.sleep(for: pause)
                pause = min(pause * 2, .seconds(2))
            }
        }
    }
}
