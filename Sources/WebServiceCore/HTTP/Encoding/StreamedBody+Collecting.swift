import Foundation

extension StreamedBody {
    /// Returns all bytes, for a session that cannot send them while they are produced.
    ///
    /// A body of more than 1 MiB is written to an unlinked temporary file, which is mapped into
    /// memory.
    func collected() async throws -> Data {
        var pending = Data()
        var file: UnlinkedFile?
        do {
            try await produce { chunk in
                try Task.checkCancellation()
                pending.append(chunk)
                guard pending.count > 1 << 20 else { return }
                let spilled = try file ?? UnlinkedFile()
                file = spilled
                try spilled.descriptor.append(pending)
                pending = Data()
            }
            guard let file else { return pending }
            try file.descriptor.append(pending)
            return try TemporaryFile.mapping(file, count: file.descriptor.status().size)
        } catch let failure as SystemFailure {
            throw failure.error(.encoding, "the body could not be written to a temporary file")
        }
    }
}
