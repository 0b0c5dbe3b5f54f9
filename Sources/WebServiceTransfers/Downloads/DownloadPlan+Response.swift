import Foundation
import WebServiceCore

/// The decision about a response.
extension DownloadPlan {
    /// The parts of a response's head that the decision depends on.
    struct Head: Sendable {
        let status: Int
        let headers: Headers
        /// The length of the body, in bytes; `nil` if it is unknown, as it is for a compressed
        /// body.
        let length: Int64?
        /// Whether `Content-Length` is present but does not specify exactly one length.
        let hasInvalidLength: Bool
        /// Whether the body is compressed, although the request forbids it.
        let isEncoded: Bool

        /// - Parameter bodyLength: The length of the body according to the session; `nil` if it is
        ///   unknown. `Content-Length` takes precedence, so that a body that the session has
        ///   truncated is detected.
        init(status: Int, headers: Headers, bodyLength: Int64? = nil) {
            self.status = status
            self.headers = headers
            let coding = headers["Content-Encoding"].map { ASCII.lowercased(ASCII.trimmed($0.utf8)) }
            isEncoded = ![nil, "", "identity"].contains(coding)
            let values = headers[.contentLength]?.split(separator: ",", omittingEmptySubsequences: false) ?? []
            let lengths = Set(values.map { Self.number(ASCII.trimmed($0.utf8)) })
            hasInvalidLength = lengths.count > 1 || lengths.contains(nil)
            length = isEncoded || hasInvalidLength ? nil : lengths.first ?? bodyLength
        }

        private static func number(_ digits: Substring.UTF8View) -> Int64? {
            digits.allSatisfy(ASCII.isDigit) ? Int64(String(Substring(digits))) : nil
        }

        /// Whether the body is not the representation that the validators identify.
        var isTransformed: Bool { isEncoded || status == 203 }

        fileprivate var hasSeveralParts: Bool {
            MediaType.matches(headers[.contentType] ?? "", pattern: "multipart/byteranges")
        }
    }

    /// The use of a response body.
    enum Step: Sendable, Equatable {
        /// The body is this range of the file. The range begins at the requested offset, or before
        /// the offset if the overlapping bytes can be compared.
        ///
        /// The total is the length of the file; `nil` if it is unknown.
        case part(ClosedRange<Int64>, total: Int64?)
        /// The body is the whole file. The total is the length of the file; `nil` if it is unknown.
        /// The existing bytes cannot be used.
        case wholeFile(total: Int64?)
        /// The body is not a part of the file, because all bytes of the file already exist.
        case complete
        /// The body cannot be used, so the whole file must be requested. The string is the reason.
        case requestWholeFile(String)
        /// The body cannot be used, and the whole file was already requested. The string is the
        /// reason.
        case fail(String)
        /// The server contradicts an earlier response, so neither response can be trusted. The
        /// string is the reason.
        case contradiction(String)
    }

    /// Returns how the body of a response is used.
    ///
    /// The decision depends on the status, the range, the lengths and the validators. Bytes are
    /// joined, and a file counts as complete, only if all of these agree.
    ///
    /// - Parameters:
    ///   - head: The head of a response with status 200, 203, 206 or 416.
    ///   - known: The representation that an earlier response described; `nil` if there was none.
    func step(for head: Head, known: DownloadState? = nil) -> Step {
        switch head.status {
        case 206: part(head, known)
        case 416: unsatisfied(head.headers)
        default: whole(head, known)
        }
    }

    /// Refuses a body. The whole file is requested once.
    private func refusal(_ reason: String) -> Step {
        offset == nil ? .fail(reason) : .requestWholeFile(reason)
    }

    // MARK: 206

