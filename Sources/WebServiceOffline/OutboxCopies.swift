package import Foundation
import WebServiceCore

/// The copies of the files that are the bodies of entries, next to the entries of an outbox.
///
/// The name of a copy is `ID-SLOT.body`, where the ID is the identifier of its entry. There are two
/// slots. A replacement of the entry uses the other slot, so each stored request has exactly its
/// own bytes. A copy is written to the disk before its entry is written, and removed after the
/// removal of its entry was flushed to the disk. While a process writes or sends a copy, it locks
/// the file (shared `flock`), and no other process removes the copy. All members block the thread,
/// except `queue`.
package final class OutboxCopies: Sendable {
    /// An open copy. It is not removed until it is unlocked or deallocated, or until the process
    /// ends.
    final class Copy: Sendable {
        fileprivate let descriptor: Descriptor

        fileprivate init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

        /// Permits the removal of the copy. If the entry was removed before, the caller removes the
        /// copy.
        func unlock() { descriptor.unlock() }
    }

    private static let suffix = ".body"

    /// The queue on which copies are written. Operations on the entries of the outbox do not wait
    /// for it.
    let queue = BlockingQueue("WebService.Outbox.Copies")
    private let files: LockedFolder
    private let url: URL
    private let prefix: String

    /// - Parameters:
    ///   - url: The URL of the folder.
    ///   - prefix: The prefix of the file names. Defaults to an empty string.
    package init(_ files: LockedFolder, _ url: URL, prefix: String = "") {
        (self.files, self.url, self.prefix) = (files, url, prefix)
    }

    private func name(_ id: UUID, _ slot: Int) -> String {
        "\(prefix)\(id.uuidString.lowercased())-\(slot)\(Self.suffix)"
    }

    /// Returns the URL of a copy.
    func file(of id: UUID, _ file: StoredRequest.File) -> URL {
        url.appendingPathComponent(name(id, file.slot), isDirectory: false)
    }

    /// Writes a copy durably, in pieces.
    ///
    /// - Parameter isWanted: A closure that is called before each piece. If it returns `false`, the
    ///   method throws `CancellationError`.
    /// - Throws: `encoding` if the file cannot be read or is changed in the meantime, or
    ///   `SystemFailure` if the copy cannot be written. In both cases, no copy remains.
    func write(_ body: BodySource, of id: UUID, slot: Int, while isWanted: () -> Bool) throws -> Copy {
        let name = name(id, slot)
        let copy = try create(name)
        do {
            guard try body.write(to: copy.descriptor, while: isWanted) else { throw CancellationError() }
            try copy.descriptor.synchronize()
            try files.folder.synchronize()  // flushes the name
        } catch {
            try? files.folder.remove(name)  // if this fails, it is removed later as an orphan
            throw error
        }
        return copy
    }

    private func create(_ name: String) throws(SystemFailure) -> Copy {
        for _ in 0..<100 {
            try files.folder.remove(name)  // a killed process may have left it
            let descriptor = try files.folder.openFile(name, isNew: true)
            // Another process may have removed the file before it was locked.
            if try descriptor.lock(isShared: true) == .taken, try descriptor.nameCount() > 0 { return Copy(descriptor) }
        }
        throw SystemFailure(call: "flock", number: EWOULDBLOCK)
    }

    /// Opens a copy to send it.
    ///
    /// - Returns: `nil` if the copy is missing or has a different size.
    /// - Throws: `SystemFailure` if the copy temporarily cannot be read.
    func open(_ id: UUID, _ file: StoredRequest.File) throws(SystemFailure) -> Copy? {
        do throws(SystemFailure) {
            guard let descriptor = try files.folder.existingFile(name(id, file.slot)) else { return nil }
            let status = try descriptor.status()
            guard status.isRegular, status.size == file.size else { return nil }
            // If the lock is taken, another process is checking whether the copy is an orphan. It
            // finds the entry and retains the copy.
            _ = try descriptor.lock(isShared: true)
            return Copy(descriptor)
        } catch {
            guard [EISDIR, ELOOP, ENXIO].contains(error.number) else { throw error }
            return nil
        }
    }

    /// Removes the copies of an entry whose removal was flushed, unless a process is sending them.
    /// Copies that remain are removed later as orphans.
    ///
    /// - Parameters:
    ///   - entry: The name of the entry. Any other name has no effect.
    ///   - slot: The slot of a copy that is still used. Defaults to `nil`, which means that no copy
    ///     is used.
    package func remove(_ entry: String, except slot: Int? = nil) {
        guard OutboxNames.number(of: entry) != nil, let id = OutboxNames.id(of: entry) else { return }
        for other in 0..<2 where other != slot { removeIfUnused(name(id, other)) }
    }

    private func removeIfUnused(_ name: String) {
        do throws(SystemFailure) {
            guard let descriptor = try files.folder.existingFile(name) else { return }
            if try descriptor.lock() == .taken { try files.folder.remove(name) }
        } catch {
            try? files.folder.remove(name)  // a copy that cannot be opened is not being sent
        }
    }

    /// Removes the copies that belong to no entry, except those that a process is writing or
    /// sending.
    ///
    /// - Parameters:
    ///   - listing: Returns the names of the entries and of the damaged files. Damaged files retain
    ///     their copies.
    ///   - flush: Flushes the entries to the disk; see ``OutboxStore/flush()``.
    package func removeOrphans(_ listing: () throws -> OutboxNames, flush: () throws -> Void) {
        var candidates: [String] = []
        try? files.folder.forEachName { name throws(SystemFailure) in  // if this fails, the next process tries again
            if id(of: name) != nil { candidates.append(name) }
        }
        guard !candidates.isEmpty, let owners = try? owners(in: listing) else { return }  // see above
        candidates.removeAll { id(of: $0).map(owners.contains) ?? true }
        while !candidates.isEmpty {
            // The entries are listed again while the copies are locked, because another process may
            // have added an entry before they were locked.
            let batch = candidates.suffix(64).compactMap { name -> (name: String, copy: Copy)? in
                guard let descriptor = try? files.folder.existingFile(name),
                    (try? descriptor.lock()) == .taken  // it is being written or sent
                else { return nil }
                return (name, Copy(descriptor))
            }
            candidates.removeLast(min(candidates.count, 64))
            guard !batch.isEmpty else { continue }
            guard let owners = try? self.owners(in: listing), (try? flush()) != nil else { return }  // see above
            for (name, copy) in batch {
                if let id = id(of: name), !owners.contains(id) { try? files.folder.remove(name) }  // see above
                withExtendedLifetime(copy) {}
            }
        }
    }

    /// Returns the identifiers of the entries that may have copies. Returns `nil` if a whole
    /// database is damaged, in which case all copies are retained.
    private func owners(in listing: () throws -> OutboxNames) throws -> Set<UUID>? {
        let names = try listing()
        var owners = Set(names.entries.compactMap(OutboxNames.id))
        for name in names.damaged {
            let entry = String(name.dropFirst(prefix.count))
            if UUID(uuidString: String(entry.dropLast(".damaged".count))) != nil { return nil }
            if let id = OutboxNames.id(of: entry) { owners.insert(id) }
        }
        return owners
    }

    /// Returns the identifier in the name of a copy, or `nil` for any other file.
    private func id(of name: String) -> UUID? {
        guard name.hasPrefix(prefix), name.hasSuffix(Self.suffix) else { return nil }
        let part = name.dropFirst(prefix.count).dropLast(Self.suffix.count)
        guard part.hasSuffix("-0") || part.hasSuffix("-1") else { return nil }
        return UUID(uuidString: String(part.dropLast(2)))
    }
}
