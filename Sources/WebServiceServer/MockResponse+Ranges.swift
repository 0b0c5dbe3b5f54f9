public import Foundation
import WebServiceCore
public import WebServiceMocking

extension MockResponse {
    /// Creates the response of a server that supports range requests (RFC 9110, section 14).
    ///
    /// ```swift
    /// server.on(.GET, "/brew.iso") { request in MockResponse(file: iso, eTag: "\"1\"", for: request) }
    /// ```
    /// The status is 206 for one range of bytes, and 416 for a range outside the file. It is 200 if
    /// the request has no range, several ranges or an invalid one, or if `If-Range` does not match
    /// the entity tag.
    ///
    /// - Parameters:
    ///   - file: The bytes of the whole file.
    ///   - eTag: The entity tag, with its quotes; `nil` for none.
    ///   - request: The request.
    public init(file: Data, eTag: String?, for request: ReceivedRequest) {
        let isSameVersion = request.headers["If-Range"].map { $0 == eTag } ?? true
        let range = isSameVersion ? request.headers["Range"].flatMap { Self.range($0, of: file.count) } : nil
        switch range {
        case nil: self.init(statusCode: 200, data: file)
        case let range? where range.isEmpty:
            self.init(statusCode: 416, data: Data())
            headers["Content-Range"] = "bytes */\(file.count)"
        case let range?:
            let start = file.startIndex
            self.init(statusCode: 206, data: file[start + range.lowerBound..<start + range.upperBound])
            headers["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.count)"
        }
        headers["Accept-Ranges"] = "bytes"
        headers["ETag"] = eTag
    }

    /// Returns the range that a field specifies; an empty range if it is outside the file, and
    /// `nil` for a field that is ignored.
    private static func range(_ value: String, of count: Int) -> Range<Int>? {
        guard value.hasPrefix("bytes=") else { return nil }
        let parts = value.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let first = parts.first, let last = parts.last else { return nil }
        // A number that is too large counts as the largest integer.
        switch (ASCII.number(first.utf8), ASCII.number(last.utf8)) {
        case (let first?, nil) where last.isEmpty: return first < count ? first..<count : 0..<0
        case (let first?, let last?) where first <= last:
            return first < count ? first..<min(count - 1, last) + 1 : 0..<0
        case (nil, let suffix?) where first.isEmpty: return count - min(count, suffix)..<count
        default: return nil
        }
    }
}
