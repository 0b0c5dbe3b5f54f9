/// The asynchronous sequences that are notified when a value changes. The lock of the value guards
/// these sequences.
package struct ChangeObservers<Element: Sendable>: Sendable {
    package typealias Observer = AsyncStream<Element>.Continuation

    private var observers: [UInt64: Observer] = [:]
    private var last: UInt64 = 0

    package init() {}

    /// All observers, to be notified after the lock is released.
    package var all: [Observer] { observers.isEmpty ? [] : Array(observers.values) }

    private mutating func add(_ observer: Observer, _ first: Element?) -> UInt64 {
        last += 1
        observers[last] = observer
        // This element precedes every later change, because the lock is held.
        if let first { observer.yield(first) }
        return last
    }

    /// Returns a sequence with the current element, if any, and the new element after each change.
    /// A slow reader receives the latest elements.
    ///
    /// - Parameters:
    ///   - count: The number of unread elements that are retained. Defaults to 1.
    ///   - withObservers: A closure that calls its argument with the observers and the current
    ///     element while their lock is held.
    package static func changes(
        buffering count: Int = 1,
        _ withObservers: @escaping @Sendable (_ body: (inout ChangeObservers, Element?) -> Void) -> Void
    ) -> AsyncStream<Element> {
        AsyncStream(bufferingPolicy: .bufferingNewest(count)) { continuation in
            var id: UInt64 = 0
            withObservers { id = $0.add(continuation, $1) }
            continuation.onTermination = { [id] _ in
                var removed: Observer?
                withObservers { observers, _ in removed = observers.observers.removeValue(forKey: id) }
                withExtendedLifetime(removed) {}
            }
        }
    }
}
