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
        var delivery = SerialDelivery<TransferProgress>()

        mutating func next() -> (TransferProgress, [Handler])? {
            delivery.next().map { ($0, handlers) }
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
        let delivers = state.withLock { state in
            if !state.delivery.isOver { state.latest = progress }
            state.delivery.append(progress, replacesOthers: true)
            return state.delivery.begin()
        }
        if delivers { clock.async { self.deliver() } }
    }

    func end() {
        if state.withLock({ $0.delivery.end() }) != nil { finish() }
    }

    func delivered() async { _ = await isDelivered.value }

    private func deliver() {
        while let (progress, handlers) = state.withLock({ $0.next() }) {
            for handler in handlers { handler(progress) }
        }
        if state.withLock({ $0.delivery.isOver }) { finish() }
    }

    /// Releases the handlers.
    private func finish() {
        let spent = state.withLock { state in
            defer { state.handlers = [] }
            return state.handlers
        }
        withExtendedLifetime(spent) {}
        isDelivered.set(true)
    }
}
