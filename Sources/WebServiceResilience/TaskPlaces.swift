import WebServiceCore

/// The tasks of a ``TaskQueue``, waiting or in flight.
///
/// The lock is a leaf: while it is held, no task is started, cancelled or released.
final class TaskPlaces: Sendable {
    private struct State {
        /// The waiting places by their rank, the lowest first.
        var waiting = PriorityQueue<TaskPlace>()
        /// The places that have not been left.
        var entries: [ObjectIdentifier: Entry] = [:]
        var inFlight = 0
        /// The number of places so far.
        var count: UInt64 = 0
    }

    private struct Entry {
        let place: TaskPlace
        let number: UInt64
        /// The token among the waiting places; `nil` if the task is in flight.
        var token: PriorityQueue<TaskPlace>.Token?
    }

    private let maximum: Int
    private let state = Mutex(State())

    init(maximum: Int) {
        self.maximum = maximum
    }

    /// Adds a task, unless it was already resumed or is in a queue, and starts it if its turn has
    /// come.
    func add(_ task: SessionTask, _ priority: Request.Priority) {
        guard task.enterQueue() else { return }
        let place = TaskPlace(task, in: self)
        let startsNow = state.withLock { state in
            defer { state.count += 1 }
            let startsNow = state.inFlight < maximum
            if startsNow { state.inFlight += 1 }
            let token = startsNow ? nil : state.waiting.add(place, at: priority.rank(state.count))
            state.entries[place.id] = Entry(place: place, number: state.count, token: token)
            return startsNow
        }
        // Another thread may have cancelled the task, or started and completed it.
        guard task.attach(place) else { return leave(place.id) }
        if startsNow { place.start() }
    }

    func setPriority(_ priority: Request.Priority, of id: ObjectIdentifier) {
        state.withLock { state in
            guard let entry = state.entries[id], let token = entry.token else { return }
            state.waiting.remove(token)
            state.entries[id]?.token = state.waiting.add(entry.place, at: priority.rank(entry.number))
        }
    }

    /// Removes a place. If its task was in flight, the next task starts.
    func leave(_ id: ObjectIdentifier) {
        let (entry, next) = state.withLock { state -> (Entry?, TaskPlace?) in
            let entry = state.entries.removeValue(forKey: id)
            guard let entry else { return (nil, nil) }
            if let token = entry.token {
                state.waiting.remove(token)
                return (entry, nil)
            }
            guard let next = state.waiting.popFirst() else {
                state.inFlight -= 1
                return (entry, nil)
            }
            state.entries[next.id]?.token = nil
            return (entry, next)
        }
        withExtendedLifetime(entry) {}
        next?.startLater()
    }

    func cancelAll() {
        let entries = state.withLock { state in
            let entries = state.entries
            // No waiting task starts when those in flight are cancelled.
            state.entries = entries.filter { $0.value.token == nil }
            state.waiting = PriorityQueue()
            return entries.values
        }
        for entry in entries { entry.place.cancel() }
    }
}

extension Request.Priority {
    /// Returns the rank of the waiting place with this number. Places with a lower rank come first.
    func rank(_ number: UInt64) -> UInt64 {
        let level: UInt64 =
            switch self {
            case .high: 0
            case .normal: 1
            case .low: 2
            }
        return level << 62 | number
    }
}

/// The place of one task in a ``TaskQueue``.
///
/// The task ends its place when it has a result. A place delivers no values.
final class TaskPlace: Prelude {
    /// The identity of the task.
    let id: ObjectIdentifier
    /// The task; `nil` after the end, so that the task does not retain itself.
    private let task: Mutex<SessionTask?>
    private let places: TaskPlaces
    /// The deadline of the code that added the task.
    private let scope = DeadlineScope.current

    init(_ task: SessionTask, in places: TaskPlaces) {
        id = ObjectIdentifier(task)
        self.task = Mutex(task)
        self.places = places
    }

    /// Starts the task on the calling thread.
    func start() {
        task.withLock { $0 }?.leaveQueue(in: scope)
    }

    /// Starts the task in the background, because its turn has come.
    func startLater() {
        guard let clock = task.withLock({ $0?.clock }) else { return }
        Task.detached(executorPreference: clock.executor) { self.start() }
    }

    func cancel() {
        task.withLock { $0 }?.cancel()
    }

    func end() {
        let task = task.withLock { $0.take() }
        withExtendedLifetime(task) {}
        places.leave(id)
    }

    func delivered() async {}
}
