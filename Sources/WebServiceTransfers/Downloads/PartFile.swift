import Foundation
import SystemCrypto
import WebServiceCore

/// A file that is being downloaded: its bytes and its state, next to the destination.
///
/// The bytes are in `.NAME.webservice-part`, which is locked, and the state in
/// `.NAME.webservice-state`. Both are accessible only to the user. At the end, the part is renamed
/// to the destination, so the destination is never incomplete. All members block the thread. They
/// may be called from any thread, provided that concurrent calls use bytes that do not overlap.
final class PartFile: Sendable {
    private let folder: Folder
    private let file: Descriptor
    private let names: PartNames
    /// Set when the part is renamed or removed.
    private let isRemoved = OnceFlag()

    /// Opens the partial file for a destination, or creates it.
    ///
    /// If the file system cannot lock the file, or the file belongs to another user, a file with a
    /// unique name is created instead, which no other process continues.
    ///
    /// - Parameter replaces: Whether a file at the destination is replaced at the end. Otherwise,
    ///   such a file is an error.
    /// - Throws: `WebServiceError.Code.download`, or `WebServiceError.Code.downloadInProgress`
    ///   if another task or process holds the lock.
    init(_ destination: DownloadDestination, replaces: Bool) throws {
        do {
            guard let folder = try destination.openFolder() else {
                throw WebServiceError(
                    .download, "the folder of the destination does not exist; create it or set createsFolders")
            }
            if let status = try folder.status(of: destination.name) {
                guard replaces else { throw WebServiceError.destinationExists }
                guard status.isRegular || status.isLink else {
                    throw WebServiceError(
                        .download, "the destination exists and is not a file; choose another destination")
                }
            }
            let names = PartNames(destination.name)
            if let file = try Self.openShared(names, in: folder) {
                self.file = file
                self.names = names
            } else {
                let names = PartNames(destination.name, isUnique: true)
                file = try folder.openFile(names.part, isNew: true)
                self.names = names
            }
            self.folder = folder
        } catch let failure as SystemFailure {
            throw failure.error(.download, "the partial file could not be opened")
        }
    }

    /// Opens and locks the file that all downloads to the destination use.
    ///
    /// - Returns: `nil` if the file cannot be locked or belongs to another user.
    private static func openShared(_ names: PartNames, in folder: borrowing Folder) throws -> Descriptor? {
        for _ in 0..<256 {
            let file = try folder.openFile(names.part, isNew: false)
            let status = try file.status()
            guard status.isRegular else {
                throw WebServiceError(.download, "the partial file is not a regular file; remove it")
            }
            guard try file.isOwned() else { return nil }
            switch try file.lockBesideLists() {
            case .taken: break
            case .unsupported:
                try folder.remove(names.part)
                return nil
            case .heldByAnother:
                throw WebServiceError(
                    .downloadInProgress,
                    "another download to the destination is in progress; wait for it or choose another destination")
            }
            // Another download may have renamed or removed the file before it was locked. A file
            // with two names is complete: the process was killed before it removed one of them.
            guard try folder.status(of: names.part)?.inode == status.inode else { continue }
            guard try file.nameCount() > 1 else { return file }
            try folder.remove(names.part)
        }
        throw WebServiceError(
            .downloadInProgress,
            "other downloads to the destination are in progress; wait for them or choose another destination")
    }

    /// Releases the lock. This method is called last, so that the next download to the destination
    /// can begin before this object is deallocated.
    ///
    /// A part is removed if it has no bytes or no other process can continue it.
    ///
    /// - Parameter isUnwanted: Whether the part is removed in any case.
    func close(isUnwanted: Bool = false) {
        let isUseless = isUnwanted || names.state == nil || (try? length()) == 0  // otherwise it may have bytes
        if isUseless, !isRemoved.isSet { try? discard() }  // the file that remains does no harm
        file.unlock()
    }

    // MARK: State

    /// Returns the length of the file, in bytes.
    func length() throws(WebServiceError) -> Int64 {
        try translating("the partial file could not be read") { () throws(SystemFailure) in
            Int64(try file.status().size)
        }
    }

    /// Returns the stored state; `nil` if there is none, or it is damaged.
    func state() -> DownloadState? { names.state.flatMap { DownloadState(storedAs: $0, in: folder) } }

    /// Replaces the stored state atomically.
    ///
    /// If the new state is too long, the stored state is removed, so the part is not continued.
    func store(_ state: DownloadState) throws(WebServiceError) {
        guard let name = names.state else { return }
        try translating("the state of the download could not be written") { () throws(SystemFailure) in
            var state = state
            state.name = names.isHashed ? names.destination : nil
            guard let bytes = state.encoded else { return try folder.remove(name) }
            try folder.remove(names.temporary)  // left by a process that was killed
            try folder.replace(name, with: bytes, through: names.temporary, date: Date(), synchronize: false)
        }
    }

