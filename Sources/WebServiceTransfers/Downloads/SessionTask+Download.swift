public import Foundation
public import WebServiceCore

extension SessionTask {
    /// Returns a typed task that downloads the body of the response to a file.
    ///
    /// ```swift
    /// let file = try await service.GET("/brew.iso")
    ///     .download(to: destination, checksum: .sha256(hash)).value
    /// ```
    /// The bytes are written to the file `.NAME.webservice-part` next to the destination. That file
    /// is renamed to the destination when it is complete and its hash is correct, so the
    /// destination is never incomplete. A symbolic link at the destination is replaced and not
    /// followed. Only a small part of the file is in memory at any time.
    ///
    /// - A later download to the same destination, in any process, continues an interrupted
    ///   download, even if the process was killed. Only the remaining bytes of the same version are
    ///   requested (`Range`, `If-Range`). This requires a GET request for the same URL, and a
    ///   strong entity tag or `Last-Modified` date (RFC 9110, section 8.8), which every response
    ///   must repeat. If the server has changed the file, or does not support range requests, the
    ///   download starts over. After a power failure, the file may have wrong content where the
    ///   system had not yet written the data to disk. Only a checksum can detect such content.
    /// - The `RetryPolicy` of the service or the request also applies to errors that occur while
    ///   the body is received. The next attempt then requests only the remaining bytes. The count
    ///   toward `RetryPolicy.maximumAttempts` starts again after every 64 KiB.
    /// - A response is used only if its status, `Content-Range`, `Content-Length`, validators and
    ///   body agree with each other and with the earlier responses. A part with status 200 is
    ///   written at the offset in its `Content-Range`. If a response may be a part without a known
    ///   offset, the whole file is requested once instead. If the server sends one strong entity
    ///   tag with two lengths, the task fails, and the next download starts over.
    /// - If the server sends fewer bytes than requested, the rest is requested. After 8 consecutive
    ///   requests that together delivered less than 64 KiB, the whole file is requested once
    ///   instead.
    /// - `cancel()` and most errors leave the received bytes for the next download.
    ///   ``DownloadedFile/Partial`` lists and removes the files that no download has continued.
    /// - `Repr-Digest` and `Content-Digest` (RFC 9530) with SHA-256 or SHA-512 are verified.
    /// - `Request.Options.deadline` and `Request.Options.maximumResponseBytes` apply to the body
    ///   only if you set them on the request or the task. The request asks for an uncompressed
    ///   body. If the server compresses it anyway, the body is decompressed, and an interrupted
    ///   download cannot be continued.
    /// - `onProgress(_:)` reports the bytes of the file, their rate and the estimated end.
    /// - A `ResponseCache` with a `BodyFolder` stores whole files and serves them, except for a
    ///   download over several connections. The requests of a continued download bypass it.
    ///
    /// In addition to the errors of other typed tasks, the task can fail with
    /// `WebServiceError.Code.download`, `WebServiceError.Code.downloadInProgress` and
    /// `WebServiceError.Code.digestMismatch`. Call this method before `resume()`.
    ///
    /// - Parameters:
    ///   - file: The URL of the file.
    ///   - existing: The handling of existing files. Defaults to
    ///     ``DownloadedFile/Existing/resume``.
    ///   - createsFolders: Whether missing folders in the path are created, with the permissions of
    ///     new folders, before the request is sent. They remain if the download fails. Defaults to
    ///     `false`: the folder must exist.
    ///   - checksum: The expected hash of the file. Defaults to `nil`: the hash is not verified.
    ///   - connections: The maximum number of concurrent requests, each for a different part of the
    ///     file. Defaults to 1. Several are used only for files of at least 40 MiB, and only if the
    ///     server supports range requests. If the server rejects a request with a transient status
    ///     or error, the other requests continue. One more request is tried once each connection
    ///     has delivered a part. Each rejected trial doubles the number of parts that each
    ///     connection must deliver before the next trial.
    ///   - bytesPerSecond: The maximum rate, at least 1. With a lower rate, the task fails with
    ///     `WebServiceError.Code.download`. Defaults to `nil`: no limit.
    ///   - synchronizes: Whether the file is flushed to the disk before it is renamed. Defaults to
    ///     `false`.
    ///   - ignoresQuery: Whether the query of the URL may differ from that of the interrupted
    ///     download, such as an expiring signature. This requires an entity tag. If the query
    ///     selects the file, parts of two files could be joined. Defaults to `false`.
    public func download(
        to file: URL, existing: DownloadedFile.Existing = .resume, createsFolders: Bool = false,
        checksum: Checksum? = nil, connections: Int = 1, bytesPerSecond: Int? = nil, synchronizes: Bool = false,
        ignoresQuery: Bool = false
    ) -> TypedTask<DownloadedFile> {
        download(
            DownloadOptions(
                place: .file(file), existing: existing, createsFolders: createsFolders, checksum: checksum,
                connections: connections, bytesPerSecond: bytesPerSecond, synchronizes: synchronizes,
                ignoresQuery: ignoresQuery))
    }

