import Foundation
import TestSupport
import Testing

@testable import WebServiceCore
@testable import WebServiceTransfers

@Suite("Queue of pieces", .permit)
struct PieceQueueTests {
    /// Returns the next piece, which must exist.
    private func next(_ queue: inout PieceQueue, _ now: UInt64) throws -> PieceQueue.Piece {
        let piece = queue.next(now)
        return try #require(piece)
    }

    @Test("Failures are counted from the first one, and 64 KiB reset the count")
    func attempts() throws {
        var queue = PieceQueue(PieceMap(total: 16 << 20), limit: 1, count: 1_000, now: 0)
        let error = URLError(.networkConnectionLost)
        var attempts: [Int] = []
        for (count, now) in [(1_000, 1), (1_000, 2), (66_535, 3), (66_536, 4), (66_536, 5), (66_537, 6)] {
            let piece = try next(&queue, UInt64(now))
            let outcome = try queue.receive(
                .interrupted(piece, piece.range.lowerBound, error), count: Int64(count), now: UInt64(now)
            ) { _, attempt, _ in
                attempts.append(attempt)
                return .zero
            }
            #expect(outcome == nil)
        }
        #expect(attempts == [1, 2, 3, 1, 1, 2])
    }

    @Test("Pieces that fail together count as one failure")
    func together() throws {
        var queue = PieceQueue(PieceMap(total: 64 << 20), limit: 4, count: 0, now: 0)
        var attempts: [Int] = []
        for now in 1...3 {
            let pieces = (0..<4).compactMap { _ in queue.next(UInt64(now)) }
            #expect(pieces.count == 4)
            for piece in pieces {
                let end = PieceFetcher.End.interrupted(piece, piece.range.lowerBound, URLError(.networkConnectionLost))
                _ = try queue.receive(end, count: 0, now: UInt64(now)) { _, attempt, _ in
                    attempts.append(attempt)
                    return .zero
                }
            }
        }
        #expect(attempts == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])
    }

    @Test("No piece is requested before the pause after an interruption")
    func pause() throws {
        var queue = PieceQueue(PieceMap(total: 64 << 20), limit: 2, count: 0, now: 0)
        let first = try next(&queue, 0)
        let second = try next(&queue, 0)
        let lost = PieceFetcher.End.interrupted(first, 5, URLError(.networkConnectionLost))
        _ = try queue.receive(lost, count: 5, now: 1_000) { _, _, _ in .nanoseconds(500) }
        let again = try next(&queue, 1_000)
        #expect(again.earliest == 1_500)
        let response = Response(data: Data(), urlResponse: nil)
        _ = try queue.receive(.complete(second, response), count: 10, now: 1_100) { _, _, _ in nil }
        let upcoming = try next(&queue, 1_100)
        #expect(upcoming.earliest == 1_500)
    }

    @Test("A rejected piece is requested again after its pause, over fewer connections")
    func rejected() throws {
        let error = WebServiceError(.unacceptableStatus, "")
        var queue = PieceQueue(PieceMap(total: 64 << 20), limit: 4, count: 0, now: 0)
        let pieces = (0..<4).compactMap { _ in queue.next(0) }
        for piece in pieces.suffix(2) {
            let end = PieceFetcher.End.rejected(piece, error, retryAfter: .nanoseconds(100))
            _ = try queue.receive(end, count: 0, now: 0) { _, _, _ in .nanoseconds(50) }
            let none = queue.next(0)
            #expect(none == nil)
        }
        // While the rejected pieces wait, others are requested.
        let response = Response(data: Data(), urlResponse: nil)
        _ = try queue.receive(.complete(pieces[0], response), count: 8 << 20, now: 99) { _, _, _ in nil }
        let other = try next(&queue, 99)
        #expect(other.index == 4)
        #expect(other.earliest == 0)
        let further = queue.next(99)
        #expect(further == nil)
        _ = try queue.receive(.complete(pieces[1], response), count: 16 << 20, now: 100) { _, _, _ in nil }
        let rejected = try next(&queue, 100)
        #expect(rejected.index == 3)
    }

    /// The result of a simulated download.
    private struct Run {
        var rejected = 0
        var requested = 0
        /// The largest number of accepted requests at the same time.
        var most = 0
        var isComplete = false
    }

    /// Downloads the pieces of a file from a server that rejects requests beyond a number.
    ///
    /// - Parameter allowed: Returns the number of requests that the server accepts at the same time
    ///   after a number of complete pieces.
    private func simulate(pieces: Int, connections: Int, allowed: (_ complete: Int) -> Int) throws -> Run {
        var generator = SeededGenerator(seed: UInt64(pieces))
        var queue = PieceQueue(PieceMap(total: Int64(pieces) << 23), limit: connections, count: 0, now: 0)
        var (accepted, waiting): ([PieceQueue.Piece], [PieceQueue.Piece]) = ([], [])
        var (run, complete) = (Run(), 0)
        let error = WebServiceError(.unacceptableStatus, "")
        let response = Response(data: Data(), urlResponse: nil)
        while true {
            while let piece = queue.next(0) {
                run.requested += 1
                if accepted.count < allowed(complete) { accepted.append(piece) } else { waiting.append(piece) }
                run.most = max(run.most, accepted.count)
            }
            if let piece = waiting.popLast() {  // a rejection has no body
                run.rejected += 1
                let end = PieceFetcher.End.rejected(piece, error, retryAfter: nil)
                _ = try queue.receive(end, count: Int64(complete) << 23, now: 0) { _, _, _ in nil }
            } else if let index = accepted.indices.randomElement(using: &generator) {
                complete += 1
                let end = PieceFetcher.End.complete(accepted.remove(at: index), response)
                _ = try queue.receive(end, count: Int64(complete) << 23, now: 0) { _, _, _ in nil }
            } else {
                run.isComplete = queue.map.isComplete
                return run
            }
        }
    }

