public import Foundation
public import WebServiceCore

/// The result of a download.
public struct DownloadedFile: Sendable {
    /// The URL of the file.
    public let url: URL
    /// The length of the file, in bytes.
    public let byteCount: Int64
    /// The number of bytes reused from an earlier download; 0 if none could be reused.
    public let resumedFrom: Int64
    /// The number of times that received bytes were discarded, for example because the server
    /// changed the file or does not support range requests.
    public let restarts: Int
    /// The response that completed the file, without its body.
    ///
    /// Its status is usually 206 if it delivered a part of the file, and 416 if an earlier download
    /// had received all bytes (RFC 9110, section 14).
    public let response: Response
}

extension DownloadedFile {
    /// The handling of existing files by a download.
    public enum Existing: Sendable, Hashable {
        /// The download fails with `WebServiceError.Code.download` if a file exists at the
        /// destination. That file is not changed, even if it is created during the download.
        ///
        /// An interrupted earlier download of the same URL is continued.
        case fail
        /// A file at the destination is replaced when the download is complete.
        ///
        /// The bytes of an interrupted earlier download are discarded.
        case replace
        /// A file at the destination is replaced when the download is complete.
        ///
        /// An interrupted earlier download of the same URL is continued.
        case resume
        /// No file is replaced. If a file, link or folder is at the destination, a number from 1 to
        /// 999 is added to the name, as in `brew (1).iso`; ``DownloadedFile/url`` contains the
        /// resulting name.
        ///
        /// The names are tried in order. A name is skipped if a file has that name, even if the
        /// file was created during the download, or if the name belongs to another download that is
        /// in progress or was interrupted. An interrupted earlier download of the same URL is
        /// continued if its name is reached. If all names are taken, the task fails with
        /// `WebServiceError.Code.download` or `WebServiceError.Code.downloadInProgress`.
        case addNumber
    }
}
