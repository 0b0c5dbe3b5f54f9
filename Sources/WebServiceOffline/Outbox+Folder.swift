import Foundation
import WebServiceCore

/// Updates the entries in memory from the files. The functions that access files run on the queue
/// of the folder.
extension Outbox {
    /// Lists the files that earlier processes have renamed. They are not reported again.
    func findDamagedFiles() {
        guard let names = try? folder.damagedNames() else { return }  // `read` reports the error
        state.withLock { $0.addKnownDamaged(names) }
    }

    /// Removes copies of bodies that killed processes have left behind.
    func removeOrphans() {
        folder.copies.removeOrphans({ try folder.names() }, flush: { try folder.flush() })
    }

    /// Reads the folder now, and again after each change until the outbox is closed.
    ///
    /// On a file system that other computers may change, a notification can be missing, so the
    /// folder is also read every 30 seconds. With a test clock, or if the system does not support
    /// notifications, the folder is read after each `pollInterval`.
    func begin() {
        if !clock.countsWork {
            let watch = FileWatch(folder.lockFile) { [weak self] in self?.readSoon() }
            self.watch.withLock { $0 = watch }
        }
        guard let watch = watch.withLock(\.self) else { return poll(each: options.pollInterval) }
        if watch.isReliable { readOnQueue { _ in } } else { poll(each: .seconds(30)) }
    }

    private func poll(each interval: Duration) {
        readOnQueue { outbox in
            _ = outbox.clock.schedule(after: interval) { [weak outbox] in outbox?.poll(each: interval) }
        }
    }

    /// Reads the folder after a short interval. All changes within this interval cause only one
    /// read.
    ///
    /// - Parameter interval: The interval. Defaults to `nil`, which means the `pollInterval` of the
    ///   options.
    func readSoon(after interval: Duration? = nil) {
        let isFirst = state.withLock { state in
            defer { state.isReadSoon = true }
            return !state.isReadSoon && !state.isClosed
        }
        guard isFirst else { return }
        _ = clock.schedule(after: interval ?? options.pollInterval) { [weak self] in
            self?.state.withLock { $0.isReadSoon = false }
            self?.readOnQueue { _ in }
        }
    }

    private func readOnQueue(_ completion: @escaping @Sendable (Outbox) -> Void) {
        let token = clock.beginWork()
        folder.queue.run { [weak self] in
            defer { withExtendedLifetime(token) {} }
            guard let self, !state.withLock(\.isClosed) else { return }
            read()
            let (host, turn) = state.withLock { ($0.outage.host, $0.outage.turn) }
            if let host {
                if service.isConnected(to: host) != false {
                    change { $0.reconnect(turn) }
                    sendNext()
                } else {
                    readSoon()
                }
            }
            // When such a failure ends, there is no notification.
            if state.withLock(\.isUnreadable), watch.withLock({ $0?.isReliable == true }) {
                readSoon(after: .seconds(30))
            }
            completion(self)
        }
    }

    /// Takes the lock if possible, and reads the entries that other processes have added.
    ///
    /// A listing is not atomic: it may contain an entry but not an older one that was added during
    /// the listing. Therefore, entries are read from a second listing, but only up to the last
    /// entry of the first listing.
    ///
    /// - Parameter name: The entry that this process has added, if an earlier entry is unknown;
    ///   `nil` to read all entries of the first listing.
    func read(upTo name: String? = nil) {
        do {
            let takesLock = state.withLock(\.isSender) ? true : try folder.takeLock()
            var names = name == nil ? try folder.names() : OutboxNames()
            if let last = name ?? unknown(names).last {
                names = try folder.names()
                for name in unknown(names) where name <= last { readEntry(name) }
            }
            removeReplaced(names)
            // A submission does not remove other entries.
            if name == nil { removeVanished(names) }
            change { state in
                state.setResponses(names.responses)
                state.isUnreadable = false
                if takesLock { state.becomeSender() }
            }
        } catch {
            change { state in
                // The next call tries again.
                if !state.isUnreadable { state.addUnreadable(folder.place) }
                state.isUnreadable = true
            }
        }
        sendNext()
    }

    /// Removes entries that were replaced by another entry. They remain if the process that
    /// submitted the other entry was killed before it removed them. That process may not have
    /// flushed the other entry either, so it is flushed before they are removed.
    private func removeReplaced(_ names: OutboxNames) {
        for (name, last) in names.replaced where state.withLock({ $0.isKnown(last) }) {
            guard case .request(let request)? = try? folder.content(of: name),  // the next call tries again
                case .request(let later)? = try? folder.content(of: last), request.isReplaced(by: later),
                (try? folder.flush()) != nil, (try? folder.remove(name)) != nil  // see above
            else { continue }
            change { $0.replace(name) }
        }
    }

    private func unknown(_ names: OutboxNames) -> [String] {
        state.withLock { state in names.entries.filter { !state.isKnown($0) } }
    }

    private func readEntry(_ name: String) {
        do {
            switch try folder.content(of: name) {
            case .missing: break
            case .damaged: setAside(name)
            case .request(let request): insert(request, named: name)
            }
        } catch {
            guard let id = OutboxNames.id(of: name) else { return setAside(name) }
            var item = OutboxState.Item(name: name, entry: Entry(id: id, entity: nil, date: clock.date))
            item.isUnread = true
            setAsideUnreadable(item, isNew: true)
        }
    }

    /// Adds an entry to the entries in memory.
    func insert(_ request: StoredRequest, named name: String) {
        change { $0.insert(OutboxState.Item(name: name, entry: Entry(request.head))) }
    }

    /// Renames a damaged file.
    func setAside(_ name: String) {
        let file = folder.setAside(name)
        change { $0.addDamaged(file) }
    }

    /// Removes from memory the entries that another process has removed, and adds damaged files
    /// that another process has renamed.
    private func removeVanished(_ names: OutboxNames) {
        let present = Set(names.entries)
        change { state in
            for name in names.damaged where !state.damaged.contains(name) {
                state.addDamaged(folder.url.appendingPathComponent(name, isDirectory: false))
            }
            for item in state.items.values where !present.contains(item.name) && !state.isBusy(item.lane) {
                state.remove(item.entry.id, as: item.outcome ?? .removed)
            }
        }
    }
}
