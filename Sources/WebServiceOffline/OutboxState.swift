import Foundation
import WebServiceCore

/// The entries of an outbox in memory, and the state that determines which of them are sent.
///
/// A lane contains the entries of one entity, the entries without an entity that have one key, or
/// one independent entry. Only the first entry of a lane may be sent. The duration of
/// ``becomeSender()`` and ``reconnect(_:)`` is proportional to the number of entries. Changes of
/// entries are recorded for the observers in the order in which they are made.
struct OutboxState {
    enum Lane: Hashable, Sendable {
        /// Entities with the same hash share a lane.
        case entity(_ hash: UInt64)
        case entry(UUID)
    }

    /// Returns the hash of an entity, as it is used in the names of entries.
    static func hash(_ entity: String) -> UInt64 {
        var entity = entity
        return entity.withUTF8 { XXHash64.hash(UnsafeRawBufferPointer($0)) }
    }

    struct Item: Sendable {
        /// The name of the file.
        let name: String
        let lane: Lane
        var entry: Outbox.Entry
        /// Whether the file could not be read. If so, the entity and the date are unknown.
        var isUnread = false
        /// The number of consecutive failures, which determines the pause.
        var failures = 0
        /// The number of the current attempt or pause, which identifies it.
        var turn = 0
        var isQueued = false
        /// Whether another entry replaced this one while it was being sent.
        var isReplaced = false
        /// The final state, if only the file remains to be removed.
        var outcome: Outbox.Entry.State?
        /// The response to store when the file is removed.
        var response: Outbox.StoredResponse?
        var task: Task<Void, Never>?

        /// The date at which the entry expires; `nil` if it does not expire, if it is being sent,
        /// if its result is known, or if its failure was reported.
        var expiration: Date? {
            switch entry.state {
            case .waiting, .held, .pausing: outcome == nil ? entry.expirationDate : nil
            case .sending, .blocked, .sent, .removed: nil
            }
        }

        mutating func beginAttempt() {
            entry.state = .sending
            if outcome == nil { entry.attempts += 1 }
        }

        init(name: String, entry: Outbox.Entry) {
            (self.name, self.entry) = (name, entry)
            let hash = entry.entity.map(OutboxState.hash) ?? OutboxNames.lane(of: name)
            lane = hash.map(Lane.entity) ?? .entry(entry.id)
        }
    }

    private(set) var items: [UUID: Item] = [:]
    private var names: Set<String> = []
    /// The names of damaged files, including those that could not be renamed.
    private(set) var damaged: Set<String> = []
    /// Whether this process is the one that sends.
    private(set) var isSender = false
    private(set) var isClosed = false
    /// Whether the outbox begins no further requests and accepts no further submissions.
    private(set) var isEnding = false
    /// Whether requests or closures in progress were cancelled when the outbox was closed.
    private(set) var isCut = false
    /// Whether the lock was released. After that, this process neither sends entries nor stores
    /// results.
    private(set) var isReleased = false
    /// Whether the last attempt to list the entries failed.
    var isUnreadable = false
    /// Whether a read of the folder is scheduled.
    var isReadSoon = false
    var observers: [UUID: AsyncStream<Outbox.Update>.Continuation] = [:]
    /// The observers of the names of stored responses.
    var readers: [UUID: AsyncStream<String>.Continuation] = [:]
    /// The names of the stored responses, in the order in which this process found them.
    private(set) var responses: [String] = []
    /// The changes that have not been delivered yet.
    var delivery = SerialDelivery<Delivery>()

    /// A change and the observers that receive it.
    struct Delivery: Sendable {
        enum Change: Sendable {
            case update(Outbox.Update)
            case response(String)
            /// The sequences of the observers end.
            case end
        }

        var change: Change
        var observers: [UUID: AsyncStream<Outbox.Update>.Continuation] = [:]
        var readers: [UUID: AsyncStream<String>.Continuation] = [:]
    }

