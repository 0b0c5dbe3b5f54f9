import Foundation
import WebServiceCore

/// The state stored next to a partial file, which identifies the representation that the file's
/// bytes belong to.
///
/// The number of bytes is not stored. It is the length of the partial file, which is correct even
/// if the process is killed at any instruction.
struct DownloadState: Sendable, Equatable, TransferState {
    static let mark = "webservice-download 1 "
    static let maximumLength = 4_096

    /// The field values of the response that delivered the first byte.
    var eTag: String?
    var lastModified: String?
    var date: String?
    var digest: String?
    /// The length of the representation; `nil` if the server did not send it.
    var total: Int64?
    /// The hash of the request's URL.
    var url: String
    /// The hash of the URL without its query, which often contains an expiring signature.
    var place: String
    /// The parts that are complete; `nil` unless several connections write to the file.
    var pieces: PieceMap?
    /// The name of the downloaded file; `nil` unless the partial file is named after its hash.
    var name: String?

    /// Creates the state for the response to a request.
    ///
    /// - Parameter total: The length of the representation; `nil` if it is unknown.
    init(url: String, headers: Headers = [:], total: Int64? = nil) {
        eTag = headers[.eTag]
        lastModified = headers["Last-Modified"]
        date = headers["Date"]
        digest = headers["Repr-Digest"]
        self.total = total
        self.url = Self.hash(url.utf8.prefix { $0 != UInt8(ascii: "#") })
        place = Self.hash(url.utf8.prefix { $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "?") })
    }

    /// The value for `If-Range` (RFC 9110, section 13.1.5).
    ///
    /// The value is a strong entity tag, or else `Last-Modified` if that date is at least one
    /// second before `Date` (section 8.8.2.2).
    ///
    /// The value is `nil` if the bytes of two responses cannot be joined safely.
    var validator: String? {
        if let strongTag { return strongTag }
        guard let lastModified, let date, let modified = HTTPDate.parse(lastModified), let sent = HTTPDate.parse(date)
        else { return nil }
        return sent.timeIntervalSince(modified) >= 1 ? lastModified : nil
    }

    /// The entity tag if it is a strong one (RFC 9110, section 8.8.3).
    var strongTag: String? {
        guard let bytes = eTag?.utf8, bytes.count >= 2, bytes.first == UInt8(ascii: "\""),
            bytes.last == UInt8(ascii: "\""),
            bytes.dropFirst().dropLast().allSatisfy({ $0 == 0x21 || $0 >= 0x23 && $0 != 0x7F })
        else { return nil }
        return eTag
    }

    /// Returns the validator if a request for a URL may continue the partial file.
    ///
    /// An entity tag distinguishes only the versions of one resource (RFC 9110, section 8.8.3), and
    /// a URL with a different query usually identifies a different resource.
    ///
    /// - Parameter ignoresQuery: Whether the query may differ if the validator is an entity tag.
    ///   Equal dates are less reliable.
    func validator(for other: DownloadState, ignoresQuery: Bool) -> String? {
        isOfSameURL(other, ignoresQuery: ignoresQuery && strongTag != nil) ? validator : nil
    }

    /// Returns whether two states belong to the same URL.
    func isOfSameURL(_ other: DownloadState, ignoresQuery: Bool) -> Bool {
        ignoresQuery ? place == other.place : url == other.url
    }

    /// Returns whether a response to a range request repeats the validator.
    ///
    /// A server that ignores `If-Range` may send a part of another version. An absent validator
    /// counts as a different one, although a server may omit `Last-Modified` (section 15.3.7).
    func isRepeated(by headers: Headers) -> Bool {
        if let strongTag { return headers[.eTag] == strongTag }
        return headers["Last-Modified"] == lastModified
            && (eTag == nil || headers[.eTag] == nil || headers[.eTag] == eTag)
    }

    /// Returns whether a response has a validator of another version.
    func isContradicted(by headers: Headers) -> Bool {
        if let eTag, let other = headers[.eTag] { return other != eTag }
        return lastModified != nil && ![nil, lastModified].contains(headers["Last-Modified"])
    }
}

extension DownloadState {
    /// Reads and decodes a state.
    ///
    /// - Returns: `nil` if there is no state that can be read.
    init?(storedAs name: String, in folder: borrowing Folder) {
        guard let content = try? folder.content(of: name, isWhole: { _, _ in false })  // unreadable is absent
        else { return nil }
        self.init(encoded: content.bytes)
    }
}