    @Test(
        "A server that accepts 2 of 8 connections rejects 6 requests, and one for each doubling of the pieces",
        arguments: [6, 12, 100, 1_000])
    func bound(pieces: Int) throws {
        let run = try simulate(pieces: pieces, connections: 8) { _ in 2 }
        #expect(run.isComplete)
        #expect(run.most == 2)
        #expect(run.requested == pieces + run.rejected)
        #expect(Double(run.rejected) <= 6 + log2(Double(pieces) / 2 + 1))
    }

    @Test("When the server accepts more connections again, a download uses them")
    func growth() throws {
        let run = try simulate(pieces: 1_000, connections: 8) { $0 < 100 ? 2 : 8 }
        #expect(run.isComplete)
        #expect(run.most == 8)
        #expect(run.rejected <= 6 + 6)
        let all = try simulate(pieces: 100, connections: 8) { _ in 8 }
        #expect(all.rejected == 0)
        #expect(all.most == 8)
    }

    @Test("No further connection is tried before the end of `Retry-After`")
    func retryAfter() throws {
        var limit = ConnectionLimit(4)
        let isFirstTrial = limit.reject(active: 2, until: 100)
        #expect(!isFirstTrial)
        #expect(limit.value == 2)
        for now in 1...20 { limit.complete(UInt64(now)) }
        #expect(limit.value == 2)
        limit.complete(100)
        #expect(limit.value == 3)
        let isTrial = limit.reject(active: 2, until: 200)
        #expect(isTrial)
        #expect(limit.value == 2)
        for now in 200...202 { limit.complete(UInt64(now)) }
        #expect(limit.value == 2)
        limit.complete(203)
        #expect(limit.value == 3)
        // The trial is confirmed, and one more is tried.
        for now in 204...209 { limit.complete(UInt64(now)) }
        #expect(limit.value == 4)
        for now in 210...300 { limit.complete(UInt64(now)) }
        #expect(limit.value == 4)
        limit.close(active: 1)
        for now in 300...400 { limit.complete(UInt64(now)) }
        #expect(limit.value == 1)
    }

    @Test("A rejected trial does not delay its piece, which another connection requests")
    func trial() throws {
        let error = WebServiceError(.unacceptableStatus, "")
        let response = Response(data: Data(), urlResponse: nil)
        var queue = PieceQueue(PieceMap(total: 80 << 20), limit: 2, count: 0, now: 0)
        let first = try next(&queue, 0)
        let second = try next(&queue, 0)
        let early = PieceFetcher.End.rejected(second, error, retryAfter: nil)
        _ = try queue.receive(early, count: 0, now: 0) { _, _, _ in nil }
        _ = try queue.receive(.complete(first, response), count: 8 << 20, now: 0) { _, _, _ in nil }
        let third = try next(&queue, 0)
        let trial = try next(&queue, 0)
        let end = PieceFetcher.End.rejected(trial, error, retryAfter: .seconds(100))
        _ = try queue.receive(end, count: 8 << 20, now: 0) { _, _, _ in nil }
        let none = queue.next(0)
        #expect(none == nil)
        _ = try queue.receive(.complete(third, response), count: 16 << 20, now: 1) { _, _, _ in nil }
        let again = try next(&queue, 1)
        #expect(again.index == trial.index)
        #expect(again.earliest <= 1)
    }

    @Test("A refused piece is requested again, unless the only connection was refused")
    func refused() throws {
        var queue = PieceQueue(PieceMap(total: 16 << 20), limit: 2, count: 0, now: 0)
        let first = try next(&queue, 0)
        let second = try next(&queue, 0)
        // The refusal is noticed after the other piece is complete.
        let response = Response(data: Data(), urlResponse: nil)
        _ = try queue.receive(.complete(first, response), count: 8 << 20, now: 0) { _, _, _ in nil }
        let refusal = PieceFetcher.End.refused(second, isSameVersion: true)
        let outcome = try queue.receive(refusal, count: 8 << 20, now: 0) { _, _, _ in nil }
        #expect(outcome == nil)
        let again = try next(&queue, 0)
        #expect(again.index == second.index)
        let end = try queue.receive(.refused(again, isSameVersion: true), count: 8 << 20, now: 0) { _, _, _ in nil }
        #expect(end == .requestWholeFile)
    }

    @Test("If the only connection is rejected twice without bytes, the error is final")
    func onlyConnection() throws {
        let error = WebServiceError(.unacceptableStatus, "")
        var queue = PieceQueue(PieceMap(total: 64 << 20), limit: 1, count: 0, now: 0)
        let first = try next(&queue, 0)
        _ = try queue.receive(.rejected(first, error, retryAfter: nil), count: 65_536, now: 0) { _, _, _ in nil }
        let second = try next(&queue, 0)
        #expect(second.earliest == 1_000_000_000)
        #expect(throws: WebServiceError.self) {
            try queue.receive(.rejected(second, error, retryAfter: nil), count: 65_536, now: 0) { _, _, _ in nil }
        }
    }

    @Test("After eight short parts without 64 KiB, the whole file is requested")
    func shortParts() throws {
        var queue = PieceQueue(PieceMap(total: 16 << 20), limit: 1, count: 0, now: 0)
        for number in 1...8 {
            let piece = try next(&queue, 0)
            let end = PieceFetcher.End.shortened(piece, piece.range.lowerBound + 1)
            let outcome = try queue.receive(end, count: Int64(number), now: 0) { _, _, _ in nil }
            #expect(outcome == (number < 8 ? nil : .requestWholeFile))
        }
    }
}
