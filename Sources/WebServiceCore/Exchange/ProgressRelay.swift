/// Values that handlers receive before the result. The handlers of the result wait for them.
protocol Prelude: AnyObject, Sendable {
    /// Accepts no further value.
    func end()

    /// Waits until the last value was delivered. Called once, after ``end()``.
    func delivered() async
}

/// Delivers progress to the handlers of a task: in the background, one call after another, always
/// the latest progress, and none after the end.
final class ProgressRelay: Prelude {
    typealias Handler = @Sendable (TransferProgress) -> Void

    private struct State {
        var handlers: [Handler] = []
        var latest: TransferProgress?
        /// A Boolean value that indicates whether the latest progress has not been delivered yet.
        var isNew = false
        var isDelivering = false
        var isOver = false

        enum Step {
            case deliver(TransferProgress, [Handler])
            /// Nothing to deliver. The handlers are returned at the end, to be released outside the
            /// lock.
            case rest(isOver: Bool, spent: [Handler])
        }

        mutating func next() -> Step {
            if isNew, let latest {
                isNew = false
                return .deliver(latest, handlers)
            }
            isDelivering = false
            defer { if isOver { handlers = [] } }
            return .rest(isOver: isOver, spent: isOver ? handlers : [])
        }
    }

    private let state = Mutex(State())
    private let isDelivered = Once<Bool>()
    private let clock: TaskClock

    init(_ clock: TaskClock) { self.clock = clock }

    /// The progress that was reported last.
    var latest: TransferProgress? { state.withLock { $0.latest } }

    func add(_ handler: @escaping Handler) {
        state.withLock { $0.handlers.append(handler) }
    }

    /// A handler that calls ``update(_:)``.
    var handler: Handler { { self.update($0) } }

    /// Reports progress. Returns immediately.
    func update(_ progress: TransferProgress) {
        let begins = state.withLock { state in
            guard !state.isOver else { return false }
            state.latest = progress
            state.isNew = true
            defer { state.isDelivering = true }
            return !state.isDelivering
        }
        if begins { clock.async { self.deliver() } }
    }

    func end() {
        let isDelivering = state.withLock { state in
            state.isOver = true
            return state.isDelivering
        }
        if !isDelivering { isDelivered.set(true) }
    }

    func delivered() async { _ = await isDelivered.value }

    private func deliver() {
        while true {
            switch state.withLock({ $0.next() }) {
            case .deliver(let progress, let handlers): for handler in handlers { handler(progress) }
            case .rest(let isOver, _):
                if isOver { isDelivered.set(true) }
                return
            }
        }
    }
}