    /// Returns a typed task that downloads the body of the response to a file in a folder, as
    /// `download(to:)` does.
    ///
    /// The name of the file is reduced to one component of at most 200 bytes: the part after the
    /// last slash or backslash, without control characters and colons, and without spaces and dots
    /// at its ends.
    ///
    /// If `name` is `nil`, no file is replaced, because otherwise the server could choose the file.
    /// ``DownloadedFile/Existing/resume``, the default, then has the effect of
    /// ``DownloadedFile/Existing/addNumber``. ``DownloadedFile/Existing/replace`` has the same
    /// effect, and also discards the bytes of an interrupted download of the same URL.
    ///
    /// - Parameters:
    ///   - folder: The URL of the folder.
    ///   - name: The name of the file. Defaults to `nil`: the name in `Content-Disposition` (RFC
    ///     6266), otherwise the last component of the request's path, otherwise `download`. The
    ///     bytes of an interrupted download are then found only after the response has arrived,
    ///     which may require another request.
    ///   - existing: The handling of existing files. Defaults to
    ///     ``DownloadedFile/Existing/resume``.
    ///   - createsFolders: Whether missing folders in the path are created, with the permissions of
    ///     new folders. They are created before the request is sent or, if `name` is `nil`, when
    ///     the response has arrived. They remain if the download fails. Defaults to `false`: the
    ///     folder must exist.
    ///   - checksum: The expected hash of the file. Defaults to `nil`: the hash is not verified.
    ///   - connections: The maximum number of concurrent requests. Defaults to 1.
    ///   - bytesPerSecond: The maximum rate, at least 1. With a lower rate, the task fails with
    ///     `WebServiceError.Code.download`. Defaults to `nil`: no limit.
    ///   - synchronizes: Whether the file is flushed to the disk before it is renamed. Defaults to
    ///     `false`.
    ///   - ignoresQuery: Whether the query of the URL may differ from that of the interrupted
    ///     download, such as an expiring signature. This requires an entity tag. If the query
    ///     selects the file, parts of two files could be joined. Defaults to `false`.
    public func download(
        into folder: URL, name: String? = nil, existing: DownloadedFile.Existing = .resume,
        createsFolders: Bool = false, checksum: Checksum? = nil, connections: Int = 1, bytesPerSecond: Int? = nil,
        synchronizes: Bool = false, ignoresQuery: Bool = false
    ) -> TypedTask<DownloadedFile> {
        download(
            DownloadOptions(
                place: .folder(folder, name: name), existing: existing, createsFolders: createsFolders,
                checksum: checksum, connections: connections, bytesPerSecond: bytesPerSecond,
                synchronizes: synchronizes, ignoresQuery: ignoresQuery))
    }

    /// Replaces the request of the task with a transfer that sends its own requests.
    ///
    /// The ``DownloadTransfer`` reads the bytes and the state that an earlier download left
    /// (``PartFile``). ``DownloadPlan`` determines whether the request is for the remaining bytes.
    private func download(_ options: DownloadOptions) -> TypedTask<DownloadedFile> {
        perform { work in
            var transfer = try DownloadTransfer(work, options)
            defer { transfer.file?.close(isUnwanted: work.accountHasEnded) }
            let file = try await transfer.run()
            return (file, file.response)
        }
    }
}

/// The parameters of a download.
struct DownloadOptions: Sendable {
    enum Place: Sendable {
        case file(URL)
        /// A file in a folder, with the given name or, if the name is `nil`, with the name that the
        /// server suggests.
        case folder(URL, name: String?)
    }

    let place: Place
    var existing = DownloadedFile.Existing.resume
    var createsFolders = false
    var checksum: Checksum?
    var connections = 1
    var bytesPerSecond: Int?
    var synchronizes = false
    var ignoresQuery = false
}
