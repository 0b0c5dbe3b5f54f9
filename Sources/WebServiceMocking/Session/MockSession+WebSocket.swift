import Foundation
package import WebServiceCore

extension MockSession: ConnectingSession {
    /// The default header fields, which are empty.
    package var defaultHeaders: Headers { [:] }

    /// Opens a connection in memory. The stub for the request serves the other end.
    package func connect(
        _ request: EncodedRequest, waitDidChange: @escaping @Sendable (Bool) -> Void
    ) async throws -> any ByteConnection {
        let sent = try SentRequest(request)
        let arrival = stubTable.receive(sent)
        guard let match = stubTable.match(sent, arrival) else {
            if let session = passthrough as? any ConnectingSession {
                return try await session.connect(request, waitDidChange: waitDidChange)
            }
            throw WebServiceError(.noStub, stubTable.recordUnmatched(sent, arrival), request: request.source)
        }
        let response = try await response(of: match, to: sent)
        if let failure = response.failure { throw failure }
        if response.delay > .zero { try await clock.sleep(for: response.delay) }
        if let upgrade = response.upgrade {
            return upgrade.connection(for: response, origin: Origin(request.url)?.description, clock)
        }
        // A response that cannot be written closes the connection.
        return RefusedConnection((try? response.message(to: RequestHead(method: .GET, target: "/")))?.bytes ?? Data())
    }

    private func response(of match: StubTable.Match, to sent: SentRequest) async throws -> MockResponse {
        let received = match.request ?? sent.received
        switch match.stub.responder {
        case .handler(let handler): return try handler(received)
        case .asyncHandler(let handler): return try await handler(received)
        case .sequence(let responses): return responses.response(ofCall: match.call)
        case .result(var result):
            while let computed = result as? ComputedResult { result = try computed.compute(sent.request) }
            return result as? MockResponse ?? MockResponse(statusCode: 500)
        case nil: return MockResponse(statusCode: 500)
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
