import Foundation
import WebServiceCore

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A value that requests pieces of a file, and writes each one at its position in the file.
struct PieceFetcher: Sendable {
    let work: TaskWork
    let state: DownloadState
    let file: PartFile
    let meter: TransferMeter
    let bytesPerSecond: Int?

    /// A response to a request that was already sent, and the bytes of the file in its body.
    typealias First = (response: StreamedResponse, range: ClosedRange<Int64>)

    /// The result of a request for a piece.
    enum End: Sendable {
        case complete(PieceQueue.Piece, Response)
        /// The server sent only the bytes before this position.
        case shortened(PieceQueue.Piece, Int64)
        /// The error is final.
        case stopped(any Error)
        /// The connection was lost before the byte at this position.
        case interrupted(PieceQueue.Piece, Int64, any Error)
        /// The server does not accept the connection.
        case rejected(PieceQueue.Piece, any Error, retryAfter: Duration?)
        /// The response is not the piece.
        case refused(PieceQueue.Piece, isSameVersion: Bool)
    }

    func fetch(_ piece: PieceQueue.Piece, _ first: First?) async -> End {
        do {
            if let first { return try await receive(piece, first.range, first.response) }
            let now = work.clock.now
            if piece.earliest > now {
                try await work.pause(for: .nanoseconds(Int64(clamping: piece.earliest - now)))
            }
            let plan = DownloadPlan(piece: piece.range, of: state)
            let exchange = work.stream(plan, bytesPerSecond: bytesPerSecond)
            defer { exchange.end() }
            let response: StreamedResponse
            do { response = try await exchange.response() } catch { return failure(of: piece, error) }
            switch plan.step(for: DownloadPlan.Head(response), known: state) {
            case .part(let range, _): return try await receive(piece, range, response)
            case .wholeFile:
                let version = DownloadState(url: "", headers: response.headers).validator
                return .refused(piece, isSameVersion: version == state.validator)
            default: return .refused(piece, isSameVersion: false)
            }
        } catch {
            return .stopped(error)
        }
    }

    /// Returns the result of a request without a usable response.
    private func failure(of piece: PieceQueue.Piece, _ error: any Error) -> End {
        switch error {
        case let error as URLError where TransientFailure.errorCodes.contains(error.code):
            return .rejected(piece, error, retryAfter: nil)
        case let error as WebServiceError where error.transientStatus != nil:
            return .rejected(piece, error, retryAfter: error.retryAfter(now: work.clock.date))
        default:
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
                return Task.isCancelled ? .stopped(error) : .interrupted(piece, position, error)
            }
            guard let chunk else { break }
            guard Int64(chunk.count) <= range.upperBound - position + 1 else {
                throw WebServiceError(
                    .download, "the server sent more bytes than it announced; download the file again")
            }
            try chunk.withUnsafeBytes { try file.write($0, at: position) }
            position += Int64(chunk.count)
            try await meter.add(chunk.count)
        }
        // The digest covers the complete part, so an incomplete one cannot be verified.
        guard position > range.upperBound else {
            return .interrupted(piece, position, URLError(.networkConnectionLost))
        }
        if let digest = response.headers["Content-Digest"] ?? response.body.trailers?["Content-Digest"] {
            for (algorithm, hash) in DigestField.digests(digest)
            where try file.hash(algorithm, of: range.lowerBound..<position) != hash {
                try file.discard()
                throw WebServiceError(
                    .digestMismatch,
                    "the \(algorithm.rawValue) hash of a part does not match the expected hash; download the "
                        + "file again")
            }
        }
        return position > piece.range.upperBound
            ? .complete(piece, response.response) : .shortened(piece, position)
    }
}
