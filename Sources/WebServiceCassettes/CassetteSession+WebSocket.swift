import Foundation
package import WebServiceCore
import WebServiceMocking
import WebServiceServer

extension CassetteSession: ConnectingSession {
    /// The default header fields of the session that sends the requests; empty in a replay.
    package var defaultHeaders: Headers {
        if case .replaying = role { return [:] }
        return (session as? any ConnectingSession)?.defaultHeaders ?? [:]
    }

    /// Opens a connection in memory that replays a recorded conversation. In a recording, opens a
    /// connection of the session that sends the requests, and records it.
    package func connect(
        _ request: EncodedRequest, waitDidChange: @escaping @Sendable (Bool) -> Void
    ) async throws -> any ByteConnection {
        switch role {
        case .forwarding:
            return try await connectingSession(for: request).connect(request, waitDidChange: waitDidChange)
        case .replaying(let player): return try replay(player.exchange(for: Self.handshake(request)), player)
        case .recording(let recorder, let player):
            if let player, let exchange = try player.exchange(ifRecorded: Self.handshake(request)) {
                return try replay(exchange, player)
            }
            return try await record(request, recorder, waitDidChange)
        }
    }

    /// Returns the request of a handshake without the fields that the handshake adds.
    private static func handshake(_ request: EncodedRequest) throws -> Cassette.Message {
        var message = try Self.message(request)
        message.upgrade = Cassette.Message.webSocket
        return message
    }

    private func connectingSession(for request: EncodedRequest) throws -> any ConnectingSession {
        guard let session = session as? any ConnectingSession else {
            throw WebServiceError(
                WebServiceError.Code("webSocketUnsupported"),
                "\(type(of: session)) does not support WebSocket; pass a CurlSession as the session of the cassette",
                request: request.source)
        }
        return session
    }

    private func record(
        _ request: EncodedRequest, _ recorder: CassetteRecorder, _ waitDidChange: @escaping @Sendable (Bool) -> Void
    ) async throws -> any ByteConnection {
        let session = try connectingSession(for: request)
        let number = recorder.begin(try SentRequest(request), upgrade: Cassette.Message.webSocket)
        let connection: any ByteConnection
        do { connection = try await session.connect(request, waitDidChange: waitDidChange) } catch {
            if let error = error as? URLError, error.code != .cancelled { recorder.end(number, .failure(error)) }
            throw error
        }
        let recording = ConversationRecording(url: request.url)
        recorder.end(number, recording.result)
        return RecordingConnection(connection, recording)
    }

    private func replay(_ exchange: Cassette.Exchange, _ player: CassettePlayer) throws -> any ByteConnection {
        if exchange.response == nil, let error = exchange.urlError { throw error }
        let (client, server) = MemoryConnection.pair()
        Task(executorPreference: clock.executor) {
            do {
                var conversation = ConversationReplay(exchange, player, over: server)
                try await conversation.run()
                server.close()
            } catch {
                server.close(throwing: error)
            }
        }
        return client
    }
}
