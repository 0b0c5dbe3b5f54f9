import Foundation
package import WebServiceCore
package import WebServiceMocking
import WebSocketCodec

extension MockResponse.WebSocketUpgrade: ConnectionUpgrade {
    /// Opens a connection in memory, whose other end runs the script.
    package func connection(for response: MockResponse, origin: String?, _ clock: TaskClock) -> any ByteConnection {
        let (client, server) = MemoryConnection.pair()
        Task(executorPreference: clock.executor) {
            await server.serve(response, self, origin: origin, clock)
        }
        return client
    }
}

extension MemoryConnection {
    /// Receives the request of a handshake, responds, and runs the script of the connection.
    fileprivate func serve(
        _ response: MockResponse, _ upgrade: MockResponse.WebSocketUpgrade, origin: String?, _ clock: TaskClock
    ) async {
        var parser = RequestParser(connection: 0)
        do {
            while true {
                switch parser.next() {
                case .request(let received):
                    let request = ReceivedRequest(head: received.head, body: received.body, origin: origin)
                    let (result, agreement) = response.handshakeResponse(to: request, upgrade)
                    guard let agreement else { return try await send(result, to: request) }
                    try await send(result.message(to: request.head).bytes)
                    return await MockWebSocket(request, agreement, upgrade, over: self, clock, bytes: parser.rest)
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
