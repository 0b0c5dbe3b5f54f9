import Foundation
import WebServiceCore

/// Decides which bytes of a file are requested, and how the body of a response is used.
///
/// A plan is a value that performs no I/O. It follows RFC 9110, sections 13.1.5, 14 and 15.3.7.
struct DownloadPlan: Sendable, Equatable {
    /// The offset of the first requested byte; `nil` if the whole file is requested.
    let offset: Int64?
    /// The offset of the last requested byte; `nil` if all bytes to the end are requested.
    var last: Int64?
    /// The representation that the existing bytes belong to.
    let state: DownloadState
    /// A Boolean value that indicates whether the bytes before the offset exist, so that they can
    /// be compared.
    var canCompare = true

    /// Plans a request for the whole file.
    init(wholeFile state: DownloadState) {
        offset = nil
        self.state = state
    }

    /// Plans a request for a piece of a file.
    init(piece: ClosedRange<Int64>, of state: DownloadState) {
        offset = piece.lowerBound
        last = piece.upperBound
        self.state = state
        canCompare = false
    }

    /// Plans the first request of a download.
    ///
    /// - Parameters:
    ///   - stored: The state beside the partial file; `nil` if there is none that can be read.
    ///   - length: The length of the partial file.
    ///   - current: The state with the URL of the request.
    ///   - ignoresQuery: Whether the query of the URL may differ. Defaults to `false`.
    init(continuing stored: DownloadState?, length: Int64, current: DownloadState, ignoresQuery: Bool = false) {
        let canContinue =
            length > 0 && length <= stored?.total ?? .max
            && stored?.validator(for: current, ignoresQuery: ignoresQuery) != nil
        if canContinue, let stored { (offset, state) = (length, stored) } else { (offset, state) = (nil, current) }
    }

    /// The header fields of the request.
    ///
    /// Content codings are refused, because a server compresses the whole representation, so a part
    /// could not be decoded.
    var headers: Headers {
        var headers: Headers = ["Accept-Encoding": "identity"]
        guard let offset else { return headers }
        headers["Range"] = "bytes=\(offset)-\(last.map(String.init) ?? "")"
        headers["If-Range"] = state.validator
        return headers
    }

    /// The use of a response body.
    enum Step: Sendable, Equatable {
        /// The body is this range of the file, which begins where the existing bytes end.
        case append(ClosedRange<Int64>)
        /// The body is this range of the file, which begins before the existing bytes end. The
        /// bytes that both contain must be equal.
        case overlap(ClosedRange<Int64>)
        /// The body is the whole file. The existing bytes cannot be used.
        case wholeFile
        /// The body is not a part of the file, because all bytes of the file exist.
        case complete
        /// The body cannot be used, so the whole file must be requested. The string is the reason.
        case requestWholeFile(String)
        /// The body cannot be used, and the whole file was already requested. The string is the
        /// reason.
        case fail(String)
    }

    /// Returns how the body of a response is used.
    ///
    /// - Parameter status: 200, 203, 206 or 416.
    func step(status: Int, headers: Headers) -> Step {
        switch status {
        case 206: partialContent(headers)
        case 416: unsatisfied(headers)
        default: .wholeFile
        }
    }

    private func partialContent(_ headers: Headers) -> Step {
        guard let offset else { return .fail("the server sent a part of the file, but the whole file was requested") }
        if Self.isEncoded(headers) { return .requestWholeFile("the part is compressed") }
        if MediaType.matches(headers[.contentType] ?? "", pattern: "multipart/byteranges") {
            return .requestWholeFile("the server sent several parts instead of one")
        }
        guard let value = headers["Content-Range"], case .bytes(let range, let total)? = ContentRange(value) else {
            return .requestWholeFile("the part has no valid Content-Range")
        }
        if let total, let known = state.total, total != known {
            return .requestWholeFile("the length of the file has changed")
        }
        guard range.upperBound <= last ?? .max, range.upperBound < state.total ?? .max else {
            return .requestWholeFile("the part ends after the requested range")
        }
        // The first piece has no version yet.
        guard state.validator == nil || state.isRepeated(by: headers) else {
            return .requestWholeFile("the part belongs to another or an unknown version of the file")
        }
        if range.lowerBound == offset { return .append(range) }
        guard range.lowerBound < offset, range.upperBound >= offset, canCompare else {
            return .requestWholeFile("the part does not begin at the requested offset")
        }
        return .overlap(range)
    }

    private func unsatisfied(_ headers: Headers) -> Step {
        guard let offset else { return .fail("the server responded with status 416 to a request without a range") }
        guard let value = headers["Content-Range"], case .unsatisfied(let total)? = ContentRange(value),
            total == offset, state.total.map({ $0 == total }) ?? state.isRepeated(by: headers)
        else { return .requestWholeFile("the range cannot be satisfied") }
        return .complete
    }

    /// Returns whether the body of a response is compressed, although the request forbids it.
    static func isEncoded(_ headers: Headers) -> Bool {
        let coding = headers["Content-Encoding"].map { $0.trimmingCharacters(in: .whitespaces).asciiLowercased() }
        return ![nil, "", "identity"].contains(coding)
    }
}

extension TaskWork {
    /// Creates a request of a download.
    ///
    /// - Parameter bytesPerSecond: The rate limit, so that few bytes are buffered.
    func stream(_ plan: DownloadPlan, bytesPerSecond: Int?) -> Stream {
        var request = request
        for field in plan.headers { request.headers[field.name] = field.value }
        request.downloadsPart = plan.offset != nil
        let bufferSize = min(256 << 10, max(16 << 10, bytesPerSecond.map { $0 / 4 } ?? .max))
        return Stream(of: self, request, accepting: [200, 203, 206, 416], bufferSize: bufferSize)
    }
}
