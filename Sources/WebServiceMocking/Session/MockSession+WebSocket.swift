import Foundation
package import WebServiceCore

extension MockSession: ConnectingSession {
    /// The default header fields, which are empty.
    package var defaultHeaders: Headers { [:] }

    /// Opens a connection in memory whose other end the stub serves. If no stub matches,
    /// ``passthrough`` opens the connection.
    package func connect(
        _ request: EncodedRequest, waitDidChange: @escaping @Sendable (Bool) -> Void
    ) async throws -> any ByteConnection {
        let sent = try SentRequest(request)
        if let gate {
            let gated = GatedConnection(sent, to: request, over: self)
            gate.receive(gated)
            return try await gated.connection()
        }
        let arrival = stubTable.receive(sent)
        guard let reply = try reply(to: sent, arrival).1 else {
            if let session = passthrough as? any ConnectingSession {
                return try await session.connect(request, waitDidChange: waitDidChange)
            }
            throw noStub(for: sent, arrival)
        }
        return try await connection(to: request, with: try await reply.response)
    }

    /// Opens a connection in memory with the response of a stub.
    func connection(to request: EncodedRequest, with response: MockResponse) async throws -> any ByteConnection {
        if let failure = response.failure { throw failure }
        if response.delay > .zero { try await clock.sleep(for: response.delay) }
        if let upgrade = response.upgrade {
            return upgrade.connection(for: response, origin: Origin(request.url)?.description, clock)
        }
        // A response that cannot be written closes the connection.
        return RefusedConnection((try? response.message(to: RequestHead(method: .GET, target: "/")))?.bytes ?? Data())
    }
}

extension MockSession.Reply {
    /// The response of the stub of a handshake.
    var response: MockResponse {
        get async throws {
            switch self {
            case .result(let result): result as? MockResponse ?? MockResponse(statusCode: 500)
            case .later(let handler): try await handler()
            }
        }
    }
}

/// The acceptance of the handshake of a protocol other than HTTP.
package protocol ConnectionUpgrade: Sendable {
    /// Opens a connection in memory whose other end receives the handshake, responds, and runs the
    /// script of the response.
    func connection(for response: MockResponse, origin: String?, _ clock: TaskClock) -> any ByteConnection
}

/// A connection on which the handshake is refused.
private final class RefusedConnection: ByteConnection {
    /// The response to the handshake; `nil` after ``close()``.
    private let response: Mutex<Data?>

    init(_ response: Data) {
        self.response = Mutex(response)
    }

    var metrics: TransportMetrics { TransportMetrics(total: .zero) }

    func receive() async throws -> Data {
        try response.withLock { response in
            guard let bytes = response, !Task.isCancelled else { throw URLError(.cancelled) }
            response = Data()
            return bytes
        }
    }

    func send(_ bytes: Data) async throws {}

    func close() { response.withLock { $0 = nil } }
}
