import Foundation
import WebServiceCore

/// The transfer of a file by several requests at a time.
extension DownloadTransfer {
    /// Requests the missing pieces, several at a time, and stores which of them are complete.
    ///
    /// - Parameter first: The response to the request for the first piece, if it was already sent.
    mutating func receivePieces(
        of state: DownloadState, _ map: PieceMap, first: PieceFetcher.First?
    ) async throws -> Pass {
        guard let file, let total = state.total else { return .incomplete }
        if first == nil {
            resumedFrom = map.completeBytes
            try file.reserve(total - map.completeBytes)
            meter.begin(map.completeBytes, of: total)
        }
        let clock = work.clock
        var state = state
        var queue = PieceQueue(map, limit: connections, count: meter.count, now: clock.now)
        var first = first
        var last: Response?
        let fetcher = PieceFetcher(
            work: work, state: state, file: file, meter: meter,
            bytesPerSecond: options.bytesPerSecond)
        let outcome = try await withThrowingTaskGroup(of: PieceFetcher.End.self) { group in
            while true {
                while let piece = queue.next(clock.now) {
                    group.addTask { [first] in await fetcher.fetch(piece, first) }
                    first = nil
                }
                guard let end = try await group.next() else { return PieceQueue.Outcome.complete }
                let outcome = try queue.receive(end, count: meter.count, now: clock.now) { error, attempt, spent in
                    work.pauseToContinue(after: error, attempt: attempt, spent: spent)
                }
                if case .complete(_, let response) = end {
                    last = response
                    state.pieces = queue.map
                    try file.store(state)
                }
                if let outcome {
                    group.cancelAll()
                    return outcome
                }
            }
        }
        self.state = state
        guard case .complete = outcome, let last else {
            return requestWholeFile("the server does not send the pieces of one version")
        }
        length = total
        return .complete(last)
    }
}
