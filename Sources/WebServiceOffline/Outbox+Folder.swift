import Foundation
import WebServiceCore

/// Updates the entries in memory from the files. All of these functions run on the queue of the
/// folder.
extension Outbox {
    /// Reads the folder now, and again after each interval until the outbox is closed.
    func poll() {
        let token = clock.beginWork()
        folder.queue.run { [weak self] in
            defer { withExtendedLifetime(token) {} }
            guard let self, !state.withLock(\.isClosed) else { return }
            read()
            _ = clock.schedule(after: options.pollInterval) { [weak self] in self?.poll() }
        }
    }

    /// Takes the lock if possible, and reads the entries that other processes have added.
    ///
    /// A listing is not atomic: it may contain an entry but not an older one that was added during
    /// the listing. So only entries up to the last one of the first listing are read, from a second
    /// one.
    ///
    /// - Parameter name: The entry that was added by this process; `nil` for all that the first
    ///   listing contains.
    func read(upTo name: String? = nil) {
        do throws(SystemFailure) {
            let takesLock = state.withLock(\.isSender) ? true : try folder.takeLock()
            var names = name == nil ? try folder.names() : OutboxFolder.Names()
            let known = state.withLock { $0.names.union($0.damaged) }
            if let last = name ?? names.entries.last(where: { !known.contains($0) }) {
                names = try folder.names()
                for name in names.entries where name <= last && !known.contains(name) {
                    try readEntry(name)
                }
            }
            // A submission does not look at the other entries.
            if name == nil { removeVanished(names) }
            if takesLock { state.withLock { $0.becomeSender() } }
        } catch {
            // The next call continues with the first entry that could not be read.
        }
        sendNext()
    }

    private func readEntry(_ name: String) throws(SystemFailure) {
        switch try folder.content(of: name) {
        case .missing: break
        case .damaged: setAside(name)
        case .request(let request):
            let entry = Entry(id: request.head.id, entity: request.head.entity, date: request.head.date)
            change { $0.insert(OutboxState.Item(name: name, entry: entry)) }
        }
    }

    /// Renames a damaged file.
    func setAside(_ name: String) {
        let file = folder.setAside(name)
        change { $0.addDamaged(file) }
    }

    /// Removes entries from memory whose files another process has removed.
    private func removeVanished(_ names: OutboxFolder.Names) {
        let present = Set(names.entries)
        change { state in
            state.addDamaged(names.damaged)
            for item in state.items.values where !present.contains(item.name) && !state.isBusy(item.lane) {
                state.remove(item.entry.id, as: item.outcome ?? .removed)
            }
        }
    }
}