    private var lanes: [Lane: [UUID]] = [:]
    /// The lanes that have a request in flight, or a condition or decision in progress.
    private var busy: Set<Lane> = []
    /// The tasks of the busy lanes, including those of removed entries.
    var tasks: [Lane: Task<Void, Never>] = [:]
    /// The lanes that have a decision in progress.
    private(set) var decisions: Set<Lane> = []
    /// The lanes whose condition is being evaluated.
    private var conditions: Set<Lane> = []
    /// Whether a condition is evaluated before an entry is sent.
    var hasCondition = false
    /// The number of times that ``reevaluate()`` was called.
    private(set) var conditionTurn = 0
    private var ready = Queue<UUID>()
    /// The earliest date at which the first entry of a lane expires; `nil` if no such entry
    /// expires.
    private var nextExpiration: Date?
    /// The date for which an alarm is scheduled.
    private var scheduledExpiration: Date?
    var outage = OutboxOutage()

    /// Adds an entry, in the order of the file names.
    mutating func insert(_ item: Item) {
        let id = item.entry.id
        guard items[id] == nil else { return }
        // New entries almost always belong at the end.
        let last = lanes[item.lane]?.lastIndex { items[$0].map { $0.name < item.name } ?? true }
        lanes[item.lane, default: []].insert(id, at: last.map { $0 + 1 } ?? 0)
        items[id] = item
        names.insert(item.name)
        record(.entry(item.entry))
        offer(item.lane)
    }

    /// Removes an entry and returns it.
    ///
    /// - Parameter last: The final state of the entry.
    @discardableResult
    mutating func remove(_ id: UUID, as last: Outbox.Entry.State) -> Item? {
        guard var item = items.removeValue(forKey: id) else { return nil }
        item.entry.state = last
        record(.entry(item.entry))
        names.remove(item.name)
        lanes[item.lane]?.removeAll { $0 == id }
        if lanes[item.lane]?.isEmpty == true { lanes[item.lane] = nil }
        offer(item.lane)
        return item
    }

    /// Removes an entry that another entry has replaced, or marks it if it is being sent.
    mutating func replace(_ name: String) {
        guard let id = OutboxNames.id(of: name), let item = items[id], item.outcome == nil else { return }
        if item.entry.state == .sending { items[id]?.isReplaced = true } else { remove(id, as: .removed) }
    }

    /// Changes an entry and returns it, or returns `nil` if the entry was removed.
    @discardableResult
    mutating func change(_ id: UUID, _ change: (inout Item) -> Void) -> Item? {
        guard var item = items[id] else { return nil }
        let state = item.entry.state
        change(&item)
        items[id] = item
        if item.entry.state != state { record(.entry(item.entry)) }
        offer(item.lane)
        return item
    }

    /// Adds the entity and the date of an entry that could not be read before, and returns the
    /// entry.
    mutating func complete(_ item: Item, with head: StoredRequest.Head) -> Item {
        guard item.isUnread else { return item }
        let completed = change(item.entry.id) { item in
            var entry = Outbox.Entry(head)
            (entry.state, entry.attempts) = (item.entry.state, item.entry.attempts)
            (item.entry, item.isUnread) = (entry, false)
        }
        return completed ?? item
    }

    /// The names of the entries that could not be read, in ascending order.
    var unreadNames: [String] { items.values.filter(\.isUnread).map(\.name).sorted() }

    /// Records a failure to read the folder or the file of an entry.
    mutating func addUnreadable(_ file: URL) { record(.unreadable(file)) }

    /// Lets a pausing, blocked or held entry wait to be sent.
    mutating func resume(_ id: UUID) {
        switch items[id]?.entry.state {
        case .blocked, .held, .pausing:
            change(id) {
                $0.entry.state = .waiting
                $0.turn += 1
            }
        case .waiting, .sending, .sent, .removed, nil: break
        }
    }

