/// Values that one caller at a time delivers, in order: all of them, or only the newest.
///
/// This value is part of a state that a lock protects. The caller that ``begin()`` selects delivers
/// the values of ``next()`` outside the lock, until it returns `nil`.
package struct SerialDelivery<Value> {
    private var waiting = Queue<Value>()
    private var isDelivering = false
    /// A Boolean value that indicates whether no further value is accepted.
    private(set) var isOver = false
    /// A Boolean value that indicates whether the delivery is over and every value was delivered.
    var isFinished: Bool { isOver && !isDelivering }

    package init() {}

    /// Appends a value, unless the delivery is over.
    ///
    /// - Parameter replacesOthers: Whether the value replaces the pending ones.
    package mutating func append(_ value: Value, replacesOthers: Bool = false) {
        guard !isOver else { return }
        if replacesOthers { waiting = Queue() }
        waiting.append(value)
    }

    /// - Returns: Whether the caller must deliver the pending values.
    package mutating func begin() -> Bool {
        guard !isDelivering, !waiting.isEmpty else { return false }
        isDelivering = true
        return true
    }

    /// Returns the next value for the caller that delivers.
    package mutating func next() -> Value? {
        let value = waiting.popFirst()
        isDelivering = value != nil
        return value
    }

    /// Accepts no further value.
    ///
    /// - Returns: The values that no caller delivers, to be released outside the lock; `nil` while
    ///   a delivery is in progress.
    mutating func end() -> Queue<Value>? {
        isOver = true
        guard !isDelivering else { return nil }
        defer { waiting = Queue() }
        return waiting
    }
}
