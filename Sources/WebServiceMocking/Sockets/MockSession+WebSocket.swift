import Foundation
package import WebServiceCore
import WebSocketCodec

extension MockSession: ConnectingSession {
    /// The default header fields, which are empty.
    package var defaultHeaders: Headers { [:] }

    /// Opens a connection in memory. The stub for the request serves the other end.
    package func connect(
        _ request: EncodedRequest, waitDidChange: @escaping @Sendable (Bool) -> Void
    ) async throws -> any ByteConnection {
        switch try await responder(for: request) {
        case .passed(let session): return try await session.connect(request, waitDidChange: waitDidChange)
        case .response(let response):
            let (client, server) = MemoryConnection.pair()
            Task(executorPreference: clock.executor) { [clock] in
                await server.serve(response, origin: Origin(request.url)?.description, clock)
            }
            return client
        }
    }
}

extension MemoryConnection {
    /// Receives the request of a handshake, responds, and runs the script of the connection.
    fileprivate func serve(_ response: MockResponse, origin: String?, _ clock: TaskClock) async {
        var parser = RequestParser(connection: 0)
        do {
            while true {
                switch parser.next() {
                case .request(let received):
                    let request = ReceivedRequest(head: received.head, body: received.body, origin: origin)
                    guard let upgrade = response.upgrade else { return try await send(response, to: request) }
                    let (result, agreement) = response.handshakeResponse(to: request, upgrade)
                    guard let agreement else { return try await send(result, to: request) }
                    try await send(result.message(to: request.head).bytes)
                    return await MockWebSocket(request, agreement, over: self, clock, bytes: parser.rest)
                        .run(upgrade.script)
                case .violation, .continueExpected: return close()
                case nil:
                    let bytes = try await receive()
                    if bytes.isEmpty { return close() }
                    parser.append(bytes)
                }
            }
        } catch {
            close()
        }
    }

    private func send(_ response: MockResponse, to request: ReceivedRequest) async throws {
        try await send(response.message(to: request.head).bytes)
        close()
    }
}
