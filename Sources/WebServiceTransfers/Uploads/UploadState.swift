import Foundation
import WebServiceCore

/// The stored state of an upload: the file, the request and the resource on the server.
///
/// The offset is not stored. The server returns the offset, so it is correct even if the process is
/// killed at any instruction.
struct UploadState: Sendable, Equatable, TransferState {
    static let mark = "webservice-upload 1 "
    static let maximumLength = 16_384

    /// The protocol, the method and the URL of the request, hashed.
    var request: String
    /// The size of the file in bytes, the date of its last change, and the hash of its first bytes.
    var size: Int64
    var modified: Double
    /// The date of the last change of the file or of its status (`st_ctime`), for which `content`
    /// is valid.
    var changed: Double
    var prefix: String
    /// The hash of the bytes up to the end of the last piece whose sending has begun; `nil` if it
    /// is unknown.
    var content: ContentHash?
    /// The URL of the resource on the server; `nil` before the server has created it.
    var location: String?
    /// The date after which the server no longer has the upload; `nil` if it is unknown.
    var expires: Date?
    /// The name of the checksum algorithm that the server accepts; `nil` if there is none.
    var checksum: String?
    /// The limits of the server.
    var limits = UploadLimits()
    /// The request and the file, for a list of uploads; `nil` in a state of an earlier version, and
    /// if the state would be too long.
    var listing: Listing?

    /// The additional information that a list of uploads needs.
    struct Listing: Sendable, Equatable, Codable {
        /// The name of the case of `UploadProtocol`.
        var `protocol`: String
        var method: String
        var url: String
        /// The path of the file.
        var file: String

        /// The hash for `UploadState.request`.
        var request: String { UploadState.hash(Data("\(`protocol`) \(method) \(url)".utf8)) }
    }

    /// The state without the request and the file, which is shorter.
    var withoutListing: UploadState {
        var other = self
        other.listing = nil
        return other
    }

    /// Returns whether both states belong to the same request, and to files with the same size,
    /// modification date and first bytes.
    func isSameUpload(as other: UploadState) -> Bool {
        request == other.request && size == other.size && modified == other.modified && prefix == other.prefix
    }
}
