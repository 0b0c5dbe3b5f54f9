public import Foundation
public import WebServiceCore

extension SessionTask {
    /// Returns a typed task that uploads the file of the request's body, and continues an
    /// interrupted upload.
    ///
    /// ```swift
    /// let file = try await service.PUT("/files/1").setBody(file: url).upload(resuming: .draft).value
    /// ```
    /// The file is sent in pieces, each of which is read while it is sent. Until the upload is
    /// complete, its URL on the server is stored in the file `.NAME.HASH.webservice-upload`.
    ///
    /// - A later upload of the file to the same URL with the same method, in any process, asks the
    ///   server for the offset (the number of bytes that the server has) and continues there, even
    ///   if the process was killed. If the size, the modification date or the first 64 KiB of the
    ///   file have changed, or if the stored state is damaged, the upload starts over. If the
    ///   permissions, names or attributes of the file have changed (`st_ctime`), the bytes that
    ///   were sent are read again, and the upload starts over only if they differ. The upload also
    ///   starts over, at most 3 times, if the server no longer has it (status 404 or 410, and with
    ///   ``UploadProtocol/tus`` also 403).
    /// - If a program replaces or changes the file during the upload, the task fails with
    ///   `WebServiceError.Code.upload`, even if the server has already received all bytes. The file
    ///   may be moved or removed.
    /// - The `RetryPolicy` of the service or the request applies to errors that occur during the
    ///   upload, regardless of the method, once the server has created the upload. It also applies
    ///   to status 423, with which a server responds until it detects that an earlier connection
    ///   was lost. The next request then begins at the server's offset. The count toward
    ///   `RetryPolicy.maximumAttempts` starts again after every 64 KiB.
    /// - The task obeys the limits of the server (`Upload-Limit`, `Tus-Max-Size`). If the file
    ///   exceeds them, the task fails, usually before the file is sent. The task also fails after 8
    ///   consecutive requests that together send less than 64 KiB.
    /// - A server that does not support the protocol receives the file in one ordinary request.
    ///   With ``UploadProtocol/tus``, uploads are created with POST; an ordinary request has the
    ///   method of the task.
    /// - If the URL of the upload has another origin, only the request's fields that a redirect
    ///   would retain are sent to it (`RedirectPolicy`). Interceptors, cookies and redirects apply
    ///   to each request of the upload.
    /// - After `cancel()` or most errors, the state remains for the next upload.
    ///   ``endUpload(resuming:state:)`` ends the upload on the server. If the limits or the
    ///   responses of the server do not allow the upload to continue, the task ends the upload on
    ///   the server.
    /// - With `.contentDigest()` (`WebServiceFields`), each request has the `Content-Digest` of its
    ///   piece. The field `Repr-Digest` is sent with the request that creates the upload.
    /// - Over a `FoundationSession` on Linux, if a reused connection is lost before the response
    ///   arrives, a request with content ends only when its timeout elapses, by default after 60
    ///   seconds. Use a `CurlSession`, or set a shorter `Request.Options.timeout`.
    /// - `Request.Options.deadline` applies to the whole upload if you set it on the request or the
    ///   task, and otherwise to each request.
    /// - `onProgress(_:)` reports the bytes of the whole file.
    ///
    /// In addition to the errors of other typed tasks, the task can fail with
    /// `WebServiceError.Code.upload` and `WebServiceError.Code.uploadInProgress`. Call this method
    /// before `resume()`.
    ///
    /// - Parameters:
    ///   - resuming: The protocol.
    ///   - location: The URL of an upload that your program or its server has already created; a
    ///     relative URL is resolved against the URL of the request. The task does not create an
    ///     upload. It asks the server for the offset, and sends the remaining bytes. If the server
    ///     does not have the upload (status 404 or 410, and with ``UploadProtocol/tus`` also 403),
    ///     the task fails with that status. It fails with `WebServiceError.Code.upload` if the file
    ///     has changed since an earlier task, or if the upload has a different length. The task
    ///     never starts the upload over or ends it on the server. Only the fields that a redirect
    ///     would retain are sent to another origin. Defaults to `nil`: the task creates an upload,
    ///     or continues the stored one.
    ///   - metadata: The metadata of an upload that is created with ``UploadProtocol/tus``, such as
    ///     `["filename": "video.mp4"]`. The values are encoded with Base64 and sent in the order of
    ///     the keys as `Upload-Metadata`. The keys must consist of printable ASCII characters other
    ///     than space and comma. If a key is empty or contains another character, or if metadata is
    ///     passed with the draft or together with `location`, the task fails before anything is
    ///     sent. Defaults to an empty dictionary.
    ///   - pieceSize: The maximum number of bytes in the body of a request, unless the server
    ///     requires more or allows less. If the server stores only whole requests, at most this
    ///     number of bytes is sent again after an interruption. Defaults to 8 MiB.
    ///   - state: The URL of the folder that stores the state. Defaults to `nil`: the folder of the
    ///     file.
    ///   - sendsOptions: Whether the task first sends an OPTIONS request to determine whether the
    ///     server supports the protocol, and what its limits are. `false` is for networks that drop
    ///     OPTIONS requests. Pass it only if the server is known to support the protocol, because
    ///     any other server could store a part of the file as the whole file. The limits and
    ///     checksums of tus are then not used. Defaults to `true`.
    public func upload(
        resuming: UploadProtocol, at location: URL? = nil, metadata: [String: String] = [:],
        pieceSize: Int = 8 << 20, state: URL? = nil, sendsOptions: Bool = true
    ) -> TypedTask<UploadedFile> {
        let options = UploadOptions(
            protocol: resuming, location: location, metadata: metadata, pieceSize: pieceSize, folder: state,
            sendsOptions: sendsOptions)
        return perform { work in
            var transfer = try UploadTransfer(work, options)
            defer { transfer.file.close(isUnwanted: work.accountHasEnded) }
            let file = try await transfer.run()
            return (file, file.response)
        }
    }

    /// Returns a typed task that ends an interrupted upload on the server, and removes its state.
    ///
    /// ```swift
    /// try await service.PUT("/files/1").setBody(file: url).endUpload(resuming: .draft).value
    /// ```
    /// The task must have the method, the URL and the file of the upload. The file is not read, and
    /// may have been changed or removed. The task sends a DELETE request to the URL of the upload.
    /// The server may then discard the bytes. A status of 404 or 410, and with
    /// ``UploadProtocol/tus`` also 403, counts as success. If there is no interrupted upload,
    /// nothing is sent and the value is `false`.
    ///
    /// - Parameters:
    ///   - resuming: The protocol.
    ///   - state: The URL of the folder that stores the state. Defaults to `nil`: the folder of the
    ///     file.
    public func endUpload(resuming: UploadProtocol, state: URL? = nil) -> TypedTask<Bool> {
        perform { work in
            let requests = try UploadRequests(work, resuming)
            let request = requests.listing.request
            let file = try UploadStateFile(requests.file, in: state, request: request)
            defer { file.close(isUnwanted: work.accountHasEnded) }
            let stored = file.stored().flatMap { $0.request == request ? $0 : nil }
            return try await requests.end(stored?.location, file)
        }
    }
}
