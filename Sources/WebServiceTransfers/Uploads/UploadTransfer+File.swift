import WebServiceCore

/// The detection of changes to the file.
///
/// A file counts as unchanged if its size, its modification date and its first bytes are unchanged.
/// If only the date of the last status change differs, the bytes that were sent are compared,
/// because a program has changed either permissions, names or attributes, or the content and its
/// modification date.
extension UploadTransfer {
    /// Continues a stored upload if the file is unchanged.
    ///
    /// - Returns: Whether the file is unchanged.
    mutating func resume(_ stored: UploadState) throws -> Bool {
        guard stored.isSameUpload(as: state) else { return false }
        let (changed, listing) = (state.changed, state.listing)
        if stored.changed != changed {
            guard try source.begins(with: stored.content ?? ContentHash()) else { return false }
            verified = stored.content?.length ?? 0
        }
        state = stored
        (state.changed, state.listing) = (changed, listing)
        return true
    }

    /// Verifies that the path still refers to the file, and that the file is unchanged.
    ///
    /// - Parameter isLast: Whether the server has the whole file.
    mutating func verify(isLast: Bool = false) throws {
        let changed = try source.verify(mayBeRemoved: isLast || !isOpenedAgain)
        guard changed != state.changed else { return }
        guard try source.begins(with: state.content ?? ContentHash()) else { throw source.isChanged }
        state.changed = changed
    }

    /// Extends the hash to the end of the next piece, before the piece is sent.
    mutating func extendContent(to end: Int64) throws {
        var content = state.content ?? ContentHash()
        guard end > content.length else { return }
        try source.extend(&content, to: end)
        state.content = content
        verified = max(verified, content.length)
        // If the system loses the state, the upload starts over.
        if state.location != nil { try file.store(state, synchronizes: false) }
    }
}
