import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The transfer of a file by several requests at a time.
extension DownloadTransfer {
    /// Requests the missing pieces, several at a time, and stores which of them are complete.
    ///
    /// - Parameter first: The response to the request for the first piece, if it was sent already.
    mutating func receivePieces(
        of state: DownloadState, _ map: PieceMap, first: PieceFetcher.First?
    ) async throws -> Pass {
        guard let file, let total = state.total else { return .incomplete }
        var (state, queue) = (state, PieceQueue(map, limit: connections))
        if first == nil {
            resumedFrom = map.completeBytes
            try file.reserve(total - map.completeBytes)
            meter.begin(map.completeBytes, of: total)
        }
        var first = first
        var last: Response?
        let fetcher = PieceFetcher(
            task: task, request: request, state: state, file: file, meter: meter, policy: continuationPolicy,
            bytesPerSecond: options.bytesPerSecond)
        let outcome = try await withThrowingTaskGroup(of: PieceFetcher.End.self) { group in
            while true {
                while let piece = queue.next() {
                    group.addTask { [first] in await fetcher.fetch(piece, first) }
                    first = nil
                }
                guard let end = try await group.next() else { return PieceQueue.Outcome.complete }
                let outcome = try queue.receive(end, count: meter.count, now: task.context.clock.now)
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
            (needsWholeFile, connections) = (true, 1)
            return .incomplete
        }
        length = total
        return .complete(last)
    }
}

/// The pieces that are to be requested, and the results of those that were.
struct PieceQueue {
    /// A piece, or its rest.
    struct Piece: Sendable {
        let index: Int
        let range: ClosedRange<Int64>
        /// The error that interrupted the piece before.
        var failure: (any Error)?
        /// The number of failures without any bytes in between.
        var attempt = 1
        var spent = Duration.zero
    }

    enum Outcome {
        case complete
        /// The version has changed, or the server does not serve parts.
        case requestWholeFile
    }

    private(set) var map: PieceMap
    private var limit: Int
    private var upcoming = 0
    private var returned: [Piece] = []
    private var active = 0
    private var fruitless = 0
    private var lastCount: Int64 = -1
    private var lastProgress: UInt64?

    init(_ map: PieceMap, limit: Int) {
        self.map = map
        self.limit = limit
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
    /// - Returns: The outcome of all pieces, or `nil` if they go on.
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

/// Requests one piece and writes it to its place.
struct PieceFetcher: Sendable {
    let task: SessionTask
    let request: Request
    let state: DownloadState
    let file: PartFile
    let meter: DownloadMeter
    let policy: (any ContinuationPolicy)?
    let bytesPerSecond: Int?

    /// A response to a request that was sent already, and the bytes of the file in its body.
    typealias First = (response: StreamedResponse, range: ClosedRange<Int64>)

    /// What a request for a piece came to.
    enum End: Sendable {
        case complete(Int, Response)
        /// The server has sent the bytes before the position only.
        case shortened(Int, Int64)
        /// The error is final.
        case stopped(any Error)
        /// The connection was lost before the byte at the position.
        case interrupted(Int, Int64, any Error)
        /// The response is not the piece.
        case refused(Int, Int64, isSameVersion: Bool)
    }

    func fetch(_ piece: PieceQueue.Piece, _ first: First?) async -> End {
        do {
            if let first { return try await receive(piece, first.range, first.response) }
            if let failure = piece.failure {
                guard
                    try await policy?.waitToContinue(
                        request, after: failure, attempt: piece.attempt, spent: piece.spent, in: task.context) == true
                else { return .stopped(failure) }
            }
            let plan = DownloadPlan(piece: piece.range, of: state)
            let exchange = DownloadExchange(task, request, plan, bytesPerSecond: bytesPerSecond)
            defer { exchange.end() }
            let response = try await exchange.response()
            switch plan.step(status: response.status, headers: response.headers) {
            case .append(let range): return try await receive(piece, range, response)
            default:
                let other = DownloadState(url: "", headers: response.headers)
                return .refused(
                    piece.index, piece.range.lowerBound,
                    isSameVersion: response.status == 200 && other.validator == state.validator)
            }
        } catch {
            return .stopped(error)
        }
    }

    private func receive(
        _ piece: PieceQueue.Piece, _ range: ClosedRange<Int64>, _ response: StreamedResponse
    ) async throws -> End {
        var position = range.lowerBound
        var bytes = response.body.makeAsyncIterator()
        while true {
            let chunk: Data?
            do { chunk = try await bytes.next() } catch {
                return Task.isCancelled ? .stopped(error) : .interrupted(piece.index, position, error)
            }
            guard let chunk else { break }
            guard Int64(chunk.count) <= range.upperBound - position + 1 else {
                throw WebServiceError(.download, "the server sent more bytes than it announced")
            }
            try chunk.withUnsafeBytes { try file.write($0, at: position) }
            position += Int64(chunk.count)
            try await meter.add(chunk.count)
        }
        if let digest = response.headers["Content-Digest"] ?? response.body.trailers?["Content-Digest"] {
            for (algorithm, hash) in DigestField.digests(digest)
            where try file.hash(algorithm, of: range.lowerBound..<position) != hash {
                try file.discard()
                throw WebServiceError(
                    .digestMismatch, "the \(algorithm.rawValue) hash of a part is not the expected one")
            }
        }
        guard position > range.upperBound else {
            return .interrupted(piece.index, position, URLError(.networkConnectionLost))
        }
        return position > piece.range.upperBound
            ? .complete(piece.index, response.response) : .shortened(piece.index, position)
    }
}
