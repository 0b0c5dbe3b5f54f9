import Foundation

/// The pieces that are to be requested, and the results of those that were.
struct PieceQueue {
    /// A piece, or the remainder of one.
    struct Piece: Sendable {
        let index: Int
        let range: ClosedRange<Int64>
        /// The error that last interrupted the piece.
        var failure: (any Error)?
        /// The number of consecutive failures without received bytes.
        var attempt = 1
        var spent = Duration.zero
    }

    enum Outcome {
        case complete
        /// The version has changed, or the server does not support range requests.
        case requestWholeFile
    }

    private(set) var map: PieceMap
    private var limit: Int
    private var upcoming = 0
    private var returned: [Piece] = []
    private var active = 0
    private var fruitless = 0
    private var lastCount: Int64
    private var lastProgress: UInt64?

    /// - Parameter count: The number of bytes that were received before.
    init(_ map: PieceMap, limit: Int, count: Int64) {
        self.map = map
        self.limit = limit
        lastCount = count
    }

    /// Returns the next piece, or `nil` if enough of them are in progress.
    mutating func next() -> Piece? {
        guard active < limit else { return nil }
        if let piece = returned.popLast() {
            active += 1
            return piece
        }
        while upcoming < map.count, map.isComplete(upcoming) { upcoming += 1 }
        guard upcoming < map.count else { return nil }
        defer { upcoming += 1 }
        active += 1
        return Piece(index: upcoming, range: map.range(upcoming))
    }

    /// Takes the result of a piece.
    ///
    /// - Parameters:
    ///   - count: The number of bytes that were received for all pieces.
    ///   - now: The current instant.
    /// - Returns: The outcome of all pieces, or `nil` if they continue.
    /// - Throws: The error of a piece that is not requested again.
    mutating func receive(_ end: PieceFetcher.End, count: Int64, now: UInt64) throws -> Outcome? {
        active -= 1
        switch end {
        case .complete(let index, _):
            map.complete(index)
        case .shortened(let index, let position):
            returned.append(Piece(index: index, range: position...map.range(index).upperBound))
        case .stopped(let error):
            throw error
        case .interrupted(let index, let position, let error):
            let isProgress = count > lastCount
            (fruitless, lastCount) = (isProgress ? 0 : fruitless + 1, count)
            let start = isProgress ? now : lastProgress ?? now
            lastProgress = start
            let spent = Duration.nanoseconds(Int64(clamping: now - min(start, now)))
            returned.append(
                Piece(
                    index: index, range: position...map.range(index).upperBound, failure: error,
                    attempt: max(1, fruitless), spent: spent))
        case .refused(let index, let position, let isSameVersion):
            guard isSameVersion, active > 0 else { return .requestWholeFile }
            limit = active
            returned.append(Piece(index: index, range: position...map.range(index).upperBound))
        }
        return nil
    }
}
