public import Foundation

/// A value with its origin: who gave it, and how old it is.
public struct LabelledValue<Value: Sendable>: Sendable {
    /// The value.
    public let value: Value
    /// Who gave it, such as ``Response/Source/network`` or ``Response/Source/storage``.
    public let source: Response.Source
    /// How old it was in seconds when it was read; `nil` for one that is new, and where nobody knows.
    public let age: TimeInterval?

    /// Whether a storage or a cache gave it.
    public var isStored: Bool { source == .storage || source == .cache || source == .revalidated }
}

/// A value that observers are told ahead of the outcome, once: none is told after the end, and the handlers of the outcome wait for those that are being told.
final class EarlyValue<Value: Sendable>: Prelude {
    typealias Observer = @Sendable (LabelledValue<Value>) async -> Void

    private struct State {
        var value: LabelledValue<Value>?
        var observers: [Observer] = []
        var isTelling = false
        var isOver = false
        var end: (@Sendable () -> Void)?

        /// Whether somebody has to be told, which the caller then does.
        mutating func claim() -> Bool {
            guard value != nil, !observers.isEmpty, !isTelling else { return false }
            isTelling = true
            return true
        }

        enum Step: Sendable {
            case tell(LabelledValue<Value>, [Observer])
            case rest((@Sendable () -> Void)?)
        }

        mutating func next() -> Step {
            if let value, !observers.isEmpty {
                defer { observers = [] }
                return .tell(value, observers)
            }
            isTelling = false
            return .rest(end.take())
        }
    }

    private let state = Mutex(State())

    /// Observers that were added after the end are not told: there is a newer value.
    func add(_ observer: @escaping Observer) {
        let tells = state.withLock { state in
            guard !state.isOver else { return false }
            state.observers.append(observer)
            return state.claim()
        }
        if tells { tell() }
    }

    /// There is a value.
    func announce(_ value: LabelledValue<Value>) {
        let tells = state.withLock { state in
            guard !state.isOver, state.value == nil else { return false }
            state.value = value
            return state.claim()
        }
        if tells { tell() }
    }

    func finish(_ then: @escaping @Sendable () -> Void) {
        let (isTelling, observers) = state.withLock { state in
            state.isOver = true
            if state.isTelling { state.end = then }
            defer { if !state.isTelling { state.observers = [] } }
            return (state.isTelling, state.observers)
        }
        withExtendedLifetime(observers) {}
        if !isTelling { then() }
    }

    private func tell() {
        Task {
            while true {
                switch state.withLock({ $0.next() }) {
                case .tell(let value, let observers): for observer in observers { await observer(value) }
                case .rest(let end): return end?() ?? ()
                }
            }
        }
    }
}
