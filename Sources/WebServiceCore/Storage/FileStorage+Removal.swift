import Foundation

/// The removal of entries.
extension FileStorage {
    /// Removes the entry for a key; a missing entry is not an error.
    ///
    /// - Throws: ``WebServiceError/Code/storage`` if the entry cannot be removed; the underlying
    ///   error is a `POSIXError`.
    public func removeEntry(for key: StorageKey) async throws {
        try await perform("an entry could not be removed") {
            guard let folder = try self.openFolder(), let status = try folder.status(of: self.names.entry(key)),
                !status.isFolder
            else { return }
            try folder.remove(self.names.entry(key))
            self.state.withLock { $0.inventory?.remove(status) }
            if self.durability == .power { try folder.synchronize() }
        }
    }

    /// Removes all entries with this storage's prefix; all other files are retained.
    ///
    /// Incomplete files of other processes are removed as well; the stores that write them then
    /// fail.
    ///
    /// - Throws: ``WebServiceError/Code/storage`` if a file cannot be removed, after all other
    ///   files have been; the underlying error is a `POSIXError`.
    public func removeAll() async throws {
        try await perform("the entries could not be removed") {
            try self.removeFiles { _, name throws(SystemFailure) in self.names.kind(of: name) != nil }
        }
    }

    /// Removes the entries with a classification.
    ///
    /// If the storage accepts only this classification, all entries are removed, as by
    /// ``removeAll()``. Otherwise, every file is read, and a file whose classification cannot be
    /// read, because the file is damaged or from a newer version of this library, is retained.
    ///
    /// - Throws: ``WebServiceError/Code/storage`` if a file cannot be read or removed, after all
    ///   other files have been processed, with a `POSIXError` as the underlying error. Also thrown
    ///   for the format ``Format/bare``, whose files contain no classification, if the storage
    ///   accepts other classifications.
    public func removeEntries(of classification: DataClassification) async throws {
        guard format == .wrapped, classifications != [classification] else {
            guard classifications == [classification] else {
                throw WebServiceError(
                    .storage,
                    "a file storage with format: .bare stores no classifications; use one storage for each "
                        + "classification")
            }
            return try await removeAll()
        }
        let prefix = StorageKey.prefix(of: classification)
        try await perform("the entries could not be removed") {
            try self.removeFiles { folder, name throws(SystemFailure) in
                guard self.names.kind(of: name) == .entry, let (bytes, _) = try folder.content(of: name) else {
                    return false
                }
                return WrappedFile.isFor(keyWith: prefix, bytes)
            }
        }
    }

    /// Removes files, and throws the first failure after the others have been removed.
    private func removeFiles(
        where isRemoved: (borrowing Folder, _ name: String) throws(SystemFailure) -> Bool
    ) throws {
        guard let folder = try openFolder() else { return }
        state.withLock { $0.inventory = nil }
        var failure: SystemFailure?
        for name in try folder.names() {
            do throws(SystemFailure) {
                guard try isRemoved(folder, name), try folder.status(of: name)?.isFolder == false else { continue }
                try folder.remove(name)
            } catch {
                failure = failure ?? error
            }
        }
        if durability == .power { try folder.synchronize() }
        if let failure { throw failure }
    }
}