    // MARK: Bytes

    /// Throws if the file system does not have enough space for a number of bytes.
    func reserve(_ count: Int64) throws(WebServiceError) {
        guard let available = file.availableBytes(), count > available else { return }
        throw SystemFailure.noSpace("statvfs").error(
            .download,
            "the file system has too little space: \(count) bytes are needed, but only \(available) are available; "
                + "free some space")
    }

    /// Writes bytes at an offset.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(WebServiceError) {
        try translating("the partial file could not be written") { () throws(SystemFailure) in
            try file.put(bytes, at: offset)
        }
    }

    /// Removes all bytes from an offset to the end. Truncating to offset 0 also removes the state,
    /// which no longer applies.
    func truncate(to offset: Int64) throws(WebServiceError) {
        try translating("the partial file could not be truncated") { () throws(SystemFailure) in
            try file.truncate(to: offset)
            if offset == 0, let name = names.state { try folder.remove(name) }
        }
    }

    /// Returns whether the file contains these bytes at an offset.
    func contains(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(WebServiceError) -> Bool {
        try translating("the partial file could not be read") { () throws(SystemFailure) in
            let found = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
            defer { found.deallocate() }
            return try file.fill(found, at: offset) == bytes.count && found.elementsEqual(bytes)
        }
    }

    /// Returns the hash of a range, or of fewer bytes if the file ends earlier.
    ///
    /// - Throws: `CancellationError` if the Swift task is cancelled.
    func hash(_ algorithm: SHA2, of range: Range<Int64>) throws -> [UInt8] {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
        defer { room.deallocate() }
        let hash = SystemHash(algorithm)
        var offset = range.lowerBound
        while offset < range.upperBound {
            try Task.checkCancellation()
            let wanted = UnsafeMutableRawBufferPointer(
                rebasing: room.prefix(Int(min(Int64(room.count), range.upperBound - offset))))
            let count = try translating("the partial file could not be read") { () throws(SystemFailure) in
                try file.fill(wanted, at: offset)
            }
            if count == 0 { break }
            hash.update(UnsafeRawBufferPointer(rebasing: wanted.prefix(count)))
            offset += Int64(count)
        }
        return hash.finish()
    }

    // MARK: The end

    /// Renames the part to the destination, with the permissions of a new file.
    ///
    /// A link at the destination is replaced and not followed.
    ///
    /// - Parameters:
    ///   - replaces: Whether a file at the destination is replaced. Otherwise, such a file is an
    ///     error, and the part is removed, unless one of `otherNames` is available.
    ///   - otherNames: The names to try if the destination exists and is not replaced. Defaults to
    ///     an empty array.
    ///   - synchronize: Whether bytes and names are flushed to the disk.
    /// - Returns: The name of the file.
    @discardableResult
    func finish(
        replaces: Bool, otherNames: some Sequence<String> = [], synchronize: Bool
    ) throws(WebServiceError) -> String {
        let name = try translating("the partial file could not be renamed") { () throws(SystemFailure) in
            try folder.remove(names.temporary)
            try file.setMode(try folder.modeOfNewFiles(through: names.temporary))
            if synchronize { try file.synchronize() }
            guard let name = try rename(replaces: replaces, otherNames) else { return nil as String? }
            if synchronize { try folder.synchronize() }
            _ = isRemoved.set()
            if let state = names.state { try folder.remove(state) }
            return name
        }
        if let name { return name }
        try discard()
        throw .destinationExists
    }

    /// Renames the part to the destination, or else to the first other name that is available.
    ///
    /// - Returns: The new name; `nil` if every name exists and no file may be replaced.
    private func rename(replaces: Bool, _ otherNames: some Sequence<String>) throws(SystemFailure) -> String? {
        if replaces {
            try folder.move(names.part, to: names.destination)
            return names.destination
        }
        if try folder.moveIfAbsent(names.part, to: names.destination) { return names.destination }
        for name in otherNames where try folder.moveIfAbsent(names.part, to: name) { return name }
        return nil
    }

    /// Removes the part and its state.
    func discard() throws(WebServiceError) {
        try translating("the partial file could not be removed") { () throws(SystemFailure) in
            _ = isRemoved.set()
            try folder.remove(names.part)
            if let name = names.state { try folder.remove(name) }
        }
    }

    private func translating<Result>(
        _ complaint: String, _ work: () throws(SystemFailure) -> Result
    ) throws(WebServiceError) -> Result {
        do throws(SystemFailure) { return try work() } catch { throw error.error(.download, complaint) }
    }
}

extension WebServiceError {
    static let destinationExists = WebServiceError(
        .download, "a file exists at the destination; remove it, choose another name, or pass existing: .replace",
        underlying: POSIXError(.EEXIST))

    /// Whether the name belongs to another file or another download.
    var isConflict: Bool { code == .downloadInProgress || (underlying as? POSIXError)?.code == .EEXIST }
}
