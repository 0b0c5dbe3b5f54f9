import Foundation
import Synchronization
import Testing
import WebServiceCore
import WebServiceFaults
import WebServiceMocking
import WebServiceServer

@testable import LiveScores

@Suite("The client of live scores with each fault of each message", .timeLimit(.minutes(2)))
struct ExplorationTests {
    /// A server with one match of three goals. A subscriber receives the current score, and then
    /// each change.
    private final class Match: Sendable {
        private let goals = Mutex(0)

        func serve(_ socket: MockWebSocket) async throws {
            guard try await socket.next()?.decode(Subscription.self).matches == ["A"] else { return }
            while true {
                let count = goals.withLock { $0 }
                let score = Score(match: "A", home: count, away: 0, isFinal: count == 3)
                try await socket.send(String(decoding: JSONEncoder().encode(score), as: UTF8.self))
                if score.isFinal { return }
                goals.withLock { $0 = max($0, count + 1) }
            }
        }
    }

    @Test("A match is followed to its end or an error, and no score is followed by an earlier one")
    func follow() async {
        var budget = FaultExplorer<Void>.Budget()
        budget.runs = 300
        let explorer = FaultExplorer(budget: budget) { mock in
            let match = Match()
            mock.on(.GET, "/scores", .webSocket { socket in try await match.serve(socket) })
        }
        let report = await explorer.explore { mock in
            var reported: [Score] = []
            do {
                try await ScoreClient(service: mock.service).follow(["A"]) { reported.append($0) }
                return (reported, hasEnded: true)
            } catch { return (reported, hasEnded: false) }
        } check: { run in
            try run.require(.everyCallEnds)
            guard let (reported, hasEnded) = run.output else { return }
            try run.require(.neverBackwards(reported.map(\.home)))
            try run.require(!hasEnded || reported.last?.isFinal == true, "a match ends without its final score")
            if run.plan.steps.isEmpty { try run.require(hasEnded, "a match is not followed to its end") }
            let lost = run.plan.steps.count == 1 && run.plan.steps.allSatisfy { !$0.isLasting }
            if lost, ["lost", "cut", "refused", "reset", "503"].contains(run.plan.steps[0].fault) {
                try run.require(hasEnded, "the client does not subscribe again")
            }
        }
        #expect(report.failures.isEmpty, "\(report)")
        #expect(report.problems == [])
        #expect(report.runs > 30)
    }
}