    /// Ends a pause of the outbox, and the pauses of entries that found no connection.
    mutating func reconnect(_ turn: Int) {
        outage.endPause(turn)
        for item in items.values where item.entry.lastFailure?.isUnconnected == true { resume(item.entry.id) }
    }

    /// Adds a damaged file, which may have been renamed.
    mutating func addDamaged(_ file: URL) {
        if damaged.insert(file.lastPathComponent).inserted { record(.damagedFile(file)) }
    }

    /// Adds damaged files that were already reported.
    mutating func addKnownDamaged(_ names: [String]) { damaged.formUnion(names) }

    mutating func becomeSender() {
        guard !isSender else { return }
        isSender = true
        for lane in lanes.keys { offer(lane) }
    }

    /// Begins no further requests, and refuses submissions.
    ///
    /// - Returns: The tasks in progress.
    mutating func beginEnd() -> [Task<Void, Never>] {
        isEnding = true
        return Array(tasks.values)
    }

    /// Begins no further requests, refuses submissions, and marks the outbox as closed.
    ///
    /// - Returns: The tasks in progress.
    mutating func close() -> [Task<Void, Never>] {
        isClosed = true
        let tasks = beginEnd()
        if !tasks.isEmpty { isCut = true }
        return tasks
    }

    mutating func release() { isReleased = true }

    /// The tasks in progress that run neither `onFailure` nor `canSend`.
    var sendingTasks: [Task<Void, Never>] {
        tasks.filter { lane, _ in !decisions.contains(lane) && !conditions.contains(lane) }.map(\.value)
    }

    /// Begins a call of `onFailure`, unless the outbox is closed. The call does not count as a
    /// request in flight.
    mutating func beginDecision(_ item: Item) -> Bool {
        guard !isClosed else { return false }
        decisions.insert(item.lane)
        outage.end(item.entry.id)
        return true
    }

    mutating func endDecision(_ item: Item) { decisions.remove(item.lane) }

    /// Begins a call of `canSend`, unless the outbox begins no further requests.
    ///
    /// - Returns: The value of ``conditionTurn``, or `nil` if the call must not begin.
    mutating func beginCondition(_ item: Item) -> Int? {
        guard !isEnding else { return nil }
        conditions.insert(item.lane)
        return conditionTurn
    }

    /// Removes all entries from memory after the outbox has been closed.
    mutating func removeAll() { (items, names, damaged, lanes, ready, responses) = ([:], [], [], [:], Queue(), []) }

    /// Ends the sequences of the observers after the changes that were recorded before.
    mutating func endUpdates() {
        delivery.append(Delivery(change: .end, observers: observers, readers: readers))
        (observers, readers) = ([:], [:])
    }

    private mutating func record(_ update: Outbox.Update) {
        guard !observers.isEmpty else { return }
        delivery.append(Delivery(change: .update(update), observers: observers))
    }

    /// Returns the entries to send now. Their lanes are busy until ``release(_:)`` is called.
    mutating func start(limit: Int) -> [Item] {
        var started: [Item] = []
        while !isEnding, outage.permits(inFlight: busy.count - decisions.count, limit: max(limit, 1)),
            let id = ready.popFirst()
        {
            guard var item = items[id] else { continue }
            item.isQueued = false
            let isFirst = lanes[item.lane]?.first == id && !busy.contains(item.lane)
            if isFirst, item.entry.state == .waiting {
                busy.insert(item.lane)
                outage.begin(id)
                item.turn += 1
                if !hasCondition || item.outcome != nil {
                    item.beginAttempt()
                    record(.entry(item.entry))
                }
                started.append(item)
            }
            items[id] = item
        }
        return started
    }

