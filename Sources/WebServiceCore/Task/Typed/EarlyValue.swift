/// A value that is delivered to observers before the result, once. No observer is called after the
/// end, and the handlers of the result wait for the observers in progress.
final class EarlyValue<Value: Sendable>: Prelude {
    typealias Receiver = @Sendable (SourcedValue<Value>) async -> Void

    private struct State {
        var value: SourcedValue<Value>?
        var observers: [Receiver] = []
        var isNotifying = false
        var isOver = false

        /// Returns whether the caller must notify observers.
        mutating func claim() -> Bool {
            guard value != nil, !observers.isEmpty, !isNotifying else { return false }
            isNotifying = true
            return true
        }

        enum Step: Sendable {
            case notify(SourcedValue<Value>, [Receiver])
            case rest(isOver: Bool)
        }

        mutating func next() -> Step {
            if let value, !observers.isEmpty {
                defer { observers = [] }
                return .notify(value, observers)
            }
            isNotifying = false
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
        let notifies = state.withLock { state in
            guard !state.isOver else { return false }
            state.observers.append(observer)
            return state.claim()
        }
        if notifies { notify() }
    }

    /// Sets the value and notifies the observers.
    func announce(_ value: SourcedValue<Value>) {
        let notifies = state.withLock { state in
            guard !state.isOver, state.value == nil else { return false }
            state.value = value
            return state.claim()
        }
        if notifies { notify() }
    }

    func end() {
        let (isNotifying, observers) = state.withLock { state in
            state.isOver = true
            defer { if !state.isNotifying { state.observers = [] } }
            return (state.isNotifying, state.observers)
        }
        withExtendedLifetime(observers) {}
        if !isNotifying { isDelivered.set(true) }
    }

    func delivered() async { _ = await isDelivered.value }

    private func notify() {
        Task(executorPreference: clock.executor) { [self] in
            while true {
                switch state.withLock({ $0.next() }) {
                case .notify(let value, let observers): for observer in observers { await observer(value) }
                case .rest(let isOver):
                    if isOver { isDelivered.set(true) }
                    return
                }
            }
        }
    }
}
