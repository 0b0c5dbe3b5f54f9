public import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension SessionTask {
    /// Returns a typed task that downloads the body of the response to a file.
    ///
    /// ```swift
    /// let file = try await service.GET("/brew.iso").download(to: destination, checksum: .sha256(hash)).value
    /// ```
    /// The bytes are written to `.NAME.webservice-part` beside the destination, which is renamed
    /// when it is complete and its hash is correct. The destination is never incomplete. A symbolic
    /// link at the destination is replaced and not followed. Few bytes are in memory at any time.
    ///
    /// - An interrupted download is continued by a later one to the same destination, in any
    ///   process, even if the process was killed: only the remaining bytes of the same version are
    ///   requested (`Range`, `If-Range`). This requires a GET request for the same URL, and a
    ///   strong entity tag or `Last-Modified` date (RFC 9110, section 8.8), which every response
    ///   must repeat. If the server has changed the file, or does not support range requests, the
    ///   download starts over. After a power failure, the file may have wrong content where the
    ///   system had not yet written the data to disk. Only a checksum detects this.
    /// - A ``RetryPolicy`` of the service or the request also applies to errors that occur while
    ///   the body is received. The next attempt requests the remaining bytes. The count toward
    ///   ``RetryPolicy/maximumAttempts`` begins again after every 64 KiB.
    /// - If a server sends less than requested, the rest is requested. After 8 consecutive requests
    ///   that together delivered less than 64 KiB, the whole file is requested once instead.
    /// - ``cancel()`` and errors leave the received bytes for the next download.
    /// - `Repr-Digest` and `Content-Digest` (RFC 9530) with SHA-256 or SHA-512 are verified.
    /// - The deadline and ``Request/Options/maximumResponseBytes`` apply only if they differ from
    ///   their defaults. An uncompressed body is requested. A body that is compressed anyway is
    ///   decompressed, and cannot be continued.
    /// - ``onProgress(_:)`` reports the bytes of the file, their rate and the estimated end.
    ///
    /// In addition to the errors of other typed tasks, the task can fail with
    /// ``WebServiceError/Code/download``, ``WebServiceError/Code/downloadInProgress`` and
    /// ``WebServiceError/Code/digestMismatch``. Must be called before ``resume()``.
    ///
    /// - Parameters:
    ///   - file: The URL of the file. Its folder must exist.
    ///   - existing: The handling of existing files. Defaults to
    ///     ``DownloadedFile/Existing/resume``.
    ///   - checksum: The expected hash of the file. Defaults to `nil`.
    ///   - connections: The maximum number of concurrent requests, each for a different part of the
    ///     file. Defaults to 1. More than one is used only for files of at least 40 MiB, and only
    ///     if the server supports range requests. If it rejects one with a transient status or
    ///     error, the others continue.
    ///   - bytesPerSecond: The maximum rate. Defaults to `nil`, no limit.
    ///   - synchronizes: Whether the file is flushed to the disk before it is renamed. Defaults to
    ///     `false`.
    ///   - ignoresQuery: Whether the query of the URL may differ from that of the interrupted
    ///     download, such as an expiring signature. Requires an entity tag. With a query that
    ///     selects the file, two files could be joined. Defaults to `false`.
    public func download(
        to file: URL, existing: DownloadedFile.Existing = .resume, checksum: Checksum? = nil, connections: Int = 1,
        bytesPerSecond: Int? = nil, synchronizes: Bool = false, ignoresQuery: Bool = false
    ) -> TypedTask<DownloadedFile> {
        download(
            DownloadOptions(
                place: .file(file), existing: existing, checksum: checksum, connections: connections,
                bytesPerSecond: bytesPerSecond, synchronizes: synchronizes, ignoresQuery: ignoresQuery))
    }

    /// Returns a typed task that downloads the body of the response to a file in a folder; see
    /// ``download(to:existing:checksum:connections:bytesPerSecond:synchronizes:ignoresQuery:)``.
    ///
    /// The name of the file is reduced to one component of at most 200 bytes: the part after the
    /// last slash or backslash, without control characters, colons, and spaces and dots at the
    /// ends.
    ///
    /// Without `name`, no file is replaced, because a server could choose which one: if the name
    /// belongs to another file, link or folder, or to another download, a number from 1 to 999 is
    /// added, as in `brew (1).iso`. ``DownloadedFile/url`` is the result. With
    /// ``DownloadedFile/Existing/fail``, such a name is an error. If all names are taken, the task
    /// fails with ``WebServiceError/Code/download``.
    ///
    /// - Parameters:
    ///   - folder: The URL of the folder, which must exist.
    ///   - name: The name of the file. Defaults to `nil`: the name in `Content-Disposition` (RFC
    ///     6266), or else the last component of the request's path, or else `download`. The bytes
    ///     of an interrupted download are then found only after the response has arrived, which may
    ///     require another request.
    ///   - existing: The handling of existing files. Without `name`,
    ///     ``DownloadedFile/Existing/resume``, the default, and ``DownloadedFile/Existing/replace``
    ///     differ only in the bytes of an interrupted download.
    ///   - checksum: The expected hash of the file. Defaults to `nil`.
    ///   - connections: The maximum number of concurrent requests. Defaults to 1.
    ///   - bytesPerSecond: The maximum rate. Defaults to `nil`, no limit.
    ///   - synchronizes: Whether the file is flushed to the disk before it is renamed. Defaults to
    ///     `false`.
    ///   - ignoresQuery: Whether the query of the URL may differ from that of the interrupted
    ///     download, such as an expiring signature. Requires an entity tag. With a query that
    ///     selects the file, two files could be joined. Defaults to `false`.
    public func download(
        into folder: URL, name: String? = nil, existing: DownloadedFile.Existing = .resume, checksum: Checksum? = nil,
        connections: Int = 1, bytesPerSecond: Int? = nil, synchronizes: Bool = false, ignoresQuery: Bool = false
    ) -> TypedTask<DownloadedFile> {
        download(
            DownloadOptions(
                place: .folder(folder, name: name), existing: existing, checksum: checksum, connections: connections,
                bytesPerSecond: bytesPerSecond, synchronizes: synchronizes, ignoresQuery: ignoresQuery))
    }

    /// Sets a ``DownloadRun`` as the source of the task's result.
    ///
    /// Its ``DownloadTransfer`` reads the bytes and the state that an earlier download left
    /// (``PartFile``). ``DownloadPlan`` decides whether the request asks for the remaining bytes.
    private func download(_ options: DownloadOptions) -> TypedTask<DownloadedFile> {
        let outcome = TypedResult<DownloadedFile>()
        let replaced = shared.withLock { state in
            state.setSource(isDownload: true) { task, start in
                DownloadRun(task, start.request, options, outcome: outcome).start()
            }
        }
        withExtendedLifetime(replaced) {}
        // The list of exchanges in flight shows the progress.
        return typed(ResponseRules(.any)) { _ in try outcome.value }.onProgress { _ in }
    }
}

/// The parameters of a download.
struct DownloadOptions: Sendable {
    enum Place: Sendable {
        case file(URL)
        /// A file with a name, or with the name that the server suggests.
        case folder(URL, name: String?)
    }

    let place: Place
    var existing = DownloadedFile.Existing.resume
    var checksum: Checksum?
    var connections = 1
    var bytesPerSecond: Int?
    var synchronizes = false
    var ignoresQuery = false
}
