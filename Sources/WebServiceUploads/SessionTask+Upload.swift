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
    ///   server for its offset and continues there, even if the process was killed. If the size,
    ///   the date of change or the first 64 KiB of the file have changed, or if the stored state is
    ///   damaged, the upload starts over. It also starts over, at most 3 times, if the server no
    ///   longer has the upload (status 404 or 410).
    /// - The `RetryPolicy` of the service or the request applies to errors that occur during the
    ///   upload, regardless of the method, once the server has created the upload. The next request
    ///   then begins at the server's offset. The count toward `RetryPolicy.maximumAttempts` starts
    ///   again after every 64 KiB.
    /// - The limits of the server (`Upload-Limit`, `Tus-Max-Size`) are obeyed. A file that exceeds
    ///   them is an error before it is sent. After 8 consecutive requests without progress, the
    ///   task fails.
    /// - A server without support for the protocol receives the file in one ordinary request. With
    ///   ``UploadProtocol/tus``, uploads are created with POST; an ordinary request has the method
    ///   of the task.
    /// - If the URL of the upload has another origin, only those fields of the request are sent to
    ///   it that a redirect would retain (`RedirectPolicy`). Interceptors, cookies and redirects
    ///   apply to each request of the upload.
    /// - `cancel()` and errors leave the state for the next upload.
    ///   ``endUpload(resuming:state:)`` ends the upload on the server.
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
    ///   - pieceSize: The maximum number of bytes of a request, unless the server requires more or
    ///     allows less. A server that stores only whole requests receives at most this number of
    ///     bytes again after an interruption. Defaults to 8 MiB.
    ///   - state: The URL of the folder that stores the state. Defaults to `nil`: that of the file.
    public func upload(
        resuming: UploadProtocol, pieceSize: Int = 8 << 20, state: URL? = nil
    ) -> TypedTask<UploadedFile> {
        perform { work in
            var transfer = try UploadTransfer(work, resuming, pieceSize: pieceSize, folder: state)
            defer { transfer.file.close() }
            let file = try await transfer.run()
            return (file, file.response)
        }
    }

    /// Returns a typed task that ends an interrupted upload on the server, and removes its state.
    ///
    /// ```swift
    /// try await service.PUT("/files/1").setBody(file: url).endUpload(resuming: .draft).value
    /// ```
    /// The task must have the method, the URL and the file of the upload. The server receives a
    /// DELETE request for the upload, which may discard its bytes. A status of 404 or 410 counts as
    /// success. The value is `false` if there is no interrupted upload; nothing is sent then.
    ///
    /// - Parameters:
    ///   - resuming: The protocol.
    ///   - state: The URL of the folder that stores the state. Defaults to `nil`: that of the file.
    public func endUpload(resuming: UploadProtocol, state: URL? = nil) -> TypedTask<Bool> {
        perform { work in
            let transfer = try UploadTransfer(work, resuming, pieceSize: 1, folder: state)
            defer { transfer.file.close() }
            return try await transfer.end()
        }
    }
}
