/// Values that handlers receive before the result. The handlers of the result wait for them.
package protocol Prelude: AnyObject, Sendable {
    /// Accepts no further value.
    func end()

    /// Waits until the last value has been delivered. Called once, after ``end()``.
    func delivered() async
}

/// Delivers progress to the handlers of a task: in the background, one call after another, always
/// the latest progress, and none after the end.
final class ProgressRelay: Prelude {
    typealias Handler = @Sendable (TransferProgress) -> Void

    /// A value, for one handler or for all.
    private struct Value {
        let progress: TransferProgress
        var only: Handler?
    }

    private struct State {
        var handlers: [Handler] = []
        var latest: TransferProgress?
        var delivery = SerialDelivery<Value>()
        /// A Boolean value that indicates whether a value for all handlers is pending.
        var isUpdated = false

        mutating func next() -> (TransferProgress, [Handler])? {
            let value = delivery.next()
            if value?.only == nil { isUpdated = false }
            return value.map { ($0.progress, $0.only.map { [$0] } ?? handlers) }
        }
    }

    private let state = Mutex(State())
    private let isDelivered = Once<Bool>()
    private let clock: TaskClock

    init(_ clock: TaskClock) { self.clock = clock }

    /// The progress that was reported last.
    var latest: TransferProgress? { state.withLock { $0.latest } }

    /// Adds a handler, which receives the progress that was reported before.
    ///
    /// - Parameter progress: That progress; `nil` if there is none.
    func add(_ handler: @escaping Handler, after progress: TransferProgress?) {
        let delivers = state.withLock { state in
            state.handlers.append(handler)
            // A pending value for all handlers is newer.
            guard let progress = state.latest ?? progress, !state.isUpdated else { return false }
            state.delivery.append(Value(progress: progress, only: handler))
            return state.delivery.begin()
        }
        if delivers { clock.async { self.deliver() } }
    }

    /// A handler that calls ``update(_:)``.
    var handler: Handler { { self.update($0) } }

    /// Reports progress. Returns immediately.
    func update(_ progress: TransferProgress) {
        let delivers = state.withLock { state in
            if !state.delivery.isOver { (state.latest, state.isUpdated) = (progress, true) }
            state.delivery.append(Value(progress: progress), replacesOthers: true)
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
        if state.withLock({ $0.delivery.isFinished }) { finish() }
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
