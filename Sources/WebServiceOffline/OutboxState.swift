import Foundation
import WebServiceCore

/// The entries of an outbox in memory, and the state that determines which of them are sent.
///
/// A lane contains the entries of one entity, or one independent entry. Only its first entry may be
/// sent. No operation except ``becomeSender()`` takes time in proportion to the number of lanes.
struct OutboxState {
    enum Lane: Hashable, Sendable {
        case entity(String)
        case entry(UUID)
    }

    struct Item: Sendable {
        /// The name of the file.
        let name: String
        var entry: Outbox.Entry
        /// The number of consecutive failures, which determines the pause.
        var failures = 0
        /// Identifies the current attempt or pause.
        var turn = 0
        var isQueued = false
        /// The last state, if only the file remains to be removed.
        var outcome: Outbox.Entry.State?
        var task: Task<Void, Never>?

        var lane: Lane { entry.entity.map(Lane.entity) ?? .entry(entry.id) }
    }

    private(set) var items: [UUID: Item] = [:]
    private(set) var names: Set<String> = []
    /// Damaged files, including those that could not be renamed.
    var damaged: Set<String> = []
    /// A Boolean value that indicates whether this process sends.
    private(set) var isSender = false
    private(set) var isClosed = false
    var observers: [UUID: AsyncStream<Outbox.Update>.Continuation] = [:]

    private var lanes: [Lane: [UUID]] = [:]
    /// The lanes with a request in flight, or with a decision in progress.
    private var busy: Set<Lane> = []
    /// The tasks of these lanes, including those of removed entries.
    var tasks: [Lane: Task<Void, Never>] = [:]
    /// The number of decisions in progress.
    var decisions = 0
    private var ready = Queue<UUID>()

    /// Adds an entry in the order of the file names.
    mutating func insert(_ item: Item) {
        let id = item.entry.id
        guard items[id] == nil else { return }
        // New entries almost always belong at the end.
        let last = lanes[item.lane]?.lastIndex { items[$0].map { $0.name < item.name } ?? true }
        lanes[item.lane, default: []].insert(id, at: last.map { $0 + 1 } ?? 0)
        items[id] = item
        names.insert(item.name)
        offer(item.lane)
    }

    /// Removes an entry, and returns it.
    mutating func remove(_ id: UUID) -> Item? {
        guard let item = items.removeValue(forKey: id) else { return nil }
        names.remove(item.name)
        lanes[item.lane]?.removeAll { $0 == id }
        if lanes[item.lane]?.isEmpty == true { lanes[item.lane] = nil }
        offer(item.lane)
        return item
    }

    /// Changes an entry, and returns it; `nil` if it was removed.
    @discardableResult
    mutating func change(_ id: UUID, _ change: (inout Item) -> Void) -> Item? {
        guard var item = items[id] else { return nil }
        change(&item)
        items[id] = item
        offer(item.lane)
        return item
    }

    mutating func becomeSender() {
        guard !isSender else { return }
        isSender = true
        for lane in lanes.keys { offer(lane) }
    }

    mutating func close() {
        isClosed = true
        observers = [:]
    }

    /// Returns the entries to send now. Their lanes are busy until ``release(_:)``.
    mutating func start(limit: Int) -> [Item] {
        var started: [Item] = []
        while !isClosed, busy.count - decisions < max(limit, 1), let id = ready.popFirst() {
            guard var item = items[id] else { continue }
            item.isQueued = false
            let isFirst = lanes[item.lane]?.first == id && !busy.contains(item.lane)
            if isFirst, item.entry.state == .waiting {
                busy.insert(item.lane)
                item.turn += 1
                item.entry.state = .sending
                started.append(item)
            }
            items[id] = item
        }
        return started
    }

    mutating func release(_ lane: Lane) {
        busy.remove(lane)
        tasks[lane] = nil
        offer(lane)
    }

    func isBusy(_ lane: Lane) -> Bool { busy.contains(lane) }

    private mutating func offer(_ lane: Lane) {
        guard isSender, !busy.contains(lane), let id = lanes[lane]?.first, let item = items[id],
            item.entry.state == .waiting, !item.isQueued
        else { return }
        items[id]?.isQueued = true
        ready.append(id)
    }
}
