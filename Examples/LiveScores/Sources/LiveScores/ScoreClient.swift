import WebServiceCore
import WebServiceSockets

/// The score of a match.
struct Score: Codable, Hashable, Sendable {
    var match: String
    var home: Int
    var away: Int
    var isFinal: Bool
}

/// The first message to the server: the matches whose scores it sends.
struct Subscription: Codable, Hashable, Sendable {
    var matches: [String]
}

/// The client of a server that sends the current scores after each subscription, and then each
/// change.
struct ScoreClient: Sendable {
    let service: WebService
    var reconnection = ServerSentEvent.Reconnection.reconnecting(maximumAttempts: 5)

    /// Returns the scores of matches. After an interruption, it subscribes again.
    func scores(of matches: [String]) -> some AsyncSequence<Score, any Error> {
        service.reconnectingWebSocket(
            "/scores", reconnection: reconnection,
            onOpen: { socket in try await socket.send(Subscription(matches: matches)) }
        )
        .messages.map { message in try message.decode(Score.self) }
    }

    /// Reports the scores of matches until all of them have ended.
    nonisolated(nonsending) func follow(_ matches: [String], report: (Score) -> Void) async throws {
        var running = Set(matches)
        for try await score in scores(of: matches) {
            report(score)
            if score.isFinal { running.remove(score.match) }
            if running.isEmpty { return }
        }
    }
}
