import Foundation
import TestSupport
import WebServiceEndpoints
@testable import WebServiceCore
@testable import WebServiceTransfers

/// A request for a file or a part of it, the response, and the outcomes that are correct.
///
/// The files `Tests/Corpora/range-responses*.json` contain the combinations. Those of
/// `range-responses-independent.json` were written without knowledge of the implementation.
struct RangeCombination: Decodable, Sendable {
    enum Mode: String, Decodable, Sendable {
        /// The whole file is requested.
        case whole
        /// The bytes after those of an interrupted download are requested.
        case `continue`
        /// A piece of the file is requested, one of several.
        case piece
    }

    struct Response: Decodable, Sendable {
        let status: Int
        let fields: [[String]]
        let bodyLength: Int
    }

    enum Outcome: String, Decodable, Sendable {
        /// The body is the file, which is complete.
        case completeFile = "complete-file"
        /// The body is the requested part, or the beginning of it.
        case slice
        /// The existing bytes are the file.
        case alreadyComplete = "already-complete"
        /// The body is not used, and the whole file is requested.
        case startOver = "start-over"
        case error
    }

    let id: String
    let mode: Mode
    /// The number of existing bytes.
    let have: Int?
    /// The first and the last byte of the piece.
    let range: [Int64]?
    let knownLength: Int64?
    let knownETag: String?
    let knownLastModified: String?
    let response: Response
    let expect: Expected
    let why: String

    /// Returns whether an outcome is correct.
    ///
    /// A whole file in place of existing bytes, and a request for the whole file although there are
    /// some, is also a start over. A piece that is refused is also an error of its response.
    func accepts(_ outcome: Outcome) -> Bool {
        let isReplaced = mode == .continue && outcome == .completeFile
        let isRefused = mode == .piece && outcome == .startOver
        return expect.outcomes.contains {
            $0 == outcome || isReplaced && $0 == .startOver || isRefused && $0 == .error
        }
    }

    /// One outcome, or several that are all correct.
    struct Expected: Decodable, Sendable {
        let outcomes: [Outcome]

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let outcome = try? container.decode(Outcome.self) {  // otherwise it is an array
                outcomes = [outcome]
            } else {
                outcomes = try container.decode([Outcome].self)
            }
        }
    }

    static func all(_ name: String) throws -> [RangeCombination] {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Corpora")
        return try JSONDecoder().decode([Self].self, from: Data(contentsOf: folder.appendingPathComponent(name)))
    }
}

// MARK: - Execution

extension RangeCombination {
    /// Bytes that depend on their position and are the same in every version.
    private static func content(_ range: Range<Int>) -> Data {
        Data(range.map { UInt8(truncatingIfNeeded: $0 % 1_000 * 31 / 7) })
    }

    private var headers: Headers {
        Headers(response.fields.map { ($0.first ?? "", $0.last ?? "") })
    }

    private var reply: ReplySession.Reply {
        var start = 0
        if case .bytes(let range, _)? = headers["Content-Range"].flatMap(ContentRange.init) {
            start = Int(clamping: min(range.lowerBound, 1 << 32))
        } else if response.status == 206 {
            start = have ?? Int(range?.first ?? 0)
        }
        return ReplySession.Reply(
            status: response.status, headers: headers, body: Self.content(start..<start + response.bodyLength))
    }

    /// Whether the existing bytes are a gap in the file.
    private var isHuge: Bool { have ?? 0 > 1 << 20 }

    /// The state that the earlier responses have left; `nil` if there were none.
    private var known: DownloadState? {
        guard have != nil || knownLength != nil else { return nil }
        var fields: Headers = [:]
        fields["ETag"] = knownETag
        fields["Last-Modified"] = knownLastModified
        fields["Date"] = knownLastModified.map { _ in "Sun, 01 Mar 2026 00:00:00 GMT" }
        return DownloadState(url: "https://h/a", headers: fields, total: knownLength)
    }

    /// Returns what a download does with the response; `nil` if the bytes of the file are wrong.
    func outcome() async throws -> Outcome? {
        let folder = TemporaryFolder(inMemory: true)
        defer { withExtendedLifetime(folder) {} }
        let destination = folder.url.appendingPathComponent("a")
        return mode == .piece ? try await fetch(destination) : try await download(destination)
    }

    private func download(_ destination: URL) async throws -> Outcome? {
        if let known {
            // A part without bytes remains only if it is not closed.
            let part = try PartFile(DownloadDestination(file: destination), replaces: true)
            if isHuge { try part.truncate(to: Int64(have ?? 0)) }
            try Self.content(0..<(isHuge ? 0 : have ?? 0)).withUnsafeBytes { try part.write($0, at: 0) }
            try part.store(known)
        }
        let requests = Collected<Headers>()
        let service = WebService(
            "https://h",
            session: ReplySession { request in
                requests.add(request)
                return requests.values.count == 1 ? reply : ReplySession.Reply(failure: URLError(.cannotConnectToHost))
            })
        let result = await Result.catching { try await service.GET("/a").download(to: destination).value }
        switch result {
        case .success(let file):
            let isRight = try isHuge || Data(contentsOf: destination) == Self.content(0..<Int(file.byteCount))
            guard isRight, requests.values.count == 1 else { return nil }
            if file.response.status == 416 { return .alreadyComplete }
            return file.resumedFrom > 0 ? .slice : .completeFile
        case .failure:
            guard !FileManager.default.fileExists(atPath: destination.path) else { return nil }
            guard let request = requests.values.dropFirst().first else { return .error }
            return request["Range"] == nil ? .startOver : .slice
        }
    }

    private func fetch(_ destination: URL) async throws -> Outcome? {
        let (first, last) = (range?.first ?? 0, range?.last ?? 0)
        let part = try PartFile(DownloadDestination(file: destination), replaces: true)
        let service = WebService("https://h", session: ReplySession { _ in reply })
        let state = known ?? DownloadState(url: "https://h/a")
        let task = service.GET("/a").perform { work in
            let fetcher = PieceFetcher(
                work: work, state: state, file: part, meter: TransferMeter(work, .download),
                bytesPerSecond: nil)
            let end = await fetcher.fetch(PieceQueue.Piece(index: 0, range: first...last), nil)
            return (end, WebServiceCore.Response(data: Data(), urlResponse: nil))
        }
        switch try await task.value {
        case .complete: return try isWritten(to: last + 1, part) ? .slice : nil
        case .shortened(_, let end): return try isWritten(to: end, part) ? .slice : nil
        case .refused: return .startOver
        case .stopped, .interrupted, .rejected: return .error
        }
    }

    private func isWritten(to end: Int64, _ part: PartFile) throws -> Bool {
        let first = range?.first ?? 0
        return try Self.content(Int(first)..<Int(end)).withUnsafeBytes { try part.contains($0, at: first) }
    }
}
