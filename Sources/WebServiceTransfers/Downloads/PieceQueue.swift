import Foundation
import WebServiceCore

/// The pieces to request, and the results of those that were requested.
struct PieceQueue {
    /// A piece, or the remainder of a piece.
    struct Piece: Sendable {
        let index: Int
        let range: ClosedRange<Int64>
        /// The instant before which the piece is not requested.
        var earliest: UInt64 = 0
        /// The number of failures at the time when the piece was requested.
        var round = 0
    }

    enum Outcome {
        case complete
        /// The version has changed, or the server does not support range requests.
        case requestWholeFile
    }

    /// A closure that returns the pause before the next request after an error; `nil` if there is
    /// to be no further request.
    typealias Policy = (_ error: any Error, _ attempt: Int, _ spent: Duration) -> Duration?

    /// The pause after the server has rejected the only connection, if neither the policy nor
    /// `Retry-After` specifies one.
    private static let pause = Duration.seconds(1)

    private(set) var map: PieceMap
    private var limit: ConnectionLimit
    private var upcoming = 0
    private var returned: [Piece] = []
    private var active = 0
    private var fruitless: FruitlessRequests
    private var round = 0
    /// The instant before which no piece is requested.
    private var earliest: UInt64 = 0

    /// - Parameter count: The number of bytes that were received before.
    init(_ map: PieceMap, limit: Int, count: Int64, now: UInt64) {
        self.map = map
        self.limit = ConnectionLimit(limit)
        fruitless = FruitlessRequests(position: count, now: now)
    }

    /// Returns the next piece, or `nil` if enough of them are in progress.
    mutating func next(_ now: UInt64) -> Piece? {
        guard active < limit.value, var piece = take(now) else { return nil }
        active += 1
        piece.earliest = max(piece.earliest, earliest)
        piece.round = round
        return piece
    }

    /// Takes a returned piece, or a new piece if all returned pieces have to wait.
    private mutating func take(_ now: UInt64) -> Piece? {
        if let index = returned.lastIndex(where: { $0.earliest <= now }) { return returned.remove(at: index) }
        while upcoming < map.count, map.isComplete(upcoming) { upcoming += 1 }
        guard upcoming < map.count else { return returned.popLast() }
        defer { upcoming += 1 }
        return Piece(index: upcoming, range: map.range(upcoming))
    }

    /// Processes the result of a request for a piece.
    ///
    /// - Parameters:
    ///   - count: The number of bytes that were received for all pieces.
    ///   - now: The current instant.
    ///   - policy: A closure that is called for an error after which the piece may be requested
    ///     again.
    /// - Returns: The outcome of all pieces, or `nil` if they continue.
    /// - Throws: The error of a piece that is not requested again.
    mutating func receive(
        _ end: PieceFetcher.End, count: Int64, now: UInt64, policy: Policy
    ) throws -> Outcome? {
        active -= 1
        switch end {
        case .complete(let piece, _):
            map.complete(piece.index)
            limit.complete(now)
        case .shortened(let piece, let position):
            fruitless.add(count, now: now)
            guard fruitless.count < FruitlessRequests.maximum else { return .requestWholeFile }
            giveBack(piece, from: position)
        case .stopped(let error):
            throw error
        case .interrupted(let piece, let position, let error):
            addFailure(of: piece, count, now)
            guard let pause = policy(error, fruitless.attempt, fruitless.spent(now)) else { throw error }
            earliest = max(earliest, now.addingSaturated(pause))
            giveBack(piece, from: position)
        case .rejected(let piece, let error, let retryAfter):
            addFailure(of: piece, count, now)
            var pause = policy(error, fruitless.attempt, fruitless.spent(now))
            if let retryAfter { pause = max(pause ?? .zero, retryAfter) }
            if active == 0 {
                // The server accepts no connection, or has not yet detected the end of the last
                // one.
                guard fruitless.count < FruitlessRequests.maximum, pause != nil || fruitless.count == 0 else {
                    throw error
                }
                pause = pause ?? Self.pause
                self.earliest = max(self.earliest, now.addingSaturated(pause ?? .zero))
            }
            let earliest = now.addingSaturated(pause ?? .zero)
            let isTrial = limit.reject(active: active, until: earliest)
            // A rejected trial does not delay its piece, because the other connections can request
            // the piece.
            giveBack(piece, from: piece.range.lowerBound, earliest: isTrial && active > 0 ? 0 : earliest)
        case .refused(let piece, let isSameVersion):
            guard isSameVersion, limit.value > 1 else { return .requestWholeFile }
            limit.close(active: active)
            giveBack(piece, from: piece.range.lowerBound)
        }
        return nil
    }

    /// Counts a failure. Pieces that fail together count as one failure.
    private mutating func addFailure(of piece: Piece, _ count: Int64, _ now: UInt64) {
        guard piece.round == round else { return }
        fruitless.add(count, now: now)
        round += 1
    }

    private mutating func giveBack(_ piece: Piece, from position: Int64, earliest: UInt64 = 0) {
        returned.append(
            Piece(index: piece.index, range: position...map.range(piece.index).upperBound, earliest: earliest))
    }
}
