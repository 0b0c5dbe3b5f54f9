public import Foundation
public import WebServiceCore

extension UploadedFile {
    /// An upload that was interrupted or is in progress.
    ///
    /// ```swift
    /// for upload in try await UploadedFile.Partial.list(in: states) where !upload.isInProgress {
    ///     let task = upload.task(with: service)
    ///     _ = try await task.upload(resuming: upload.protocol, state: states).value
    /// }
    /// ```
    /// Use this type to show earlier uploads to the user, who can continue or discard them.
    public struct Partial: Sendable {
        /// The URL of the file, which may have been moved or removed.
        public let file: URL
        /// The URL of the request that was sent or would be sent.
        public let url: URL
        /// The URL of the upload on the server.
        public let location: URL
        /// The protocol with which the upload continues.
        public let `protocol`: UploadProtocol
        /// The length of the file when its upload began, in bytes.
        public let byteCount: Int64
        /// The number of bytes up to the end of the last piece whose sending has begun. The server
        /// may have fewer.
        public let bytesSent: Int64
        /// The date at which the state was last stored. It is stored before each piece is sent.
        public let lastChange: Date
        /// The date after which the server no longer has the upload; `nil` if it is unknown.
        public let expires: Date?
        /// Whether a task, in any process, was uploading the file when it was listed. The value is
        /// also `true` if the file system does not support locks.
        public let isInProgress: Bool

        private let method: Request.Method
        private let folder: String
        private let name: String
        private let status: FileStatus

        private static let queue = BlockingQueue("WebService.PartialUploads")

        /// Returns the uploads whose state is stored in a folder, oldest first.
        ///
        /// The method lists the states of the current user that belong to an upload on the server.
        /// Damaged states, symbolic links and other files are not listed, and subfolders are not
        /// searched. The method does not wait for locked states. If the folder does not exist, the
        /// list is empty.
        ///
        /// - Parameter folder: The folder that was passed as `state`, or else the folder of the
        ///   files.
        /// - Throws: `WebServiceError.Code.upload` if the folder cannot be read.
        public static func list(in folder: URL) async throws -> [Partial] {
            try await queue.result {
                let path = folder.absoluteURL.path
                do {
                    guard folder.isFileURL, let open = try Folder(path, followsLink: true) else {
                        if folder.isFileURL { return [] }
                        throw WebServiceError(
                            .upload, "the folder for the state must be a file URL; use URL(fileURLWithPath:)")
                    }
                    return try list(in: open, at: path)
                } catch let failure as SystemFailure {
                    throw failure.error(.upload, "the folder \(path.escapingControls) could not be read")
                }
            }
        }

        /// Returns a task with the method, the URL and the file of the upload, to continue or end
        /// the upload.
        ///
        /// The task has the header fields and options of the service. Pass the same `state` to its
        /// methods: `upload(resuming: upload.protocol, state: states)` or, even if the file no
        /// longer exists, `endUpload(resuming: upload.protocol, state: states)`.
        public func task(
            with service: WebService, file source: StaticString = #fileID, line: UInt = #line
        ) -> SessionTask {
            service.sessionTask(request: service.request(method, path: url.absoluteString), file: source, line: line)
                .setBody(file: file)
        }

        /// Removes the state, so that no later upload continues this one. The server is not
        /// notified.
        ///
        /// If the state has already been removed, the method has no effect.
        ///
        /// - Throws: `WebServiceError.Code.uploadInProgress` if a task, in any process, is uploading
        ///   the file or has changed the state since it was listed; `WebServiceError.Code.upload` if
        ///   the state cannot be removed, or the file system does not support locks.
        public func remove() async throws {
            try await Self.queue.result {
                do {
                    guard let folder = try Folder(folder, followsLink: true) else { return }
                    try remove(from: folder)
                } catch let failure as SystemFailure {
                    throw failure.error(.upload, "the state of the upload could not be removed")
                }
            }
        }
    }
}

// MARK: - On the queue

extension UploadedFile.Partial {
    private static func list(in folder: borrowing Folder, at path: String) throws(SystemFailure) -> [Self] {
        var found: [Self] = []
        try folder.forEachName { name throws(SystemFailure) in
            guard name.hasSuffix(UploadStateFile.suffix) else { return }
            let upload = try? Self(name, in: folder, at: path)  // one that cannot be read is not listed
            if let upload { found.append(upload) }
        }
        return found.sorted { $0.lastChange < $1.lastChange }
    }

    /// Creates the description of a folder entry.
    ///
    /// - Returns: `nil` if the entry is not the state of an upload on the server.
    private init?(_ name: String, in folder: borrowing Folder, at path: String) throws {
        // Other files are not opened, because opening a device may have an effect.
        guard let found = try folder.status(of: name), found.isRegular, let file = try folder.existingFile(name)
        else { return nil }
        status = try file.status()
        guard status.isRegular, try file.isOwned(), status.size <= UploadState.maximumLength else { return nil }
        var bytes = Data(count: status.size)
        let count = try bytes.withUnsafeMutableBytes { try file.fill($0, at: 0) }
        guard let state = UploadState(encoded: bytes.prefix(count)), let listing = state.listing,
            listing.request == state.request, state.size >= 0, let url = Self.web(listing.url),
            let location = Self.web(state.location),
            let `protocol` = [UploadProtocol.draft, .tus].first(where: { "\($0)" == listing.protocol }),
            let source = Self.source(listing, name, path)
        else { return nil }
        isInProgress = try file.lock(isShared: true) != .taken
        file.unlock()
        (self.file, self.url, self.location, self.protocol) = (source, url, location, `protocol`)
        (byteCount, bytesSent) = (state.size, max(0, min(state.content?.length ?? 0, state.size)))
        (lastChange, expires) = (status.modified, state.expires)
        (method, self.folder, self.name) = (Request.Method(rawValue: listing.method), path, name)
    }

    /// Returns the URL of a state; `nil` if it cannot be the URL of a request.
    private static func web(_ text: String?) -> URL? {
        text.flatMap { Origin($0) == nil ? nil : URL(string: $0) }
    }

    /// Returns the URL of the file of a state; `nil` if the state has the name of another state.
    private static func source(_ listing: UploadState.Listing, _ name: String, _ folder: String) -> URL? {
        guard listing.file.utf8.first == UInt8(ascii: "/"), !listing.file.utf8.contains(0) else { return nil }
        let file = URL(fileURLWithPath: listing.file, isDirectory: false)
        if UploadStateFile.name(file, isElsewhere: true, request: listing.request) == name { return file }
        guard UploadStateFile.name(file, isElsewhere: false, request: listing.request) == name else { return nil }
        // A file and its state may be moved together.
        return URL(fileURLWithPath: folder, isDirectory: true)
            .appendingPathComponent(file.lastPathComponent, isDirectory: false)
    }

    private func remove(from folder: borrowing Folder) throws {
        guard let file = try folder.existingFile(name) else { return }
        switch try file.lockBesideLists() {
        case .taken: break
        case .heldByAnother:
            throw WebServiceError(.uploadInProgress, "the upload is in progress; cancel it first")
        case .unsupported:
            throw WebServiceError(
                .upload,
                "the file system does not support locks, so the upload may be in progress; if it is not, remove its "
                    + "state with FileManager")
        }
        // The lock protects the state only if the state file still has its name.
        guard try file.status() == status, try folder.status(of: name) == status else {
            throw WebServiceError(
                .uploadInProgress, "a task has changed the state of the upload since it was listed; list it again")
        }
        try folder.remove(UploadStateFile.temporary(name))
        try folder.remove(name)
        file.unlock()
    }
}