    private func part(_ head: Head, _ known: DownloadState?) -> Step {
        guard let offset else { return .fail("the server sent a part of the file, but the whole file was requested") }
        if head.isEncoded { return .requestWholeFile("the part is compressed") }
        if head.hasSeveralParts { return .requestWholeFile("the server sent several parts instead of one") }
        guard let value = head.headers["Content-Range"], case .bytes(let range, let total)? = ContentRange(value) else {
            return .requestWholeFile("the part has no valid Content-Range")
        }
        guard !head.hasInvalidLength, head.length ?? range.byteCount == range.byteCount else {
            return .requestWholeFile("the part does not have the length of its range")
        }
        let isKnown = state.validator == nil && known?.validator != nil && known?.isRepeated(by: head.headers) == true
        let version = isKnown ? known : state
        if let total, let known = version?.total, total != known {
            return .requestWholeFile("the length of the file has changed")
        }
        guard range.upperBound <= last ?? .max, range.upperBound < state.total ?? .max else {
            return .requestWholeFile("the part ends after the requested range")
        }
        // The first piece has no version yet.
        guard state.validator == nil || state.isRepeated(by: head.headers) else {
            return .requestWholeFile("the part belongs to another or an unknown version of the file")
        }
        if range.lowerBound == offset { return .part(range, total: total ?? state.total) }
        guard range.lowerBound < offset, range.upperBound >= offset, canCompare else {
            return .requestWholeFile("the part does not begin at the requested offset")
        }
        return .part(range, total: total ?? state.total)
    }

    // MARK: 200

    private func whole(_ head: Head, _ known: DownloadState?) -> Step {
        if head.hasSeveralParts { return refusal("the server sent several parts instead of the file") }
        if head.hasInvalidLength { return refusal("the response has no valid Content-Length") }
        let range = head.headers["Content-Range"]
        let total = head.length ?? range.flatMap(ContentRange.init)?.total
        if let range {
            guard !head.isEncoded, let total, ContentRange(range) == .bytes(0...max(total, 1) - 1, total: total) else {
                // The body is a part of the file. If its length is unknown, it may also be the
                // whole file.
                return head.length == nil ? refusal("the response has a Content-Range") : part(head, known)
            }
        } else if total.map(isRequestedLength) ?? (offset ?? 0 > 0) {
            return .requestWholeFile(Self.doubt)
        }
        if !head.isTransformed, let known, let tag = known.strongTag, tag == head.headers[.eTag],
            let expected = known.total
        {
            guard let total, total != expected else { return .wholeFile(total: expected) }
            return .contradiction(
                "the server sent one entity tag with the lengths \(expected) and \(total); download the file again")
        }
        return .wholeFile(total: total)
    }

    /// The reason to request the whole file after a body of the requested or of unknown length.
    static let doubt = "the response may be the part that was requested"

    /// Returns whether a body has the length of the requested part. Regardless of the status, such
    /// a body may be that part instead of the whole file.
    func isRequestedLength(_ length: Int64) -> Bool {
        guard let offset, let last = last ?? state.total.map({ $0 - 1 }) else { return false }
        return length > 0 && last - offset == length - 1
    }

    // MARK: 416

    private func unsatisfied(_ headers: Headers) -> Step {
        guard let offset else { return .fail("the server responded with status 416 to a request without a range") }
        guard let value = headers["Content-Range"], case .unsatisfied(let total)? = ContentRange(value),
            total == offset, offset > 0,
            state.total.map({ $0 == total && !state.isContradicted(by: headers) }) ?? state.isRepeated(by: headers)
        else { return .requestWholeFile("the range cannot be satisfied") }
        return .complete
    }
}

extension DownloadPlan.Head {
    init(_ response: StreamedResponse) {
        self.init(status: response.status, headers: response.headers, bodyLength: response.body.expectedLength)
    }
}

extension ClosedRange<Int64> {
    /// The number of positions. A peer may send a range with more positions than `Int64` can
    /// represent.
    fileprivate var byteCount: Int64 {
        let (count, overflows) = (upperBound - lowerBound).addingReportingOverflow(1)
        return overflows ? .max : count
    }
}
