import Foundation

/// The list of entries.
extension FileStorage {
    /// The number of bytes of a file that are read to describe it, unless its key is longer.
    private static let headCount = 4 << 10

    /// Returns descriptions of entries; see ``ResponseStorage/summaries(after:limit:)``.
    ///
    /// Damage to an entry's data is not detected.
    ///
    /// - Throws: ``WebServiceError/Code/storage`` if the folder cannot be read, and with the format
    ///   ``Format/bare``, whose files do not contain keys.
    public func summaries(after key: StorageKey?, limit: Int) async throws -> [StorageEntry.Summary] {
        guard format == .wrapped else {
            throw WebServiceError(
                .storage,
                "a file storage with format: .bare cannot list its entries, because it stores no keys; create it with "
                    + "format: .wrapped")
        }
        return try await perform("the entries could not be listed") {
            guard let folder = try self.openFolder() else { return [] }
            let start = key.map(self.names.entry) ?? ""
            let names = try folder.names().filter { $0 > start && self.names.kind(of: $0) == .entry }.sorted()
            var summaries: [StorageEntry.Summary] = []
            for name in names {
                guard summaries.count < limit else { break }
                if let summary = try Self.summary(of: name, in: folder) { summaries.append(summary) }
            }
            return summaries
        }
    }

    /// - Returns: `nil` if the file does not exist, is damaged, or is of another version.
    private static func summary(
        of name: String, in folder: borrowing Folder
    ) throws(SystemFailure) -> StorageEntry.Summary? {
        var count = headCount
        while let (head, status) = try folder.content(
            of: name, limit: count, headCount: count, isWhole: { _, _ in false })
        {
            guard let needed = WrappedFile.headCount(head, fileSize: status.size) else { return nil }
            guard needed > head.count, needed > count else { return WrappedFile.summary(head, fileSize: status.size) }
            count = needed
        }
        return nil
    }
}
