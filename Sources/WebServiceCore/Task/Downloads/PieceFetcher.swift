import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Requests one piece and writes it to its position in the file.
struct PieceFetcher: Sendable {
    let task: SessionTask
    let request: Request
    let state: DownloadState
    let file: PartFile
    let meter: DownloadMeter
    let policy: (any ContinuationPolicy)?
    let bytesPerSecond: Int?

    /// A response to a request that was already sent, and the bytes of the file in its body.
    typealias First = (response: StreamedResponse, range: ClosedRange<Int64>)

    /// The result of a request for a piece.
    enum End: Sendable {
        case complete(Int, Response)
        /// The server sent only the bytes before the position.
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
