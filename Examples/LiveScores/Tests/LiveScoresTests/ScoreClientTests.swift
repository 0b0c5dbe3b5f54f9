import Foundation
import Testing
import WebServiceCore
import WebServiceMocking
import WebServiceServer

@testable import LiveScores

#if WEBSERVICE_CURL
import WebServiceCurl
#endif

@Suite("The client of live scores", .timeLimit(.minutes(1)))
struct ScoreClientTests {
    /// Sends scores to each subscriber of the specified matches, and closes the connection.
    private func sending(_ scores: [Score], to matches: [String]) -> MockResponse {
        .webSocket { socket in
            guard try await socket.next()?.decode() == Subscription(matches: matches) else { return }
            for score in scores {
                try await socket.send(String(decoding: JSONEncoder().encode(score), as: UTF8.self))
            }
        }
    }

    private func score(_ match: String, _ home: Int, isFinal: Bool = false) -> Score {
        Score(match: match, home: home, away: 0, isFinal: isFinal)
    }

    @Test("Scores are reported until all matches have ended")
    func matchesEnd() async throws {
        let mock = MockService()
        let scores = [score("A", 1), score("A", 2, isFinal: true), score("B", 1, isFinal: true)]
        mock.on(.GET, "/scores", sending(scores + [score("B", 2)], to: ["A", "B"]))
        var reported: [Score] = []
        try await ScoreClient(service: mock.service).follow(["A", "B"]) { reported.append($0) }
        #expect(reported == scores)
    }

    @Test("After an interruption, the client subscribes again")
    func interruption() async throws {
        let clock = TestClock()
        let mock = MockService(clock: clock)
        let (first, last) = (score("A", 1), score("A", 2, isFinal: true))
        mock.on(.GET, "/scores", [sending([first], to: ["A"]), .status(503), sending([last], to: ["A"])])
        let client = ScoreClient(service: mock.service)
        let reader = Task(executorPreference: clock.executor) {
            var reported: [Score] = []
            try await client.follow(["A"]) { reported.append($0) }
            return reported
        }
        await clock.advance(by: .seconds(10))
        #expect(try await reader.value == [first, last])
        #expect(mock.receivedRequests.count == 3)
    }

    @Test("An error that a reconnection cannot correct is thrown")
    func unknownServer() async throws {
        let mock = MockService()
        mock.on(.GET, "/scores", .status(404))
        let client = ScoreClient(service: mock.service)
        let error = await #expect(throws: WebServiceError.self) { try await client.follow(["A"]) { _ in } }
        #expect(error?.status == 404)
    }

    #if WEBSERVICE_CURL
    @Test("The client follows a match of the demo server over two connections")
    func demo() async throws {
        let server = try await DemoServer(pause: .zero).start()
        defer { server.stop() }
        let service = WebService(baseURLString: server.baseURLString)
        service.session = try CurlSession()
        let client = ScoreClient(service: service, reconnection: .reconnecting(baseDelay: .milliseconds(1)))
        var last: Score?
        try await client.follow(["A"]) { last = $0 }
        #expect(last == Score(match: "A", home: 3, away: 3, isFinal: true))
        #expect(server.receivedRequests.count == 2)
    }
    #endif
}
