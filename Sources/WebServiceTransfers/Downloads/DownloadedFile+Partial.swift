public import Foundation
import WebServiceCore

extension DownloadedFile {
    /// A partial file: the bytes of a download that was interrupted or is in progress.
    ///
    /// ```swift
    /// for partial in try await DownloadedFile.Partial.list(in: folder) where !partial.isInProgress {
    ///     try await partial.remove()
    /// }
    /// ```
    /// The next download to the destination usually either continues an interrupted download or
    /// discards its bytes. If there is no other download, the partial file remains until it is
    /// removed.
    public struct Partial: Sendable {
        /// The URL that the complete file would have.
        public let destination: URL
        /// The number of bytes that were received; of a download over several connections, those of
        /// the complete parts. A download can continue after them only if the response had a
        /// validator.
        public let bytesReceived: Int64
        /// The length of the complete file, in bytes; `nil` if the server did not send it.
        public let bytesToReceive: Int64?
        /// The date at which bytes were last written.
        public let lastChange: Date
        /// Whether a download, in any process, was in progress when the file was listed. The value
        /// is also `true` if the file system does not support locks.
        public let isInProgress: Bool

        private let place: DownloadDestination
        private let names: PartNames
        private let status: FileStatus

        private static let queue = BlockingQueue("WebService.PartialFiles")

        /// Returns the partial files in a folder, oldest first.
        ///
        /// The method lists regular files of the current user that are empty or have a state stored
        /// next to them by a download. Symbolic links and other files with such names are not
        /// listed, and subfolders are not searched. If the folder does not exist, the list is
        /// empty.
        ///
        /// - Throws: `WebServiceError.Code.download` if the folder cannot be read.
        public static func list(in folder: URL) async throws -> [Partial] {
            let place = try DownloadDestination(folder: folder, name: "")
            return try await queue.result { try list(in: place) }
        }

        /// Removes the file and its state.
        ///
        /// If the file has already been removed, the method has no effect.
        ///
        /// - Throws: `WebServiceError.Code.downloadInProgress` if a download, in any process, is in
        ///   progress or has changed the file since it was listed; `WebServiceError.Code.download`
        ///   if the file cannot be removed, or the file system does not support locks.
        public func remove() async throws {
            try await Self.queue.result {
                guard let folder = try place.openFolder() else { return }
                do { try remove(from: folder) } catch let failure as SystemFailure {
                    throw failure.error(.download, "the partial file could not be removed")
                }
            }
        }
    }
}

// MARK: - On the queue

extension DownloadedFile.Partial {
    private static func list(in place: DownloadDestination) throws -> [Self] {
        guard let folder = try place.openFolder() else { return [] }
        var found: [Self] = []
        do throws(SystemFailure) {
            try folder.forEachName { name throws(SystemFailure) in
                let partial = try? Self(part: name, in: folder, place)  // one that cannot be read is not listed
                if let partial { found.append(partial) }
            }
        } catch {
            throw error.error(.download, "the folder \(place.folder) could not be read")
        }
        return found.sorted { $0.lastChange < $1.lastChange }
    }

    /// Creates the description of a folder entry.
    ///
    /// - Returns: `nil` if the entry is not a partial file.
    private init?(part: String, in folder: borrowing Folder, _ place: DownloadDestination) throws(SystemFailure) {
        var state: DownloadState?
        guard part.hasSuffix(PartNames.suffix),
            let names = PartNames(
                part: part,
                state: { name in
                    state = DownloadState(storedAs: name, in: folder)
                    return state
                }),
            let found = try folder.status(of: part), found.isRegular, let file = try folder.openExisting(part)
        else { return nil }
        let status = try file.status()
        guard status.isRegular, try file.isOwned(), state != nil || status.size == 0 else { return nil }
        isInProgress = try file.lock(isShared: true) != .taken
        file.unlock()
        self.place = place.named(names.destination)
        (self.names, self.status) = (names, status)
        destination = self.place.url
        let pieces = state?.pieces.flatMap { $0.isValid ? $0.completeBytes : nil }
        bytesReceived = pieces ?? Int64(status.size)
        bytesToReceive = state?.total
        lastChange = status.modified
    }

    private func remove(from folder: borrowing Folder) throws {
        guard let file = try folder.openExisting(names.part) else { return }
        switch try file.lockBesideLists() {
        case .taken: break
        case .heldByAnother:
            throw WebServiceError(
                .downloadInProgress, "the download of the partial file is in progress; cancel it first")
        case .unsupported:
            throw WebServiceError(
                .download,
                "the file system does not support locks, so the download of the partial file may be in progress; if "
                    + "it is not, remove the file with FileManager")
        }
        // The lock protects the file only if the file still has its name.
        guard try file.status() == status, try folder.status(of: names.part) == status else {
            throw WebServiceError(
                .downloadInProgress, "a download has changed the partial file since it was listed; list it again")
        }
        // If the process is killed between these calls, an empty file remains, which is listed
        // again. A file with a second name is complete, and its bytes are retained.
        if try file.nameCount() == 1 { try file.truncate(to: 0) }
        if let state = names.state { try folder.remove(state) }
        try folder.remove(names.temporary)
        try folder.remove(names.part)
    }
}