    /// Returns the expired entries that are first in their lanes, in the order of their names.
    /// Their lanes are busy until ``release(_:)`` is called.
    mutating func startExpired(at date: Date) -> [Item] {
        guard !isEnding, let next = nextExpiration, next <= date else { return [] }
        nextExpiration = nil
        var expired: [Item] = []
        for (lane, ids) in lanes where !busy.contains(lane) {
            guard let id = ids.first, let expiration = items[id]?.expiration else { continue }
            guard expiration <= date else {
                nextExpiration = min(nextExpiration ?? expiration, expiration)
                continue
            }
            busy.insert(lane)
            let item = change(id) {
                $0.entry.state = .waiting
                $0.turn += 1
            }
            if let item { expired.append(item) }
        }
        return expired.sorted { $0.name < $1.name }
    }

    /// Returns the date for which an alarm must be scheduled, or `nil` if no further alarm is
    /// needed.
    mutating func takeExpiration() -> Date? {
        guard !isEnding, let next = nextExpiration, scheduledExpiration.map({ next < $0 }) ?? true else { return nil }
        scheduledExpiration = next
        return next
    }

    /// Removes the scheduled alarm after it has fired.
    mutating func endExpirationAlarm() { scheduledExpiration = nil }

    /// Changes an entry after its condition has been evaluated.
    ///
    /// - Parameter turn: The value of ``conditionTurn`` before the evaluation.
    /// - Returns: The entry if it may be sent; otherwise `nil`.
    mutating func begin(_ id: UUID, canSend: Bool, turn: Int) -> Item? {
        if let lane = items[id]?.lane { conditions.remove(lane) }
        let (isCurrent, isEnding) = (turn == conditionTurn, isEnding)
        let item = change(id) { item in
            if canSend { item.beginAttempt() } else if isCurrent, !isEnding { item.entry.state = .held }
        }
        return canSend ? item : nil
    }

    /// Causes the condition of held entries to be evaluated again.
    mutating func reevaluate() {
        conditionTurn += 1
        for item in items.values where item.entry.state == .held { resume(item.entry.id) }
    }

    mutating func release(_ item: Item) {
        busy.remove(item.lane)
        conditions.remove(item.lane)
        tasks[item.lane] = nil
        outage.end(item.entry.id)
        offer(item.lane)
    }

    /// Returns whether a name is that of an entry or of a damaged file.
    func isKnown(_ name: String) -> Bool { names.contains(name) || damaged.contains(name) }

    func isBusy(_ lane: Lane) -> Bool { busy.contains(lane) }

    private mutating func offer(_ lane: Lane) {
        guard isSender, !busy.contains(lane), let id = lanes[lane]?.first, let item = items[id] else { return }
        if let expiration = item.expiration { nextExpiration = min(nextExpiration ?? expiration, expiration) }
        guard item.entry.state == .waiting, !item.isQueued else { return }
        items[id]?.isQueued = true
        ready.append(id)
    }

    // MARK: Responses

    /// Adds an observer of the names of stored responses. It first receives the names that are
    /// already present.
    mutating func addReader(_ reader: AsyncStream<String>.Continuation, _ id: UUID) {
        readers[id] = reader
        for name in responses { delivery.append(Delivery(change: .response(name), readers: [id: reader])) }
    }

    /// Adds a stored response.
    mutating func addResponse(_ name: String) {
        if !responses.contains(name) { append(name) }
    }

    private mutating func append(_ name: String) {
        responses.append(name)
        if !readers.isEmpty { delivery.append(Delivery(change: .response(name), readers: readers)) }
    }

    mutating func removeResponse(_ name: String) { responses.removeAll { $0 == name } }

    /// Replaces the names of the stored responses with those that were listed.
    mutating func setResponses(_ names: [String]) {
        guard names != responses else { return }
        let (present, known) = (Set(names), Set(responses))
        responses.removeAll { !present.contains($0) }
        for name in names where !known.contains(name) { append(name) }
    }

    func responseName(of id: UUID) -> String? { responses.first { OutboxNames.id(of: $0) == id } }
}
