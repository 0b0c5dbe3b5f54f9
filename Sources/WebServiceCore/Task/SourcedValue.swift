public import Foundation

/// A value with its source, age and date.
public struct SourcedValue<Value: Sendable>: Sendable {
    /// The value, without its source and age.
    public let value: Value
    /// The source of the value, such as ``Response/Source/network`` or ``Response/Source/storage``.
    public let source: Response.Source
    /// The age of the value when it was read.
    ///
    /// The age is `nil` for a new value. It is also `nil` if the date is unknown or, because of an
    /// incorrect clock, in the future.
    public let age: Duration?
    /// The date at which the value was stored or last validated; `nil` if ``age`` is `nil`.
    public let date: Date?

    /// Whether the value comes from a storage or a cache.
    public var isStored: Bool { source == .storage || source == .cache || source == .revalidated }

    package init(_ value: Value, source: Response.Source, age: Duration?, date: Date?) {
        self.value = value
        self.source = source
        self.age = age
        self.date = age == nil ? nil : date
    }
}

/// A value that is delivered once to each observer, before the result. After the task has its
/// result, neither a value nor an observer is accepted, and the handlers of the result wait until
/// the observers of a delivery in progress have returned.
package final class EarlyValue<Value: Sendable>: Prelude {
    package typealias Receiver = @Sendable (SourcedValue<Value>) async -> Void

    private struct State {
        var value: SourcedValue<Value>?
        var observers = SerialDelivery<Receiver>()
    }

    private let state = Mutex(State())
    private let isDelivered = Once<Bool>()
    private let clock: TaskClock

    package init(_ clock: TaskClock) { self.clock = clock }

    /// Adds an observer. An observer that is added after the result is never called, because the
    /// result is available.
    package func add(_ observer: @escaping Receiver) {
        deliver(
            state.withLock { state in
                state.observers.append(observer)
                return state.value != nil && state.observers.begin() ? state.value : nil
            })
    }

    /// Sets the value and notifies the observers.
    package func announce(_ value: SourcedValue<Value>) {
        deliver(
            state.withLock { state in
                guard !state.observers.isOver, state.value == nil else { return nil }
                state.value = value
                return state.observers.begin() ? value : nil
            })
    }

    package func end() {
        if state.withLock({ $0.observers.end() }) != nil { isDelivered.set(true) }
    }

    package func delivered() async { _ = await isDelivered.value }

    private func deliver(_ value: SourcedValue<Value>?) {
        guard let value else { return }
        Task(executorPreference: clock.executor) { [self] in
            while let observer = state.withLock({ $0.observers.next() }) { await observer(value) }
            if state.withLock({ $0.observers.isFinished }) { isDelivered.set(true) }
        }
    }
}
