import Foundation
import WebServiceCore
import WebServiceMocking
import WebServiceServer

/// A server in the process, whose matches have six goals each.
///
/// After the third goal of a match, it ends the connection without a Close frame.
actor DemoServer {
    private var goals: [String: Int] = [:]
    private let pause: Duration

    init(pause: Duration) {
        self.pause = pause
    }

    /// Starts the server.
    func start() throws -> MockServer {
        let server = try MockServer()
        server.on(.GET, "/scores", .webSocket { socket in try await self.serve(socket) })
        return server
    }

    private func serve(_ socket: MockWebSocket) async throws {
        guard let matches = try await socket.next()?.decode(Subscription.self).matches else { return }
        var running = matches
        while !running.isEmpty {
            for match in running {
                let score = nextScore(of: match)
                try await socket.send(String(decoding: JSONEncoder().encode(score), as: UTF8.self))
                if score.home + score.away == 3 { return socket.disconnect() }
            }
            running.removeAll { goals[$0] == 6 }
            try await Task.sleep(for: pause)
        }
    }

    private func nextScore(of match: String) -> Score {
        let count = min(goals[match, default: -1] + 1, 6)
        goals[match] = count
        return Score(match: match, home: (count + 1) / 2, away: count / 2, isFinal: count == 6)
    }
}
