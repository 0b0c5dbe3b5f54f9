public import Foundation

extension ResponseBody {
    /// Writes the whole body to a file while it arrives.
    ///
    /// ```swift
    /// let task = service.GET("/export")
    ///     .onProgress { show($0.bytesReceived, $0.secondsRemaining) }.stream()
    /// let byteCount = try await task.value.body.write(to: file)
    /// ```
    /// The bytes are written to a temporary file in the same folder, which replaces the file when
    /// the body is complete. After an error or a cancellation, the temporary file is removed and an
    /// existing file is unchanged. If the process is terminated, the temporary file
    /// (`.webservice-…`) remains. Unlike this method, `download(to:)` of `WebServiceTransfers` can
    /// resume an interrupted transfer and check the content.
    ///
    /// The file has the permissions of a new file. A symbolic link is replaced, not followed.
    ///
    /// - Parameter file: A `file:` URL in a folder that exists.
    /// - Returns: The number of bytes written.
    /// - Throws: ``WebServiceError/Code/download`` if the file cannot be written, and the errors of
    ///   the stream.
    @discardableResult
    public func write(to file: URL) async throws -> Int64 {
        // Writing blocks the thread.
        try await withTaskExecutorPreference(HandlerPool.shared) {
            do { return try await writeBlocking(to: file) } catch let failure as SystemFailure {
                throw failure.error(.download, "the body could not be written to a file")
            }
        }
    }

    private func writeBlocking(to file: URL) async throws -> Int64 {
        let (name, path) = (file.lastPathComponent, file.deletingLastPathComponent().absoluteURL.path)
        let isFile = file.isFileURL && !file.hasDirectoryPath && !["", "/", ".", ".."].contains(name)
        guard isFile, !file.absoluteString.contains("%00") else {
            throw WebServiceError(.download, "the destination of a body must be a file URL that names a file")
        }
        guard let folder = try Folder(path, followsLink: true) else {
            throw WebServiceError(.download, "the folder of the destination does not exist; create it first")
        }
        if let status = try folder.status(of: name), !status.isRegular, !status.isLink {
            throw WebServiceError(.download, "the destination exists and is not a file; choose another destination")
        }
        let temporary = ".webservice-\(UUID().uuidString)"
        let output = try folder.openFile(temporary, isNew: true)
        do {
            var count: Int64 = 0
            for try await bytes in self {
                try output.append(bytes)
                count += Int64(bytes.count)
            }
            if Task.isCancelled { throw URLError(.cancelled) }
            try output.setMode(try folder.modeOfNewFiles(through: temporary + "-mode"))
            try output.close()
            try folder.move(temporary, to: name)
            return count
        } catch {
            try? folder.remove(temporary)  // a remaining file is harmless
            throw error
        }
    }
}
