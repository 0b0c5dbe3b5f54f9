import Foundation
import WebServiceCore

/// The decisions about which bytes of a file are requested, and about how the body of a response is
/// used (`DownloadPlan+Response.swift`).
///
/// A plan is a value that performs no I/O. It follows RFC 9110, sections 13.1.5, 14 and 15.3.7.
struct DownloadPlan: Sendable, Equatable {
    /// The offset of the first requested byte; `nil` if the whole file is requested.
    let offset: Int64?
    /// The offset of the last requested byte; `nil` if all bytes to the end are requested.
    var last: Int64?
    /// The representation that the existing bytes belong to.
    let state: DownloadState
    /// Whether the bytes before the offset exist and can be compared.
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
    ///   - stored: The state next to the partial file; `nil` if there is no readable state.
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
    /// Content codings are refused because a server compresses the whole representation, and a part
    /// of the compressed bytes could not be decoded.
    var headers: Headers {
        var headers: Headers = ["Accept-Encoding": "identity"]
        guard let offset else { return headers }
        headers["Range"] = "bytes=\(offset)-\(last.map(String.init) ?? "")"
        headers["If-Range"] = state.validator
        return headers
    }
}

extension TaskWork {
    /// Creates a request of a download.
    ///
    /// - Parameter bytesPerSecond: The rate limit. A low limit reduces the size of the buffer.
    func stream(_ plan: DownloadPlan, bytesPerSecond: Int?) -> Stream {
        var request = request
        for field in plan.headers { request.headers[field.name] = field.value }
        request.downloadsPart = plan.offset != nil
        let bufferSize = min(256 << 10, max(16 << 10, bytesPerSecond.map { $0 / 4 } ?? .max))
        return Stream(of: self, request, accepting: [200, 203, 206, 416], bufferSize: bufferSize)
    }
}
