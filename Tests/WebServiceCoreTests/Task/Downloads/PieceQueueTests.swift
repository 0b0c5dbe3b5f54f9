import Foundation
import Testing

@testable import WebServiceCore

@Suite("Queue of pieces", .timeLimit(.minutes(1)))
struct PieceQueueTests {
    @Test("Failures without received bytes are counted from the first one, and received bytes reset the count")
    func attempts() throws {
        var queue = PieceQueue(PieceMap(total: 16 << 20), limit: 1, count: 1_000)
        let error = URLError(.networkConnectionLost)
        var attempts: [Int?] = []
        for (count, now) in [(1_000, 1), (1_000, 2), (1_000, 3), (1_001, 4), (1_001, 5), (1_001, 6)] {
            let piece = queue.next()
            let start = try #require(piece).range.lowerBound
            let outcome = try queue.receive(.interrupted(0, start, error), count: Int64(count), now: UInt64(now))
            #expect(outcome == nil)
            let returned = queue.next()
            attempts.append(returned?.attempt)
            let shortened = try queue.receive(.shortened(0, start), count: Int64(count), now: UInt64(now))
            #expect(shortened == nil)
        }
        #expect(attempts == [1, 2, 3, 1, 1, 2])
    }
}
