public import Foundation
public import WebServiceCore

/// The result of an upload.
public struct UploadedFile: Sendable {
    /// The length of the file, in bytes.
    public let byteCount: Int64
    /// The number of bytes that the server had from an earlier upload; 0 if it had none.
    public let resumedFrom: Int64
    /// The number of times that the upload was started over, for example because the server no
    /// longer had it.
    public let restarts: Int
    /// The URL of the upload on the server; `nil` if the server has not returned one, for example
    /// after an ordinary request.
    ///
    /// With ``UploadProtocol/tus``, this is usually the URL of the file.
    public let location: URL?
    /// The response that completed the upload.
    ///
    /// With ``UploadProtocol/draft``, this is the response of the resource to which the request was
    /// sent. If that response was lost, this property contains the response to the request for the
    /// offset, without a body.
    public let response: Response
}

/// A protocol for uploads that can be continued.
public enum UploadProtocol: Sendable, Hashable {
    /// Resumable Uploads for HTTP (draft-ietf-httpbis-resumable-upload, interop version 8).
    case draft
    /// The tus protocol, version 1.0, with the extensions creation, creation-with-upload, checksum,
    /// expiration and termination. The length of an upload whose URL the caller passes may be
    /// deferred (creation-defer-length).
    case tus
}

extension WebServiceError.Code {
    /// An upload that failed because of a local problem, such as a full disk, because the file
    /// exceeds a limit of the server, or because the server violates the protocol.
    ///
    /// `WebServiceError.underlying` is the system error, if there is one. The state of the upload
    /// is retained, unless the server can no longer continue it.
    public static let upload = WebServiceError.Code("upload")
    /// An upload that another task, in this or another process, has already begun: the file, the
    /// protocol, the method and the URL are the same.
    public static let uploadInProgress = WebServiceError.Code("uploadInProgress")
}
