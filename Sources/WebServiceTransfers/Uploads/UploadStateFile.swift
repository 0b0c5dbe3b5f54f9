import Foundation
import WebServiceCore

/// The file that stores the state of an upload, locked while the upload is in progress.
///
/// A new version is locked before it replaces the previous one, so the name always refers to a
/// locked file. All members block the thread.
final class UploadStateFile: Sendable {
    /// The maximum length, in bytes, of an uploaded file's name that the name of the state file
    /// contains.
    private static let maximumNameLength = 180

    private struct State: ~Copyable {
        /// The open file, which is locked.
        var file: Descriptor
        /// Whether the file has no state that a later upload needs.
        var isUseless = true
        /// Whether the file was removed. The name may then belong to another upload.
        var isRemoved = false
    }

    private let folder: Folder
    private let path: String
    private let name: String
    private var temporary: String { Self.temporary(name) }
    private let state: Mutex<State>

    /// Opens and locks the state, or creates it.
    ///
    /// - Parameters:
    ///   - file: The URL of the uploaded file.
    ///   - folder: The folder of the state; `nil` for the folder of the uploaded file.
    ///   - request: The hash of the request.
    /// - Throws: `WebServiceError.Code.upload`, or `WebServiceError.Code.uploadInProgress` if
    ///   another task or process holds the lock.
    init(_ file: URL, in other: URL?, request: String) throws {
        let own = file.deletingLastPathComponent()
        guard (other ?? own).isFileURL else {
            throw WebServiceError(.upload, "the folder for the state must be a file URL; use URL(fileURLWithPath:)")
        }
        path = (other ?? own).absoluteURL.path
        name = Self.name(file, isElsewhere: other != nil, request: request)
        do {
            guard let folder = try Folder(path, followsLink: true) else {
                throw SystemFailure(call: "open", number: ENOENT)
            }
            state = Mutex(State(file: try Self.open(name, in: folder)))
            self.folder = folder
        } catch let failure as SystemFailure {
            throw Self.error(failure, path)
        }
    }

    /// The suffix of the names of state files.
    static let suffix = ".webservice-upload"
    /// Returns the name of the file that is written before it replaces the state.
    static func temporary(_ name: String) -> String { name + "-new" }

    /// Returns the name of a state file.
    ///
    /// A folder that the caller passes may contain the states of files from several folders. If the
    /// name of the file is long, the name of the state does not contain it.
    ///
    /// - Parameters:
    ///   - file: The URL of the uploaded file.
    ///   - isElsewhere: Whether the caller has passed the folder of the state.
    ///   - request: The hash of the request.
    static func name(_ file: URL, isElsewhere: Bool, request: String) -> String {
        let isLong = file.lastPathComponent.utf8.count > maximumNameLength
        let key = Data((request + (isElsewhere || isLong ? "\n" + file.path : "")).utf8)
        let hash = String(key.withUnsafeBytes { XXHash64.hash($0) }, radix: 16)
        let stem = isLong ? "" : file.lastPathComponent + "."
        return ".\(stem)\(hash)\(suffix)"
    }

    /// Opens and locks the file.
    private static func open(_ name: String, in folder: borrowing Folder) throws -> Descriptor {
        for _ in 0..<256 {
            let file = try folder.openFile(name, isNew: false)
            let status = try file.status()
            guard status.isRegular, try file.isOwned() else {
                throw WebServiceError(.upload, "the state of the upload is not a file of the current user; remove it")
            }
            guard try file.lockBesideLists() != .heldByAnother else {
                throw WebServiceError(
                    .uploadInProgress, "another task or process is uploading the file to the URL; wait for it")
            }
            // Another upload may have replaced or removed the file before it was locked.
            if try folder.status(of: name)?.inode == status.inode { return file }
        }
        throw WebServiceError(.uploadInProgress, "other tasks or processes are uploading the file; wait for them")
    }

    /// Returns the stored state; `nil` if there is none, or it is damaged.
    func stored() -> UploadState? {
        let content = try? folder.content(of: name, isWhole: { _, _ in false })  // unreadable is absent
        let found = content.flatMap { UploadState(encoded: $0.bytes) }
        if found?.location != nil { state.withLock { $0.isUseless = false } }
        return found
    }

    /// Replaces the stored state atomically.
    ///
    /// A state that is too long is not stored, so the upload is not continued.
    ///
    /// - Parameter synchronizes: Whether a state with a location is flushed to the disk. Defaults
    ///   to `true`.
    func store(_ new: UploadState, synchronizes: Bool = true) throws(WebServiceError) {
        guard let bytes = new.encoded ?? new.withoutListing.encoded else { return }
        let isNeeded = new.location != nil
        do throws(SystemFailure) {
            try folder.remove(temporary)  // left by a process that was killed
            let file = try folder.openFile(temporary, isNew: true)
            do throws(SystemFailure) {
                _ = try file.lock()
                try file.write(bytes)
                if isNeeded, synchronizes { try file.synchronize() }
                try folder.move(temporary, to: name)
            } catch {
                try? folder.remove(temporary)  // the first error counts
                throw error
            }
            replace(with: file, isUseless: !isNeeded)
            if isNeeded, synchronizes { try folder.synchronize() }
        } catch {
            throw Self.error(error, path)
        }
    }

    private func replace(with file: consuming Descriptor, isUseless: Bool) {
        var new: Descriptor? = consume file
        state.withLock { state in
            if let file = new.take() { state.file = file }
            state.isUseless = isUseless
        }
    }

    /// Removes the state, so that no later upload continues this one.
    func remove() throws(WebServiceError) {
        guard !state.withLock({ $0.isRemoved }) else { return }
        do throws(SystemFailure) {
            try folder.remove(temporary)  // left by a process that was killed
            try folder.remove(name)
        } catch {
            throw Self.error(error, path)
        }
        state.withLock { $0.isRemoved = true }
    }

    /// Releases the lock, and removes a file that no later upload needs. This method is called
    /// last.
    ///
    /// - Parameter isUnwanted: Whether the file is removed in any case.
    func close(isUnwanted: Bool) {
        if isUnwanted || state.withLock({ $0.isUseless }) { try? remove() }  // the file that remains does no harm
        state.withLock { _ = flock($0.file.number, LOCK_UN) }
    }

    private static func error(_ failure: SystemFailure, _ path: String) -> WebServiceError {
        failure.error(
            .upload,
            "the state of the upload could not be stored in \(path); pass the URL of another folder as state")
    }
}

extension Descriptor {
    /// Writes bytes at the start of the file.
    fileprivate borrowing func write(_ bytes: Data) throws(SystemFailure) {
        var written = 0
        while written < bytes.count {
            let more = try system("pwrite") {
                bytes.withUnsafeBytes {
                    pwrite(number, $0.baseAddress.map { $0 + written }, $0.count - written, off_t(written))
                }
            }
            guard more > 0 else { throw SystemFailure(call: "pwrite", number: EIO) }
            written += more
        }
    }
}
