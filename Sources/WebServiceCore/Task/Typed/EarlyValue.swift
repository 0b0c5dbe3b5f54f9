/// A value that is delivered to observers before the result, once. No observer is called after the
/// end, and the handlers of the result wait for the observers in progress.
final class EarlyValue<Value: Sendable>: Prelude {
    typealias Receiver = @Sendable (SourcedValue<Value>) async -> Void

    private struct State {
        var value: SourcedValue<Value>?
        var observers: [Receiver] = []
        var isTelling = false
        var isOver = false

        /// Returns whether the caller must notify observers.
        mutating func claim() -> Bool {
            guard value != nil, !observers.isEmpty, !isTelling else { return false }
            isTelling = true
            return true
        }

        enum Step: Sendable {
            case tell(SourcedValue<Value>, [Receiver])
            case rest(isOver: Bool)
        }

        mutating func next() -> Step {
            if let value, !observers.isEmpty {
                defer { observers = [] }
                return .tell(value, observers)
            }
            isTelling = false
            return .rest(isOver: isOver)
        }
    }

    private let state = Mutex(State())
    private let isDelivered = Once<Bool>()
    private let clock: TaskClock

    init(_ clock: TaskClock) { self.clock = clock }

    /// Adds an observer. One that is added after the end is never called, because a newer value is
    /// available.
    func add(_ observer: @escaping Receiver) {
        let tells = state.withLock { state in
            guard !state.isOver else { return false }
            state.observers.append(observer)
            return state.claim()
        }
        if tells { tell() }
    }

    /// Sets the value and notifies the observers.
    func announce(_ value: SourcedValue<Value>) {
        let tells = state.withLock { state in
            guard !state.isOver, state.value == nil else { return false }
            state.value = value
            return state.claim()
        }
        if tells { tell() }
    }

    func end() {
        let (isTelling, observers) = state.withLock { state in
            state.isOver = true
            defer { if !state.isTelling { state.observers = [] } }
            return (state.isTelling, state.observers)
        }
        withExtendedLifetime(observers) {}
        if !isTelling { isDelivered.set(true) }
    }

    func delivered() async { _ = await isDelivered.value }

    private func tell() {
        Task(executorPreference: clock.executor) { [self] in
            while true {
                switch state.withLock({ $0.next() }) {
                case .tell(let value, let observers): for observer in observers { await observer(value) }
                case .rest(let isOver):
                    if isOver { isDelivered.set(true) }
                    return
                }
            }
        }
    }
}
