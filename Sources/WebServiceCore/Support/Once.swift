import Synchronization

/// A value that is set once, by the first of several events, and awaited by one Swift task.
package final class Once<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiter: CheckedContinuation<Value, Never>?
    }

    private let state = Mutex(State())

    package init() {}

    package var isSet: Bool { state.withLock { $0.value != nil } }

    /// Sets the value. Later calls have no effect.
    package func set(_ value: Value) {
        let waiter = state.withLock { state in
            guard state.value == nil else { return nil as CheckedContinuation<Value, Never>? }
            state.value = value
            return state.waiter.take()
        }
        waiter?.resume(returning: value)
    }

    /// The value, available as soon as it is set. It may be awaited only once.
    nonisolated(nonsending) package var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let value = state.withLock { state in
                    if state.value == nil { state.waiter = continuation }
                    return state.value
                }
                if let value { continuation.resume(returning: value) }
            }
        }
    }

    /// Awaits ``value``, which the cancellation of the Swift task sets to `cancelled`.
    package func value(orIfCancelled cancelled: Value) async -> Value {
        await withTaskCancellationHandler {
            await value
        } onCancel: {
            set(cancelled)
        }
    }
}

/// A flag that can be set once.
package final class OnceFlag: Sendable {
    private let value = Atomic(false)

    package init() {}

    package var isSet: Bool { value.load(ordering: .acquiring) }

    /// Sets the flag.
    ///
    /// - Returns: Whether this call set the flag.
    package func set() -> Bool {
        !value.exchange(true, ordering: .acquiringAndReleasing)
    }
}
